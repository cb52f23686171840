"""Effective thresholds by place, and evaluation after changes of thresholds."""

import pytest

from ioportal.findings.models import Flag, ThresholdSet
from ioportal.findings.thresholds import Place, ThresholdBook, apply_thresholds
from ioportal.jobs.models import DirtyEvidence, Job
from ioportal.rules import BY_CODE
from ioportal.site.models import Cluster, Filesystem
from tests.logs import Run, at, job_stats, sacct

pytestmark = pytest.mark.usefixtures("module_site")

MANY = BY_CODE["metadata-operations"]
RATE = BY_CODE["metadata-rate"]


def thresholds(value, rule="metadata-operations", **more):
    """Thresholds of a job's metadata operations; None: not set."""
    values = {} if value is None else {"metadata_operations": value, "capacity_share": 0}
    return ThresholdSet(
        rule=rule, thresholds=values, **{"reason": "A test.", "set_by": "root", **more}
    )


@pytest.fixture
def anvil(module_site):
    """The cluster anvil."""
    return Cluster.objects.get(name="anvil")


@pytest.fixture
def lake(module_site):
    """The filesystem lake, used by anvil."""
    return Filesystem.objects.get(name="lake")


@pytest.fixture
def effective(anvil, lake):
    """Return the effective threshold and its scope for a job on anvil with its peak on lake."""

    def compute(queue="batch"):
        result = ThresholdBook().at(MANY, Place(anvil.pk, lake.pk, queue))
        return result.thresholds["metadata_operations"], result.scope

    return compute


def test_narrow_parts_precede_wide_parts_and_clusters_precede_filesystems(effective, anvil, lake):
    expected = []
    for value, place in (
        (1, {}),
        (2, {"filesystem": lake}),
        (3, {"cluster": anvil}),
        (4, {"cluster": anvil, "filesystem": lake}),
        (5, {"cluster": anvil, "queue": "batch"}),
        (6, {"cluster": anvil, "queue": "batch", "filesystem": lake}),
    ):
        threshold_set = thresholds(value, **place)
        apply_thresholds(threshold_set)
        expected.append((value, threshold_set.scope))
        assert effective() == expected[-1]

    assert effective("debug") == expected[3]


def test_precedence_does_not_depend_on_the_order_of_changes(effective, anvil, lake):
    apply_thresholds(thresholds(3, cluster=anvil))
    apply_thresholds(thresholds(2, filesystem=lake))

    assert effective() == (3, "cluster anvil")


def test_each_threshold_comes_from_the_narrowest_part_that_sets_it(anvil):
    apply_thresholds(thresholds(None, "metadata-rate", advice="Mind {threshold_cores:.0f}."))
    first = next(iter(RATE.defaults))
    fields = {"rule": RATE.code, "cluster": anvil, "reason": "x", "set_by": "root"}
    apply_thresholds(ThresholdSet(thresholds={first: 7}, **fields))
    apply_thresholds(ThresholdSet(is_on=False, queue="x", **fields))

    result = ThresholdBook().at(RATE, Place(anvil.pk, None, "x"))

    assert result.thresholds == RATE.defaults | {first: 7}
    assert (result.advice, result.is_on) == ("Mind {threshold_cores:.0f}.", False)
    assert ThresholdBook().at(RATE, Place(anvil.pk, None, "y")).is_on


def test_withdrawn_thresholds_are_inherited_from_the_wider_part(effective, anvil):
    apply_thresholds(thresholds(1))
    apply_thresholds(thresholds(3, cluster=anvil))

    assert apply_thresholds(thresholds(None, cluster=anvil))
    assert effective() == (1, "everywhere")
    assert not apply_thresholds(thresholds(None, cluster=anvil, reason="again"))
    assert ThresholdSet.objects.count() == 3


def test_unknown_rules_and_thresholds_are_ignored(effective):
    ThresholdSet.objects.create(rule="gone", thresholds={"x": 1}, reason="x", set_by="root")
    ThresholdSet.objects.create(rule=MANY.code, thresholds={"gone": 1}, reason="x", set_by="root")

    assert effective() == (MANY.defaults["metadata_operations"], "everywhere")


def test_changed_thresholds_mark_running_and_flagged_jobs_only(logs, ingest, evaluate):
    runs = [Run("77", nodes="n1"), Run("78", nodes="n2"), Run("79", nodes="n3", end=None)]
    ingest("sacct", logs("s", sacct(*runs)), cluster="anvil")
    for clock, part in (("11:59", 0), ("12:30", 0.5), ("13:00", 1)):
        entries = {"77": 3_000_000, "78": 2_000, "79": 2_000}
        counters = {job: {"getattr": int(part * count)} for job, count in entries.items() if part}
        text = job_stats("lake-MDT0000", {"x": {"open": 1}, **counters}, snapshot=clock)
        ingest("job_stats", logs(clock, text), at=at(clock).isoformat())
    flag = evaluate()["metadata-operations", "77"]

    apply_thresholds(thresholds(1_000))

    pending = DirtyEvidence.objects.values_list("job_id", flat=True)
    ids = Job.objects.filter(pk__in=pending).values_list("batch_id", flat=True)
    assert set(ids) == {"77", "79"}  # flagged or running
    flags = evaluate()
    assert flags["metadata-operations", "79"].threshold == 1_000
    assert ("metadata-operations", "78") not in flags  # ended: covered by back-tests only
    apply_thresholds(thresholds(4_000_000))
    evaluate()
    flag.refresh_from_db()
    assert (flag.case.state, flag.threshold) == ("resolved", 4_000_000)
    assert flag.ending == flag.case.resolution == "Below the changed thresholds."
    apply_thresholds(thresholds(2_000_000))
    assert ("metadata-operations", "77") in evaluate()  # ended, but flagged before


def test_flagged_users_are_evaluated_again(logs, ingest, evaluate):
    runs = [Run(f"{n}", nodes="n1") for n in range(40)]
    ingest("sacct", logs("s", sacct(*runs)), cluster="anvil")
    for n in range(7):
        counters = {run.batch_id: {"getattr": n * 100_000} for run in runs if n}
        clock = f"{12 + n // 6}:{n % 6}0"
        text = job_stats("lake-MDT0000", {"x": {"open": 1}, **counters}, snapshot=clock)
        ingest("job_stats", logs(clock, text), at=at(clock).isoformat())
    assert ("campaign", "alice:relax") in evaluate()

    values = {"metadata_operations": 1e9}
    apply_thresholds(
        ThresholdSet(rule="campaign", thresholds=values, reason="a test", set_by="root")
    )

    assert ("campaign", "alice:relax") not in evaluate()
    assert Flag.objects.get(rule="campaign").ending.startswith("Below the changed")
