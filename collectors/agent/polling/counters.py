"""Polling of counters: increments since the last poll."""

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
from collectors.lustre import export_stats, job_stats, md_stats
from collectors.lustre.differences import (
    Snapshot,
    completed,
    export_deltas,
    job_deltas,
    target_deltas,
)
from collectors.parsed import Parsed, SourceUnavailable
from collectors.source import Source
from collectors.tables import (
    EXPORT_COUNTERS,
    EXPORT_DELTAS,
    JOB_COUNTERS,
    JOB_DELTAS,
    TARGET_COUNTERS,
    TARGET_DELTAS,
    UTC_US,
    Table,
)

Compare = Callable[[Snapshot, Snapshot], tuple[pl.DataFrame, Snapshot]]


@dataclass(frozen=True)
class Kind:
    """Counters of one format: parser, tables, and comparison of two reads."""

    parse: Callable[[Source], Iterator[Parsed]]
    totals: Table
    deltas: Table
    compare: Compare
    # Of rows whose missing counters may be zero or unreadable; (): zeros are printed.
    key: tuple[str, ...] = ()


def job_counters(idle: timedelta) -> Kind:
    """Return the kind of job_stats, given the lifetime of idle entries."""
    return Kind(
        job_stats.parse,
        JOB_COUNTERS,
        JOB_DELTAS,
        lambda earlier, later: (job_deltas(earlier, later, idle), earlier.updated(later)),
    )


def target_counters() -> Kind:
    """Return the kind of md_stats."""
    return _completing(md_stats.parse, TARGET_COUNTERS, TARGET_DELTAS, target_deltas, "target")


def export_counters() -> Kind:
    """Return the kind of export statistics."""
    key = ("target", "nid")
    return _completing(export_stats.parse, EXPORT_COUNTERS, EXPORT_DELTAS, export_deltas, *key)


def _completing(
    parse: Callable[[Source], Iterator[Parsed]],
    totals: Table,
    deltas: Table,
    compare: Callable[[Snapshot, Snapshot], pl.DataFrame],
    *key: str,
) -> Kind:
    """Return the kind of counters that may have missing lines."""

    def compare_whole(earlier: Snapshot, later: Snapshot) -> tuple[pl.DataFrame, Snapshot]:
        whole = completed(earlier, later, *key)
        return compare(earlier, whole), earlier.updated(whole)

    return Kind(parse, totals, deltas, compare_whole, key)


class CounterReader:
    """Polls counters with a command.

    The checkpoint has the time of each target's last read (`reads`), and its counters in a `frame`.
    Failed or skipped polls lose nothing: increments are relative to the last successful poll.
    """

    def __init__(self, folder: Path, command: Sequence[str], timeout_s: float, kind: Kind) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._kind = kind
        self._frames = FrameStore(folder)

    def read(self, checkpoint: dict[str, Any]) -> Generator[Reading]:
        """Poll once."""
        earlier = self._earlier(checkpoint)
        now = datetime.now(UTC)  # before the command: operations not printed happened later
        read = _without_damaged(self._polled(), earlier.totals, self._kind.key)
        later = Snapshot.at(now, read.table.drop("line"), read.observed)
        previous = dict(earlier.reads.rows())
        _check(now, previous, later.reads["target"])
        deltas, merged = self._kind.compare(earlier, later)
        coverage = [
            Coverage(target, previous.get(target, now), now) for target in later.reads["target"]
        ]
        following = {
            "reads": {target: at.isoformat() for target, at in merged.reads.rows()},
            "frame": self._frames.save(merged.totals, checkpoint),
        }
        parsed = replace(read, table=deltas)
        yield Reading(list(batches(self._kind.deltas, [parsed], coverage)), following)

    def behind_bytes(self) -> int:
        """Return 0: a poll reads everything."""
        return 0

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _earlier(self, checkpoint: dict[str, Any]) -> Snapshot:
        totals = self._kind.totals.empty().drop("line")
        stored = self._frames.load(checkpoint)
        if stored is not None:  # perhaps of an earlier version, with fewer columns
            totals = pl.concat([totals, stored], how="diagonal")
        reads = checkpoint.get("reads", {})
        times = [datetime.fromisoformat(at) for at in reads.values()]
        return Snapshot(
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


def _without_damaged(read: Parsed, earlier: pl.DataFrame, key: Sequence[str]) -> Parsed:
    """Drop rows with unreadable lines that no earlier read completes: the next read begins them.

    Otherwise the first increase of an unreadable counter would be its total.
    """
    if not key or read.rejects.is_empty():
        return read
    damaged = read.rejects.select(reject="line").join_asof(
        read.table.select("line", *key).sort("line"), left_on="reject", right_on="line"
    )
    new = damaged.join(earlier, on=key, how="anti")
    return replace(read, table=read.table.join(new, on=key, how="anti"))


def _check(now: datetime, previous: Mapping[str, datetime], targets: pl.Series) -> None:
    """Raise `SourceUnavailable` if a poll cannot be compared with the previous ones."""
    if targets.is_empty():
        raise SourceUnavailable("the command printed no counters")
    if "" in targets:
        raise SourceUnavailable("the output names no target: use lctl get_param without -n")
    filesystems = targets.str.extract(r"^(.*)-OST[0-9a-fA-F]{4}$").drop_nulls().unique().sort()
    if len(filesystems) > 1:
        names = " and ".join(filesystems)
        raise SourceUnavailable(f"OSTs of {names}: configure one source per filesystem")
    last = max(previous.values(), default=None)
    if last and now <= last:
        raise SourceUnavailable(f"the clock was set back: polling resumes after {last}")
