"""The server's debug-log records of served requests."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

from simulator import site
from simulator.batch.jobs import Ints
from simulator.clock import MICROSECONDS
from simulator.formats.rpctrace import Names
from simulator.randomness import stream
from simulator.servers import mds

_CORES_PER_PARTITION = 8
_FIRST_THREAD_PID = 17_330
_MOUNTED_FROM = 1_497_960_000  # clients mounted in the two days after 2017-06-20 12:00 UTC
_MOUNTED_WITHIN_S = 172_800
_XIDS_PER_S = 64  # how fast a client's xid has grown since then
_XID_STEP = 4
_FIRST_FLAG_SHARE = 2e-4
_LOCK_ABORTED = 301  # the intent was executed, no lock given: normal on LDLM_ENQUEUE


@dataclass(frozen=True)
class Served:
    """Served requests; arrays of shape (n,)."""

    end_us: Ints  # epoch microseconds
    service_us: Ints
    wait_us: Ints  # arrival to start
    opcode: Ints
    client: Ints  # index into site.NIDS
    thread: Ints  # index into mds.THREAD_NAMES

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.end_us)

    def take(self, rows: Ints) -> "Served":
        """Return the requests of `rows`, in that order."""
        return Served(
            self.end_us[rows],
            self.service_us[rows],
            self.wait_us[rows],
            self.opcode[rows],
            self.client[rows],
            self.thread[rows],
        )


@cache
def names(seed: int) -> Names:
    """Return the texts of all clients and threads; a client's UUID is the same in all logs."""
    digits = stream(seed, "client uuids").bytes(16 * len(site.NIDS)).hex()
    uuids = [digits[32 * n : 32 * n + 32] for n in range(len(site.NIDS))]
    return Names(
        nids=pl.Series(site.NIDS),
        uuids=pl.Series([f"{u[:8]}-{u[8:12]}-{u[12:16]}-{u[16:20]}-{u[20:]}" for u in uuids]),
        threads=pl.Series(mds.THREAD_NAMES),
        thread_pids=pl.Series(range(_FIRST_THREAD_PID, _FIRST_THREAD_PID + len(mds.THREAD_NAMES))),
    )


def records(
    served: Served,
    seed: int,
    rng: np.random.Generator,
    *,
    handling_share: float,
    job_ids: pl.Series | None = None,
    clock_offset_s: int = 0,
) -> pl.DataFrame:
    """Return the log's records in order of time (columns: see formats.rpctrace).

    Args:
        served: requests in order of their ends.
        seed: seed of the clients' mounts.
        rng: random generator.
        handling_share: share of requests with an additional Handling record.
        job_ids: job id of each request; None: no job ids.
        clock_offset_s: the server's clock offset, positive if ahead.
    """
    count = len(served.end_us)
    partition = served.thread % 2
    modifying = served.opcode == mds.MDS_REINT
    frame = pl.DataFrame(
        {
            "time_us": served.end_us + clock_offset_s * MICROSECONDS,
            "handled": np.ones(count, dtype=bool),
            "cpu": partition * _CORES_PER_PARTITION
            + rng.integers(_CORES_PER_PARTITION, size=count),
            "first": rng.random(count) < _FIRST_FLAG_SHARE,
            "thread": served.thread,
            "client": served.client,
            "ref": rng.integers(5, 60, size=count),
            "pid": rng.integers(4_000, 32_000, size=count),
            "xid": _xids(served, seed, rng),
            "opcode": served.opcode,
            "trans": np.where(modifying, 98_784_247_808 + np.cumsum(modifying), 0),
            "rc": np.where(served.opcode == mds.LDLM_ENQUEUE, _LOCK_ABORTED, 0),
            "job": pl.Series([""]).new_from_index(0, count) if job_ids is None else job_ids,
            "service_us": served.service_us,
            "total_us": served.service_us + served.wait_us,
        }
    )
    handling = frame.filter(rng.random(count) < handling_share).with_columns(
        handled=pl.lit(value=False), time_us=pl.col("time_us") - pl.col("service_us")
    )
    return pl.concat([handling, frame]).sort("time_us", maintain_order=True)


def _xids(served: Served, seed: int, rng: np.random.Generator) -> Ints:
    """Assign increasing xids to each client's requests in order of arrival."""
    mounted_s = _MOUNTED_FROM + stream(seed, "mounts").integers(
        _MOUNTED_WITHIN_S, size=len(site.NIDS)
    )
    arrival_us = served.end_us - served.service_us - served.wait_us
    order = np.lexsort((arrival_us, served.client))
    client = served.client[order]
    first_of_client = np.flatnonzero(np.diff(client, prepend=-1))
    runs = np.diff(first_of_client, append=len(client))
    rank = np.arange(len(client)) - np.repeat(first_of_client, runs)
    before = np.repeat(arrival_us[order][first_of_client] // MICROSECONDS, runs)
    xid = np.empty_like(arrival_us)
    xid[order] = (
        (mounted_s[client] << 20)
        + (before - mounted_s[client]) * _XIDS_PER_S
        + rank * _XID_STEP
        + rng.integers(_XID_STEP, size=len(client))
    )
    return xid
