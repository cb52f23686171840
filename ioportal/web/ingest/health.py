"""Health: sources, stages, database, and evidence for job ids (`job_id_evidence`)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from ioportal.ingest import backpressure
from ioportal.ingest import health as ingest_health
from ioportal.ingest.data_quality import job_id_evidence
from ioportal.telemetry import retention, storage
from ioportal.web.common import exports
from ioportal.web.common.staff_only import staff_only
from ioportal.web.common.tables import Column, Table, bad_if, to
from ioportal.web.ingest.segments import tabs
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpResponseBase

    from ioportal.ingest.data_quality import JobIdEvidence
    from ioportal.ingest.health import Backlog, SourceHealth, Standstill
    from ioportal.ingest.models import OwnerConflict
    from ioportal.telemetry.free_space import Overload
    from ioportal.telemetry.models import StageFailure
    from ioportal.web.common.requests import UserRequest

_CONFLICTS = 20  # shown


def _state(row: SourceHealth) -> str:
    if not row.problems:
        return show.badge("good", "sending")
    return format_html('<span class="bad">{}</span>', "; ".join(row.problems))


def _rejects_url(row: SourceHealth) -> str:
    return f"{reverse('segment_list')}?kind={row.source.format}&rejects=on" if row.rejected else ""


_SOURCES: tuple[Column[SourceHealth], ...] = (
    Column(
        "source",
        "Source",
        "source__name",
        note=lambda row: f"{row.source.format} of {row.source.scope.name}",
    ),
    Column("format", "", "source__format"),
    Column("of", "", "source__scope__name"),
    Column(
        "troubles",
        "State",
        lambda row: "; ".join(row.problems),
        cell=_state,
        css="wrap trouble",
    ),
    Column("poll_interval_s", "Expected every", "source__poll_interval_s", "s"),
    Column(
        "last_batch",
        "Last batch",
        "source__last_batch_at",
        cell=lambda row: show.ago(row.source.last_batch_at) or "never",
    ),
    Column("latest_change", "Latest record", "latest_record_at"),
    Column("lag_s", "Lag", unit="s", about="Age of the latest record when it was stored"),
    Column(
        "gaps",
        "Gaps",
        lambda row: None if row.gaps is None else len(row.gaps),
        "of a minute or more",
        css=bad_if("gaps"),
    ),
    Column("gap_s", "Not observed", unit="s", form=show.whole),
    Column(
        "rejected_lines",
        "Rejected",
        "rejected",
        "lines",
        link=_rejects_url,
        css=bad_if("rejected"),
    ),
    Column(
        "refusals",
        "Refused",
        unit="deliveries",
        about="Refused deliveries since the source was registered",
    ),
    Column("spool_batches", "Spool", "source__spool_batches", "batches"),
    Column("spool_bytes", "Spool", "source__spool_bytes", "size", form=show.size),
    Column(
        "clock_offset_s",
        "Clock",
        "source__clock_offset_s",
        "s",
        about="Clock of the source minus clock of the portal",
    ),
    Column("agent_version", "", "source__agent_version"),
    Column(
        "agent_host",
        "Agent",
        "source__agent_host",
        note=lambda row: show.visible(row.source.agent_version),
    ),
)
_WAITING: tuple[Column[Backlog], ...] = (
    Column("stage", "Stage"),
    Column("kind", "Work"),
    Column("rows", "Pending", unit="", css=bad_if("is_late")),
    Column("oldest", "Oldest since", cell=lambda waiting: waiting.oldest or "none"),
    Column("is_late", ""),
)
_FAILING: tuple[Column[StageFailure | Standstill], ...] = (
    Column("stage", "Stage"),
    Column("since", "Failing since"),
    Column("failed_at", "Last failure"),
    Column("runs", "Failures", unit="in a row", css="bad"),
    Column("error", "Error", form=show.visible_lines, css="wrap trouble bad"),
    Column("remedy", "Remedy", css="wrap"),
)
_OWNER_CONFLICTS: tuple[Column[OwnerConflict], ...] = (
    Column("job", "Job", "job__display_id", link=to("job", "job_id"), note="job__cluster__name"),
    Column("cluster", "", "job__cluster__name"),
    Column("owner", "Owner", "job__owner"),
    Column(
        "reported_owner",
        "Reported owner",
        css=lambda conflict: "bad" if conflict.reported_owner != conflict.job.owner else "",
    ),
    Column("differences", "Differs in"),
    Column("input", "Input", "segment__name", link=to("segment", "segment_id")),
    Column("line", "Line", unit=""),
    Column("", "Stored at", "segment__loaded_at"),
)


def _share(name: str, title: str) -> Column[JobIdEvidence]:
    return Column(
        name,
        title,
        lambda evidence: getattr(evidence, name) / evidence.operations,
        "%",
        form=show.hundredfold,
    )


_JOB_IDS: tuple[Column[JobIdEvidence], ...] = (
    Column("source", "Source"),
    Column("operations", "Operations or RPCs", unit="", form=show.whole),
    _share("by_node", "Verified by node"),
    _share("by_uid", "Verified by user id"),
    _share("unverified", "Not verified"),
    _share("contradicted", "Contradicted"),
)


class Health:
    """The health of the portal's data at one time."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    @cached_property
    def sources(self) -> Table[SourceHealth]:
        """Sources, those with problems first."""
        sources = ingest_health.sources(self.now)
        return Table("Sources", _SOURCES, sorted(sources, key=lambda source: not source.problems))

    @cached_property
    def waiting(self) -> Table[Backlog]:
        """Pending work by stage."""
        about = "Normally processed within seconds; roll-ups wait for the end of their ten minutes."
        return Table("Pending work", _WAITING, ingest_health.backlogs(self.now), about=about)

    @cached_property
    def behind(self) -> Overload | None:
        """The reason for backpressure; None without it."""
        return backpressure.overload()

    @property
    def in_trouble(self) -> int:
        """The number of sources with problems."""
        return sum(bool(source.problems) for source in self.sources.rows)

    @property
    def pending(self) -> list[Backlog]:
        """Pending work, late or not."""
        return [waiting for waiting in self.waiting.rows if waiting.rows]

    @property
    def late(self) -> list[Backlog]:
        """Pending work older than normal."""
        return [waiting for waiting in self.waiting.rows if waiting.is_late]

    @cached_property
    def failing(self) -> Table[StageFailure | Standstill]:
        """Stages whose latest run failed."""
        about = "A failing stage is retried. Its data stays pending until a run succeeds."
        return Table("Failing stages", _FAILING, ingest_health.failing_stages(), about=about)

    @cached_property
    def owner_conflict_count(self) -> int:
        """The number of unresolved conflicts with stored jobs."""
        return ingest_health.owner_conflicts().count()

    @cached_property
    def owner_conflicts(self) -> Table[OwnerConflict]:
        """The latest conflicts with stored jobs."""
        stored = ingest_health.owner_conflicts()[:_CONFLICTS] if self.owner_conflict_count else []
        return Table("Conflicting records", _OWNER_CONFLICTS, list(stored))

    @property
    def is_well(self) -> bool:
        """Whether nothing needs attention."""
        return not (
            self.in_trouble
            or self.late
            or self.failing.rows
            or self.behind
            or self.owner_conflict_count
        )

    @cached_property
    def job_ids(self) -> Table[JobIdEvidence]:
        """The evidence for the job ids in recent data."""
        return Table("Job ids", _JOB_IDS, job_id_evidence(self.now))

    @cached_property
    def licence(self) -> str:
        """The licence of TimescaleDB."""
        return retention.licence()

    @cached_property
    def version(self) -> str:
        """The version of TimescaleDB."""
        return storage.version()

    @cached_property
    def database_bytes(self) -> int:
        """The size of the database."""
        return storage.database_bytes()

    @cached_property
    def database_free_bytes(self) -> int | None:
        """Free space on the database disk; None if not visible from this host."""
        return storage.free_bytes()

    def about(self) -> dict[str, Any]:
        """Return members of the JSON export other than sources."""
        return {
            "at": self.now,
            "is_well": self.is_well,
            "waiting": self.waiting.facts,
            "failing_stages": self.failing.facts,
            "owner_conflicts": self.owner_conflicts.facts,
            "owner_conflict_count": self.owner_conflict_count,
            "backpressure": self.behind and str(self.behind),
            "database_bytes": self.database_bytes,
            "database_free_bytes": self.database_free_bytes,
            "timescaledb": self.version,
            "licence": self.licence,
        }


@require_safe
@staff_only
@exports.accept("csv", "json")
def health(request: UserRequest) -> HttpResponseBase:
    """Sources, pending work and the database; exports have the sources."""
    page = Health(timezone.now())
    if exports.requested_format(request):
        return exports.response(request, "health", page.about(), *page.sources.export)
    return render(request, "ingest/health.html", {**tabs("health"), "health": page})
