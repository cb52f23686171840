"""Queries of the ingest pages: files, unregistered NIDs, pending job ids."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import django_filters as filters
from django import forms
from django.db.models import Case, Count, Exists, F, Max, Min, OuterRef, Q, Subquery, Sum, When
from django.db.models.functions import Coalesce

from collectors import formats, tables
from ioportal.core.time_fields import TimeInput
from ioportal.ingest.models import Segment
from ioportal.jobs.models import Job, Launch
from ioportal.site.models import Cluster, Nid, Server, SourceJobId, Target
from ioportal.telemetry.models import IoWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from django.db.models import QuerySet

_IDS_PER_QUERY = 1_000
_COUNT_LIMIT = 1_000  # for the numbers on tabs


class SegmentFilter(filters.FilterSet):  # type: ignore[misc]  # django-filter is untyped
    """Filters of ingested files: format, source, name, time, rejects."""

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
    target = filters.CharFilter(method="with_target", label="Target")
    cluster = filters.ModelChoiceFilter(
        queryset=Cluster.objects.all(), to_field_name="name", label="Cluster", empty_label="all"
    )
    start = filters.IsoDateTimeFilter("end", "gte", label="Records after", widget=TimeInput)
    end = filters.IsoDateTimeFilter("start", "lt", label="Records before", widget=TimeInput)
    rejects = filters.BooleanFilter(
        method="with_rejects", label="Only with rejects", widget=forms.CheckboxInput
    )

    class Meta:
        model = Segment
        fields: tuple[str, ...] = ()

    def with_target(self, segments: QuerySet[Segment], _name: str, value: str) -> QuerySet[Segment]:
        """Keep segments with counters of a target."""
        return segments.filter(pk__in=Target.objects.filter(name=value).values("segment"))

    def with_rejects(
        self,
        segments: QuerySet[Segment],
        _name: str,
        value: bool,  # noqa: FBT001  (django-filter's signature)
    ) -> QuerySet[Segment]:
        """Keep segments with rejected lines."""
        return segments.filter(rejected__gt=0) if value else segments


def described(segments: QuerySet[Segment]) -> QuerySet[Any]:
    """Annotate `simulated` and `rpcs`, the RPCs of a trace; None for other formats."""
    of_targets = Target.objects.filter(segment=OuterRef("pk"), filesystem__simulated=True)
    of_source = Q(cluster__simulated=True) | Q(server__filesystem__simulated=True)
    is_simulated = Case(When(of_source | Exists(of_targets), then=True), default=False)
    rpcs = Case(When(format__in=formats.names(tables.RPC_WINDOWS), then=F("operations")))
    result: QuerySet[Any] = segments.annotate(simulated=is_simulated, rpcs=rpcs)
    return result


def with_sources(segments: QuerySet[Segment]) -> QuerySet[Any]:
    """Annotate `described` segments with their targets.

    Subqueries run for displayed rows only; a join would aggregate all segments first.
    """
    targets = Target.objects.filter(segment=OuterRef("pk")).order_by().values("segment")
    result: QuerySet[Any] = described(segments.select_related("cluster", "server")).annotate(
        target_count=Coalesce(Subquery(targets.annotate(value=Count("pk")).values("value")), 0),
        first_target=Subquery(targets.annotate(value=Min("name")).values("value")),
        last_target=Subquery(targets.annotate(value=Max("name")).values("value")),
    )
    return result


def unregistered_nids() -> QuerySet[Nid]:
    """Return client NIDs without a registered node."""
    return Nid.objects.filter(node=None).exclude(text="0@lo").order_by("text")


def pending_ids() -> QuerySet[SourceJobId]:
    """Return ids of batch jobs or launches without an accounting record."""
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
class PendingId:
    """A job id, its first and last time in job_stats, and its opens; None without any."""

    job_id: SourceJobId
    first: datetime | None = None
    last: datetime | None = None
    opens: int | None = None


def with_times(job_ids: Iterable[SourceJobId]) -> Iterator[PendingId]:
    """Yield job ids with their times and opens, in order."""
    remaining = iter(job_ids)
    while chunk := list(islice(remaining, _IDS_PER_QUERY)):
        rows = (
            IoWindow.objects.filter(source_job_id__in=[job_id.pk for job_id in chunk])
            .values_list("source_job_id")
            .annotate(first=Min("start"), last=Max("end"), opens=Sum("open"))
        )
        values = {pk: (first, last, int(opens or 0)) for pk, first, last, opens in rows}
        for job_id in chunk:
            yield PendingId(job_id, *values.get(job_id.pk, ()))


def tabs(tab: str) -> dict[str, Any]:
    """Return the context of the tabs."""
    return {"section": "ingest", "tab": tab, "counts": tab_counts()}


def tab_counts() -> dict[str, str]:
    """Return the numbers on tabs."""
    return {"nids": limited_count(unregistered_nids()), "pending": limited_count(pending_ids())}


def limited_count(rows: QuerySet[Any]) -> str:
    """Return the number of rows as text, up to a limit: '1,000+'."""
    count = rows.order_by()[: _COUNT_LIMIT + 1].count()
    return f"{_COUNT_LIMIT:,}+" if count > _COUNT_LIMIT else f"{count:,}"
