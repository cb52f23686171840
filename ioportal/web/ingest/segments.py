"""What was ingested and what waits for somebody, as the ingest pages ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import django_filters as filters
from django import forms
from django.db.models import Case, Count, Exists, F, Max, Min, OuterRef, Q, Subquery, Sum, When
from django.db.models.functions import Coalesce

from collectors import formats, tables
from ioportal.ingest.models import Segment
from ioportal.jobs.models import Job, Launch
from ioportal.site.models import Cluster, Nid, Server, SourceJobId, Target
from ioportal.studies.filters import LocalMoment
from ioportal.telemetry.models import IoWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from django.db.models import QuerySet

_LOOKED_UP = 1_000  # job ids at once
_MANY = 1_000  # of what waits for somebody: more are not counted


class SegmentFilter(filters.FilterSet):  # type: ignore[misc]  # django-filter is untyped
    """Segments by format, by who wrote them, by name, by time, and by whether all was readable."""

    name = filters.CharFilter("name", lookup_expr="icontains", label="Name contains")
    kind = filters.ChoiceFilter(
        "format",
        choices=[(form.name, form.label) for form in formats.FORMATS],
        label="Format",
        empty_label="all",
    )
    server = filters.ModelChoiceFilter(
        queryset=Server.objects.all(), to_field_name="name", label="Server", empty_label="all"
    )
    target = filters.CharFilter(method="of_target", label="Target")
    cluster = filters.ModelChoiceFilter(
        queryset=Cluster.objects.all(), to_field_name="name", label="Cluster", empty_label="all"
    )
    start = filters.IsoDateTimeFilter("end", "gte", label="Records after", widget=LocalMoment)
    end = filters.IsoDateTimeFilter("start", "lt", label="Records before", widget=LocalMoment)
    rejects = filters.BooleanFilter(
        method="with_rejects", label="Only with rejects", widget=forms.CheckboxInput
    )

    class Meta:
        model = Segment
        fields: tuple[str, ...] = ()

    def of_target(self, segments: QuerySet[Segment], _name: str, value: str) -> QuerySet[Segment]:
        """Keep segments that hold a target's counters."""
        return segments.filter(pk__in=Target.objects.filter(name=value).values("segment"))

    def with_rejects(
        self,
        segments: QuerySet[Segment],
        _name: str,
        value: bool,  # noqa: FBT001  (django-filter's signature)
    ) -> QuerySet[Segment]:
        """Keep segments of which some line was refused."""
        return segments.filter(rejected__gt=0) if value else segments


def described(segments: QuerySet[Segment]) -> QuerySet[Any]:
    """Add whether a segment is of a `simulated` cluster or filesystem, and its `rpcs`.

    They are None unless it is a trace: counters tell totals, whose sum nothing is charged by.
    """
    of_targets = Target.objects.filter(segment=OuterRef("pk"), filesystem__simulated=True)
    of_source = Q(cluster__simulated=True) | Q(server__filesystem__simulated=True)
    is_simulated = Case(When(of_source | Exists(of_targets), then=True), default=False)
    rpcs = Case(When(format__in=formats.names(tables.RPC_WINDOWS), then=F("operations")))
    found: QuerySet[Any] = segments.annotate(simulated=is_simulated, rpcs=rpcs)
    return found


def with_sources(segments: QuerySet[Segment]) -> QuerySet[Any]:
    """Add besides what a row says of its sources: a file of OSTs may name a thousand.

    Asked for each row that is shown: joined, the targets of all segments would be counted first.
    """
    targets = Target.objects.filter(segment=OuterRef("pk")).order_by().values("segment")
    found: QuerySet[Any] = described(segments.select_related("cluster", "server")).annotate(
        target_count=Coalesce(Subquery(targets.annotate(found=Count("pk")).values("found")), 0),
        first_target=Subquery(targets.annotate(found=Min("name")).values("found")),
        last_target=Subquery(targets.annotate(found=Max("name")).values("found")),
    )
    return found


def unregistered_nids() -> QuerySet[Nid]:
    """NIDs that sent requests and are no node's: what they do is nobody's."""
    return Nid.objects.filter(node=None).exclude(text="0@lo").order_by("text")


def pending_ids() -> QuerySet[SourceJobId]:
    """Job ids that look like a batch job's or a launch's, and no accounting has named yet."""
    clusters = Q(cluster__filesystems=OuterRef("filesystem"))
    jobs = Job.objects.filter(clusters, batch_id=OuterRef("batch_id"))
    launches = Launch.objects.filter(clusters, name=OuterRef("launch"), job__isnull=False)
    return (
        SourceJobId.objects.filter(
            Q(~Q(batch_id=""), ~Exists(jobs)) | Q(~Q(launch=""), ~Exists(launches))
        )
        .select_related("filesystem")
        .order_by("-pk")
    )


@dataclass(frozen=True)
class Seen:
    """A job id, when job_stats showed it first and last, and how many opens; None: never."""

    job_id: SourceJobId
    first: datetime | None = None
    last: datetime | None = None
    opens: int | None = None


def seen(job_ids: Iterable[SourceJobId]) -> Iterator[Seen]:
    """Yield when each of some job ids was seen, in their order; looked up some at a time."""
    remaining = iter(job_ids)
    while some := list(islice(remaining, _LOOKED_UP)):
        rows = (
            IoWindow.objects.filter(source_job_id__in=[job_id.pk for job_id in some])
            .values_list("source_job_id")
            .annotate(first=Min("start"), last=Max("end"), opens=Sum("open"))
        )
        found = {pk: (first, last, int(opens or 0)) for pk, first, last, opens in rows}
        for job_id in some:
            yield Seen(job_id, *found.get(job_id.pk, ()))


def waiting() -> dict[str, str]:
    """Return how much waits for somebody, in words, up to a limit."""
    return {"nids": up_to_many(unregistered_nids()), "pending": up_to_many(pending_ids())}


def up_to_many(rows: QuerySet[Any]) -> str:
    """Return how many rows there are, in words, up to a limit."""
    count = rows.order_by()[: _MANY + 1].count()
    return f"{_MANY:,}+" if count > _MANY else f"{count:,}"
