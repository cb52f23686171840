"""The NFS server that the campaign's software moves to, and its counters."""

import os
from pathlib import Path

import numpy as np

from simulator.batch.jobs import Ints
from simulator.batch.payloads import Payloads
from simulator.clock import DAY_S, utc_name
from simulator.formats import nfsd
from simulator.plan import Plan

_HOME_CALLS_PER_S = 35  # of all home directories
# A payload's operations in strace: opens are look-ups, stats request attributes.
_LOOKUPS, _GETATTRS = 481_675, 442_728
# Clients cache attributes and names that do not exist: this share reaches the server.
_REACHES_SERVER = 0.11
_READS_PER_LOOKUP, _ACCESS_PER_LOOKUP, _READDIRS_PER_LOOKUP = 0.3, 0.15, 0.01


def write(plan: Plan, payloads: list[Payloads], folder: Path) -> None:
    """Write one read of the server's counters per day."""
    folder.mkdir(parents=True, exist_ok=True)
    moments = np.arange(plan.start, plan.end + 1, DAY_S)
    running = _payloads_done(payloads, moments)
    for moment, done in zip(moments.tolist(), running.tolist(), strict=True):
        calls = calls_of(done, _HOME_CALLS_PER_S * (moment - plan.start))
        path = folder / f"{utc_name(moment)}.txt"
        path.write_text(nfsd.text(calls))
        os.utime(path, (moment, moment))


def calls_of(payload_count: int, home_calls: int = 0) -> nfsd.Calls:
    """Return the calls of a number of payloads and of other clients."""
    lookups = round(payload_count * _LOOKUPS * _REACHES_SERVER) + home_calls // 4
    return nfsd.Calls(
        lookup=lookups,
        getattr=round(payload_count * _GETATTRS * _REACHES_SERVER) + home_calls // 2,
        access=round(lookups * _ACCESS_PER_LOOKUP),
        read=round(lookups * _READS_PER_LOOKUP),
        readdirplus=round(lookups * _READDIRS_PER_LOOKUP),
    )


def _payloads_done(payloads: list[Payloads], moments: Ints) -> Ints:
    """Return how many payloads had started from NFS before each moment."""
    started = [
        batch.started for batch in payloads if batch.job.era and batch.job.era.nfs_operations
    ]
    starts = np.sort(np.concatenate(started)) if started else moments[:0]
    done: Ints = np.searchsorted(starts, moments)
    return done
