"""What counters and accounting could tell of a job at best, measured in what it truly does."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simulator.activity import MDT_KINDS, OPEN, OPERATIONS, Source
from simulator.cases import causes
from simulator.cases.causes import Cause, Found
from simulator.cases.filesystems import Filesystem
from simulator.formats.releases import counts_failed_opens
from simulator.jobs import Floats, Ints, Job

_COARSE_S = 30
_NEAR = 0.6  # of what is abuse: worth a closer look


@dataclass(frozen=True)
class Others:
    """The middle of all other jobs, of a size and of a name; not known where they are few."""

    operations_per_node: float | None
    read_bytes: float | None


@dataclass(frozen=True)
class History:
    """What a job did up to each of `times`; arrays of shape (n,)."""

    job: Job
    source: Source
    times: Ints  # from its start on, `step_s` apart
    step_s: int
    by_kind: Ints  # (n, MDT_KINDS)
    opens: Ints  # all of them, and those that found nothing: whether the server counts these or not
    failed: Ints
    requests: Ints  # (n, 2): reads and writes
    size_bytes: Ints  # likewise

    @classmethod
    def of(
        cls, job: Job, source: Source, filesystem: Filesystem, until: int, step_s: int
    ) -> "History":
        """Follow a job until a moment or its end."""
        begin, end = job.started or until, min(job.ended or until, until)
        times = np.append(np.arange(begin, end, step_s), max(end, begin))
        done = source.mdt_counts(times)
        found = source.mdt_counted(times, 0)
        by_burst, _ = source.ost_requests(0, times)
        sizes = np.array([(b.reads.size_bytes, b.writes.size_bytes) for b in source.bursts])
        return cls(
            job,
            source,
            times,
            step_s,
            done if counts_failed_opens(filesystem.version) else found,
            done[:, OPEN],
            (done - found)[:, OPEN],
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
        """Return what of `counts` came in the time before each moment."""
        steps = within_s // self.step_s
        before = np.concatenate([np.zeros(steps, dtype=np.int64), counts])[: len(counts)]
        recent: Ints = counts - before
        return recent


Measured = tuple[Floats, dict[str, Floats | Ints]]


def _operations(job: History, _: Others) -> Measured:
    return job.operations / causes.OPERATIONS, {"operations": job.operations}


def _rate(job: History, _: Others) -> Measured:
    per_s = (
        job.lately(job.operations, causes.NODE_WITHIN_S) / causes.NODE_WITHIN_S / job.job.node_count
    )
    ratio = np.minimum(per_s / causes.NODE_PER_S, job.operations / causes.NODE_OPERATIONS)
    return ratio, {"operations_per_node_s": per_s, "operations": job.operations}


def _failed(job: History, _: Others) -> Measured:
    searches = job.opens[-1] > causes.OPENS_PER_CLOSE * job.kind("close")[-1]
    return job.failed / causes.FAILED_OPENS * searches, {
        "failed_opens": job.failed,
        "opens": job.opens,
        "closes": job.kind("close"),
    }


def _start_up(job: History, _: Others) -> Measured:
    first = job.operations[: causes.AT_FIRST_S // job.step_s + 1]
    at_first = np.concatenate([first, np.full(len(job.times) - len(first), first[-1])])
    share = at_first[-1] / max(job.operations[-1], 1)
    is_one = job.job.node_count >= causes.AT_FIRST_NODES and share >= causes.AT_FIRST_SHARE
    return at_first / causes.AT_FIRST * is_one, {
        "operations_at_first": at_first,
        "share_at_first": at_first / np.maximum(job.operations, 1),
    }


def _stats(job: History, _: Others) -> Measured:
    stats = job.kind("getattr")
    per_s = job.lately(stats, causes.STATS_WITHIN_S) / causes.STATS_WITHIN_S
    are_most = stats[-1] >= causes.STATS_SHARE * job.operations[-1]
    return per_s / causes.STATS_PER_S * are_most, {"stats_per_s": per_s, "stats": stats}


def _churn(job: History, _: Others) -> Measured:
    created, removed = job.kind("mknod"), job.kind("unlink")
    pairs = np.minimum(created, removed)
    return pairs / causes.FILES, {"created": created, "removed": removed}


def _small(column: int) -> Callable[[History, Others], Measured]:
    def measure(job: History, _: Others) -> Measured:
        requests, size_bytes = job.requests[:, column], job.size_bytes[:, column]
        mean = size_bytes / np.maximum(requests, 1)
        return requests / causes.SMALL_REQUESTS * (mean < causes.SMALL_BYTES), {
            "requests": requests,
            "mean_bytes": mean,
        }

    return measure


def _above_peers(job: History, others: Others) -> Measured:
    read_bytes = job.size_bytes[:, 0]
    middle = others.read_bytes or np.inf
    return np.minimum(
        read_bytes / (causes.ABOVE_NAME * middle), read_bytes / causes.ABOVE_NAME_BYTES
    ), {
        "read_bytes": read_bytes,
        "times_the_middle": read_bytes / middle,
    }


def _outlier(job: History, others: Others) -> Measured:
    per_node = job.operations / job.job.node_count
    middle = others.operations_per_node or np.inf
    return per_node / (causes.ABOVE_SIZE * middle), {
        "operations_per_node": per_node,
        "times_the_middle": per_node / middle,
    }


def _idle(job: History, _: Others) -> Measured:
    size_bytes = job.size_bytes.sum(axis=1)
    heavy = np.maximum(size_bytes / causes.IDLE_BYTES, job.operations / causes.IDLE_OPERATIONS)
    has_ended = job.times[-1] == job.job.ended
    is_known = np.arange(len(job.times)) == len(job.times) - 1  # by accounting
    idle = job.job.busy_share < causes.IDLE_SHARE
    return heavy * (is_known & has_ended & idle), {
        "cpu_efficiency": np.full(len(job.times), job.job.busy_share),
        "bytes": size_bytes,
        "operations": job.operations,
    }


_MEASURES: dict[Cause, Callable[[History, Others], Measured]] = {
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


def found_in(
    job: Job, source: Source, filesystem: Filesystem, others: Others, until: int
) -> list[Found]:
    """Return what a job is near to, or beyond, of what counters and accounting could tell."""
    coarse = History.of(job, source, filesystem, until, _COARSE_S)
    near = [
        cause for cause, measure in _MEASURES.items() if measure(coarse, others)[0].max() > _NEAR
    ]
    if not near:
        return []
    fine = History.of(job, source, filesystem, until, 1)
    return [found(cause, fine.times, *_MEASURES[cause](fine, others)) for cause in near]


def found(cause: Cause, times: Ints, ratio: Floats, amounts: dict[str, Floats | Ints]) -> Found:
    """Return a cause as it was when most of it was there.

    Args:
        cause: which.
        times: shape (n,), ascending.
        ratio: shape (n,), the amount of what is abuse up to each.
        amounts: each of shape (n,).
    """
    beyond = np.flatnonzero(ratio >= 1)
    most = int(np.argmax(ratio))
    return Found(
        cause,
        float(ratio[most]),
        int(times[beyond[0]]) if len(beyond) else None,
        {name: round(float(values[most]), 4) for name, values in amounts.items()},
    )
