"""RPCs of many jobs by kind, from the windows that are retained longest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from django.db.models import Max, Min, Sum
from django.db.models.functions import Coalesce, Now

from collectors.lustre import opcodes
from ioportal.site.models import Server
from ioportal.telemetry import buckets, levels, piecewise
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from ioportal.jobs.models import JobStatistics

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
