"""Rule pages: back-tests of thresholds, and their changes."""

import pytest
from django.core.cache import cache

from ioportal.findings import back_tests
from ioportal.findings.models import BackTest, ThresholdSet
from ioportal.findings.thresholds import Place, ThresholdBook
from ioportal.jobs.models import DirtyEvidence
from ioportal.rules import RULES
from ioportal.telemetry.stage_runs import drain
from tests.logs import at
from tests.web.conftest import NOON
from tests.web.reading import csv_of, json_of, words_of

MANY = "/rules/metadata-operations/"
MILLION = 1_000_000
HOSTILE = "<b>\u202egubed</b>"
PERIOD = {"start": "2017-07-05T00:00", "end": "2017-07-06T00:00"}


@pytest.fixture
def jobs(new_job):
    """Three jobs of two users: the first far above the threshold, the last with poor data."""
    for millions, owner, quality in (
        (5, "alice", "good"),
        (1.5, "bob", "good"),
        (9, "bob", "poor"),
    ):
        operations = int(millions * MILLION)
        figures = {
            "metadata_operations": operations,
            "metadata_operations_per_node": operations / 2,
            "duration_s": 3_600,
            "quality": quality,
        }
        new_job(figures, owner=owner)


@pytest.fixture
def set_thresholds(as_staff):
    """Submit a change of thresholds."""

    def send(value=MILLION, address=MANY, reason="Too many jobs.", **more):
        form = {"threshold_metadata_operations": value, "reason": reason, "set": "1", **more}
        return as_staff.post(address, form, follow=True)

    return send


@pytest.fixture
def run_back_test(as_staff):
    """Request a back-test, and run it."""

    def send(value=MILLION, **more):
        form = {"threshold_metadata_operations": value, **PERIOD, "test": "1", **more}
        answer = as_staff.post(MANY, form)
        drain(lambda _: back_tests.run_next())
        return answer

    return send


def current(**place):
    [rule] = [rule for rule in RULES if rule.code == "metadata-operations"]
    effective = ThresholdBook().at(rule, Place(**place))
    return effective.thresholds["metadata_operations"], effective.is_on


def test_every_rule_has_a_page(as_staff):
    words = words_of(as_staff.get("/rules/"))

    for rule in RULES:
        assert rule.title in words
        assert rule.title in words_of(as_staff.get(f"/rules/{rule.code}/"))
    assert as_staff.get("/rules/no-such-rule/").status_code == 404


def test_thresholds_apply_and_their_history_lists_changes(set_thresholds, cluster):
    set_thresholds(1_000_000)
    set_thresholds(500_000, cluster="anvil", queue=HOSTILE, reason="<i>debug</i> is short.")
    page = set_thresholds(1_200_000, reason="Too many flags.")
    words = words_of(page)

    assert current() == (1_200_000, True)
    assert current(cluster=cluster.pk, queue=HOSTILE) == (500_000, True)
    assert "Metadata operations of the job: 1,000,000 → to 1,200,000 Too many flags." in words
    assert "Metadata operations of the job: 2,000,000 → to 1,000,000" in words
    assert "inherited → to 500,000 <i>debug</i> is short." in words
    assert "cluster anvil, queue <b>\\u202egubed</b> 500,000" in words
    assert HOSTILE not in page.content.decode()


def test_a_queue_without_jobs_gives_a_warning(set_thresholds, as_staff, new_job):
    new_job(queue="batch")

    assert "Check its name." not in words_of(set_thresholds(cluster="anvil", queue="batch"))
    assert "Check its name." in words_of(set_thresholds(cluster="anvil", queue="bacth"))
    withdrawn = f"{MANY}thresholds/{ThresholdSet.objects.get(queue='bacth').pk}/"
    page = as_staff.post(withdrawn, {"reason": "A slip."}, follow=True)
    assert "Check its name." not in words_of(page)


