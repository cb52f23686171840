"""Constructed input of any size for benches."""

import os
from pathlib import Path

import numpy as np
import polars as pl

from simulator.activity import MDT_KINDS, RENAME, RENAMES
from simulator.clock import MICROSECONDS, local
from simulator.formats import job_stats, rpctrace
from simulator.formats.rpctrace import Names, Version
from simulator.progress import say
from simulator.randomness import stream
from simulator.servers import mds
from simulator.servers.counters import Entry
from simulator.site import BATCH_SERVER, MDT

_BEGIN = local(2017, 7, 6, "10:00:00")
_LINES_PER_S = 50_000  # of simulated time: an overloaded server; the golden trace has 86,339
_BATCH_LINES = 1_000_000
_NODES_PER_JOB = 50
_POLL_EVERY_S = 600
_FIRST_JOB = 3_520_000
_OPCODES = {
    mds.LDLM_ENQUEUE: 0.76,
    mds.MDS_CLOSE: 0.12,
    mds.MDS_GETATTR: 0.04,
    mds.MDS_REINT: 0.03,
    mds.MDS_GETXATTR: 0.02,
    mds.LDLM_CANCEL: 0.02,
    mds.MDS_READPAGE: 0.01,
}
# Lines that a parser misreads if it splits at colons: (pattern, replacement).
_ODD_FORMS = (
    (r" Request proces.*", ""),  # no timing tail: Lustre up to 2.0
    (r":12345-(\d+)@\w+:", ":12345-2001:db8::${1}@tcp:"),  # an IPv6 NID
    (r":\(service\.c", ":(.service.c"),  # a message inside another's indentation
    (r"(@\w+:\d+)(:\w+)?", "${1}:ior:10${2}:host"),  # a job id with colons
)


def write_rpctrace(
    path: Path, *, lines: int, nids: int, odd_share: float, seed: int, version: Version
) -> None:
    """Write a trace of handled RPCs.

    Args:
        path: output file.
        lines: number of lines.
        nids: number of clients.
        odd_share: share of lines, 0 to 1, in one of `_ODD_FORMS`.
        seed: the same seed gives the same bytes.
        version: Lustre version of the lines.
    """
    chance = stream(seed, "constructed trace")
    names = _names(nids, chance)
    jobs = pl.Series([f"{_FIRST_JOB + n}" for n in range(nids // _NODES_PER_JOB + 1)])
    with path.open("wb") as file:
        for first in range(0, lines, _BATCH_LINES):
            records = _records(first, min(_BATCH_LINES, lines - first), nids, jobs, chance)
            texts = rpctrace.lines(records, names, version)
            rpctrace.write(_with_odd_lines(texts, odd_share, chance, version), file)
            say(f"{first + len(records):,} of {lines:,} lines")


def write_job_stats(folder: Path, *, jobs: int, polls: int, seed: int) -> None:
    """Write dumps of an MDT, each modified when it was read; all counters grow steadily."""
    folder.mkdir(parents=True)
    growth = stream(seed, "constructed job_stats").integers(100_000, size=(jobs, len(MDT_KINDS)))
    growth[:, RENAME] = growth[:, list(RENAMES)].sum(axis=1)
    for poll in range(polls):
        read_s = _BEGIN + poll * _POLL_EVERY_S
        entries = (
            Entry(
                f"{_FIRST_JOB + n}.{BATCH_SERVER}", _BEGIN, read_s - n % _POLL_EVERY_S, tuple(row)
            )
            for n, row in enumerate((growth * (poll + 1)).tolist())
        )
        path = folder / f"{poll:06}.txt"
        path.write_text(job_stats.mdt(MDT, entries))
        os.utime(path, (read_s, read_s))


def _names(nids: int, chance: np.random.Generator) -> Names:
    digits = chance.bytes(6 * nids).hex()
    return Names(
        nids=pl.Series([f"{n}@gni" for n in range(nids)]),
        uuids=pl.Series(
            [f"0f1c2d3e-4a5b-6c7d-8e9f-{digits[12 * n : 12 * n + 12]}" for n in range(nids)]
        ),
        threads=pl.Series(mds.THREAD_NAMES),
        thread_pids=pl.Series(range(17_330, 17_330 + len(mds.THREAD_NAMES))),
    )


def _records(
    first: int, count: int, nids: int, jobs: pl.Series, chance: np.random.Generator
) -> pl.DataFrame:
    number = np.arange(first, first + count)
    opcode = chance.choice(list(_OPCODES), p=list(_OPCODES.values()), size=count)
    first_thread, pool_size = mds.pools_of(opcode)
    service_us = mds.service_times(opcode, chance)
    client = chance.integers(nids, size=count)
    return pl.DataFrame(
        {
            "time_us": _BEGIN * MICROSECONDS + number * (MICROSECONDS // _LINES_PER_S),
            "handled": np.ones(count, dtype=bool),
            "cpu": number % 16,
            "first": number % 5_003 == 0,
            "thread": first_thread + number % pool_size,
            "client": client,
            "ref": number % 53 + 4,
            "pid": number % 28_657 + 2_000,
            "xid": (_BEGIN << 20) + number * 4,
            "opcode": opcode,
            "trans": np.zeros(count, dtype=np.int64),
            "rc": np.zeros(count, dtype=np.int64),
            "job": jobs.gather(client // _NODES_PER_JOB),
            "service_us": service_us,
            "total_us": service_us + mds.dispatch_times(count, chance),
        }
    )


def _with_odd_lines(
    texts: pl.Series, share: float, chance: np.random.Generator, version: Version
) -> pl.Series:
    """Replace a share of the lines by irregular ones, each form equally often."""
    forms = _ODD_FORMS if version is Version.V2_15 else _ODD_FORMS[:-1]
    kind = chance.integers(len(forms), size=len(texts))
    odd = chance.random(len(texts)) < share
    for n, (pattern, replacement) in enumerate(forms):
        rows = np.flatnonzero(odd & (kind == n))
        texts = texts.scatter(rows, texts.gather(rows).str.replace(pattern, replacement))
    return texts
