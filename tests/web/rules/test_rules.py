"""The pages on which staff look at rules, try thresholds on the past, set and withdraw them."""

import pytest
from django.core.cache import cache

from ioportal.analysis.rules import RULES
from ioportal.flags import backtest
from ioportal.flags.models import BackTest, ThresholdSet
from ioportal.flags.thresholds import Place, ThresholdBook
from ioportal.jobs.models import DirtyEvidence
from ioportal.stages import drain
from tests.logs import at
from tests.web.conftest import NOON
from tests.web.reading import csv_of, json_of, words_of

MANY = "/rules/metadata-operations/"
MILLION = 1_000_000
HOSTILE = "<b>\u202egubed</b>"
PERIOD = {"start": "2017-07-05T00:00", "end": "2017-07-06T00:00"}


@pytest.fixture
def jobs(new_job):
    """Three jobs of two users: the first is far over the threshold, the last has poor data."""
    for millions, owner, quality in (
        (5, "alice", "good"),
        (1.5, "bob", "good"),
        (9, "bob", "poor"),
    ):
        operations = int(millions * MILLION)
        new_job({"metadata_operations": operations, "quality": quality}, owner=owner)


@pytest.fixture
def set_thresholds(as_staff):
    """Send the form that sets thresholds."""

    def send(value=MILLION, address=MANY, why="We see what it does.", **more):
        form = {"threshold_metadata_operations": value, "why": why, "set": "1", **more}
        return as_staff.post(address, form, follow=True)

    return send


@pytest.fixture
def try_thresholds(as_staff):
    """Send the form that tries thresholds, and let a worker run what waits."""

    def send(value=MILLION, **more):
        form = {"threshold_metadata_operations": value, **PERIOD, "try": "1", **more}
        answer = as_staff.post(MANY, form)
        drain(backtest.run_next)
        return answer

    return send


def current(**place):
    [rule] = [rule for rule in RULES if rule.code == "metadata-operations"]
    return ThresholdBook().at(rule, Place(**place))


def test_every_rule_has_a_page(as_staff):
    words = words_of(as_staff.get("/rules/"))

    for rule in RULES:
        assert rule.title in words
        assert rule.title in words_of(as_staff.get(f"/rules/{rule.code}/"))
    assert as_staff.get("/rules/no-such-rule/").status_code == 404


def test_what_is_set_holds_and_its_history_says_what_changed(set_thresholds, cluster):
    set_thresholds(1_000_000)
    set_thresholds(500_000, cluster="anvil", queue=HOSTILE, why="<i>debug</i> is short.")
    page = set_thresholds(1_200_000, why="Too many flags.")
    words = words_of(page)

    assert current().thresholds == {"metadata_operations": 1_200_000}
    assert current(cluster=cluster.pk, queue=HOSTILE).thresholds == {"metadata_operations": 500_000}
    assert "Metadata operations of the job: 1,000,000 → became 1,200,000 Too many flags." in words
    assert "Metadata operations of the job: 2,000,000 → became 1,000,000" in words
    assert "as the wider part says → became 500,000 <i>debug</i> is short." in words
    assert "cluster anvil, queue <b>\\u202egubed</b> 500,000" in words
    assert HOSTILE not in page.content.decode()


def test_a_queue_of_which_no_job_is_known_is_asked_about(set_thresholds, as_staff, new_job):
    new_job(queue="batch")

    assert "is its name right?" not in words_of(set_thresholds(cluster="anvil", queue="batch"))
    assert "is its name right?" in words_of(set_thresholds(cluster="anvil", queue="bacth"))
    withdrawn = f"{MANY}thresholds/{ThresholdSet.objects.get(queue='bacth').pk}/"
    page = as_staff.post(withdrawn, {"why": "A slip."}, follow=True)
    assert "is its name right?" not in words_of(page)


def test_what_is_left_empty_is_as_a_wider_part_has_it(set_thresholds, cluster):
    set_thresholds(1_000_000)
    set_thresholds("", cluster="anvil", is_on="false")

    held = current(cluster=cluster.pk)
    assert (held.thresholds, held.is_on) == ({"metadata_operations": 1_000_000}, False)


