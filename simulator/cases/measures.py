"""The best possible measures from counters and accounting, computed from true activity."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simulator.activity import MDT_KINDS, OPEN, OPERATIONS, Source
from simulator.batch.jobs import Floats, Ints, Job
from simulator.cases import causes
from simulator.cases.causes import Cause, Occurrence
from simulator.cases.filesystems import Filesystem
from simulator.formats.releases import counts_failed_opens

_COARSE_S = 30
_NEAR = 0.6  # relative to the definition of abuse: needs a finer computation


@dataclass(frozen=True)
class SimilarJobs:
    """Medians of the jobs of a size class and of a name; None with too few jobs."""

    operations_per_node: float | None
    read_bytes: float | None


@dataclass(frozen=True)
class History:
    """A job's activity up to each of `times`; arrays of shape (n,)."""

    job: Job
    source: Source
    times: Ints  # from its start on, `step_s` apart
    step_s: int
    by_kind: Ints  # (n, MDT_KINDS)
    opens: Ints  # all opens and failed opens, including opens that the server does not count
    failed: Ints
    requests: Ints  # (n, 2): reads and writes
    size_bytes: Ints  # (n, 2): bytes read and written

    @classmethod
    def follow(
        cls, job: Job, source: Source, filesystem: Filesystem, until: int, step_s: int
    ) -> "History":
        """Follow a job until a given time or its end."""
        begin, end = job.started or until, min(job.ended or until, until)
        times = np.append(np.arange(begin, end, step_s), max(end, begin))
        done = source.mdt_counts(times)
        successful = source.mdt_counted(times, 0)
        by_burst, _ = source.ost_requests(0, times)
        sizes = np.array([(b.reads.size_bytes, b.writes.size_bytes) for b in source.bursts])
        return cls(
            job,
            source,
            times,
            step_s,
            done if counts_failed_opens(filesystem.version) else successful,
            done[:, OPEN],
            (done - successful)[:, OPEN],
            by_burst.sum(axis=1),
            (by_burst * sizes).sum(axis=1),
        )

    def kind(self, name: str) -> Ints:
        """Return operations of a kind."""
        counts: Ints = self.by_kind[:, MDT_KINDS.index(name)]
        return counts

    @property
    def operations(self) -> Ints:
        """Return operations of all kinds."""
        total: Ints = self.by_kind[:, OPERATIONS].sum(axis=1)
        return total

    def lately(self, counts: Ints, within_s: int) -> Ints:
        """Return the part of `counts` in the `within_s` seconds before each time."""
        steps = within_s // self.step_s
        before = np.concatenate([np.zeros(steps, dtype=np.int64), counts])[: len(counts)]
        recent: Ints = counts - before
        return recent


Measured = tuple[Floats, dict[str, Floats | Ints]]


def _operations(job: History, _: SimilarJobs) -> Measured:
    return job.operations / causes.OPERATIONS, {"operations": job.operations}


def _rate(job: History, _: SimilarJobs) -> Measured:
    per_s = (
        job.lately(job.operations, causes.NODE_WITHIN_S) / causes.NODE_WITHIN_S / job.job.node_count
    )
    ratio = np.minimum(per_s / causes.NODE_PER_S, job.operations / causes.NODE_OPERATIONS)
    return ratio, {"operations_per_node_s": per_s, "operations": job.operations}


def _failed(job: History, _: SimilarJobs) -> Measured:
    searches = job.opens[-1] > causes.OPENS_PER_CLOSE * job.kind("close")[-1]
    return job.failed / causes.FAILED_OPENS * searches, {
        "failed_opens": job.failed,
        "opens": job.opens,
        "closes": job.kind("close"),
    }


