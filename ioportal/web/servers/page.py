"""The page of a server: how long requests waited in its queues, of which kind, from whom."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import Max

from collectors.lustre.service_stats import WAIT
from ioportal.analysis.timelines import OBSERVED, WINDOW, Steps, rates, within
from ioportal.charts.time_axis import Mark, Meaning
from ioportal.charts.timelines import Chart, Style
from ioportal.reporting.series import seconds
from ioportal.reporting.time_ranges import TimeRange
from ioportal.reporting.timelines import StepsChart
from ioportal.site.models import Counter, Server, ServerVersion, Service
from ioportal.telemetry import coverage, services
from ioportal.telemetry.models import Coverage, ServiceSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from ioportal.activity.top_clients import Client

READS_SHOWN = 300
LIST_HEADER = (
    "server",
    "kind",
    "filesystem",
    "simulated",
    "version",
    "rpcs_traced_until",
    "services_read_until",
)
HEADER = (
    "service",
    "requests",
    "requests_per_second",
    "mean_wait_us",
    "mean_handling_us",
    "mean_queue_depth",
    "mean_active",
)
SENDER_HEADER = ("nid", "node", "cluster", "jobs", "requests", "first", "last", "kinds")
_DEFAULT_RANGE = timedelta(days=1)
_OF_QUEUES = r"^req(buf)?_"  # counters that are no kinds of requests
_BYTES = ("read_bytes", "write_bytes")  # nor are these
_COUNTS = {  # of the requests' way through a service: what is added up, and by what it is divided
    "wait": WAIT,
    "depth": "req_qdepth",
    "active": "req_active",
}
_MEANS = ("wait", "handling", "depth", "active")


@dataclass(frozen=True)
class Listed:
    """A server as the list shows it: when its RPCs, and its services, were observed last."""

    server: Server
    version: str
    traced: datetime | None
    read: datetime | None

    @property
    def values(self) -> tuple[Any, ...]:
        """The row of its twins: `LIST_HEADER`."""
        server = self.server
        filesystem = server.filesystem
        return (
            server.name, server.kind, filesystem.name, filesystem.simulated, self.version,
            self.traced, self.read,
        )  # fmt: skip


def listed() -> list[Listed]:
    """Return all servers."""
    found = list(Server.objects.select_related("filesystem").prefetch_related("versions"))
    ids = [server.pk for server in found]
    traced = coverage.last_observed(Coverage.Source.RPC_TRACE, coverage.contiguous(ids))
    read = coverage.last_observed(Coverage.Source.MDS_STATS, coverage.polled(ids))
    return [
        Listed(
            server,
            max(server.versions.all(), key=lambda version: version.since).version
            if server.versions.all()
            else "",
            traced.get(server.pk),
            read.get(server.pk),
        )
        for server in found
    ]


@dataclass(frozen=True)
class _Kind:
    chart: Chart
    steps: Callable[[ServerSeries], Steps]


class ServerSeries:
    """What a server's services counted in a range: of all of them, or of one."""

    def __init__(self, server: Server, window: TimeRange, service: str = "") -> None:
        self._server = server
        self._window = window
        self.service = service

    @cached_property
    def _all(self) -> pl.DataFrame:
        """What every counter gained between two reads, with the names of services and counters."""
        found = services.differences(
            self._server.pk, self._window.start, self._window.end, READS_SHOWN
        )
        named = {
            "service": dict(Service.objects.values_list("pk", "name")),
            "counter": dict(Counter.objects.values_list("pk", "name")),
        }
        return found.with_columns(
            # (polars gives no texts where there is nothing to replace by.)
            pl.col(f"{what}_id").replace_strict({0: ""} | names, return_dtype=pl.String).alias(what)
            for what, names in named.items()
        ).with_columns(
            is_request=~pl.col("counter").str.contains(_OF_QUEUES)
            & ~pl.col("counter").is_in(_BYTES)
        )

    @cached_property
    def _chosen(self) -> pl.DataFrame:
        return self._all.filter(service=self.service) if self.service else self._all

    @property
    def services(self) -> list[str]:
        """The services that were read in the range."""
        return sorted(self._all["service"].unique())

    @property
    def requests(self) -> Steps:
        """Requests of each kind, per second."""
        found = self._chosen.filter("is_request", pl.col("samples") > 0)
        kinds = found["counter"].unique(maintain_order=True).to_list()
        counts = found.pivot(
            "counter",
            on_columns=kinds,
            index=["service_id", "start", "end"],
            values="samples",
            aggregate_function="sum",
        )
        return self._steps(counts, kinds)

    @cached_property
    def means(self) -> Steps:
        """Mean wait and handling time (µs), and how many requests waited and were handled then."""
        names = [f"{mean}_{part}" for mean in _MEANS for part in ("sum", "samples")]
        counts = self._chosen.group_by("service_id", "start", "end", maintain_order=True).agg(_sums)
        steps = self._steps(counts, names)
        return Steps(
            steps.frame.select("start", "end", "observed", *_ratios), _MEANS, steps.sources
        )

    @cached_property
    def marks(self) -> list[Mark]:
        """When services began anew, and when the server's version changed."""
        within_range = {"since__gte": self._window.start, "since__lte": self._window.end}
        versions = ServerVersion.objects.filter(server=self._server, **within_range)
        fell = self._chosen.filter("is_reset")["end"].unique(maintain_order=True)
        return [
            *(Mark(version.since, version.version, Meaning.BREAK) for version in versions),
            *(Mark(at, "counter reset", Meaning.FAULT) for at in fell),
        ]

    def rows(self) -> list[tuple[Any, ...]]:
        """Return a row of `HEADER` for each service, the one with most requests first.

        Sums are those of whole intervals between reads that lie in the range at least in part.
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
        reads = self._chosen.select("start", "end", source="service_id").unique()
        steps = rates(
            windows,
            self._observed(reads).select(*OBSERVED),
            kinds,
            max(reads["source"].n_unique(), 1),
        )
        return within(steps, self._window.start, self._window.end)

    def _observed(self, reads: pl.DataFrame) -> pl.DataFrame:
        """Return those intervals between reads in which the server was read all the time."""
        if reads.is_empty():
            return reads
        first, last = min(reads["start"]), max(reads["end"])
        apart = coverage.polled([self._server.pk])
        found = [
            interval
            for _, interval in coverage.by_source(Coverage.Source.MDS_STATS, apart, first, last)
        ]
        extents = pl.DataFrame(
            found,
            schema={"seen_from": OBSERVED["start"], "seen_until": OBSERVED["end"]},
            orient="row",
        )
        return reads.join_where(
            extents, pl.col("start") >= pl.col("seen_from"), pl.col("end") <= pl.col("seen_until")
        )


def _sum(mean: str, column: str) -> pl.Expr:
    chosen = (
        # Where a kind's values are no times, its version of the server does not take them.
        pl.col("is_request") & (pl.col("unit") == ServiceSnapshot.Unit.MICROSECONDS)
        if mean == "handling"
        else pl.col("counter") == _COUNTS[mean]
    )
    return pl.col(column).filter(chosen).sum().alias(f"{mean}_{column}")


def _ratio(mean: str) -> pl.Expr:
    samples = pl.col(f"{mean}_samples")
    return (pl.col(f"{mean}_sum") / pl.when(samples > 0).then(samples)).alias(mean)


_sums = [_sum(mean, part) for mean in _MEANS for part in ("sum", "samples")]
_ratios = [_ratio(mean) for mean in _MEANS]

KINDS = (
    _Kind(
        Chart(
            "wait",
            "Wait in the queue, and handling",
            "µs",
            "Means of the requests between two reads: from arrival to a free thread, and in the "
            "handler. Before 2.14 locks and changes of metadata have no handling time.",
            Style.LINES,
            {"wait": "mean wait in the queue", "handling": "mean handling time"},
        ),
        lambda series: series.means.only(("wait", "handling")),
    ),
    _Kind(
        Chart(
            "requests",
            "Requests by kind",
            "requests/s",
            "As the services count them, stacked; locks and changes of metadata by what they are "
            "for. Who sent them, this source does not tell.",
            Style.STACK,
            {},
        ),
        lambda series: series.requests,
    ),
    _Kind(
        Chart(
            "depth",
            "Queue depth",
            "requests",
            "Means over the requests between two reads: how many were waiting, and how many in "
            "hand, when each arrived.",
            Style.LINES,
            {"depth": "waiting", "active": "in hand"},
        ),
        lambda series: series.means.only(("depth", "active")),
    ),
)
BY_NAME = {kind.chart.name: kind for kind in KINDS}


def drawn(kind: _Kind, series: ServerSeries, window: TimeRange) -> StepsChart:
    """Return one chart of a server."""
    return StepsChart(kind.chart, kind.steps(series), lambda: series.marks, window)


def sender_row(sender: Client) -> tuple[Any, ...]:
    """Return the row of a sender's twins: `SENDER_HEADER`."""
    node = sender.nid.node
    return (
        sender.nid.text,
        node.name if node else "",
        node.cluster.name if node else "",
        " ".join(job.display_id for job in sender.jobs),
        sender.requests,
        sender.first,
        sender.last,
        " ".join(f"{name}={count}" for name, count in sender.kinds),
    )


def default_range(server: Server) -> TimeRange | None:
    """Return the last day in which a server told of services or requests; None: it never did."""
    told = (Coverage.Source.MDS_STATS, Coverage.Source.REQ_HISTORY)
    last: datetime | None = Coverage.objects.filter(source__in=told, source_id=server.pk).aggregate(
        last=Max("end")
    )["last"]
    if last is None:
        return None
    end = last.replace(microsecond=0) + timedelta(seconds=1)  # the last request is part of it
    return TimeRange(end - _DEFAULT_RANGE, end)