@pytest.mark.parametrize(
    ("told", "error"),
    [
        pytest.param({"why": ""}, "Say why", id="no reason"),
        pytest.param({"value": -1}, "greater than or equal to 0", id="too small"),
        pytest.param({"value": 0}, "0 would flag everybody", id="nothing"),
        pytest.param({"value": "nan"}, "Enter a number", id="no number"),
        pytest.param({"value": "1e400"}, "Enter a number", id="endless"),
        pytest.param({"queue": "batch"}, "A queue is of a cluster", id="a queue of no cluster"),
        pytest.param({"queue": "a\x00"}, "Null characters", id="what cannot be stored"),
        pytest.param({"cluster": "rhea"}, "Select a valid choice", id="an unknown cluster"),
        pytest.param({"advice": "{password}"}, "is unknown. Use one of", id="an unknown number"),
        pytest.param({"advice": "{duration_s!r}"}, "invalid format", id="a conversion"),
        pytest.param({"advice": "{duration_s"}, "expected '}'", id="an open brace"),
    ],
)
def test_what_cannot_be_set_is_refused_and_says_why(set_thresholds, cluster, told, error):
    words = words_of(set_thresholds(**told))

    assert error in words
    assert "Nothing was done" in words
    assert not ThresholdSet.objects.exists()


@pytest.mark.parametrize(
    ("told", "error"),
    [
        pytest.param({"start": "", "end": ""}, "Say from when to when", id="no period"),
        pytest.param({"end": "2017-07-04T00:00"}, "must be after its start", id="backwards"),
        pytest.param({"end": "2019-07-04T00:00"}, "At most 400 days", id="too long"),
    ],
)
def test_what_cannot_be_tried_is_refused_and_says_why(try_thresholds, told, error):
    assert error in words_of(try_thresholds(**told))
    assert not BackTest.objects.exists()


def test_limits_that_nobody_would_be_judged_by_are_not_offered(as_staff, cluster):
    told = {"threshold_metadata_operations": 10, "cluster": "anvil", "why": "x", "set": "1"}
    as_staff.post("/rules/campaign/", told)

    assert ThresholdSet.objects.get().is_everywhere
    page = as_staff.get("/rules/host-outside-jobs/").content.decode()
    assert 'name="filesystem"' in page
    assert 'name="cluster"' not in page


def test_a_form_that_is_sent_twice_counts_once(set_thresholds, as_staff):
    set_thresholds()
    DirtyEvidence.objects.all().delete()

    assert "They hold already: everywhere." in words_of(set_thresholds(why="Again."))
    form = {"threshold_metadata_operations": 1, **PERIOD, "try": "1"}
    assert as_staff.post(MANY, form)["Location"] == as_staff.post(MANY, form)["Location"]
    assert (ThresholdSet.objects.count(), BackTest.objects.count()) == (1, 1)


def test_withdrawn_limits_hold_no_longer_and_stay_in_the_history(set_thresholds, as_staff, cluster):
    set_thresholds(1_000_000)
    set_thresholds(10, cluster="anvil")
    first = ThresholdSet.objects.get(cluster=cluster)
    assert "nothing was withdrawn" in words_of(
        as_staff.post(f"{MANY}thresholds/{first.pk}/", {"why": " "}, follow=True)
    )

    page = as_staff.post(f"{MANY}thresholds/{first.pk}/", {"why": "It was a test."}, follow=True)

    assert current(cluster=cluster.pk).thresholds == {"metadata_operations": 1_000_000}
    words = words_of(page)
    assert "Withdrawn: what is said more widely holds there, cluster anvil." in words
    assert "withdrawn Metadata operations of the job: 10 → became as the wider part says" in words
    again = as_staff.post(f"{MANY}thresholds/{first.pk}/", {"why": "Again."}, follow=True)
    assert "Somebody changed these thresholds meanwhile" in words_of(again)