def test_empty_thresholds_are_inherited(set_thresholds, cluster):
    set_thresholds(1_000_000)
    set_thresholds("", cluster="anvil", is_on="false")

    assert current(cluster=cluster.pk) == (1_000_000, False)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"reason": ""}, "Enter a reason", id="no reason"),
        pytest.param({"value": -1}, "greater than or equal to 0", id="too small"),
        pytest.param({"value": 0}, "0 would flag every subject", id="nothing"),
        pytest.param({"value": "nan"}, "Enter a number", id="no number"),
        pytest.param({"value": "1e400"}, "Enter a number", id="endless"),
        pytest.param(
            {"queue": "batch"}, "Select the cluster of the queue", id="a queue of no cluster"
        ),
        pytest.param({"queue": "a\x00"}, "Null characters", id="what cannot be stored"),
        pytest.param({"cluster": "rhea"}, "Select a valid choice", id="an unknown cluster"),
        pytest.param({"advice": "{password}"}, "is unknown. Use one of", id="an unknown number"),
        pytest.param({"advice": "{duration_s!r}"}, "invalid format", id="a conversion"),
        pytest.param({"advice": "{duration_s"}, "expected '}'", id="an open brace"),
    ],
)
def test_invalid_thresholds_are_refused(set_thresholds, cluster, fields, error):
    words = words_of(set_thresholds(**fields))

    assert error in words
    assert "Nothing was changed or tested" in words
    assert not ThresholdSet.objects.exists()


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"start": "", "end": ""}, "Enter start and end", id="no period"),
        pytest.param({"end": "2017-07-04T00:00"}, "end must be after the start", id="backwards"),
        pytest.param({"end": "2019-07-04T00:00"}, "limited to 400 days", id="too long"),
    ],
)
def test_invalid_periods_are_refused(run_back_test, fields, error):
    assert error in words_of(run_back_test(**fields))
    assert not BackTest.objects.exists()


def test_only_applicable_scopes_are_offered(as_staff, cluster):
    fields = {
        "threshold_metadata_operations": 30_000_000,
        "cluster": "anvil",
        "reason": "x",
        "set": "1",
    }
    as_staff.post("/rules/campaign/", fields)

    assert ThresholdSet.objects.get().is_everywhere
    page = as_staff.get("/rules/host-outside-jobs/").content.decode()
    assert 'name="filesystem"' in page
    assert 'name="cluster"' not in page


def test_a_form_submitted_twice_has_one_effect(set_thresholds, as_staff):
    set_thresholds()
    DirtyEvidence.objects.all().delete()

    assert "No change, everywhere: these thresholds are already set." in words_of(
        set_thresholds(reason="Again.")
    )
    form = {"threshold_metadata_operations": 1, **PERIOD, "test": "1"}
    assert as_staff.post(MANY, form)["Location"] == as_staff.post(MANY, form)["Location"]
    assert (ThresholdSet.objects.count(), BackTest.objects.count()) == (1, 1)


def test_withdrawn_thresholds_are_inherited_and_stay_in_the_history(
    set_thresholds, as_staff, cluster
):
    set_thresholds(1_000_000)
    set_thresholds(10, cluster="anvil")
    first = ThresholdSet.objects.get(cluster=cluster)
    assert "Not withdrawn" in words_of(
        as_staff.post(f"{MANY}thresholds/{first.pk}/", {"reason": " "}, follow=True)
    )

    page = as_staff.post(f"{MANY}thresholds/{first.pk}/", {"reason": "It was a test."}, follow=True)

    assert current(cluster=cluster.pk) == (1_000_000, True)
    words = words_of(page)
    assert "Thresholds withdrawn, cluster anvil." in words
    assert "withdrawn Metadata operations of the job: 10 → to inherited" in words
    again = as_staff.post(f"{MANY}thresholds/{first.pk}/", {"reason": "Again."}, follow=True)
    assert "These thresholds have changed since" in words_of(again)


@pytest.mark.usefixtures("jobs")
def test_a_back_test_compares_thresholds(run_back_test, as_staff):
    address = run_back_test(MILLION)["Location"]
    words = words_of(as_staff.get(address))

    assert (
        "Proposed thresholds flag 2 jobs of 2 users in 2 cases, "
        "current thresholds 1 job of 1 user in 1 case: 1 added." in words
    )
    assert "1 by the proposed thresholds, 1 by the current ones" in words
    assert "3 jobs that ended in this period" in words
    rows = csv_of(as_staff.get(f"{address}?format=csv"))
    assert [(row["owner"], row["current"], row["proposed"]) for row in rows] == [
        ("bob", "False", "True"),
        ("alice", "True", "True"),
    ]
    assert json_of(as_staff.get(f"{address}?format=json"))["only_proposed"] == 1


