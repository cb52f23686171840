"""What worked before: on the page of a case, and in mails, from cached measurements."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import BigIntegerField, F
from django.db.models.functions import Cast
from django.test.utils import CaptureQueriesContext

from ioportal.alerts import tasks
from ioportal.changes import past_effects
from ioportal.changes.models import Mitigation
from ioportal.jobs.models import Job, JobStatistics
from tests.logs import at
from tests.web.mitigations.rows import DAY, change_run_time, log
from tests.web.reading import text_of, words_of

CHANGED_AT = at("00:00") - 4 * DAY
READER = User(username="bob")
OPENS = {"open": 900, "close": 100}
TITLE = "alice cleaned the search path"


@pytest.fixture
def case(cluster, new_case, new_job):
    """Create jobs whose run time fell to a quarter, and a later case of bob."""
    change_run_time(cluster)
    return new_case(new_job(owner="bob", name="other"))


@pytest.fixture
def fix(case, new_case, new_job):
    """Log what changed the run times of alice, from a case of the same rule."""
    earlier = new_case(new_job(owner="alice"))
    return log(
        title=TITLE, kind="environment", metric="duration_s", factor=0.25, scope="user=alice",
        started_at=CHANGED_AT, case_key=earlier.pk,
    )  # fmt: skip


def test_staff_see_effects_once_they_are_measured(case, fix, as_staff, client):
    before = words_of(as_staff.get(f"/cases/{case.pk}/"))
    tasks.measure_mitigations()
    after = words_of(as_staff.get(f"/cases/{case.pk}/"))
    [(_, effect)] = past_effects.for_case(case)

    assert "1 mitigation is not measured yet." in before
    assert TITLE not in before
    assert "not measured yet" not in after
    assert effect.text.startswith("Duration fell 4.0")
    assert effect.text in after
    assert effect.strength == pytest.approx(4, rel=0.05)
    assert past_effects.measure_next(5) == 0


def test_mails_quote_what_helped_without_names(case, fix):
    assert past_effects.that_helped(case, OPENS, 5, READER) == []
    past_effects.measure_next(5)

    [line] = past_effects.that_helped(case, OPENS, 5, READER)
    assert line == "Environment clean-up: Duration fell."  # the jobs of one user
    [line] = past_effects.that_helped(case, OPENS, 5, User(username="alice"))
    assert line.startswith("Environment clean-up: Duration fell 4.0")
    assert "(3." in line
    assert "alice" not in line


@pytest.mark.parametrize(("owners", "is_quoted"), [(2, False), (3, True)])
def test_mails_quote_figures_of_many_users_only(case, fix, owners, is_quoted):
    Mitigation.objects.update(scope="name=relax")
    jobs = Job.objects.filter(name="relax").order_by("started_at")
    for number in range(owners - 1):
        keys = list(jobs.values_list("pk", flat=True))[number::owners]
        Job.objects.filter(pk__in=keys).update(owner=f"u{number}")
    past_effects.measure_next(5)

    [line] = past_effects.that_helped(case, OPENS, 5, READER)
    assert ("4." in line) == is_quoted


def test_mails_do_not_quote_figures_known_for_one_user(case, fix):
    """Three other users have as many jobs, but of these the metric is unknown."""
    Mitigation.objects.update(scope="name=relax", metric="opens")
    jobs = JobStatistics.objects.filter(job__name="relax")
    jobs.update(opens=Cast(F("duration_s") * 100, BigIntegerField()))
    keys = list(jobs.order_by("job__started_at").values_list("job", flat=True))
    for number in range(3):
        others = keys[2 * number + 1 :: 6]
        Job.objects.filter(pk__in=others).update(owner=f"u{number}")
        jobs.filter(job__in=others).update(opens=None)
    past_effects.measure_next(5)

    assert past_effects.that_helped(case, OPENS, 5, READER) == ["Environment clean-up: Opens fell."]


def test_a_joint_effect_names_the_other_mitigations(case, fix, as_staff):
    """Mails name only mitigations that all users may see."""
    other = log(title="Faster disks", started_at=CHANGED_AT + 2 * DAY, scope="user=alice")
    past_effects.measure_next(5)
    page = text_of(as_staff.get(f"/cases/{case.pk}/"))

    assert f'<a href="/mitigations/{other.pk}/">Faster disks</a> (3 Jul 2017).' in page
    for is_public, name in ((False, "another change"), (True, "“Faster disks”")):
        Mitigation.objects.filter(pk=other.pk).update(is_public=is_public)
        [line] = past_effects.that_helped(case, OPENS, 5, READER)
        assert line == (f"Environment clean-up together with {name} (3 Jul 2017): Duration fell.")


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"factor": 4}, id="the opposite was expected"),
        pytest.param({"started_at": CHANGED_AT - 8 * DAY}, id="no significant change"),
        pytest.param({"kind": "server"}, id="nothing that a user can do"),
        pytest.param({"reverted_at": CHANGED_AT + 20 * DAY}, id="reverted"),
        pytest.param({"case_key": None}, id="another kind of finding"),
    ],
)
def test_mails_do_not_quote(case, fix, facts):
    Mitigation.objects.update(**facts)
    past_effects.measure_next(5)

    assert past_effects.that_helped(case, OPENS, 5, READER) == []


@pytest.mark.parametrize(
    ("facts", "operations", "at_once", "quoted"),
    [
        pytest.param({}, {"open": 900}, 1, 1, id="opens are reduced"),
        pytest.param({}, {"mknod": 900, "open": 9}, 1, 0, id="opens, which the jobs do not do"),
        pytest.param({"kind": "concurrency"}, OPENS, 2, 1, id="several jobs at a time"),
        pytest.param({"kind": "concurrency"}, OPENS, 1, 0, id="one job at a time"),
    ],
)
def test_mails_quote_what_concerns_the_jobs(case, fix, facts, operations, at_once, quoted):
    Mitigation.objects.update(**facts)
    past_effects.measure_next(5)

    assert len(past_effects.that_helped(case, operations, at_once, READER)) == quoted


def test_an_effect_is_measured_again_after_its_mitigation_changed(case, fix):
    past_effects.measure_next(5)
    Mitigation.objects.update(started_at=CHANGED_AT - 8 * DAY)

    [(_, effect)] = past_effects.for_case(case)
    assert effect.text == "Not measured yet."
    assert past_effects.measure_next(5) == 1


def test_mitigations_of_the_same_user_are_listed(case, fix):
    own = log(title="Own", metric="duration_s", scope="user=bob", started_at=CHANGED_AT)
    log(title="Another user", metric="duration_s", scope="user=dora", started_at=CHANGED_AT)

    assert {each.title for each, _ in past_effects.for_case(case)} == {TITLE, own.title}


def test_the_number_of_queries_is_constant(case, fix, as_staff):
    def count():
        with CaptureQueriesContext(connection) as queries:
            past_effects.for_case(case)
            past_effects.that_helped(case, OPENS, 5, READER)
        return len(queries)

    past_effects.measure_next(5)
    first = count()
    for number in range(5):
        log(title=f"Fix {number}", metric="duration_s", case_key=fix.case_key)

    assert first == count() == 4
