"""RPC reports of jobs, launches and other principals, from the windows that are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Max, Min, Q, Sum

from collectors.batch import hostlists
from collectors.lustre import opcodes
from ioportal.analysis.rpc_report import RpcReport, RpcRow, Times
from ioportal.jobs.accounting import OPEN_END
from ioportal.site.models import Nid, Server, SourceJobId
from ioportal.telemetry import buckets, coverage, levels, retention
from ioportal.telemetry.models import AttributedRpc, Method, Principal, RpcWindow

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from django.db.models import Aggregate, Model, QuerySet

    from ioportal.jobs.models import Job, Launch
    from ioportal.telemetry.levels import Level

_ALL = "all"
_TIMED = Q(timed__gt=0)
# How windows add up to figures of an opcode, and these to figures of all.
_FIGURES: dict[str, tuple[Aggregate, Callable[[list[int]], int]]] = {
    "rpcs": (Sum("count"), sum),
    "timed_rpcs": (Sum("timed"), sum),
    "service_sum": (Sum("service_us_sum"), sum),
    "service_min": (Min("service_us_min", filter=_TIMED), min),
    "service_max": (Max("service_us_max"), max),
    "queue_min": (Min("queue_us_min", filter=_TIMED), min),
    "queue_max": (Max("queue_us_max"), max),
    "total_sum": (Sum("total_us_sum"), sum),
}


def of_job(
    job: Job, start: datetime | None = None, end: datetime | None = None
) -> RpcReport | None:
    """Report the metadata RPCs charged to a job in [start, end), its whole run by default.

    None where no trace covers any of it.
    """
    if job.started_at is None:
        return None
    charged = _charged(*_within(job.started_at, job.ended_at, start, end, levels.RPC_WINDOWS.width))
    if charged is None:
        return None
    nids = _numbers(Nid.objects.filter(node__allocations__job=job))
    return _report(
        f"Job {job}",
        _Windows(_of_job(charged.model, job), charged.width),
        _Windows(RpcWindow.objects.filter(nid_id__in=nids), levels.RPC_WINDOWS.width),
        job.cluster.metadata_server_ids,
        _within(job.started_at, job.ended_at, start, end, charged.width),
        nodes_held=job.allocations.count(),
        simulated=job.cluster.simulated,
    )


def of_launch(
    launch: Launch, start: datetime | None = None, end: datetime | None = None
) -> RpcReport | None:
    """Report the metadata RPCs that the nodes of a launch sent while it ran.

    Windows that reach beyond its begin or end are left out. None where no trace covers any of it,
    or where its windows are not kept any more: what is charged does not tell launches apart.
    """
    if launch.started_at is None:
        return None
    start, end = _within(launch.started_at, launch.ended_at, start, end, levels.RPC_WINDOWS.width)
    if not retention.is_retained([levels.RPC_WINDOWS], start, end):
        return None
    nids = _numbers(
        Nid.objects.filter(
            node__cluster=launch.cluster, node__name__in=hostlists.expand(launch.nodes)
        )
    )
    raw = RpcWindow.objects.filter(nid_id__in=nids, first__gte=start, last__lt=end)
    windows = _Windows(raw, levels.RPC_WINDOWS.width)
    return _report(
        f"Application {launch}",
        windows,
        windows,
        launch.cluster.metadata_server_ids,
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
    charged = _charged(start, end)
    if charged is None:
        return None
    rows = charged.model._default_manager.filter(kind=kind)  # noqa: SLF001  (documented)
    if process:
        names = _numbers(SourceJobId.objects.filter(text=process))
        rows = rows.filter(source_job_id__in=names)
    if host:
        of_node, itself = Nid.objects.filter(node__name=host), Nid.objects.filter(text=host)
        rows = rows.filter(nid_id__in=_numbers(of_node) + _numbers(itself))
    windows = _Windows(rows, charged.width)
    title = " ".join(filter(None, (str(kind.label).capitalize(), process, host)))
    servers = Server.objects.filter(kind=Server.Kind.MDS)
    within = buckets.floor(start, windows.width), buckets.ceil(end, windows.width)
    return _report(
        title,
        windows,
        windows,
        _numbers(servers),
        within,
        nodes_held=None,
        simulated=_is_simulated(servers, within),
    )


def of_everything(start: datetime, end: datetime) -> RpcReport | None:
    """Report all metadata RPCs in the windows of [start, end).

    Nodes are told where raw windows are kept.
    """
    charged = _charged(start, end)
    if charged is None:
        return None
    windows = _Windows(charged.model._default_manager.all(), charged.width)  # noqa: SLF001  (documented)
    servers = Server.objects.filter(kind=Server.Kind.MDS)
    within = buckets.floor(start, windows.width), buckets.ceil(end, windows.width)
    return _report(
        "Everything",
        windows,
        _Windows(RpcWindow.objects.all(), levels.RPC_WINDOWS.width),
        _numbers(servers),
        within,
        nodes_held=None,
        simulated=_is_simulated(servers, within),
    )


def methods_of_job(
    job: Job, start: datetime | None = None, end: datetime | None = None
) -> list[tuple[Method, int]]:
    """Return how the RPCs that `of_job` reports were found to be the job's, most frequent first.

    Empty where their windows are rolled up only.
    """
    if job.started_at is None:
        return []
    within = _within(job.started_at, job.ended_at, start, end, levels.RPC_WINDOWS.width)
    if not retention.is_retained([levels.ATTRIBUTED_RPCS], *within):
        return []
    charged = _Windows(AttributedRpc.objects.for_job(job.pk), levels.RPC_WINDOWS.width)
    rows = (
        _inside(charged, job.cluster.metadata_server_ids, within)
        .values_list("method")
        .annotate(rpcs=Sum("count"))
        .order_by("-rpcs")
    )
    return [(Method(method), int(rpcs)) for method, rpcs in rows]


def _numbers(things: QuerySet[Any]) -> list[int]:
    """Look some keys up first: joined to windows, they would leave the plan to guesses."""
    return list(things.values_list("pk", flat=True))


def _is_simulated(servers: QuerySet[Server], within: tuple[datetime, datetime]) -> bool:
    """Whether a trace in a range is that of a simulated filesystem's server."""
    simulated = _numbers(servers.filter(filesystem__simulated=True))
    return bool(coverage.traced(simulated, *within))


