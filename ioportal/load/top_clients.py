"""Top clients of a server in its request history: NIDs, and the jobs on their nodes."""

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

MAX_CLIENTS = 50


@dataclass(frozen=True)
class Client:
    """A NID and its requests; `jobs` ran on its node between its first and last request."""

    nid: Nid
    requests: int
    first: datetime
    last: datetime
    kinds: list[tuple[str, int]]  # opcodes by name, most frequent first
    jobs: list[Job]


def top_clients(server_id: int, start: datetime, end: datetime) -> list[Client]:
    """Return the clients with the most requests in [start, end), at most `MAX_CLIENTS`."""
    windows = RequestWindow.objects.between(start, end).filter(server_id=server_id)
    most = (
        windows.values("nid_id")
        .annotate(requests=Sum("count"), begun=Min("first"), ended=Max("last"))
        .order_by("-requests", "nid_id")[:MAX_CLIENTS]
    )
    rows = list(most)
    nids = Nid.objects.select_related("node__cluster").in_bulk([row["nid_id"] for row in rows])
    kinds: dict[int, Counter[str]] = defaultdict(Counter)
    counted = windows.filter(nid_id__in=nids).values_list("nid_id", "opcode")
    for nid_id, opcode, count in counted.annotate(requests=Sum("count")):
        kinds[nid_id][opcodes.name_of(opcode)] += int(count)
    jobs_on: dict[int, list[Job]] = defaultdict(list)
    allocations = Allocation.objects.filter(
        node__in=[nid.node_id for nid in nids.values() if nid.node_id], job__started_at__lt=end
    ).exclude(job__ended_at__lte=start)
    for allocation in allocations.select_related("job__cluster").order_by("job__started_at"):
        jobs_on[allocation.node_id].append(allocation.job)
    return [
        Client(
            nid,
            int(row["requests"]),
            row["begun"],
            row["ended"],
            kinds[nid.pk].most_common(),
            [
                job
                for job in jobs_on.get(nid.node_id or 0, ())
                if job.started_at
                and job.started_at <= row["ended"]
                and (job.ended_at is None or job.ended_at > row["begun"])
            ],
        )
        for row in rows
        if (nid := nids.get(row["nid_id"]))
    ]
