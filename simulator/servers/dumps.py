"""Dumps of the server's debug buffer, with typical damage."""

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import polars as pl
import zstandard

from simulator.clock import MICROSECONDS
from simulator.formats import rpctrace
from simulator.formats.rpctrace import Version

_LEVEL = 3
_OTHER_LINES_PER_S = 0.8
_TORN_CHARACTERS = 150  # rest of a line that was cut
_LOCK = (
    "00010000:00010000:{cpu}.0:{time}:0:17338:0:(ldlm_lock.c:1063:ldlm_granted_list_add_lock()) "
    "### About to add lock: ns: mdt-atlas2-MDT0000_UUID lock: ffff88{id:010x}/0x{id:x} lrc: 3/0,0 "
    "mode: PR/PR res: [0x20001a7e1:0x{cpu:x}:0x0].0x0 bits 0x13 rrc: 2 type: IBT"
)
_OPEN = (
    "00000004:00000002:{cpu}.0:{time}:0:17341:0:(mdt_open.c:1385:mdt_mfd_open()) "
    "after open, ma_valid bit = 0x1 lmm_size = 56"
)
# A message of several lines; the others have no header.
_SETS = (
    "00000100:00080000:{cpu}.0:{time}:0:17102:0:(ptlrpcd.c:412:ptlrpcd_check()) transfer of sets:\n"
    "  set {id:x}: 2 requests\n  set {id:x}: 0 requests"
)
_OTHER_MESSAGES = (_LOCK, _OPEN, _SETS)


@dataclass(frozen=True)
class Account:
    """Number of text lines of a dump by sort."""

    lines: int
    handled: int  # complete "Handled RPC" lines; lines dumped twice count twice
    handling: int
    dumped_twice: int  # lines of `handled` that repeat another one
    torn: int  # lines cut inside


def write(
    records: pl.DataFrame,
    names: rpctrace.Names,
    rng: np.random.Generator,
    path: Path,
    *,
    twice: int = 0,
    cut: bool = False,
    version: Version = Version.V2_8,
) -> Account:
    """Write one compressed dump.

    Args:
        records: columns as in formats.rpctrace, in order of time.
        names: texts for the records' indices.
        rng: random generator.
        path: output file, gzip or zstd by its name.
        twice: number of neighbouring handled records in the buffers of two dumpers.
        cut: the file ends in the middle of the last handled record.
        version: Lustre version of the lines.
    """
    handled = np.flatnonzero(records["handled"].to_numpy())
    again = handled[len(handled) // 3 :][:twice]
    times_us = records["time_us"]
    if cut:
        records = records.head(int(handled[-1]) + 1)
    records = pl.concat([records, records[again]])
    texts = pl.concat(
        [
            records.select("time_us", line=rpctrace.lines(records, names, version)),
            _other_lines(times_us, rng),
        ]
    )
    lines = texts.sort("time_us", maintain_order=True)["line"]
    if cut:
        ending = f"{lines[-1][:_TORN_CHARACTERS]}"
        lines = lines.head(-1)
    else:
        ending = f"Debug log: {len(lines)} lines, {len(lines)} kept, 0 dropped, 0 bad.\n"
    with path.open("wb") as file, _compressed(path, file) as compressed:
        rpctrace.write(lines, compressed)
        compressed.write(ending.encode())
    return Account(
        lines=len(lines) + int(lines.str.count_matches("\n").sum()) + 1,
        handled=int(records["handled"].sum()) - cut,
        handling=int((~records["handled"]).sum()),
        dumped_twice=len(again),
        torn=int(cut),
    )


def _compressed(path: Path, file: BinaryIO) -> BinaryIO:
    if path.suffix == ".zst":
        return zstandard.ZstdCompressor(_LEVEL).stream_writer(file)
    # No name or time in the header: the same text gives the same bytes.
    return cast("BinaryIO", gzip.GzipFile("", "wb", _LEVEL, file, mtime=0))


def _other_lines(times_us: pl.Series, rng: np.random.Generator) -> pl.DataFrame:
    """Return messages of other parts of Lustre, strictly inside the records' interval."""
    first, last = int(times_us[0]), int(times_us[-1])
    count = int((last - first) / MICROSECONDS * _OTHER_LINES_PER_S)
    moments = np.sort(rng.integers(first, last, size=count))
    lines = [
        _OTHER_MESSAGES[n % len(_OTHER_MESSAGES)].format(
            cpu=rng.integers(16),
            time=f"{moment // MICROSECONDS}.{moment % MICROSECONDS:06d}",
            id=rng.integers(1 << 36),
        )
        for n, moment in enumerate(moments.tolist())
    ]
    return pl.DataFrame({"time_us": moments, "line": lines})
