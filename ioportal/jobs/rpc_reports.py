"""RPC reports of jobs, launches and other principals, from the windows that are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Count, Max, Min, Q, Sum

from collectors.batch import hostlists
from collectors.lustre import opcodes
from ioportal.analysis.rpc_report import RpcReport, RpcRow, Times
from ioportal.jobs.accounting import STILL_RUNNING
from ioportal.jobs.models import Nid, Server, SourceJobId
from ioportal.telemetry import coverage
from ioportal.telemetry.models import (
    ChargedRpc,
    Method,
    Principal,
    RpcWindow,
    ceil_to_window,
    floor_to_window,
)

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from ioportal.jobs.models import Cluster, Job, Launch
    from ioportal.telemetry.models import WindowQuerySet

_ALL = "all"
_TIMED = Q(timed__gt=0)
_FIGURES = {
    "rpcs": Sum("count"),
    "timed_rpcs": Sum("timed"),
    "service_sum": Sum("service_us_sum"),
    "service_min": Min("service_us_min", filter=_TIMED),
    "service_max": Max("service_us_max"),
    "queue_min": Min("queue_us_min", filter=_TIMED),
    "queue_max": Max("queue_us_max"),
    "total_sum": Sum("total_us_sum"),
}


def of_job(
    job: Job, start: datetime | None = None, end: datetime | None = None
) -> RpcReport | None:
    """Report the metadata RPCs charged to a job in [start, end), its whole run by default.

    None where no trace covers any of it.
    """
    if job.started_at is None:
        return None
    nids = _numbers(Nid.objects.filter(node__allocations__job=job))
    return _report(
        f"Job {job}",
        ChargedRpc.objects.of_job(job.pk),
        RpcWindow.objects.filter(nid_id__in=nids),
        _metadata_servers(job.cluster),
        _within(job.started_at, job.ended_at, start, end),
        nodes_held=job.allocations.count(),
        simulated=job.cluster.simulated,
    )


def of_launch(
    launch: Launch, start: datetime | None = None, end: datetime | None = None
) -> RpcReport | None:
    """Report the metadata RPCs that the nodes of a launch sent while it ran.

    Windows that reach beyond its begin or end are left out. None where no trace covers any of it.
    """
    if launch.started_at is None:
        return None
    start, end = _within(launch.started_at, launch.ended_at, start, end)
    nids = _numbers(
        Nid.objects.filter(
            node__cluster=launch.cluster, node__name__in=hostlists.expand(launch.nodes)
        )
    )
    windows = RpcWindow.objects.filter(nid_id__in=nids, first__gte=start, last__lt=end)
    return _report(
        f"Application {launch}",
        windows,
        windows,
        _metadata_servers(launch.cluster),
        (start, end),
        nodes_held=launch.node_count,
        simulated=launch.cluster.simulated,
    )


def of_kind(
    kind: Principal, start: datetime, end: datetime, *, process: str = "", host: str = ""
) -> RpcReport | None:
    """Report the metadata RPCs charged to a kind of principal in the windows of [start, end).

    `process` and `host` narrow it to one name.
    """
    windows = ChargedRpc.objects.filter(kind=kind)
    if process:
        names = _numbers(SourceJobId.objects.filter(text=process))
        windows = windows.filter(source_job_id__in=names)
    if host:
        of_node, itself = Nid.objects.filter(node__name=host), Nid.objects.filter(text=host)
        windows = windows.filter(nid_id__in=_numbers(of_node) + _numbers(itself))
    title = " ".join(filter(None, (str(kind.label).capitalize(), process, host)))
    servers = Server.objects.filter(kind=Server.Kind.MDS)
    within = floor_to_window(start), ceil_to_window(end)
    return _report(
        title,
        windows,
        windows,
        servers,
        within,
        nodes_held=None,
        simulated=_is_simulated(servers, within),
    )


def of_everything(start: datetime, end: datetime) -> RpcReport | None:
    """Report all metadata RPCs in the windows of [start, end)."""
    windows = RpcWindow.objects.all()
    servers = Server.objects.filter(kind=Server.Kind.MDS)
    within = floor_to_window(start), ceil_to_window(end)
    return _report(
        "Everything",
        windows,
        windows,
        servers,
        within,
        nodes_held=None,
        simulated=_is_simulated(servers, within),
    )


def methods_of_job(
    job: Job, start: datetime | None = None, end: datetime | None = None
) -> list[tuple[Method, int]]:
    """Return how the RPCs that `of_job` reports were found to be the job's, most frequent first."""
    if job.started_at is None:
        return []
    within = _within(job.started_at, job.ended_at, start, end)
    charged = ChargedRpc.objects.of_job(job.pk)
    rows = (
        _inside(charged, _numbers(_metadata_servers(job.cluster)), within)
        .values_list("method")
        .annotate(rpcs=Sum("count"))
        .order_by("-rpcs")
    )
    return [(Method(method), int(rpcs)) for method, rpcs in rows]