@pytest.mark.usefixtures("jobs")
def test_a_back_test_says_what_the_limits_would_change(try_thresholds, as_staff):
    address = try_thresholds(MILLION)["Location"]
    words = words_of(as_staff.get(address))

    assert (
        "They would flag 2 jobs of 2 users, where the thresholds in force flag 1 job of 1 user: "
        "1 more." in words
    )
    assert "Besides, 1 (now 1) would be suppressed" in words
    assert "3 jobs that ended in this time" in words
    rows = csv_of(as_staff.get(f"{address}?format=csv"))
    assert [(row["owner"], row["current"], row["proposed"]) for row in rows] == [
        ("bob", "False", "True"),
        ("alice", "True", "True"),
    ]
    assert json_of(as_staff.get(f"{address}?format=json"))["only_proposed"] == 1


def test_what_is_left_empty_is_tried_as_it_would_hold(try_thresholds, as_staff, cluster):
    everywhere, there = (
        try_thresholds("", **place)["Location"] for place in ({}, {"cluster": "anvil"})
    )

    assert "operations 2,000,000 2,000,000" in words_of(as_staff.get(everywhere))
    assert "operations 2,000,000 as the wider part says" in words_of(as_staff.get(there))


def test_a_back_test_tells_whose_own_limits_go_before_those_tried(
    try_thresholds, set_thresholds, as_staff, cluster
):
    set_thresholds(10, cluster="anvil", queue="long")
    set_thresholds(20, cluster="anvil")
    set_thresholds("", advice="Ask us.", cluster="anvil", queue="debug")
    everywhere, of_queue = (
        words_of(as_staff.get(try_thresholds(7, **place)["Location"]))
        for place in ({}, {"cluster": "anvil", "queue": "batch"})
    )

    before = "held in the test as they do in force: cluster anvil; cluster anvil, queue long."
    assert before in everywhere
    assert "held in the test" not in of_queue


@pytest.mark.usefixtures("jobs")
def test_limits_that_were_tried_are_in_the_form_to_be_set(try_thresholds, as_staff, cluster):
    address = try_thresholds(7, cluster="anvil", queue="batch")["Location"]
    test = BackTest.objects.get()

    assert f'href="{MANY}?from={test.pk}#change"' in as_staff.get(address).content.decode()
    page = as_staff.get(f"{MANY}?from={test.pk}").content.decode()
    for told in (
        'value="7"',
        'value="anvil" selected',
        'value="batch"',
        'value="2017-07-05 00:00:00"',
    ):
        assert told in page
    assert as_staff.get(f"{MANY}?from=999").status_code == 404
    assert as_staff.get(f"/rules/stat-storm/?from={test.pk}").status_code == 404


def test_a_page_asks_until_it_is_over_and_anybody_of_staff_may_stop_it(as_staff, sam):
    test = BackTest.objects.create(
        rule="metadata-operations", thresholds={}, start=NOON, end=at("13:00"), requested_by="sam"
    )
    address = f"{MANY}back-tests/{test.pk}/"
    waiting = as_staff.get(address, headers={"HX-Request": "true"})
    as_staff.post(f"{address}stop/")
    stopped = as_staff.get(address, headers={"HX-Request": "true"})

    assert (waiting.status_code, stopped.status_code) == (200, 286)
    assert "It waits for a worker." in words_of(waiting)
    assert 'hx-trigger="every 1s"' in waiting.content.decode()
    assert "It was stopped" in words_of(stopped)
    assert "hx-trigger" not in stopped.content.decode()


def test_what_a_rule_had_once_breaks_nothing(as_staff, cluster):
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
    drain(backtest.run_next)

    assert BackTest.objects.get(rule="gone").error == "ValueError: The rule gone no longer exists."
    assert as_staff.get("/rules/").status_code == 200
    words = words_of(as_staff.get(MANY))
    assert "old_name: as the wider part says → became 3" in words
    assert "They would change nothing" in words_of(as_staff.get(f"{MANY}back-tests/{test.pk}/"))


@pytest.mark.usefixtures("jobs")
def test_the_number_of_queries_is_known(
    try_thresholds, set_thresholds, as_staff, django_assert_num_queries
):
    for value in (100, 200, 300):
        set_thresholds(value)
        address = try_thresholds(value)["Location"]

    for page, count in (("/rules/", 5), (MANY, 8), (address, 6), (f"{address}?format=csv", 4)):
        cache.clear()
        with django_assert_num_queries(count):
            b"".join(as_staff.get(page))