@dataclass(frozen=True)
class _Windows:
    """Rows of one level, and how long their buckets are."""

    rows: QuerySet[Any]
    width: timedelta


def _charged(start: datetime, end: datetime) -> Level | None:
    """Return the finest level that still tells of all of a range; None: none does."""
    return retention.finest(levels.RPC_LEVELS, start, end)


def _of_job(model: type[Model], job: Job) -> QuerySet[Any]:
    return model._default_manager.filter(kind=Principal.JOB, job_id=job.pk)  # noqa: SLF001  (documented)


def _within(
    run_start: datetime,
    run_end: datetime | None,
    start: datetime | None,
    end: datetime | None,
    width: timedelta,
) -> tuple[datetime, datetime]:
    """Return the part of [start, end), widened to whole buckets, in which something ran."""
    return (
        max(run_start, buckets.floor(start, width)) if start else run_start,
        min(run_end or OPEN_END, buckets.ceil(end, width)) if end else run_end or OPEN_END,
    )


def _report(
    title: str,
    windows: _Windows,
    by_node: _Windows,
    server_ids: list[int],
    within: tuple[datetime, datetime],
    *,
    nodes_held: int | None,
    simulated: bool,
) -> RpcReport | None:
    covered_s = coverage.seconds(coverage.traced(server_ids, *within))
    if not covered_s:
        return None
    figures = {name: figure for name, (figure, _) in _FIGURES.items()}
    kinds = list(_inside(windows, server_ids, within).values("opcode").annotate(**figures))
    rows = [_row(opcodes.name_of(kind["opcode"]), kind, covered_s) for kind in kinds]
    return RpcReport(
        title=title,
        simulated=simulated,
        covered_s=covered_s,
        nodes_seen=_nodes_seen(by_node, server_ids, within),
        nodes_held=nodes_held,
        overall=_row(_ALL, _of_all(kinds), covered_s),
        rows=tuple(sorted(rows, key=lambda row: (-row.count, row.opcode))),
    )


def _of_all(kinds: list[dict[str, Any]]) -> dict[str, int | None]:
    known = {name: [kind[name] for kind in kinds if kind[name] is not None] for name in _FIGURES}
    return {
        name: add_up(known[name]) if known[name] else None for name, (_, add_up) in _FIGURES.items()
    }


def _nodes_seen(
    windows: _Windows, server_ids: list[int], within: tuple[datetime, datetime]
) -> int | None:
    """Return how many NIDs sent something; None where raw windows would tell and are gone."""
    is_raw = windows.rows.model is RpcWindow
    if is_raw and not retention.is_retained([levels.RPC_WINDOWS], *within):
        return None
    seen = _inside(windows, server_ids, within).exclude(nid_id=0)
    return int(seen.aggregate(n=Count("nid_id", distinct=True))["n"])


def _inside(
    windows: _Windows, server_ids: list[int], within: tuple[datetime, datetime]
) -> QuerySet[Any]:
    """Keep the windows of some servers that begin in a range, or hold its begin."""
    start, end = within
    return windows.rows.filter(
        server_id__in=server_ids,
        start__gte=buckets.floor(start, windows.width),
        start__lt=end,
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
