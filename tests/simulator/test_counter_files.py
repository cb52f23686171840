"""Polled counters: the format of Lustre 2.8, and totals equal to the truth."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from tests.simulator.reading import job_stats, md_stats, read_time

MDT = "atlas2-MDT0000"
SUBSETS = {"samedir_rename", "crossdir_rename"}


@pytest.fixture(scope="module")
def mdt(centre):
    """Return [(read time, {job id: (snapshot time, counters)})] of the MDT."""
    paths = sorted((centre / "job_stats" / MDT).iterdir())
    return [(read_time(path), job_stats(path.read_text())[MDT]) for path in paths]


@pytest.fixture(scope="module")
def whole_mdt(centre):
    paths = sorted((centre / "md_stats" / MDT).iterdir())
    return [(read_time(path), md_stats(path.read_text())) for path in paths]


@pytest.fixture(scope="module")
def osts(centre):
    """Return the sums of the OSTs' counters by job id."""
    total = defaultdict(lambda: defaultdict(int))
    for oss in ("atlas2-oss1", "atlas2-oss2"):
        dumps = [
            job_stats(path.read_text()) for path in sorted((centre / "job_stats" / oss).iterdir())
        ]
        for ost in dumps[0]:
            polls = only_counters(dump[ost] for dump in dumps)
            for job, counters in sums_over_lives(polls).items():
                for name, count in counters.items():
                    total[job][name] += count
    return total


def sums_over_lives(polls):
    """Return the sum of the last values of each entry's lives.

    A new life starts if the previous poll does not have the entry, or if a value has fallen.
    """
    sums = defaultdict(lambda: defaultdict(int))
    before = {}
    for entries in [*polls, {}]:
        for job, counters in before.items():
            now = entries.get(job)
            if now is None or any(now[name] < value for name, value in counters.items()):
                for name, value in counters.items():
                    sums[job][name] += value
        before = entries
    return sums


def only_counters(polls):
    return [{job: counters for job, (_, counters) in entries.items()} for entries in polls]


def nonzero(counters):
    return {name: count for name, count in counters.items() if count}


def untouched(job, fault):
    """Return whether an ended job was last read before the gap and the reset."""
    if job["ended"] is None:
        return False
    gap, reset = fault("gap"), fault("reset")
    last_read = (datetime.fromisoformat(job["ended"]) + timedelta(minutes=10)).isoformat()
    return not any(
        job["started"] <= end and start <= last_read
        for start, end in ((gap["start"], gap["end"]), (reset["start"], reset["end"]))
    )


@pytest.mark.long
def test_the_totals_of_the_mdt_equal_the_truth(mdt, truth, fault):
    sums = sums_over_lives(only_counters(entries for _, entries in mdt))

    assert len(truth["jobs"]) > 1_000
    for job in truth["jobs"]:
        if job["started"] and not job["hidden_restarts"]:
            assert nonzero(sums[job["batch_id"]]) == job["polled_operations"]
            if untouched(job, fault):
                assert job["polled_operations"] == job["operations"]


def test_metadata_operations_exclude_kinds_counted_twice(truth):
    for job in truth["jobs"]:
        if job["started"]:
            assert job["metadata_operations"] == sum(
                count for kind, count in job["operations"].items() if kind not in SUBSETS
            )


@pytest.mark.parametrize("direction", ["read_bytes", "write_bytes"])
def test_the_bytes_of_the_osts_equal_the_truth(osts, truth, fault, direction):
    for job in truth["jobs"]:
        if job["started"] and not job["hidden_restarts"]:
            assert osts[job["batch_id"]][direction] == job[f"polled_{direction}"]
            if untouched(job, fault):
                assert job[f"polled_{direction}"] == job[direction]


def test_the_whole_target_counts_at_least_the_operations_of_job_ids(mdt, whole_mdt):
    assert [moment for moment, _ in mdt] == [moment for moment, _ in whole_mdt]
    for (_, entries), (_, totals) in zip(mdt, whole_mdt, strict=True):
        for name, total in totals.items():
            assert sum(counters[name] for _, counters in entries.values()) <= total


def test_totals_of_the_target_decrease_only_at_the_reset(whole_mdt, fault):
    falls = [
        after
        for (_, before), (after, totals) in pairwise(whole_mdt)
        if any(totals.get(name, 0) < count for name, count in before.items())
    ]

    reset = datetime.fromisoformat(fault("reset")["start"])
    assert falls == [min(moment for moment, _ in whole_mdt if moment > reset)]


def test_reads_are_frequent_in_the_crisis_and_missing_in_the_gap(mdt, fault):
    waits = {before: (after - before).total_seconds() for (before, _), (after, _) in pairwise(mdt)}

    crisis = datetime(2017, 7, 6, 13, 45, tzinfo=UTC), datetime(2017, 7, 6, 14, 35, tzinfo=UTC)
    assert all(wait < 80 for moment, wait in waits.items() if crisis[0] < moment < crisis[1])
    assert sorted(waits.values())[-2] < 700
    ((start, longest),) = ((moment, wait) for moment, wait in waits.items() if wait > 700)
    assert longest > 2_300
    assert abs(start - datetime.fromisoformat(fault("gap")["start"])).seconds < 10


def test_counters_show_nearly_every_restart(truth):
    assert sum(bool(job.get("hidden_restarts")) for job in truth["jobs"]) < 10


def test_entries_are_dropped_after_ten_idle_minutes_and_restart_at_zero(mdt, truth):
    for moment, entries in mdt:
        assert all(0 <= moment.timestamp() - updated <= 600 for updated, _ in entries.values())

    assert sum(job.get("entry_restarts", 0) for job in truth["jobs"]) > 100


def test_process_ids_and_empty_ids_exist(mdt):
    ids = {job for _, entries in mdt for job in entries}

    assert "" in ids
    assert any(job.startswith("ll_sa_") for job in ids)
    assert any(job.startswith("kworker/") for job in ids)
    assert all(len(job) <= 31 for job in ids)


def test_a_poll_of_an_ost_shows_the_missing_blank_before_16_mib(centre):
    paths = sorted((centre / "job_stats" / "atlas2-oss1").iterdir())

    assert any("min:16777216, max:16777216" in path.read_text() for path in paths)


def test_the_time_of_a_file_is_the_time_of_the_read(centre):
    for path in (centre / "job_stats" / MDT).iterdir():
        assert path.stat().st_mtime == read_time(path).timestamp()


def test_a_job_is_mostly_unobserved(truth):
    (poor,) = (job for job in truth["jobs"] if job["batch_id"] == truth["faults"]["poor_job"])

    assert poor["covered_share"] < 0.5
