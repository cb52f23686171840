"""Polls counters and tells what they added since the last poll."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from collectors.agent.delivery.batches import Coverage, batches
from collectors.agent.polling import commands
from collectors.agent.polling.frame_store import FrameStore
from collectors.agent.reader import Reading
from collectors.lustre import job_stats, md_stats
from collectors.lustre.differences import Counted, completed, job_deltas, target_deltas
from collectors.parsed import Parsed, SourceUnavailable
from collectors.source import Source
from collectors.tables import (
    JOB_COUNTERS,
    JOB_DELTAS,
    TARGET_COUNTERS,
    TARGET_DELTAS,
    UTC_US,
    Table,
)

Compare = Callable[[Counted, Counted], tuple[pl.DataFrame, Counted]]


@dataclass(frozen=True)
class Kind:
    """Counters of one format: what they are read as, and what becomes of two reads."""

    parse: Callable[[Source], Iterator[Parsed]]
    totals: Table
    deltas: Table
    compare: Compare


def of_jobs(idle: timedelta) -> Kind:
    """Return job_stats, whose idle entries live so long."""
    return Kind(
        job_stats.parse,
        JOB_COUNTERS,
        JOB_DELTAS,
        lambda earlier, later: (job_deltas(earlier, later, idle), earlier.updated(later)),
    )


def of_targets() -> Kind:
    """Return md_stats."""

    def compare(earlier: Counted, later: Counted) -> tuple[pl.DataFrame, Counted]:
        whole = completed(earlier, later)
        return target_deltas(earlier, whole), earlier.updated(whole)

    return Kind(md_stats.parse, TARGET_COUNTERS, TARGET_DELTAS, compare)


class CounterReader:
    """Reads counters by a command, once each time.

    The place keeps when each target was read last, and in a frame what it showed. A poll that fails
    or is left out loses nothing: the next one tells what was added since the last that succeeded.
    """

    def __init__(self, folder: Path, command: Sequence[str], timeout_s: float, kind: Kind) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._kind = kind
        self._frame = FrameStore(folder)

    def read(self, place: dict[str, Any]) -> Generator[Reading]:
        """Poll once."""
        earlier = self._earlier(place)
        now = datetime.now(UTC)  # what the command does not print yet came about later
        read = self._polled()
        later = Counted.at(now, read.table.drop("line"), read.observed)
        previous = dict(earlier.reads.rows())
        _check(now, previous, later.reads["target"])
        deltas, counted = self._kind.compare(earlier, later)
        coverage = [
            Coverage(target, previous.get(target, now), now) for target in later.reads["target"]
        ]
        following = {
            "reads": {target: at.isoformat() for target, at in counted.reads.rows()},
            "frame": self._frame.save(counted.totals, place),
        }
        parsed = replace(read, table=deltas)
        yield Reading(list(batches(self._kind.deltas, [parsed], coverage)), following)

    def behind_bytes(self) -> int:
        """Return 0: a poll reads all there is."""
        return 0

    def close(self) -> None:
        """Do nothing: nothing stays open."""

    def _earlier(self, place: dict[str, Any]) -> Counted:
        totals = self._frame.load(place)
        if totals is None:
            totals = self._kind.totals.empty().drop("line")
        reads = place.get("reads", {})
        times = [datetime.fromisoformat(at) for at in reads.values()]
        return Counted(
            totals,
            pl.DataFrame(
                {"target": list(reads), "taken_at": times},
                {"target": pl.String, "taken_at": UTC_US},
            ),
        )

    def _polled(self) -> Parsed:
        with commands.output(self._command, self._timeout_s) as printed:
            source = Source(printed, self._command[0])
            return Parsed.joined(self._kind.totals, self._kind.parse(source))


def _check(now: datetime, previous: Mapping[str, datetime], targets: pl.Series) -> None:
    """Raise `SourceUnavailable` where a poll makes no sense, or none after the previous ones."""
    if targets.is_empty():
        raise SourceUnavailable("the command printed no counters")
    if "" in targets:
        raise SourceUnavailable("the text names no target: use lctl get_param without -n")
    filesystems = targets.str.extract(r"^(.*)-OST[0-9a-fA-F]{4}$").drop_nulls().unique().sort()
    if len(filesystems) > 1:
        several = " and ".join(filesystems)
        raise SourceUnavailable(f"OSTs of {several}: each filesystem needs a source of its own")
    last = max(previous.values(), default=None)
    if last and now <= last:
        raise SourceUnavailable(f"the clock was put back: polls go on after {last}")