def test_empty_thresholds_are_tested_as_inherited(run_back_test, as_staff, cluster):
    everywhere, there = (
        run_back_test("", **place)["Location"] for place in ({}, {"cluster": "anvil"})
    )

    assert "operations 2,000,000 2,000,000" in words_of(as_staff.get(everywhere))
    assert "operations 2,000,000 inherited" in words_of(as_staff.get(there))


def test_a_back_test_lists_narrower_thresholds(run_back_test, set_thresholds, as_staff, cluster):
    set_thresholds(10, cluster="anvil", queue="long")
    set_thresholds(20, cluster="anvil")
    set_thresholds("", advice="Ask us.", cluster="anvil", queue="debug")
    everywhere, of_queue = (
        words_of(as_staff.get(run_back_test(7, **place)["Location"]))
        for place in ({}, {"cluster": "anvil", "queue": "batch"})
    )

    narrower = "also in this test: cluster anvil; cluster anvil, queue long."
    assert narrower in everywhere
    assert "also in this test" not in of_queue


@pytest.mark.usefixtures("jobs")
def test_tested_thresholds_are_prefilled_in_the_form(run_back_test, as_staff, cluster):
    address = run_back_test(7, cluster="anvil", queue="batch")["Location"]
    test = BackTest.objects.get()

    assert f'href="{MANY}?from={test.pk}#change"' in as_staff.get(address).content.decode()
    page = as_staff.get(f"{MANY}?from={test.pk}").content.decode()
    for text in (
        'value="7"',
        'value="anvil" selected',
        'value="batch"',
        'value="2017-07-05 00:00:00"',
    ):
        assert text in page
    assert as_staff.get(f"{MANY}?from=999").status_code == 404
    assert as_staff.get(f"/rules/stat-storm/?from={test.pk}").status_code == 404


def test_a_running_back_test_is_polled_and_can_be_stopped(as_staff, sam):
    test = BackTest.objects.create(
        rule="metadata-operations", thresholds={}, start=NOON, end=at("13:00"), requested_by="sam"
    )
    address = f"{MANY}back-tests/{test.pk}/"
    waiting = as_staff.get(address, headers={"HX-Request": "true"})
    as_staff.post(f"{address}stop/")
    stopped = as_staff.get(address, headers={"HX-Request": "true"})

    assert (waiting.status_code, stopped.status_code) == (200, 286)
    assert "Waiting for a worker." in words_of(waiting)
    assert 'hx-trigger="every 1s"' in waiting.content.decode()
    assert "Stopped before the end" in words_of(stopped)
    assert "hx-trigger" not in stopped.content.decode()


def test_thresholds_of_earlier_rule_versions_are_shown(as_staff, cluster):
    ThresholdSet.objects.create(rule="gone", thresholds={"x": 1}, reason="once", set_by="sam")
    ThresholdSet.objects.create(
        rule="metadata-operations",
        thresholds={"old_name": 3},
        reason="once",
        set_by="sam",
        cluster=cluster,
    )
    test = BackTest.objects.create(
        rule="metadata-operations",
        thresholds={"old_name": 3},
        start=NOON,
        end=at("13:00"),
        requested_by="s",
    )
    BackTest.objects.create(
        rule="gone", thresholds={}, start=NOON, end=at("13:00"), requested_by="s"
    )
    drain(lambda _: back_tests.run_next())

    assert BackTest.objects.get(rule="gone").error == "ValueError: The rule gone no longer exists."
    assert as_staff.get("/rules/").status_code == 200
    words = words_of(as_staff.get(MANY))
    assert "old_name: inherited → to 3" in words
    assert "No change" in words_of(as_staff.get(f"{MANY}back-tests/{test.pk}/"))


@pytest.mark.usefixtures("jobs")
def test_the_number_of_queries_is_known(
    run_back_test, set_thresholds, as_staff, django_assert_num_queries
):
    for value in (100, 200, 300):
        set_thresholds(value)
        address = run_back_test(value)["Location"]

    for page, count in (("/rules/", 5), (MANY, 8), (address, 6), (f"{address}?format=csv", 4)):
        cache.clear()
        with django_assert_num_queries(count):
            b"".join(as_staff.get(page))
