"""The server pages: the list of servers, and the services and clients of one server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db.models import Max, Q
from django.http import Http404

from ioportal.changes import mitigation_marks
from ioportal.core.charts.timelines import Chart, Style
from ioportal.core.time_ranges import TimeRange
from ioportal.findings import observations
from ioportal.load import (
    host_operations,
    impacts,
    operation_times,
    request_times,
    server_capacities,
    top_clients,
)
from ioportal.load.series import exported
from ioportal.load.step_charts import StepsChart
from ioportal.site.models import Server, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage
from ioportal.web.servers.series import ServerSeries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.core.charts.time_axis import Mark
    from ioportal.core.timelines import Steps
    from ioportal.findings.observations import ObservedServer
    from ioportal.load.analysis.replay.server import Plateau
    from ioportal.load.host_operations import Host
    from ioportal.load.impacts import ImpactRow
    from ioportal.load.operation_times import OperationTime
    from ioportal.load.top_clients import Client

LIST_COLUMNS = (
    "server",
    "kind",
    "filesystem",
    "simulated",
    "version",
    "rpcs_traced_until",
    "services_read_until",
)
SERVICE_COLUMNS = (
    "service",
    "requests",
    "requests_per_second",
    "mean_wait_us",
    "mean_handling_us",
    "mean_queue_depth",
    "mean_active",
)
CLIENT_COLUMNS = ("nid", "node", "cluster", "jobs", "requests", "first", "last", "kinds")
_DEFAULT_RANGE = timedelta(days=1)


@dataclass(frozen=True)
class ServerRow:
    """A server in the list, with the end of its latest observed intervals."""

    server: Server
    version: str
    traced: datetime | None
    read: datetime | None

    @property
    def values(self) -> tuple[Any, ...]:
        """Its row in exports: `LIST_COLUMNS`."""
        server = self.server
        filesystem = server.filesystem
        return (
            server.name, server.kind, filesystem.name, filesystem.simulated, self.version,
            self.traced, self.read,
        )  # fmt: skip


def server_rows() -> list[ServerRow]:
    """Return all servers."""
    servers = list(Server.objects.select_related("filesystem").prefetch_related("versions"))
    keys = [server.pk for server in servers]
    traced = coverage.last_observed(Coverage.Source.RPC_TRACE, coverage.contiguous(keys))
    read = coverage.last_observed(Coverage.Source.MDS_STATS, coverage.polled(keys))
    return [
        ServerRow(server, _version(server), traced.get(server.pk), read.get(server.pk))
        for server in servers
    ]


def _version(server: Server) -> str:
    versions = server.versions.all()
    return max(versions, key=lambda version: version.since).version if versions else ""


@dataclass(frozen=True)
class _ChartKind:
    chart: Chart
    steps: Callable[[ServerSeries], Steps]


CHART_KINDS = (
    _ChartKind(
        Chart(
            "wait",
            "Queue wait and handling time",
            "µs",
            "Means over the requests between two reads: from arrival to a free thread, and in the "
            "handler. Before 2.14, locks and metadata changes have no handling time.",
            Style.LINES,
            {"wait": "mean queue wait", "handling": "mean handling time"},
        ),
        lambda series: series.means.only(("wait", "handling")),
    ),
    _ChartKind(
        Chart(
            "requests",
            "Requests by kind",
            "requests/s",
            "Counted by the services, stacked; locks and metadata changes by purpose. This source "
            "does not identify clients.",
            Style.STACK,
            {},
        ),
        lambda series: series.requests,
    ),
    _ChartKind(
        Chart(
            "depth",
            "Queue depth",
            "requests",
            "Means over the requests between two reads: waiting and active requests at arrival.",
            Style.LINES,
            {"depth": "waiting", "active": "active"},
        ),
        lambda series: series.means.only(("depth", "active")),
    ),
)


class ServerPage:
    """One server in a range: its services, charts and top clients."""

    max_clients = top_clients.MAX_CLIENTS

    def __init__(self, server: Server, user: User, query: QueryDict, service: str) -> None:
        """`service` narrows the charts to one service; "": all."""
        self.server = server
        self._user = user
        self.errors: list[str] = []
        self.window = _latest_day(server)
        if self.window:
            try:
                self.window = TimeRange.from_query(query, self.window)
            except ValidationError as error:
                self.errors = error.messages
        self.service = service if self.window else ""

    @property
    def simulated(self) -> bool:
        """Whether its filesystem is simulated."""
        return self.server.filesystem.simulated

    @property
    def observed(self) -> list[ObservedServer]:
        """The server, while it is under observation."""
        return [each for each in observations.current(self._user) if each.server == self.server]

    @property
    def about(self) -> dict[str, object]:
        """The JSON exports' members next to their rows."""
        about: dict[str, object] = {
            "server": self.server.name,
            "filesystem": self.server.filesystem.name,
            "simulated": self.simulated,
        }
        if self.window:
            about |= {"start": self.window.start, "end": self.window.end}
        if self.server.kind == Server.Kind.MDS:
            shown = self.capacity_in_queues
            names = ("capacity_per_s", "capacity_low_per_s", "capacity_high_per_s")
            about |= dict(zip(names, shown.requests if shown else [None] * 3, strict=True))
            about["capacity_seconds"] = shown.steps if shown else 0
            about["registered_capacity_per_s"] = self.server.capacity_per_s
        return about

    @cached_property
    def capacity_in_queues(self) -> Plateau | None:
        """The capacity that its queues of the day before the end show; None: unknown."""
        if self.window is None or self.server.kind != Server.Kind.MDS:
            return None
        return server_capacities.in_queues(self.server, self.window.end)

    @cached_property
    def _series(self) -> ServerSeries | None:
        return ServerSeries(self.server, self.window, self.service) if self.window else None

    @cached_property
    def service_rows(self) -> list[tuple[Any, ...]]:
        """A row of `SERVICE_COLUMNS` for each service, most requests first."""
        return self._series.rows() if self._series else []

    @property
    def services(self) -> list[tuple[str, int, list[float | None]]]:
        """Service, requests and rates of each service."""
        return [(service, requests, values) for service, requests, *values in self.service_rows]

    @property
    def charts(self) -> list[StepsChart]:
        """All charts of the range."""
        return [self.chart(kind.chart.name) for kind in CHART_KINDS] if self._series else []

    def chart(self, name: str) -> StepsChart:
        """Return one chart.

        Raises:
            Http404: the name is unknown, or the server has no data.
        """
        kinds = {kind.chart.name: kind for kind in CHART_KINDS}
        if name not in kinds or self.window is None or self._series is None:
            raise Http404("There is no such chart.")
        kind, series = kinds[name], self._series
        return StepsChart(
            kind.chart,
            kind.steps(series),
            lambda: [*series.marks, *self._mitigation_marks],
            self.window,
        )

    @cached_property
    def _mitigation_marks(self) -> list[Mark]:
        return mitigation_marks.for_servers(self.window, self._user) if self.window else []

    def about_chart(self, chart: StepsChart) -> dict[str, object]:
        """Return the members of a chart's JSON export next to its rows."""
        return {
            **self.about,
            "service": self.service,
            "chart": chart.chart.title,
            "unit": chart.chart.unit,
            "not_observed": [
                {"start": gap.start, "end": gap.end, "known": gap.known.value} for gap in chart.gaps
            ],
        }

    @property
    def is_long(self) -> bool:
        """Whether the range is too long for request times, which are from windows of 10 s."""
        window = self.window
        return window is not None and window.end - window.start > _DEFAULT_RANGE

    @cached_property
    def request_times(self) -> StepsChart | None:
        """Times of a metadata server's requests against usual, from traces or estimated."""
        if self.window is None or self.is_long or self.server.kind != Server.Kind.MDS:
            return None
        chart = request_times.chart(self.server, self.window, self._user)
        return None if chart.is_empty else chart

    @property
    def request_times_url(self) -> str:
        """The URL of the export of the request times."""
        return request_times.export_url(self.server, self.window) if self.window else ""

    @cached_property
    def operations(self) -> list[OperationTime]:
        """Operations on the server's MDTs with their mean times."""
        if self.window is None:
            return []
        return operation_times.by_kind(self._mdts, self.window.start, self.window.end)

    @cached_property
    def hosts(self) -> list[Host]:
        """The busiest hosts outside jobs on the server's MDTs."""
        if self.window is None:
            return []
        return host_operations.top_hosts(self._mdts, self.window.start, self.window.end)

    @property
    def exported(self) -> str:
        """How much of the range these statistics cover."""
        return exported(self._mdts, self.window) if self.window else ""

    @cached_property
    def impacts(self) -> list[ImpactRow]:
        """Impact of users, processes and hosts, largest first."""
        if self.window is None:
            return []
        return impacts.in_range(self.window, self._user, [self.server.pk])

    @cached_property
    def _mdts(self) -> list[int]:
        return list(Target.objects.mdts_of(self.server).values_list("pk", flat=True))

    @cached_property
    def clients(self) -> list[Client]:
        """The NIDs with most requests in the server's request history."""
        if self.window is None:
            return []
        return top_clients.top_clients(self.server.pk, self.window.start, self.window.end)

    @property
    def client_rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield a row of `CLIENT_COLUMNS` for each client."""
        for client in self.clients:
            node = client.nid.node
            yield (
                client.nid.text,
                node.name if node else "",
                node.cluster.name if node else "",
                " ".join(job.display_id for job in client.jobs),
                client.requests,
                client.first,
                client.last,
                " ".join(f"{name}={count}" for name, count in client.kinds),
            )


def _latest_day(server: Server) -> TimeRange | None:
    """Return the last day of statistics, request history or traces; None: there is no data."""
    of_server = Q(
        source__in=(
            Coverage.Source.MDS_STATS,
            Coverage.Source.REQ_HISTORY,
            Coverage.Source.RPC_TRACE,
        ),
        source_id=server.pk,
    )
    of_mdts = Q(
        source__in=(Coverage.Source.JOB_STATS, Coverage.Source.EXPORTS),
        source_id__in=Target.objects.mdts_of(server).values("pk"),
    )
    reads = Coverage.objects.filter(of_server | of_mdts)
    last: datetime | None = reads.aggregate(last=Max("end"))["last"]
    if last is None:
        return None
    end = last.replace(microsecond=0) + timedelta(seconds=1)  # includes the last request
    return TimeRange(end - _DEFAULT_RANGE, end, last="24h")