def _start_up(job: History, _: SimilarJobs) -> Measured:
    first = job.operations[: causes.AT_FIRST_S // job.step_s + 1]
    at_first = np.concatenate([first, np.full(len(job.times) - len(first), first[-1])])
    share = at_first[-1] / max(job.operations[-1], 1)
    is_one = job.job.node_count >= causes.AT_FIRST_NODES and share >= causes.AT_FIRST_SHARE
    return at_first / causes.AT_FIRST * is_one, {
        "operations_at_first": at_first,
        "share_at_first": at_first / np.maximum(job.operations, 1),
    }


def _stats(job: History, _: SimilarJobs) -> Measured:
    stats = job.kind("getattr")
    per_s = job.lately(stats, causes.STATS_WITHIN_S) / causes.STATS_WITHIN_S
    are_most = stats[-1] >= causes.STATS_SHARE * job.operations[-1]
    return per_s / causes.STATS_PER_S * are_most, {"stats_per_s": per_s, "stats": stats}


def _churn(job: History, _: SimilarJobs) -> Measured:
    created, removed = job.kind("mknod"), job.kind("unlink")
    pairs = np.minimum(created, removed)
    return pairs / causes.FILES, {"created": created, "removed": removed}


def _small(column: int) -> Callable[[History, SimilarJobs], Measured]:
    def measure(job: History, _: SimilarJobs) -> Measured:
        requests, size_bytes = job.requests[:, column], job.size_bytes[:, column]
        mean = size_bytes / np.maximum(requests, 1)
        return requests / causes.SMALL_REQUESTS * (mean < causes.SMALL_BYTES), {
            "requests": requests,
            "mean_bytes": mean,
        }

    return measure


def _above_peers(job: History, similar: SimilarJobs) -> Measured:
    read_bytes = job.size_bytes[:, 0]
    middle = similar.read_bytes or np.inf
    return np.minimum(
        read_bytes / (causes.ABOVE_NAME * middle), read_bytes / causes.ABOVE_NAME_BYTES
    ), {
        "read_bytes": read_bytes,
        "times_the_middle": read_bytes / middle,
    }


def _outlier(job: History, similar: SimilarJobs) -> Measured:
    per_node = job.operations / job.job.node_count
    middle = similar.operations_per_node or np.inf
    return per_node / (causes.ABOVE_SIZE * middle), {
        "operations_per_node": per_node,
        "times_the_middle": per_node / middle,
    }


def _idle(job: History, _: SimilarJobs) -> Measured:
    size_bytes = job.size_bytes.sum(axis=1)
    heavy = np.maximum(size_bytes / causes.IDLE_BYTES, job.operations / causes.IDLE_OPERATIONS)
    has_ended = job.times[-1] == job.job.ended
    is_known = np.arange(len(job.times)) == len(job.times) - 1  # from accounting
    idle = job.job.busy_share < causes.IDLE_SHARE
    return heavy * (is_known & has_ended & idle), {
        "cpu_efficiency": np.full(len(job.times), job.job.busy_share),
        "bytes": size_bytes,
        "operations": job.operations,
    }


_MEASURES: dict[Cause, Callable[[History, SimilarJobs], Measured]] = {
    Cause.OPERATIONS: _operations,
    Cause.RATE: _rate,
    Cause.FAILED: _failed,
    Cause.START_UP: _start_up,
    Cause.STATS: _stats,
    Cause.CHURN: _churn,
    Cause.SMALL_READS: _small(0),
    Cause.SMALL_WRITES: _small(1),
    Cause.ABOVE_PEERS: _above_peers,
    Cause.OUTLIER: _outlier,
    Cause.IDLE: _idle,
}


def occurrences(
    job: Job, source: Source, filesystem: Filesystem, similar: SimilarJobs, until: int
) -> list[Occurrence]:
    """Return the causes near or above the definition of abuse in counters and accounting."""
    coarse = History.follow(job, source, filesystem, until, _COARSE_S)
    near = [
        cause for cause, measure in _MEASURES.items() if measure(coarse, similar)[0].max() > _NEAR
    ]
    if not near:
        return []
    fine = History.follow(job, source, filesystem, until, 1)
    return [occurrence(cause, fine.times, *_MEASURES[cause](fine, similar)) for cause in near]


def occurrence(
    cause: Cause, times: Ints, ratio: Floats, amounts: dict[str, Floats | Ints]
) -> Occurrence:
    """Return a cause at the time of its highest ratio.

    Args:
        cause: the cause.
        times: shape (n,), ascending.
        ratio: shape (n,), amount / definition of abuse up to each time.
        amounts: each of shape (n,).
    """
    beyond = np.flatnonzero(ratio >= 1)
    peak = int(np.argmax(ratio))
    return Occurrence(
        cause,
        float(ratio[peak]),
        int(times[beyond[0]]) if len(beyond) else None,
        {name: round(float(values[peak]), 4) for name, values in amounts.items()},
    )
