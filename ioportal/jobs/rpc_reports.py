"""RPC reports of jobs, launches and other principals, from stored windows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Max, Min, Q, Sum
from django.db.models.functions import Coalesce, Now

from collectors.batch import hostlists
from collectors.lustre import opcodes
from ioportal.jobs.accounting import OPEN_END
from ioportal.jobs.analysis.rpc_report import RpcReport, RpcRow, Times
from ioportal.site.models import Nid, Server, SourceJobId
from ioportal.telemetry import buckets, coverage, levels, piecewise, retention
from ioportal.telemetry.models import AttributedRpc, Method, Principal, RpcWindow

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from django.db.models import Aggregate, Model, QuerySet

    from ioportal.jobs.models import Job, JobStatistics, Launch
    from ioportal.telemetry.levels import Level

_ALL = "all"
_TIMED = Q(timed__gt=0)
# Figures: aggregates over windows per opcode, and functions to combine opcodes.
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


def for_job(
    job: Job, start: datetime | None = None, end: datetime | None = None
) -> RpcReport | None:
    """Report metadata RPCs attributed to a job in [start, end), by default its whole run.

    None if no trace covers the range.
    """
    if job.started_at is None:
        return None
    attributed = _attributed_level(
        *_within(job.started_at, job.ended_at, start, end, levels.RPC_WINDOWS.width)
    )
    if attributed is None:
        return None
    nids = _keys(Nid.objects.filter(node__allocations__job=job))
    return _report(
        f"Job {job}",
        _Windows(_attributed_to(attributed.model, job), attributed.width),
        _Windows(RpcWindow.objects.filter(nid_id__in=nids), levels.RPC_WINDOWS.width),
        job.cluster.metadata_server_ids,
        _within(job.started_at, job.ended_at, start, end, attributed.width),
        nodes_held=job.allocations.count(),
        simulated=job.cluster.simulated,
    )


def for_launch(
    launch: Launch, start: datetime | None = None, end: datetime | None = None
) -> RpcReport | None:
    """Report metadata RPCs of the nodes of a launch during its run.

    Windows that extend beyond the run are excluded. None if no trace covers the range or its raw
    windows have expired: attributed RPCs are not stored by launch.
    """
    if launch.started_at is None:
        return None
    start, end = _within(launch.started_at, launch.ended_at, start, end, levels.RPC_WINDOWS.width)
    if not retention.is_retained([levels.RPC_WINDOWS], start, end):
        return None
    nids = _keys(
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


def for_principals(
    kind: Principal, start: datetime, end: datetime, *, process: str = "", host: str = ""
) -> RpcReport | None:
    """Report metadata RPCs attributed to a kind of principal in the windows of [start, end).

    `process` and `host` select a single principal.
    """
    attributed = _attributed_level(start, end)
    if attributed is None:
        return None
    rows = attributed.model._default_manager.filter(kind=kind)  # noqa: SLF001  (documented API)
    if process:
        source_job_ids = _keys(SourceJobId.objects.filter(text=process))
        rows = rows.filter(source_job_id__in=source_job_ids)
    if host:
        nids = Nid.objects.filter(Q(node__name=host) | Q(text=host))
        rows = rows.filter(nid_id__in=_keys(nids))
    windows = _Windows(rows, attributed.width)
    title = " ".join(filter(None, (str(kind.label).capitalize(), process, host)))
    servers = Server.objects.filter(kind=Server.Kind.MDS)
    within = buckets.floor(start, windows.width), buckets.ceil(end, windows.width)
    return _report(
        title,
        windows,
        windows,
        _keys(servers),
        within,
        nodes_held=None,
        simulated=_is_simulated(servers, within),
    )


def for_all(start: datetime, end: datetime) -> RpcReport | None:
    """Report all metadata RPCs in the windows of [start, end).

    The number of nodes requires raw windows.
    """
    attributed = _attributed_level(start, end)
    if attributed is None:
        return None
    windows = _Windows(attributed.model._default_manager.all(), attributed.width)  # noqa: SLF001  (documented API)
    servers = Server.objects.filter(kind=Server.Kind.MDS)
    within = buckets.floor(start, windows.width), buckets.ceil(end, windows.width)
    return _report(
        "All RPCs",
        windows,
        _Windows(RpcWindow.objects.all(), levels.RPC_WINDOWS.width),
        _keys(servers),
        within,
        nodes_held=None,
        simulated=_is_simulated(servers, within),
    )


def attribution_methods(
    job: Job, start: datetime | None = None, end: datetime | None = None
) -> list[tuple[Method, int]]:
    """Return the RPCs of `for_job` by attribution method, most frequent first.

    Empty if only roll-ups are retained.
    """
    if job.started_at is None:
        return []
    within = _within(job.started_at, job.ended_at, start, end, levels.RPC_WINDOWS.width)
    if not retention.is_retained([levels.ATTRIBUTED_RPCS], *within):
        return []
    windows = _Windows(AttributedRpc.objects.for_job(job.pk), levels.RPC_WINDOWS.width)
    rows = (
        _inside(windows, job.cluster.metadata_server_ids, within)
        .values_list("method")
        .annotate(rpcs=Sum("count"))
        .order_by("-rpcs")
    )
    return [(Method(method), int(rpcs)) for method, rpcs in rows]


def _keys(rows: QuerySet[Any]) -> list[int]:
    """Fetch keys in a separate query: a join with windows gets poor plans."""
    return list(rows.values_list("pk", flat=True))


def _is_simulated(servers: QuerySet[Server], within: tuple[datetime, datetime]) -> bool:
    """Whether a simulated filesystem was traced in a range."""
    simulated = _keys(servers.filter(filesystem__simulated=True))
    return bool(coverage.traced(simulated, *within))


@dataclass(frozen=True)
class _Windows:
    """Rows of one level, and the width of their buckets."""

    rows: QuerySet[Any]
    width: timedelta


def _attributed_level(start: datetime, end: datetime) -> Level | None:
    """Return the finest level with all attributed RPCs of a range; None: expired."""
    return retention.finest(levels.RPC_LEVELS, start, end)


def _attributed_to(model: type[Model], job: Job) -> QuerySet[Any]:
    return model._default_manager.filter(kind=Principal.JOB, job_id=job.pk)  # noqa: SLF001  (documented API)


def _within(
    run_start: datetime,
    run_end: datetime | None,
    start: datetime | None,
    end: datetime | None,
    width: timedelta,
) -> tuple[datetime, datetime]:
    """Return the part of a run in [start, end), widened to whole buckets."""
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
        overall=_row(_ALL, _overall(kinds), covered_s),
        rows=tuple(sorted(rows, key=lambda row: (-row.count, row.opcode))),
    )


def _overall(kinds: list[dict[str, Any]]) -> dict[str, int | None]:
    values = {name: [kind[name] for kind in kinds if kind[name] is not None] for name in _FIGURES}
    return {
        name: combine(values[name]) if values[name] else None
        for name, (_, combine) in _FIGURES.items()
    }


def _nodes_seen(
    windows: _Windows, server_ids: list[int], within: tuple[datetime, datetime]
) -> int | None:
    """Return the number of NIDs with RPCs; None if the required raw windows have expired."""
    is_raw = windows.rows.model is RpcWindow
    if is_raw and not retention.is_retained([levels.RPC_WINDOWS], *within):
        return None
    named = _inside(windows, server_ids, within).exclude(nid_id=0)
    return int(named.aggregate(n=Count("nid_id", distinct=True))["n"])


def _inside(
    windows: _Windows, server_ids: list[int], within: tuple[datetime, datetime]
) -> QuerySet[Any]:
    """Select windows of servers that begin in a range or contain its begin."""
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


_LEVEL = levels.RPC_TEN_MINUTES


def rpcs_by_kind(statistics: QuerySet[JobStatistics]) -> dict[str, int]:
    """Add up the metadata RPCs attributed to traced jobs, by name of the opcode."""
    traced = statistics.filter(metadata_rpcs__isnull=False)
    runs = traced.aggregate(start=Min("job__started_at"), end=Max(Coalesce("job__ended_at", Now())))
    counts: Counter[str] = Counter()
    if runs["start"] is None:
        return counts
    servers = list(Server.objects.filter(kind=Server.Kind.MDS).values_list("pk", flat=True))
    begin, end = buckets.floor(runs["start"], _LEVEL.width), buckets.ceil(runs["end"], _LEVEL.width)
    for piece in piecewise.pieces(_LEVEL, begin, end):
        rows = piece.level.model._default_manager.filter(  # noqa: SLF001  (documented API)
            kind=Principal.JOB,
            job_id__in=traced.values("job"),
            server_id__in=servers,
            start__gte=piece.start,
            start__lt=piece.end,
        )
        for opcode, count in rows.order_by().values_list("opcode").annotate(Sum("count")):
            counts[opcodes.name_of(opcode)] += int(count)
    return counts
