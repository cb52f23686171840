"""What a job did over time: the rates behind the job page's charts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import DateTimeField, F, Func, Sum, Value
from django.db.models.functions import Greatest

from collectors.lustre import opcodes
from collectors.tables import METADATA_OPERATIONS, UTC_US
from ioportal.analysis.timelines import (
    OBSERVED,
    WINDOW,
    Steps,
    clipped,
    coarsened,
    rates,
    united,
    within,
)
from ioportal.charts.time_axis import Mark, Meaning
from ioportal.ingest import pending_attribution
from ioportal.reporting.ranges import TimeRange
from ioportal.site.models import ServerVersion, Target
from ioportal.telemetry import coverage, levels, piecewise, retention
from ioportal.telemetry.models import Coverage, IoWindow, Principal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ioportal.jobs.models import Job
    from ioportal.telemetry.coverage import Interval

STEPS_SHOWN = 720
DATA_KINDS = ("read", "write", "read_bytes", "write_bytes")
IO_KINDS = (*METADATA_OPERATIONS, *DATA_KINDS)
# Widths of bins, each of which finer ones fill; from an hour on, whole hours.
_BINS = tuple(timedelta(seconds=n) for n in (10, 20, 30, 60, 120, 300, 600, 1_200, 1_800))
_HOUR = timedelta(hours=1)
_EXACT_UP_TO = timedelta(minutes=1)  # bins no longer than usual polls would join nothing
_MOMENT = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FOLDED = 0  # as IoWindow.target_id of a filesystem's OSTs


class _Bin(Func):
    """The start of the bin, of a width counted from 1970, that a moment is in."""

    function = "date_bin"
    output_field = DateTimeField()

    def __init__(self, moment: str, width: timedelta) -> None:
        super().__init__(Value(width), F(moment), Value(_EPOCH))


class JobSeries:
    """Rates of one job's operations, bytes and RPCs in a range, at most some hundred steps each.

    Steps end where the range does, however long the intervals are that they were counted in.
    """

    def __init__(self, job: Job, window: TimeRange) -> None:
        self._job = job
        self._window = window
        kept = retention.finest(levels.RPC_LEVELS, window.start, window.end)
        self._bin = bin_width(
            (window.end - window.start) / STEPS_SHOWN, (kept or levels.RPC_TEN_MINUTES).width
        )
        before, after = (window.start - _EPOCH) % self._bin, (_EPOCH - window.end) % self._bin
        self._bins = TimeRange(window.start - before, window.end + after)  # whole ones

    @cached_property
    def metadata(self) -> Steps:
        """Operations on the MDTs per second."""
        windows = self._io_windows.filter(pl.col("source") != _FOLDED)
        mdts = len(self._targets_of(Target.Kind.MDT))
        pending = self._pending_targets(Target.Kind.MDT)
        return self._steps(windows, self._read_mdts, METADATA_OPERATIONS, mdts, pending)

    @cached_property
    def data(self) -> Steps:
        """Requests and bytes on the OSTs, and on MDTs that hold small files, per second.

        Every OST of the job's filesystems is a source, though their windows are folded into one. A
        filesystem without registered OSTs is a source that was never observed.
        """
        windows = self._io_windows
        osts = self._osts
        unknown = self._filesystems - {ost.filesystem_id for ost in osts}
        moved = pl.any_horizontal(pl.col(DATA_KINDS) > 0)
        on_mdts = windows.filter(pl.col("source") != _FOLDED, moved)
        on_osts = windows.filter(pl.col("source") == _FOLDED)
        mdts = self._read_mdts.join(on_mdts, on="source", how="semi")
        return self._steps(
            pl.concat([on_mdts, on_osts]),
            pl.concat([mdts, observed(Coverage.Source.JOB_STATS, osts, self._bins)]),
            DATA_KINDS,
            len(osts) + len(unknown) + on_mdts["source"].n_unique(),
            self._pending_targets(*Target.Kind),
        )

    @cached_property
    def rpcs(self) -> Steps:
        """RPCs of each opcode handled by the MDSs, per second."""
        names = self._rpc_counts["opcode"].unique(maintain_order=True).to_list()
        windows = self._rpc_counts.pivot(
            "opcode", index=list(WINDOW), values="count", aggregate_function="sum"
        ).with_columns(pl.col(names).fill_null(0) if names else ())
        return self._rpc_steps(windows, names)

    @cached_property
    def rpc_times(self) -> Steps:
        """Mean service and queue time of the timed RPCs, in microseconds."""
        sums = ["timed", "service_us_sum", "total_us_sum"]
        windows = self._rpc_counts.group_by(list(WINDOW), maintain_order=True).agg(
            pl.col(sums).sum()
        )
        return mean_times(self._rpc_steps(windows, sums))

    @property
    def run_marks(self) -> list[Mark]:
        """The job's own begin and end."""
        ends = (self._job.started_at, self._job.ended_at)
        return [Mark(at, "", Meaning.RUN) for at in ends if at]

    @cached_property
    def version_marks(self) -> list[Mark]:
        """Changes of the metadata servers' version, and so of what they count."""
        versions = ServerVersion.objects.filter(
            server__in=self._mds_ids, since__lte=self._window.end
        ).select_related("server")
        marks = []
        before: dict[str, str] = {}
        for version in versions.order_by("since"):
            name = version.server.name
            if version.since > self._window.start and name in before:
                text = f"{name}: {before[name]} → {version.version}"
                marks.append(Mark(version.since, text, Meaning.BREAK))
            before[name] = version.version
        return marks

    def reset_marks(self, *, on_mdts: bool) -> list[Mark]:
        """Reads of MDTs, or of OSTs, that found counters lower than before, without a reason."""
        return [
            Mark(at, "counters fell", Meaning.FAULT)
            for at, target in self._resets
            if (target != _FOLDED) is on_mdts
        ]

    @cached_property
    def _resets(self) -> list[tuple[datetime, int]]:
        rows = self._io_rows.filter(basis=IoWindow.Basis.RESET).values_list("end", "target_id")
        return sorted(set(rows))

    def traces(self, run: TimeRange) -> list[TimeRange]:
        """When at least one of the metadata servers was traced in the job's run.

        Ranges are half-open: one that ended with the last record would leave it out.
        """
        traced = coverage.joined(coverage.traced(self._mds_ids, run.start, run.end))
        return [TimeRange(seen.start, seen.end + _MOMENT) for seen in traced]

    @cached_property
    def undated(self) -> dict[str, int]:
        """Counts of first reads of a target: of unknown duration, so without a rate."""
        totals = IoWindow.objects.for_job(self._job.pk).filter(basis=IoWindow.Basis.TOTAL)
        sums = totals.aggregate(**{f"sum_{kind}": Sum(kind) for kind in IO_KINDS})
        return {kind: int(sums[f"sum_{kind}"] or 0) for kind in IO_KINDS}

    @cached_property
    def _job_rows(self) -> Any:
        """The job's I/O windows; where those of the range are gone, sums of them."""
        kept = retention.finest(levels.IO_LEVELS, self._window.start, self._window.end)
        rows = (kept or levels.IO_TEN_MINUTES).model._default_manager  # noqa: SLF001  (documented)
        return rows.filter(kind=Principal.JOB, job_id=self._job.pk)

    @property
    def _io_rows(self) -> Any:
        """Those of `_job_rows` that overlap the range."""
        return self._job_rows.filter(start__lt=self._window.end, end__gt=self._window.start)

    @cached_property
    def _io_windows(self) -> pl.DataFrame:
        """Windows between reads, with their own bounds; in a long range, those of its bins."""
        width = self._bin if self._bin > _EXACT_UP_TO else _MOMENT
        rows = (
            self._io_rows.exclude(basis=IoWindow.Basis.TOTAL)
            .values(
                "target_id",
                begins=_Bin("start", width),
                ends=Greatest(_Bin("end", width), _Bin("start", width) + Value(width)),
            )
            .annotate(**{f"sum_{kind}": Sum(kind) for kind in IO_KINDS})
            .values_list("target_id", "begins", "ends", *(f"sum_{kind}" for kind in IO_KINDS))
        )
        return pl.DataFrame(
            list(rows),
            schema={**OBSERVED, **dict.fromkeys(IO_KINDS, pl.Int64)},
            orient="row",
        ).with_columns(seconds("start", "end").alias("seconds"))

    @cached_property
    def _rpc_counts(self) -> pl.DataFrame:
        """Windows of each opcode, cut to what was traced."""
        sums = ("count", "timed", "service_us_sum", "total_us_sum")
        level = levels.coarsest(levels.RPC_LEVELS, self._bin)
        rows = chain.from_iterable(
            piece.level.model._default_manager.filter(  # noqa: SLF001  (documented)
                kind=Principal.JOB, job_id=self._job.pk, server_id__in=self._mds_ids
            )
            .filter(start__gte=piece.start, start__lt=piece.end)
            .annotate(bin=_Bin("start", self._bin))
            .values("server_id", "bin", "opcode")
            .annotate(**{f"sum_{name}": Sum(name) for name in sums})
            .values_list("server_id", "bin", "opcode", *(f"sum_{name}" for name in sums))
            for piece in piecewise.pieces(level, self._bins.start, self._bins.end)
        )
        frame = pl.DataFrame(
            list(rows),
            schema={
                "source": pl.Int64,
                "start": UTC_US,
                "opcode": pl.Int64,
                **dict.fromkeys(sums, pl.Int64),
            },
            orient="row",
        )
        by = ("source", "start", "opcode")
        frame = frame.group_by(by).agg(pl.col(sums).sum()).sort(by)
        names = {number: opcodes.name_of(number) for number in frame["opcode"].unique()}
        windows = frame.select(
            "source",
            "start",
            (pl.col("start") + self._bin).alias("end"),
            pl.lit(0.0).alias("seconds"),
            pl.col("opcode").replace_strict(names, return_dtype=pl.String),
            *sums,
        )
        return clipped(windows, self._traced, ("opcode", *sums))

    def _rpc_steps(self, windows: pl.DataFrame, kinds: Sequence[str]) -> Steps:
        """RPCs are known where any MDS was traced: what one tells is not a part of another's."""
        return self._steps(_folded(windows), _folded(self._traced), kinds, 1, self._pending_traces)

    def _steps(
        self,
        windows: pl.DataFrame,
        observed: pl.DataFrame,
        kinds: Sequence[str],
        sources: int,
        pending: Sequence[Interval],
    ) -> Steps:
        """Return rates outside of pending intervals: there they are unknown, not zero."""
        attributed = without(observed, dict.fromkeys(observed["source"], pending))
        steps = replace(rates(windows, attributed, kinds, sources), pending=tuple(pending))
        return coarsened(within(steps, self._window.start, self._window.end), STEPS_SHOWN)

    @cached_property
    def _pending_traces(self) -> list[Interval]:
        found = pending_attribution.trace_intervals(
            self._mds_ids, self._window.start, self._window.end
        )
        return sorted(chain.from_iterable(found.values()))

    def _pending_targets(self, *kinds: Target.Kind) -> list[Interval]:
        targets = [target.pk for target in self._targets if target.kind in kinds]
        return sorted(
            chain.from_iterable(self._pending_differences.get(target, ()) for target in targets)
        )

    @cached_property
    def _pending_differences(self) -> dict[int, list[Interval]]:
        targets = [target.pk for target in self._targets]
        return pending_attribution.delta_intervals(targets, self._window.start, self._window.end)

    @cached_property
    def _targets(self) -> list[Target]:
        """Targets of the cluster's filesystems."""
        return list(Target.objects.filter(filesystem__clusters=self._job.cluster_id))

    def _targets_of(self, kind: Target.Kind) -> list[Target]:
        return [target for target in self._targets if target.kind == kind]

    @property
    def _osts(self) -> list[Target]:
        osts = self._targets_of(Target.Kind.OST)
        return [ost for ost in osts if ost.filesystem_id in self._filesystems]

    @cached_property
    def _filesystems(self) -> set[int]:
        """Filesystems that counted the job; if none did, all of its cluster (as its statistics)."""
        counted = self._job_rows.order_by().values_list("filesystem_id", flat=True).distinct()
        return set(counted) or {target.filesystem_id for target in self._targets}

    @property
    def _mds_ids(self) -> list[int]:
        return self._job.cluster.metadata_server_ids

    @cached_property
    def _read_mdts(self) -> pl.DataFrame:
        return observed(Coverage.Source.JOB_STATS, self._targets_of(Target.Kind.MDT), self._bins)

    @cached_property
    def _traced(self) -> pl.DataFrame:
        apart = coverage.contiguous(self._mds_ids)
        return observed_apart(Coverage.Source.RPC_TRACE, apart, self._bins)