def _numbers(things: QuerySet[Any]) -> list[int]:
    """Look some keys up first: joined to windows, they would leave the plan to guesses."""
    return list(things.values_list("pk", flat=True))


def _metadata_servers(cluster: Cluster) -> QuerySet[Server]:
    return Server.objects.filter(filesystem__clusters=cluster, kind=Server.Kind.MDS)


def _is_simulated(servers: QuerySet[Server], within: tuple[datetime, datetime]) -> bool:
    """Whether a trace in a range is that of a simulated filesystem's server."""
    simulated = _numbers(servers.filter(filesystem__simulated=True))
    return bool(coverage.traced(simulated, *within))


def _within(
    run_start: datetime, run_end: datetime | None, start: datetime | None, end: datetime | None
) -> tuple[datetime, datetime]:
    """Return the part of [start, end), widened to whole windows, in which something ran."""
    run_end = run_end or STILL_RUNNING
    return (
        max(run_start, floor_to_window(start or run_start)),
        min(run_end, ceil_to_window(end or run_end)),
    )


def _report(
    title: str,
    windows: WindowQuerySet,
    by_node: WindowQuerySet,
    servers: QuerySet[Server],
    within: tuple[datetime, datetime],
    *,
    nodes_held: int | None,
    simulated: bool,
) -> RpcReport | None:
    server_ids = _numbers(servers)
    covered_s = coverage.seconds(coverage.traced(server_ids, *within))
    if not covered_s:
        return None
    windows = _inside(windows, server_ids, within)
    kinds = windows.values("opcode").annotate(**_FIGURES)
    rows = [_row(opcodes.name_of(kind["opcode"]), kind, covered_s) for kind in kinds]
    return RpcReport(
        title=title,
        simulated=simulated,
        covered_s=covered_s,
        nodes_seen=_inside(by_node, server_ids, within)
        .exclude(nid_id=0)
        .aggregate(n=Count("nid_id", distinct=True))["n"],
        nodes_held=nodes_held,
        overall=_row(_ALL, windows.aggregate(**_FIGURES), covered_s),
        rows=tuple(sorted(rows, key=lambda row: (-row.count, row.opcode))),
    )


def _inside(
    windows: WindowQuerySet, server_ids: list[int], within: tuple[datetime, datetime]
) -> WindowQuerySet:
    """Keep the windows of some servers that begin in a range, or hold its begin."""
    start, end = within
    return windows.traced().filter(
        server_id__in=server_ids, start__gte=floor_to_window(start), start__lt=end
    )


def _row(opcode: str, figures: dict[str, Any], covered_s: float) -> RpcRow:
    count, timed = int(figures["rpcs"] or 0), int(figures["timed_rpcs"] or 0)
    service = queue = None
    if timed:
        service_sum = int(figures["service_sum"])
        service = Times(figures["service_min"], service_sum / timed, figures["service_max"])
        queue_sum = int(figures["total_sum"]) - service_sum
        queue = Times(figures["queue_min"], queue_sum / timed, figures["queue_max"])
    return RpcRow(opcode, count, count / covered_s, service, queue)
