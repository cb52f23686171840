"""The server pages: the list of servers, and the services and clients of one server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db.models import Max, Q
from django.http import Http404
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ioportal.changes import mitigation_marks
from ioportal.core.charts.timelines import Chart, Style
from ioportal.core.time_ranges import TimeRange
from ioportal.core.units import Unit
from ioportal.findings import server_states
from ioportal.load import capacity, operations, top_clients
from ioportal.load.impact import impact_totals, request_times
from ioportal.load.series import exported
from ioportal.load.step_charts import StepsChart
from ioportal.site.models import Server, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage
from ioportal.web.common.requests import changed_query
from ioportal.web.common.tables import Column, Table, by_position, to
from ioportal.web.servers.series import ServerSeries
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.core.charts.time_axis import Mark
    from ioportal.core.timelines import Steps
    from ioportal.findings.server_states import ServerState
    from ioportal.load.analysis.replay.server import Plateau
    from ioportal.load.impact.impact_totals import ImpactRow
    from ioportal.load.operations import Host, OperationTime
    from ioportal.load.top_clients import Client

_DEFAULT_RANGE = timedelta(days=1)


@dataclass(frozen=True)
class ServerRow:
    """A server in the list, with the end of its latest observed intervals."""

    server: Server
    version: str
    traced: datetime | None
    read: datetime | None


_SERVERS: tuple[Column[ServerRow], ...] = (
    Column("server", "Server", "server__name", link=to("server", "server__name")),
    Column("kind", "Kind", "server__kind", cell="server__get_kind_display"),
    Column("filesystem", "Filesystem", "server__filesystem__name"),
    Column("simulated", "", "server__filesystem__simulated"),
    Column("version", "Version", cell=lambda row: row.version or "unknown"),
    Column(
        "rpcs_traced_until", "RPCs traced until", "traced", cell=lambda row: row.traced or "never"
    ),
    Column(
        "services_read_until", "Services read until", "read", cell=lambda row: row.read or "never"
    ),
)


def server_table() -> Table[ServerRow]:
    """Return all servers."""
    servers = list(Server.objects.select_related("filesystem").prefetch_related("versions"))
    keys = [server.pk for server in servers]
    traced = coverage.last_observed(Coverage.Source.RPC_TRACE, coverage.contiguous(keys))
    reads = Coverage.objects.filter(source=Coverage.Source.MDS_STATS, source_id__in=keys)
    read = dict(reads.values_list("source_id").annotate(until=Max("end")))
    rows = [
        ServerRow(server, _version(server), traced.get(server.pk), read.get(server.pk))
        for server in servers
    ]
    return Table("Servers", _SERVERS, rows)


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

    def __init__(self, server: Server, user: User, query: QueryDict, service: str) -> None:
        """`service` narrows the charts to one service; "": all."""
        self.server = server
        self._user = user
        self._query = query
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

    @cached_property
    def states(self) -> list[ServerState]:
        """The state of a metadata server now; empty: it is another kind of server."""
        return server_states.of_server(self._user, self.server.name)

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
        return capacity.in_queues(self.server, self.window.end)

    @cached_property
    def _series(self) -> ServerSeries | None:
        return ServerSeries(self.server, self.window, self.service) if self.window else None

    @cached_property
    def services(self) -> Table[tuple[Any, ...]]:
        """The services, most requests first; the page links to the charts of each."""
        columns = by_position(
            Column("service", "Service", cell=self._service_link),
            Column("requests", "Requests", unit=""),
            Column("requests_per_second", "Requests", unit="/s"),
            Column("mean_wait_us", "Mean wait", unit=Unit.MICROSECONDS),
            Column("mean_handling_us", "Mean handling", unit=Unit.MICROSECONDS),
            Column("mean_queue_depth", "Mean queue depth", unit=""),
            Column("mean_active", "Mean active", unit=""),
        )
        rows = self._series.rows() if self._series else []
        return Table(f"Services of {self.server.name}", columns, rows)

    def _service_link(self, row: tuple[Any, ...]) -> SafeString:
        name = row[0]
        is_current = name == self.service
        return format_html(
            '<a href="{}"{} title="Show {}">{}</a>',
            changed_query(self._query, service=None if is_current else name),
            SafeString(' aria-current="true"') if is_current else "",
            "all services" if is_current else "only this service",
            name,
        )

    @property
    def charts(self) -> list[StepsChart]:
        """The charts of the range that have figures: NFS servers count no waits."""
        charts = [self.chart(kind.chart.name) for kind in CHART_KINDS] if self._series else []
        return [chart for chart in charts if not chart.is_empty]

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
        return operations.by_kind(self._mdts, self.window.start, self.window.end)

    @cached_property
    def hosts(self) -> list[Host]:
        """The busiest hosts outside jobs on the server's MDTs."""
        if self.window is None:
            return []
        return operations.top_hosts(self._mdts, self.window.start, self.window.end)

    @property
    def exported(self) -> str:
        """How much of the range these statistics cover."""
        return exported(self._mdts, self.window) if self.window else ""

    @cached_property
    def impacts(self) -> list[ImpactRow]:
        """Impact of users, processes and hosts, largest first."""
        if self.window is None:
            return []
        return impact_totals.rows_in_range(self.window, self._user, [self.server.pk])

    @cached_property
    def _mdts(self) -> list[int]:
        return list(Target.objects.mdts_of(self.server).values_list("pk", flat=True))

    @cached_property
    def clients(self) -> Table[Client]:
        """The NIDs with most requests in the server's request history."""
        window = self.window
        address = reverse("server_clients", args=[self.server.name])
        return Table(
            "Top clients",
            _CLIENTS,
            top_clients.top_clients(self.server.pk, window.start, window.end) if window else [],
            about=f"The {top_clients.MAX_CLIENTS} NIDs with the most requests in the server's "
            "request history (req_history). The history is a sample without job ids: the jobs "
            "listed held the node at that time.",
            exports_url=f"{address}{changed_query(self._query, service=None)}",
        )


_SHOWN_JOBS, _SHOWN_KINDS = 5, 4  # of a client


def _jobs(client: Client) -> str:
    links = (
        (reverse("job", args=[job.pk]), job.display_id, show.visible(job.owner))
        for job in client.jobs[:_SHOWN_JOBS]
    )
    return format_html_join(", ", '<a href="{}">{}</a> {}', links) or "none"


_CLIENTS: tuple[Column[Client], ...] = (
    Column("nid", "NID", "nid__text", form=show.code),
    Column(
        "node",
        "Node",
        lambda client: client.nid.node.name if client.nid.node else "",
        cell=lambda client: client.nid.node.name if client.nid.node else "not registered",
    ),
    Column("cluster", "", lambda client: client.nid.node.cluster.name if client.nid.node else ""),
    Column(
        "jobs", "Jobs", lambda client: " ".join(job.display_id for job in client.jobs), cell=_jobs
    ),
    Column("requests", "Requests", unit=""),
    Column("first", "First"),
    Column("last", "Last"),
    Column(
        "kinds",
        "Kinds",
        lambda client: " ".join(f"{name}={count}" for name, count in client.kinds),
        cell=lambda client: ", ".join(
            f"{name} {count:,}" for name, count in client.kinds[:_SHOWN_KINDS]
        ),
    ),
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
