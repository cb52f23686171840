"""What a job did over time: the rates behind the job page's charts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

import polars as pl
from django.conf import settings
from django.db.models import DateTimeField, F, Func, Max, Min, Sum, Value

from collectors.lustre import opcodes
from collectors.tables import UTC_US
from ioportal.analysis.metrics import METADATA_OPERATIONS
from ioportal.analysis.timelines import OBSERVED, WINDOW, Steps, clipped, coarsened, rates
from ioportal.charts.timelines import Mark, Meaning
from ioportal.jobs.models import Server, ServerVersion, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.models import ChargedRpc, Coverage, IoWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.jobs.models import Job
    from ioportal.web.ranges import TimeRange

STEPS_SHOWN = 720
IO_KINDS = (*METADATA_OPERATIONS, "read", "write", "read_bytes", "write_bytes")
_RPC_WINDOW = timedelta(seconds=10)
_TRACE_GAP = timedelta(seconds=1)  # between two files of one trace
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OSTS = 0  # IoWindow.target_id of a filesystem's OSTs together


class _Bin(Func):
    """The start of the bin, of a width counted from 1970, that a moment is in."""

    function = "date_bin"
    output_field = DateTimeField()

    def __init__(self, moment: str, width: timedelta) -> None:
        super().__init__(Value(width), F(moment), Value(_EPOCH))


class JobSeries:
    """Rates of one job's operations, bytes and RPCs in a range, at most some hundred steps each."""

    def __init__(self, job: Job, window: TimeRange) -> None:
        self._job = job
        self._window = window
        # Whole RPC windows; polls are rarer, so that one of them fills several bins or just one.
        bins = (window.end - window.start) / STEPS_SHOWN / _RPC_WINDOW
        self._bin = _RPC_WINDOW * max(1, ceil(bins))

    def metadata(self, kinds: Sequence[str]) -> Steps:
        """Return operations on the MDTs per second."""
        windows = self._io_windows.filter(pl.col("source") != _OSTS)
        return self._steps(windows, self._read_mdts, kinds, self._targets_of(Target.Kind.MDT).len())

    def data(self, kinds: Sequence[str]) -> Steps:
        """Return requests or bytes on the OSTs, and on MDTs that hold small files, per second."""
        windows = self._io_windows
        on_mdts = windows.filter(pl.col("source") != _OSTS, pl.any_horizontal(pl.col(kinds) > 0))
        on_osts = windows.filter(pl.col("source") == _OSTS)
        mdts = self._read_mdts.join(on_mdts, on="source", how="semi")
        return self._steps(
            pl.concat([on_mdts, on_osts]),
            pl.concat([mdts, self._read_osts]),
            kinds,
            1 + on_mdts["source"].n_unique(),
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
        windows = self._rpc_counts.group_by(list(WINDOW), maintain_order=True).agg(pl.col(sums).sum())
        steps = self._rpc_steps(windows, sums)
        timed = pl.when(pl.col("timed") > 0).then(pl.col("timed"))
        frame = steps.frame.select(
            "start",
            "end",
            "observed",
            (pl.col("service_us_sum") / timed).alias("service"),
            ((pl.col("total_us_sum") - pl.col("service_us_sum")) / timed).alias("queue"),
        )
        return Steps(frame, ("service", "queue"), steps.sources)

    @cached_property
    def marks(self) -> list[Mark]:
        """The job's own begin and end, and changes of what its MDSs count."""
        ends = [self._job.started_at, self._job.ended_at]
        run = [Mark(at, "", Meaning.RUN) for at in ends if at]
        versions = ServerVersion.objects.filter(
            server__in=self._mds_ids, since__lte=self._window.end
        ).select_related("server")
        marks, before = [], {}
        for version in versions.order_by("since"):
            name = version.server.name
            if version.since > self._window.start and name in before:
                text = f"{name}: {before[name]} → {version.version}"
                marks.append(Mark(version.since, text, Meaning.BREAK))
            before[name] = version.version
        return [*run, *marks]

    @cached_property
    def resets(self) -> list[Mark]:
        """Reads that found counters lower than before, without a reason."""
        rows = (
            self._io_rows.filter(basis=IoWindow.Basis.RESET)
            .order_by("end")
            .values_list("end", flat=True)
        )
        return [Mark(at, "counters fell", Meaning.FAULT) for at in sorted(set(rows))]

    def undated(self, kinds: Sequence[str]) -> dict[str, int]:
        """Return counts of the first read of a target: of unknown duration, so without a rate."""
        totals = IoWindow.objects.of_job(self._job.pk).filter(basis=IoWindow.Basis.TOTAL)
        sums: dict[str, Any] = totals.aggregate(**{f"sum_{kind}": Sum(kind) for kind in kinds})
        return {kind: sums[f"sum_{kind}"] for kind in kinds if sums[f"sum_{kind}"]}

    @property
    def _io_rows(self) -> Any:
        """The job's I/O windows that overlap the range."""
        return IoWindow.objects.of_job(self._job.pk).filter(
            start__lt=self._window.end, end__gt=self._window.start
        )

    @cached_property
    def _io_windows(self) -> pl.DataFrame:
        """Windows between reads; those that begin in one bin and end in one are taken together."""
        rows = (
            self._io_rows.exclude(basis=IoWindow.Basis.TOTAL)
            .annotate(begins=_Bin("start", self._bin), ends=_Bin("end", self._bin))
            .values("target_id", "begins", "ends")
            .annotate(
                first=Min("start"),
                last=Max("end"),
                **{f"sum_{kind}": Sum(kind) for kind in IO_KINDS},
            )
            .order_by("target_id", "begins", "ends")
            .values_list("target_id", "first", "last", *(f"sum_{kind}" for kind in IO_KINDS))
        )
        return pl.DataFrame(
            list(rows),
            schema={**OBSERVED, **dict.fromkeys(IO_KINDS, pl.Int64)},
            orient="row",
        ).with_columns(_seconds("start", "end").alias("seconds"))

    @cached_property
    def _rpc_counts(self) -> pl.DataFrame:
        """Windows of each opcode, cut to what was traced."""
        sums = ("count", "timed", "service_us_sum", "total_us_sum")
        rows = (
            ChargedRpc.objects.of_job(self._job.pk)
            .filter(start__gt=self._window.start - _RPC_WINDOW, start__lt=self._window.end)
            .filter(server_id__in=self._mds_ids)
            .annotate(bin=_Bin("start", self._bin))
            .values("server_id", "bin", "opcode")
            .annotate(**{f"sum_{name}": Sum(name) for name in sums})
            .order_by("server_id", "bin", "opcode")
            .values_list("server_id", "bin", "opcode", *(f"sum_{name}" for name in sums))
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
        return self._steps(windows, self._traced, kinds, len(self._mds_ids))

    def _steps(
        self, windows: pl.DataFrame, observed: pl.DataFrame, kinds: Sequence[str], sources: int
    ) -> Steps:
        return coarsened(rates(windows, observed, kinds, sources), STEPS_SHOWN)

    @cached_property
    def _targets(self) -> pl.DataFrame:
        """Targets of the cluster's filesystems."""
        rows = Target.objects.filter(filesystem__clusters=self._job.cluster_id)
        return pl.DataFrame(
            list(rows.values_list("pk", "kind")),
            schema={"target": pl.Int64, "kind": pl.String},
            orient="row",
        )

    def _targets_of(self, kind: Target.Kind) -> pl.Series:
        return self._targets.filter(kind=kind.value)["target"]

    @cached_property
    def _mds_ids(self) -> list[int]:
        """Metadata servers of the cluster's filesystems."""
        servers = Server.objects.filter(filesystem__clusters=self._job.cluster_id)
        return list(servers.filter(kind=Server.Kind.MDS).values_list("pk", flat=True))

    @cached_property
    def _read_mdts(self) -> pl.DataFrame:
        return self._intervals(
            Coverage.Source.JOB_STATS, self._targets_of(Target.Kind.MDT).to_list()
        )

    @cached_property
    def _read_osts(self) -> pl.DataFrame:
        """Reads of any OST: the windows of all of them are folded."""
        return self._intervals(
            Coverage.Source.JOB_STATS, self._targets_of(Target.Kind.OST).to_list(), folded=True
        )

    @cached_property
    def _traced(self) -> pl.DataFrame:
        return self._intervals(Coverage.Source.RPC_TRACE, self._mds_ids)

    def _intervals(
        self, source: Coverage.Source, ids: Sequence[int], *, folded: bool = False
    ) -> pl.DataFrame:
        gap = _TRACE_GAP if source is Coverage.Source.RPC_TRACE else settings.POLL_GAP
        window = self._window
        return coverage.intervals(source, ids, window.start, window.end, gap, folded=folded)


def _seconds(start: str, end: str) -> pl.Expr:
    return (pl.col(end) - pl.col(start)).dt.total_microseconds() / 1e6
