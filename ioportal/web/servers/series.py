"""Statistics of a server's services in a range, as rates and means between two reads."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from collectors.lustre.service_stats import WAIT
from ioportal.core.charts.time_axis import Mark, Meaning
from ioportal.core.timelines import OBSERVED, WINDOW, Steps, rates, within
from ioportal.load.series import seconds
from ioportal.site.models import Counter, Server, ServerVersion, Service
from ioportal.telemetry import coverage, services
from ioportal.telemetry.models import Coverage, ServiceSnapshot

if TYPE_CHECKING:
    from ioportal.core.time_ranges import TimeRange

_MAX_READS = 300
_QUEUE_COUNTERS = r"^req(buf)?_"  # not kinds of requests
_BYTE_COUNTERS = ("read_bytes", "write_bytes")
_COUNTERS = {  # that means are taken of
    "wait": WAIT,
    "depth": "req_qdepth",
    "active": "req_active",
}
_MEANS = ("wait", "handling", "depth", "active")


class ServerSeries:
    """Counters of all services of a server, or of one, in a range."""

    def __init__(self, server: Server, window: TimeRange, service: str = "") -> None:
        self._server = server
        self._window = window
        self.service = service

    @cached_property
    def _all(self) -> pl.DataFrame:
        """The increase of every counter between two reads, with names of service and counter."""
        differences = services.differences(
            self._server.pk, self._window.start, self._window.end, _MAX_READS
        )
        names = {
            "service": dict(Service.objects.values_list("pk", "name")),
            "counter": dict(Counter.objects.values_list("pk", "name")),
        }
        return differences.with_columns(
            # Key 0 keeps the mapping from being empty, which polars does not take as strings.
            pl.col(f"{what}_id").replace_strict({0: ""} | by_id, return_dtype=pl.String).alias(what)
            for what, by_id in names.items()
        ).with_columns(
            is_request=~pl.col("counter").str.contains(_QUEUE_COUNTERS)
            & ~pl.col("counter").is_in(_BYTE_COUNTERS)
        )

    @cached_property
    def _selected(self) -> pl.DataFrame:
        return self._all.filter(service=self.service) if self.service else self._all

    @property
    def requests(self) -> Steps:
        """Requests of each kind, per second."""
        requests = self._selected.filter("is_request", pl.col("samples") > 0)
        kinds = requests["counter"].unique(maintain_order=True).to_list()
        counts = requests.pivot(
            "counter",
            on_columns=kinds,
            index=["service_id", "start", "end"],
            values="samples",
            aggregate_function="sum",
        )
        return self._steps(counts, kinds)

    @cached_property
    def means(self) -> Steps:
        """Mean queue wait and handling time (µs), mean numbers of waiting and active requests."""
        names = [f"{mean}_{part}" for mean in _MEANS for part in ("sum", "samples")]
        intervals = self._selected.group_by("service_id", "start", "end", maintain_order=True)
        counts = intervals.agg(_sums)
        steps = self._steps(counts, names)
        return Steps(
            steps.frame.select("start", "end", "observed", *_ratios), _MEANS, steps.sources
        )

    @cached_property
    def marks(self) -> list[Mark]:
        """Counter resets, and changes of the server's version."""
        within_range = {"since__gte": self._window.start, "since__lte": self._window.end}
        versions = ServerVersion.objects.filter(server=self._server, **within_range)
        resets = self._selected.filter("is_reset")["end"].unique(maintain_order=True)
        return [
            *(Mark(version.since, version.version, Meaning.BREAK) for version in versions),
            *(Mark(at, "counter reset", Meaning.FAULT) for at in resets),
        ]

    def rows(self) -> list[tuple[Any, ...]]:
        """Return service, requests, requests per second and means of each service.

        Ordered by requests. Sums cover whole intervals between reads that overlap the range.
        """
        requests = pl.col("samples").filter("is_request").sum()
        figures = (
            self._all.group_by("service")
            .agg(_sums, requests=requests)
            .join(
                self._all.select("service", "start", "end")
                .unique()
                .group_by("service")
                .agg(seconds=seconds("start", "end").sum()),
                on="service",
            )
            .select(
                "service",
                "requests",
                (pl.col("requests") / pl.col("seconds")).alias("per_second"),
                *_ratios,
            )
            .sort("requests", "service", descending=[True, False])
        )
        return figures.rows()

    def _steps(self, counts: pl.DataFrame, kinds: list[str]) -> Steps:
        windows = counts.with_columns(
            seconds("start", "end").alias("seconds"), source=pl.col("service_id")
        ).select(*WINDOW, *kinds)
        reads = self._selected.select("start", "end", source="service_id").unique()
        steps = rates(
            windows,
            self._observed(reads).select(*OBSERVED),
            kinds,
            max(reads["source"].n_unique(), 1),
        )
        return within(steps, self._window.start, self._window.end)

    def _observed(self, reads: pl.DataFrame) -> pl.DataFrame:
        """Return the intervals between reads that are observed throughout."""
        if reads.is_empty():
            return reads
        first, last = min(reads["start"]), max(reads["end"])
        polled = coverage.polled([self._server.pk])
        intervals = [
            interval
            for _, interval in coverage.by_source(Coverage.Source.MDS_STATS, polled, first, last)
        ]
        extents = pl.DataFrame(
            intervals,
            schema={"observed_from": OBSERVED["start"], "observed_until": OBSERVED["end"]},
            orient="row",
        )
        return reads.join_where(
            extents,
            pl.col("start") >= pl.col("observed_from"),
            pl.col("end") <= pl.col("observed_until"),
        )


def _sum(mean: str, column: str) -> pl.Expr:
    is_counted = (
        # Some server versions do not time all kinds: their values have another unit.
        pl.col("is_request") & (pl.col("unit") == ServiceSnapshot.Unit.MICROSECONDS)
        if mean == "handling"
        else pl.col("counter") == _COUNTERS[mean]
    )
    return pl.col(column).filter(is_counted).sum().alias(f"{mean}_{column}")


def _ratio(mean: str) -> pl.Expr:
    samples = pl.col(f"{mean}_samples")
    return (pl.col(f"{mean}_sum") / pl.when(samples > 0).then(samples)).alias(mean)


_sums = [_sum(mean, part) for mean in _MEANS for part in ("sum", "samples")]
_ratios = [_ratio(mean) for mean in _MEANS]
