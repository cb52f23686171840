"""Marks of intervals in which counters changed: the estimated impact may change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q

from ioportal.site.models import Server, Target
from ioportal.telemetry.models import Coverage, DirtyImpact

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from ioportal.telemetry.coverage import Interval


def mark_read(server_id: int, read_at: datetime) -> None:
    """Mark the intervals before and after a read of a server's statistics."""
    reads = Coverage.objects.filter(source=Coverage.Source.MDS_STATS, source_id=server_id)
    before = reads.filter(start__lt=read_at).order_by("-start").values_list("start", flat=True)
    after = reads.filter(start__gt=read_at).order_by("start").values_list("start", flat=True)
    start, end = before.first() or read_at, after.first() or read_at
    if start < end:
        DirtyImpact.objects.create(server_id=server_id, start=start, end=end)


def mark_targets(target_ids: Iterable[int], start: datetime, end: datetime) -> None:
    """Mark an interval on the servers of MDTs; without one, on all of the filesystem."""
    targets = Target.objects.filter(pk__in=target_ids)
    servers = Server.objects.filter(
        Q(targets__in=targets) | Q(filesystem__targets__in=targets.filter(server=None)),
        kind=Server.Kind.MDS,
    )
    DirtyImpact.objects.bulk_create(
        DirtyImpact(server_id=server, start=start, end=end)
        for server in servers.values_list("pk", flat=True).distinct()
    )


def mark_attribution(changed: Interval | None) -> None:
    """Mark an interval in which the attribution of counters changed on any server."""
    if changed:
        DirtyImpact.objects.create(start=changed.start, end=changed.end)
