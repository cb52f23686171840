"""Activity of jobs, processes and hosts on the filesystem, as bursts of operations."""

from dataclasses import dataclass, field

import numpy as np

from simulator.batch.jobs import Floats, Ints
from simulator.site import OSTS

# Operation kinds of an MDT of Lustre 2.8, in its order.
MDT_KINDS = (
    "open",
    "close",
    "mknod",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "rename",
    "getattr",
    "setattr",
    "getxattr",
    "setxattr",
    "statfs",
    "sync",
    "samedir_rename",
    "crossdir_rename",
)
# Counted inside `rename`: not separate operations.
RENAME = MDT_KINDS.index("rename")
RENAMES = (MDT_KINDS.index("samedir_rename"), MDT_KINDS.index("crossdir_rename"))
OPERATIONS = slice(0, RENAMES[0])
OPEN = MDT_KINDS.index("open")
_FAILED_OPENS = len(MDT_KINDS)  # an additional column

EVEN_SPREAD = (1 / len(OSTS),) * len(OSTS)


@dataclass(frozen=True)
class Transfers:
    """Read or write requests to OSTs, all of the same size."""

    count: int = 0
    size_bytes: int = 0


@dataclass(frozen=True)
class Burst:
    """Operations spread evenly over ``[start, end)``, epoch seconds.

    Args:
        start: start, epoch seconds.
        end: end, epoch seconds; long pauses need several bursts.
        mdt: operations by kind; `rename` is left to `samedir_rename` and `crossdir_rename`.
        reads: read requests to OSTs.
        writes: write requests to OSTs.
        failed_opens: number of opens without a result, which servers from 2.14 on do not count.
    """

    start: int
    end: int
    mdt: dict[str, int]
    reads: Transfers = Transfers()
    writes: Transfers = Transfers()
    failed_opens: int = 0


@dataclass(frozen=True, eq=False)
class Source:
    """A sender of operations, as seen by the filesystem.

    Args:
        job_id: job id in its requests and in job_stats; None: only the target's totals count it.
        clients: its clients (indices into site.NIDS).
        bursts: its activity, in order of time.
        spread: its share of each OST; the sum is 1.
        blocked_share: share of its enqueues that wait for other clients' locks while they occupy
            a server thread.
        readpages_per_getattr: additional directory pages (not counted in job_stats of 2.8, but
            present in the RPC trace).
        in_flight: maximum number of concurrent requests; None: unlimited.
    """

    job_id: str | None
    clients: Ints
    bursts: tuple[Burst, ...]
    spread: tuple[float, ...] = EVEN_SPREAD
    blocked_share: float = 0.0
    readpages_per_getattr: float = 0.004
    in_flight: int | None = None
    _shape: tuple[Ints, Ints, Ints] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        totals = np.array(
            [
                [*(burst.mdt.get(kind, 0) for kind in MDT_KINDS), burst.failed_opens]
                for burst in self.bursts
            ],
            dtype=np.int64,
        ).reshape(len(self.bursts), len(MDT_KINDS) + 1)
        totals[:, RENAME] = totals[:, list(RENAMES)].sum(axis=1)
        starts = np.array([burst.start for burst in self.bursts], dtype=np.int64)
        ends = np.array([burst.end for burst in self.bursts], dtype=np.int64)
        object.__setattr__(self, "_shape", (starts, ends, totals))

    @property
    def start(self) -> int:
        """Return the start of its first burst."""
        return self.bursts[0].start

    @property
    def end(self) -> int:
        """Return the end of its last burst."""
        return max(burst.end for burst in self.bursts)

    def mdt_counts(self, times: Ints) -> Ints:
        """Return the operations done before each of `times`: shape (times, MDT_KINDS)."""
        return _done(*self._shape, times)[:, :_FAILED_OPENS]

    def mdt_counted(self, times: Ints, failures_until: int) -> Ints:
        """Return the operations that the MDT counted; failed opens count until a given time."""
        done = _done(*self._shape, np.concatenate([times, np.minimum(times, failures_until)]))
        now, before = done[: len(times)], done[len(times) :]
        now[:, OPEN] -= now[:, _FAILED_OPENS] - before[:, _FAILED_OPENS]
        return now[:, :_FAILED_OPENS]

    def ost_requests(self, ost: int, times: Ints) -> tuple[Ints, Ints]:
        """Return the requests to an OST before each of `times`, and all requests, by burst.

        Both arrays have the bursts' reads and writes in their last axis:
        shapes (times, bursts, 2) and (bursts, 2).
        """
        starts, ends, _ = self._shape
        below, upto = sum(self.spread[:ost]), sum(self.spread[: ost + 1])
        requests = np.array([(b.reads.count, b.writes.count) for b in self.bursts], dtype=np.int64)
        totals = _cut(requests, upto) - _cut(requests, below)
        return _done_by_burst(starts, ends, totals, times), totals

    def mdt_intervals(self) -> list[tuple[int, int]]:
        """Return the intervals of its MDT activity."""
        return [(burst.start, burst.end) for burst in self.bursts if any(burst.mdt.values())]


def _cut(totals: Ints, share: float) -> Ints:
    """Return the first `share` of whole totals; shares that end at 1 leave no remainder."""
    first: Ints = np.floor(totals * share + 1e-9).astype(np.int64)
    return first


def _fractions(starts: Ints, ends: Ints, times: Ints) -> Floats:
    fractions: Floats = np.clip((times[:, None] - starts) / (ends - starts), 0.0, 1.0)
    return fractions


def _done_by_burst(starts: Ints, ends: Ints, totals: Ints, times: Ints) -> Ints:
    done: Ints = np.floor(_fractions(starts, ends, times)[:, :, None] * totals).astype(np.int64)
    return done


def _done(starts: Ints, ends: Ints, totals: Ints, times: Ints) -> Ints:
    """Return the operations of all bursts before each of `times`, including partial bursts."""
    order = np.argsort(times, kind="stable")
    ascending = times[order]
    begun = np.searchsorted(ascending, starts, side="right")
    over = np.searchsorted(ascending, ends, side="left")
    counts = np.zeros((len(times) + 1, totals.shape[1]), dtype=np.int64)
    np.add.at(counts, over, totals)
    counts = np.cumsum(counts, axis=0)[:-1]
    during = over - begun
    burst = np.repeat(np.arange(len(starts)), during)
    moment = np.arange(len(burst)) - np.repeat(np.cumsum(during) - during, during) + begun[burst]
    fraction = (ascending[moment] - starts[burst]) / (ends[burst] - starts[burst])
    parts = np.floor(fraction[:, None] * totals[burst]).astype(np.int64)
    parts[:, RENAME] = parts[:, list(RENAMES)].sum(axis=1)
    np.add.at(counts, moment, parts)
    done = np.empty_like(counts)
    done[order] = counts
    return done