def bin_width(
    least: timedelta, level_width: timedelta, offered: Sequence[timedelta] = _BINS
) -> timedelta:
    """Return a width of bins that is no less than `least`, and that a level's buckets fill."""
    fitting = (width for width in offered if width >= max(least, level_width))
    return next(fitting, _HOUR * ceil(least / _HOUR))


def without(observed: pl.DataFrame, pending: Mapping[int, Sequence[Interval]]) -> pl.DataFrame:
    """Return what is left of observed intervals, a frame of `OBSERVED`, outside of pending ones."""
    if not any(pending.values()):
        return observed
    rows = [
        (source, *part)
        for source, start, end in observed.iter_rows()
        for part in coverage.gaps(pending.get(source, []), start, end)
    ]
    return pl.DataFrame(rows, schema=OBSERVED, orient="row")


def seconds_within(intervals: pl.DataFrame, start: datetime, end: datetime) -> float:
    """Return for how long of [start, end) some source has an interval, of a frame of `OBSERVED`."""
    begin, stop = (pl.lit(moment, UTC_US) for moment in (start, end))
    inside = intervals.select(
        pl.lit(0, pl.Int64).alias("source"),
        pl.max_horizontal("start", begin).alias("start"),
        pl.min_horizontal("end", stop).alias("end"),
    ).filter(pl.col("end") > pl.col("start"))
    return float(united(inside).select(seconds("start", "end").sum()).item() or 0.0)


