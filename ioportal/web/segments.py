"""What was ingested and what waits for somebody, as the ingest pages ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import django_filters as filters
from django import forms
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, Sum

from ioportal.ingest.models import Segment
from ioportal.jobs.models import Cluster, Job, Launch, Nid, Server, SourceJobId, Target
from ioportal.telemetry.models import IoWindow

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from django.db.models import QuerySet

_MANY = 1_000  # of what waits for somebody: more are not counted


class SegmentFilter(filters.FilterSet):  # type: ignore[misc]  # django-filter is untyped
    """Segments by format, by who wrote them, by name, and by whether all of it was readable."""

    name = filters.CharFilter("name", lookup_expr="icontains", label="Name contains")
    kind = filters.ChoiceFilter(
        "format", choices=Segment.Format.choices, label="Format", empty_label="all"
    )
    server = filters.ModelChoiceFilter(
        queryset=Server.objects.all(), to_field_name="name", label="Server", empty_label="all"
    )
    target = filters.CharFilter(method="of_target", label="Target")
    cluster = filters.ModelChoiceFilter(
        queryset=Cluster.objects.all(), to_field_name="name", label="Cluster", empty_label="all"
    )
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


def with_sources(segments: QuerySet[Segment]) -> QuerySet[Segment]:
    """Add what a row says of its sources: a file of OSTs may name a thousand."""
    return segments.select_related("cluster", "server__filesystem").annotate(
        target_count=Count("targets"),
        first_target=Min("targets__name"),
        last_target=Max("targets__name"),
        simulated_targets=Count("targets", filter=Q(targets__filesystem__simulated=True)),
    )


def is_simulated(segment: Segment) -> bool:
    """Whether a segment `with_sources` is of a simulated cluster or filesystem."""
    of_cluster = segment.cluster is not None and segment.cluster.simulated
    of_server = segment.server is not None and segment.server.filesystem.simulated
    return of_cluster or of_server or getattr(segment, "simulated_targets", 0) > 0


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


def seen(job_ids: Collection[int]) -> dict[int, tuple[datetime, datetime, int]]:
    """Return when job_stats showed each of some job ids, first and last, and how many opens."""
    rows = (
        IoWindow.objects.filter(source_job_id__in=job_ids)
        .values_list("source_job_id")
        .annotate(first=Min("start"), last=Max("end"), opens=Sum("open"))
    )
    return {pk: (first, last, int(opens or 0)) for pk, first, last, opens in rows}


def waiting() -> dict[str, str]:
    """Return how much waits for somebody, in words, up to a limit."""
    return {"nids": _up_to_many(unregistered_nids()), "pending": _up_to_many(pending_ids())}


def _up_to_many(rows: QuerySet[Nid] | QuerySet[SourceJobId]) -> str:
    count = rows.order_by()[: _MANY + 1].count()
    return f"{_MANY:,}+" if count > _MANY else f"{count:,}"
