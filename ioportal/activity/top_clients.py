"""Who sent the requests that a server kept: nodes, and the jobs that held them then."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Max, Min, Sum

from collectors.lustre import opcodes
from ioportal.jobs.models import Allocation
from ioportal.site.models import Nid
from ioportal.telemetry.models import RequestWindow

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.jobs.models import Job

MOST = 50


@dataclass(frozen=True)
class Sender:
    """A NID, and what it sent; `jobs` are those that held its node while it sent something."""

    nid: Nid
    requests: int
    first: datetime
    last: datetime
    kinds: list[tuple[str, int]]  # opcodes by name, most frequent first
    jobs: list[Job]


def senders(server_id: int, start: datetime, end: datetime) -> list[Sender]:
    """Return those of whom a server kept most requests of [start, end): at most `MOST`."""
    kept = RequestWindow.objects.between(start, end).filter(server_id=server_id)
    most = (
        kept.values("nid_id")
        .annotate(requests=Sum("count"), begun=Min("first"), ended=Max("last"))
        .order_by("-requests", "nid_id")[:MOST]
    )
    rows = list(most)
    nids = Nid.objects.select_related("node__cluster").in_bulk([row["nid_id"] for row in rows])
    kinds: dict[int, Counter[str]] = defaultdict(Counter)
    counted = kept.filter(nid_id__in=nids).values_list("nid_id", "opcode")
    for nid_id, opcode, count in counted.annotate(requests=Sum("count")):
        kinds[nid_id][opcodes.name_of(opcode)] += int(count)
    held: dict[int, list[Job]] = defaultdict(list)
    allocations = Allocation.objects.filter(
        node__in=[nid.node_id for nid in nids.values() if nid.node_id], job__started_at__lt=end
    ).exclude(job__ended_at__lte=start)
    for allocation in allocations.select_related("job__cluster").order_by("job__started_at"):
        held[allocation.node_id].append(allocation.job)
    return [
        Sender(
            nid,
            int(row["requests"]),
            row["begun"],
            row["ended"],
            kinds[nid.pk].most_common(),
            [
                job
                for job in held.get(nid.node_id or 0, ())
                if job.started_at
                and job.started_at <= row["ended"]
                and (job.ended_at is None or job.ended_at > row["begun"])
            ],
        )
        for row in rows
        if (nid := nids.get(row["nid_id"]))
    ]
