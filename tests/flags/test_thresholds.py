"""Which thresholds hold where, and who is evaluated anew when they change."""

import pytest

from ioportal.analysis.rules import BY_CODE
from ioportal.flags.models import Flag, ThresholdSet
from ioportal.flags.thresholds import Place, ThresholdBook, apply_thresholds
from ioportal.jobs.models import DirtyEvidence, Job
from ioportal.site.models import Cluster, Filesystem
from tests.logs import Run, at, job_stats, sacct

pytestmark = pytest.mark.usefixtures("site")

MANY = BY_CODE["metadata-operations"]
RATE = BY_CODE["metadata-rate"]


def thresholds(value, rule="metadata-operations", **more):
    """Thresholds of the operations of a job."""
    told = {} if value is None else {"metadata_operations": value}
    return ThresholdSet(
        rule=rule, thresholds=told, **{"reason": "A test.", "set_by": "root", **more}
    )


@pytest.fixture
def anvil(site):
    """A cluster."""
    return Cluster.objects.get(name="anvil")


@pytest.fixture
def lake(site):
    """A filesystem of it."""
    return Filesystem.objects.get(name="lake")


@pytest.fixture
def held(anvil, lake):
    """Return what holds for a job of a queue of anvil that is busy on lake."""

    def hold(queue="batch"):
        found = ThresholdBook().at(MANY, Place(anvil.pk, lake.pk, queue))
        return found.thresholds["metadata_operations"], found.scope

    return hold


def test_the_narrowest_part_goes_first_and_a_cluster_before_a_filesystem(held, anvil, lake):
    expected = []
    for value, place in (
        (1, {}),
        (2, {"filesystem": lake}),
        (3, {"cluster": anvil}),
        (4, {"cluster": anvil, "filesystem": lake}),
        (5, {"cluster": anvil, "queue": "batch"}),
        (6, {"cluster": anvil, "queue": "batch", "filesystem": lake}),
    ):
        one = thresholds(value, **place)
        apply_thresholds(one)
        expected.append((value, one.scope))
        assert held() == expected[-1]

    assert held("debug") == expected[3]


def test_whatever_was_set_first_the_narrower_part_holds(held, anvil, lake):
    apply_thresholds(thresholds(3, cluster=anvil))
    apply_thresholds(thresholds(2, filesystem=lake))

    assert held() == (3, "cluster anvil")


def test_each_limit_comes_from_the_narrowest_part_that_names_it(anvil):
    apply_thresholds(thresholds(None, "metadata-rate", advice="Mind {threshold_cores:.0f}."))
    first = next(iter(RATE.defaults))
    said = {"rule": RATE.code, "cluster": anvil, "reason": "x", "set_by": "root"}
    apply_thresholds(ThresholdSet(thresholds={first: 7}, **said))
    apply_thresholds(ThresholdSet(is_on=False, queue="x", **said))

    found = ThresholdBook().at(RATE, Place(anvil.pk, None, "x"))

    assert found.thresholds == RATE.defaults | {first: 7}
    assert (found.advice, found.is_on) == ("Mind {threshold_cores:.0f}.", False)
    assert ThresholdBook().at(RATE, Place(anvil.pk, None, "y")).is_on


def test_withdrawn_limits_leave_it_to_the_wider_part(held, anvil):
    apply_thresholds(thresholds(1))
    apply_thresholds(thresholds(3, cluster=anvil))

    assert apply_thresholds(thresholds(None, cluster=anvil))
    assert held() == (1, "everywhere")
    assert not apply_thresholds(thresholds(None, cluster=anvil, reason="again"))
    assert ThresholdSet.objects.count() == 3


def test_what_a_rule_does_not_know_any_more_is_passed_over(held):
    ThresholdSet.objects.create(rule="gone", thresholds={"x": 1}, reason="x", set_by="root")
    ThresholdSet.objects.create(rule=MANY.code, thresholds={"gone": 1}, reason="x", set_by="root")

    assert held() == (MANY.defaults["metadata_operations"], "everywhere")


def test_those_are_judged_anew_whom_it_concerns_and_no_others(logs, ingest, evaluate):
    runs = [Run("77", nodes="n1"), Run("78", nodes="n2"), Run("79", nodes="n3", end=None)]
    ingest("sacct", logs("s", sacct(*runs)), cluster="anvil")
    for clock, part in (("11:59", 0), ("12:30", 0.5), ("13:00", 1)):
        entries = {"77": 3_000_000, "78": 2_000, "79": 2_000}
        told = {job: {"getattr": int(part * count)} for job, count in entries.items() if part}
        text = job_stats("lake-MDT0000", {"x": {"open": 1}, **told}, snapshot=clock)
        ingest("job_stats", logs(clock, text), at=at(clock).isoformat())
    flag = evaluate()["metadata-operations", "77"]

    apply_thresholds(thresholds(1_000))

    asked = DirtyEvidence.objects.values_list("job_id", flat=True)
    ids = Job.objects.filter(pk__in=asked).values_list("batch_id", flat=True)
    assert set(ids) == {"77", "79"}  # flagged, or running
    flags = evaluate()
    assert flags["metadata-operations", "79"].thresholds == {"metadata_operations": 1_000}
    assert ("metadata-operations", "78") not in flags  # it is over: a back-test tells
    apply_thresholds(thresholds(4_000_000))
    evaluate()
    flag.refresh_from_db()
    assert (flag.state, flag.thresholds) == ("resolved", {"metadata_operations": 4_000_000})
    assert flag.resolution == "Below the changed thresholds."
    apply_thresholds(thresholds(2_000_000))
    assert ("metadata-operations", "77") in evaluate()  # though it is over: they had let it go


def test_users_who_are_flagged_are_judged_anew_too(logs, ingest, evaluate):
    runs = [Run(f"{n}", nodes="n1") for n in range(40)]
    ingest("sacct", logs("s", sacct(*runs)), cluster="anvil")
    for n in range(7):
        told = {run.batch_id: {"getattr": n * 100_000} for run in runs if n}
        clock = f"{12 + n // 6}:{n % 6}0"
        text = job_stats("lake-MDT0000", {"x": {"open": 1}, **told}, snapshot=clock)
        ingest("job_stats", logs(clock, text), at=at(clock).isoformat())
    assert ("campaign", "alice") in evaluate()

    told = {"metadata_operations": 1e9}
    apply_thresholds(
        ThresholdSet(rule="campaign", thresholds=told, reason="we try it", set_by="root")
    )

    assert ("campaign", "alice") not in evaluate()
    assert Flag.objects.get(rule="campaign").resolution.startswith("Below the changed")
