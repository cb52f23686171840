"""The operations, bytes and RPCs of one job as rates over time: the series of its charts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import DateTimeField, F, Func, Sum, Value
from django.db.models.functions import Greatest

from collectors.lustre import opcodes
from collectors.tables import METADATA_OPERATIONS, UTC_US
from ioportal.core.charts.time_axis import Mark, Meaning
from ioportal.core.time_ranges import TimeRange
from ioportal.core.timelines import OBSERVED, WINDOW, Steps, clipped, in_fewer_steps, rates, within
from ioportal.ingest import pending_attribution
from ioportal.jobs import job_facts
from ioportal.load.series import bin_width, mean_times, observed, observed_apart, seconds, without
from ioportal.site.models import ServerVersion, Target
from ioportal.telemetry import coverage, levels, piecewise, retention
from ioportal.telemetry.models import Coverage, IoWindow, Principal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.jobs.models import Job
    from ioportal.telemetry.coverage import Interval

_MAX_STEPS = 720
_DATA_KINDS = ("read", "write", "read_bytes", "write_bytes")
_IO_KINDS = (*METADATA_OPERATIONS, *_DATA_KINDS)
_EXACT_UP_TO = timedelta(minutes=1)  # shorter bins would not merge polls
_MOMENT = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FOLDED = 0  # IoWindow.target_id of all OSTs of a filesystem


class _Bin(Func):
    """The start of the bin that contains a time; bins are aligned with 1970-01-01."""

    function = "date_bin"
    output_field = DateTimeField()

    def __init__(self, moment: str, width: timedelta) -> None:
        super().__init__(Value(width), F(moment), Value(_EPOCH))


class JobSeries:
    """Rates of a job in a time range, in at most `_MAX_STEPS` steps.

    Steps are clipped to the range, whatever the length of their counting intervals.
    """

    def __init__(self, job: Job, window: TimeRange) -> None:
        self._job = job
        self._window = window
        level = retention.finest(levels.RPC_LEVELS, window.start, window.end)
        self._bin = bin_width(
            (window.end - window.start) / _MAX_STEPS, (level or levels.RPC_TEN_MINUTES).width
        )
        before, after = (window.start - _EPOCH) % self._bin, (_EPOCH - window.end) % self._bin
        self._bins = TimeRange(window.start - before, window.end + after)

    @cached_property
    def metadata(self) -> Steps:
        """Metadata operations on MDTs per second."""
        windows = self._io_windows.filter(pl.col("source") != _FOLDED)
        mdts = len(self._targets_of(Target.Kind.MDT))
        pending = self._pending_targets(Target.Kind.MDT)
        return self._steps(windows, self._read_mdts, METADATA_OPERATIONS, mdts, pending)

    @cached_property
    def data(self) -> Steps:
        """Requests and bytes per second on OSTs, and on MDTs with small files.

        Every OST of the job's filesystems is a source, although their windows are summed. A
        filesystem without registered OSTs counts as a source without observations.
        """
        windows = self._io_windows
        osts = self._osts
        unknown = self._filesystems - {ost.filesystem_id for ost in osts}
        moved = pl.any_horizontal(pl.col(_DATA_KINDS) > 0)
        on_mdts = windows.filter(pl.col("source") != _FOLDED, moved)
        on_osts = windows.filter(pl.col("source") == _FOLDED)
        mdts = self._read_mdts.join(on_mdts, on="source", how="semi")
        return self._steps(
            pl.concat([on_mdts, on_osts]),
            pl.concat([mdts, observed(Coverage.Source.JOB_STATS, osts, self._bins)]),
            _DATA_KINDS,
            len(osts) + len(unknown) + on_mdts["source"].n_unique(),
            self._pending_targets(*Target.Kind),
        )

    @cached_property
    def rpcs(self) -> Steps:
        """RPCs per second on the metadata servers, by opcode."""
        names = self._rpc_counts["opcode"].unique(maintain_order=True).to_list()
        windows = self._rpc_counts.pivot(
            "opcode", index=list(WINDOW), values="count", aggregate_function="sum"
        ).with_columns(pl.col(names).fill_null(0) if names else ())
        return self._rpc_steps(windows, names)

    @cached_property
    def rpc_times(self) -> Steps:
        """Mean service and queue times of timed RPCs, in microseconds."""
        sums = ["timed", "service_us_sum", "total_us_sum"]
        windows = self._rpc_counts.group_by(list(WINDOW), maintain_order=True).agg(
            pl.col(sums).sum()
        )
        return mean_times(self._rpc_steps(windows, sums))

    @property
    def run_marks(self) -> list[Mark]:
        """Start and end of the job."""
        ends = (self._job.started_at, self._job.ended_at)
        return [Mark(at, "", Meaning.RUN) for at in ends if at]

    @cached_property
    def version_marks(self) -> list[Mark]:
        """Version changes of metadata servers: the meaning of counters may change."""
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
        """Unexplained resets of counters, on MDTs or OSTs."""
        return [
            Mark(at, "counter reset", Meaning.FAULT)
            for at, target in self._resets
            if (target != _FOLDED) is on_mdts
        ]

    @cached_property
    def _resets(self) -> list[tuple[datetime, int]]:
        rows = self._io_rows.filter(basis=IoWindow.Basis.RESET).values_list("end", "target_id")
        return sorted(set(rows))

    def traces(self, run: TimeRange) -> list[TimeRange]:
        """Time ranges of the run in which any metadata server was traced."""
        traced = coverage.joined(coverage.traced(self._mds_ids, run.start, run.end))
        # Ranges are half-open and must include the last record.
        return [TimeRange(interval.start, interval.end + _MOMENT) for interval in traced]

    @cached_property
    def undated(self) -> dict[str, int]:
        """Counts before the first read of a target: no duration, so no rate."""
        totals = IoWindow.objects.for_job(self._job.pk).filter(basis=IoWindow.Basis.TOTAL)
        sums = totals.aggregate(**{f"sum_{kind}": Sum(kind) for kind in _IO_KINDS})
        return {kind: int(sums[f"sum_{kind}"] or 0) for kind in _IO_KINDS}

    @cached_property
    def _job_rows(self) -> Any:
        """The job's I/O windows, or roll-ups of them after retention."""
        level = retention.finest(levels.IO_LEVELS, self._window.start, self._window.end)
        rows = (level or levels.IO_TEN_MINUTES).model._default_manager  # noqa: SLF001  (documented)
        return rows.filter(kind=Principal.JOB, job_id=self._job.pk)

    @property
    def _io_rows(self) -> Any:
        """Rows of `_job_rows` that overlap the range."""
        return self._job_rows.filter(start__lt=self._window.end, end__gt=self._window.start)

    @cached_property
    def _io_windows(self) -> pl.DataFrame:
        """Windows between reads, without the time outside the run; in a long range, in bins.

        The operations of a window were made while the job ran, however long after it the read came.
        """
        width = self._bin if self._bin > _EXACT_UP_TO else _MOMENT
        rows = (
            self._io_rows.exclude(basis=IoWindow.Basis.TOTAL)
            .values(
                "target_id",
                begins=_Bin("start", width),
                ends=Greatest(_Bin("end", width), _Bin("start", width) + Value(width)),
            )
            .annotate(**{f"sum_{kind}": Sum(kind) for kind in _IO_KINDS})
            .values_list("target_id", "begins", "ends", *(f"sum_{kind}" for kind in _IO_KINDS))
        )
        frame = pl.DataFrame(
            list(rows),
            schema={**OBSERVED, **dict.fromkeys(_IO_KINDS, pl.Int64)},
            orient="row",
        )
        if run := job_facts.run(self._job):
            begin, stop = (pl.lit(moment, UTC_US) for moment in (run.start, run.end))
            start, end = pl.max_horizontal("start", begin), pl.min_horizontal("end", stop)
            is_within = start < end
            frame = frame.with_columns(
                start=pl.when(is_within).then(start).otherwise("start"),
                end=pl.when(is_within).then(end).otherwise("end"),
            )
        return frame.with_columns(seconds("start", "end").alias("seconds"))

    @cached_property
    def _rpc_counts(self) -> pl.DataFrame:
        """Windows by opcode, clipped to traced intervals."""
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
        """Fold all servers into one source: RPCs are known wherever any server was traced."""
        return self._steps(_folded(windows), _folded(self._traced), kinds, 1, self._pending_traces)

    def _steps(
        self,
        windows: pl.DataFrame,
        observed: pl.DataFrame,
        kinds: Sequence[str],
        sources: int,
        pending: Sequence[Interval],
    ) -> Steps:
        """Return rates outside pending intervals, where they are unknown rather than zero."""
        attributed = without(observed, dict.fromkeys(observed["source"], pending))
        steps = replace(rates(windows, attributed, kinds, sources), pending=tuple(pending))
        return in_fewer_steps(within(steps, self._window.start, self._window.end), _MAX_STEPS)

    @cached_property
    def _pending_traces(self) -> list[Interval]:
        intervals = pending_attribution.trace_intervals(
            self._mds_ids, self._window.start, self._window.end
        )
        return sorted(chain.from_iterable(intervals.values()))

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
        """Targets of the filesystems that the cluster mounts."""
        return list(Target.objects.filter(filesystem__clusters=self._job.cluster_id))

    def _targets_of(self, kind: Target.Kind) -> list[Target]:
        return [target for target in self._targets if target.kind == kind]

    @property
    def _osts(self) -> list[Target]:
        osts = self._targets_of(Target.Kind.OST)
        return [ost for ost in osts if ost.filesystem_id in self._filesystems]

    @cached_property
    def _filesystems(self) -> set[int]:
        """Filesystems with counters of the job; without any, all filesystems of its cluster."""
        filesystems = self._job_rows.order_by().values_list("filesystem_id", flat=True).distinct()
        return set(filesystems) or {target.filesystem_id for target in self._targets}

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


def _folded(frame: pl.DataFrame) -> pl.DataFrame:
    """Merge all sources into one."""
    return frame.with_columns(pl.lit(_FOLDED, pl.Int64).alias("source"))