def mean_times(sums: Steps) -> Steps:
    """Return mean service and queue time of timed RPCs, in microseconds, from sums of times."""
    timed = pl.when(pl.col("timed") > 0).then(pl.col("timed"))
    frame = sums.frame.select(
        "start",
        "end",
        "observed",
        (pl.col("service_us_sum") / timed).alias("service"),
        ((pl.col("total_us_sum") - pl.col("service_us_sum")) / timed).alias("queue"),
    )
    return replace(sums, frame=frame, kinds=("service", "queue"))


def last_observed(source: Coverage.Source, targets: Iterable[Target]) -> dict[int, datetime]:
    """Return when each of those targets that ever were was observed last."""
    return coverage.last_observed(source, _apart(targets))


def observed(source: Coverage.Source, targets: Iterable[Target], window: TimeRange) -> pl.DataFrame:
    """Return when targets were observed in a range: a frame of `OBSERVED`."""
    return observed_apart(source, _apart(targets), window)


def _apart(targets: Iterable[Target]) -> dict[int, timedelta]:
    return {target.pk: target.poll_gap for target in targets}


def observed_apart(
    source: Coverage.Source, apart: Mapping[int, timedelta], window: TimeRange
) -> pl.DataFrame:
    """Return when sources were observed in a range, whose reads may be so far apart."""
    found = coverage.by_source(source, apart, window.start, window.end)
    rows = [(source_id, *interval) for source_id, interval in found]
    return pl.DataFrame(rows, schema=OBSERVED, orient="row")


def _folded(frame: pl.DataFrame) -> pl.DataFrame:
    """Take all sources as one."""
    return frame.with_columns(pl.lit(_FOLDED, pl.Int64).alias("source"))


def seconds(start: str, end: str) -> pl.Expr:
    """Return how long it is from one moment to another."""
    return (pl.col(end) - pl.col(start)).dt.total_microseconds() / 1e6
