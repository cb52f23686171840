"""Health of sources and backlogs of stages, for the health page and the metrics."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, cast

from django.db.models import Count, Min, OuterRef, Subquery, Sum
from django.utils import timezone

from collectors import tables
from collectors.formats import BY_NAME
from ioportal.core.stages import MAIL_PLANNING, MAILS
from ioportal.ingest import senders
from ioportal.ingest.models import (
    Batch,
    DirtyDeltas,
    DirtyExports,
    DirtyJob,
    DirtyReads,
    DirtyTrace,
    OwnerConflict,
    Segment,
)
from ioportal.jobs.models import DirtyEvidence, DirtyStatistics
from ioportal.site.models import Source, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.models import (
    Coverage,
    DirtyImpact,
    DirtyIo,
    DirtyRpcs,
    StageFailure,
    StageRun,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from ioportal.ingest.models import Sender
    from ioportal.telemetry.coverage import Interval
    from ioportal.telemetry.models import Pending

PERIOD: Final = timedelta(days=1)  # of reported gaps and rejected lines
_SHORTEST_SILENCE = timedelta(minutes=1)
_CLOCK_TOLERANCE_S = 5.0  # windows are ten seconds wide


@dataclass(frozen=True)
class SourceHealth:
    """A source, the state that its agent reported, and the data received from it."""

    source: Source
    now: datetime
    latest_record_at: datetime | None  # of its latest batch
    latest_stored_at: datetime | None  # time at which that batch was stored
    rejected: int  # lines, within `PERIOD`
    gaps: (
        list[Interval] | None
    )  # within `PERIOD`, since the first batch; None: format without coverage

    @property
    def lag_s(self) -> float | None:
        """Age of the last record of the latest batch when it was stored."""
        if self.latest_record_at is None or self.latest_stored_at is None:
            return None
        return (self.latest_stored_at - self.latest_record_at).total_seconds()

    @property
    def gap_s(self) -> float | None:
        """Total length of the gaps."""
        return None if self.gaps is None else coverage.seconds(self.gaps)

    @property
    def refusals(self) -> int:
        """Refused deliveries since the source was registered."""
        return self._sender.refusals if self._sender else 0

    @property
    def _sender(self) -> Sender | None:
        return getattr(self.source, "sender", None)

    @property
    def _refusal(self) -> str | None:
        """The latest refused batch, until it is accepted or a day old."""
        sender = self._sender
        if not sender or not sender.refused_at or self.now - sender.refused_at > PERIOD:
            return None
        return f"a batch was refused: {sender.refusal}"

    @property
    def problems(self) -> list[str]:
        """Problems of the source, worst first."""
        problems = [] if (first := problem(self.source, self.now)) is None else [first]
        if refusal := self._refusal:
            problems.append(refusal)
        offset = self.source.clock_offset_s
        if offset is not None and abs(offset) > _CLOCK_TOLERANCE_S:
            relation = "ahead of" if offset > 0 else "behind"
            problems.append(f"its clock is {abs(offset):,.0f} s {relation} the portal's: run NTP")
        if self.gaps:
            problems.append(f"not observed for {self.gap_s:,.0f} s of the last day")
        if self.rejected:
            problems.append(f"{self.rejected:,} lines of the last day were rejected")
        return problems


@dataclass(frozen=True)
class Backlog:
    """The pending work in one table: jobs, or intervals of data."""

    stage: str
    kind: str
    rows: int
    oldest: datetime | None
    late_after: timedelta  # maximum age while the stage works normally
    now: datetime

    @property
    def age_s(self) -> float | None:
        """Age of the oldest row."""
        return None if self.oldest is None else (self.now - self.oldest).total_seconds()

    @property
    def is_late(self) -> bool:
        """Whether the stage seems to be stopped."""
        return self.age_s is not None and self.age_s > self.late_after.total_seconds()


def patience(source: Source) -> timedelta:
    """Return the time without a batch after which a source is reported to staff as silent."""
    return senders.patience(source, _SHORTEST_SILENCE)


def problem(source: Source, now: datetime) -> str | None:
    """Return the problem of a source as far as its own row shows; None: no problem."""
    longest = patience(source)
    sender: Sender | None = getattr(source, "sender", None)
    if sender and sender.rival_at and now - sender.rival_at < senders.RECENT:
        holder = sender.stream.host if sender.stream else ""
        return (
            f"has two agents: the one on {senders.host_name(holder)} is accepted, the one on "
            f"{senders.host_name(sender.rival_host)} waits. Stop one of them"
        )
    if source.last_batch_at is None:
        return "has sent nothing yet: check that its agent runs with its token"
    if now - source.last_batch_at > longest:
        return "is silent: run “python -m collectors status” on its host"
    if source.spool_oldest_at and source.last_batch_at - source.spool_oldest_at > longest:
        return f"is behind: {source.spool_batches:,} batches are waiting on its disk"
    return None


def owner_conflicts() -> QuerySet[OwnerConflict]:
    """Return the unresolved conflicts with stored jobs, latest first."""
    conflicts = OwnerConflict.objects.select_related("job__cluster", "segment__batch__source")
    return conflicts.order_by("-segment_id", "line")


def registered() -> list[Source]:
    """Return all sources of agents, with what `problem` needs."""
    return list(Source.objects.select_related("sender__stream"))


def with_problems(sources: Sequence[Source], now: datetime) -> list[tuple[Source, str]]:
    """Return the sources that are silent or behind, each with its problem."""
    checked = ((source, problem(source, now)) for source in sources)
    return [(source, found_problem) for source, found_problem in checked if found_problem]


def expected_within(sources: Sequence[Source], kind: Coverage.Source) -> timedelta | None:
    """Return the time within which agents send data of a kind; None: no agent sends it."""
    of_kind = (each for each in sources if _COVERAGE.get(BY_NAME[each.format].table) == kind)
    return max(map(patience, of_kind), default=None)


def sources(now: datetime) -> list[SourceHealth]:
    """Return all sources by name, with a constant number of queries."""
    batches = Batch.objects.filter(source=OuterRef("pk"))
    latest, first = batches.order_by("-pk"), batches.order_by("pk")
    registered = list(
        Source.objects.select_related(
            "cluster", "filesystem", "server__filesystem", "sender__stream"
        ).annotate(
            latest_record_at=Subquery(latest.values("segment__end")[:1]),
            latest_stored_at=Subquery(latest.values("segment__loaded_at")[:1]),
            first=Subquery(first.values("segment__loaded_at")[:1]),
        )
    )
    rejected = dict(
        Segment.objects.filter(rejected__gt=0, loaded_at__gte=now - PERIOD, batch__isnull=False)
        .values_list("batch__source")
        .annotate(lines=Sum("rejected"))
    )
    since = {source.pk: max(source.first or now, now - PERIOD) for source in registered}
    gaps = _gaps(registered, since, now)
    return [
        SourceHealth(
            source,
            now,
            source.latest_record_at,
            source.latest_stored_at,
            rejected.get(source.pk, 0),
            gaps[source.pk],
        )
        for source in registered
    ]


@dataclass(frozen=True)
class Standstill:
    """A periodic task that does not run any more, as a `StageFailure`."""

    stage: str
    since: datetime  # its latest run
    remedy: str
    runs: int = 1
    error: str = "Its latest run is too long ago."

    @property
    def failed_at(self) -> datetime:
        """As `since`."""
        return self.since


_RUNS_WITHIN = timedelta(minutes=10)
_PERIODIC: Final = {
    MAIL_PLANNING: "Start ioportal-beat and ioportal-worker, or end them if they are frozen.",
    MAILS: "Start ioportal-beat and ioportal-outward-worker, or end them if they are frozen.",
}


def failing_stages() -> list[StageFailure | Standstill]:
    """Return the stages whose latest run failed, longest first, and those that do not run."""
    late = StageRun.objects.filter(
        stage__in=_PERIODIC, finished_at__lt=timezone.now() - _RUNS_WITHIN
    )
    failing = list(StageFailure.objects.order_by("since"))
    known = {failure.stage for failure in failing}
    return [
        *failing,
        *(
            Standstill(run.stage, run.finished_at, _PERIODIC[run.stage])
            for run in late.order_by("finished_at")
            if run.stage not in known
        ),
    ]


def backlogs(now: datetime) -> list[Backlog]:
    """Return the backlogs of all stages."""
    return [
        Backlog(
            stage,
            kind,
            late_after=late_after,
            now=now,
            **pending._default_manager.aggregate(  # noqa: SLF001  (documented)
                # A job may be marked several times.
                rows=Count("job_id" if kind == _JOBS else "pk", distinct=True),
                oldest=Min("created_at"),
            ),
        )
        for stage, late_after, tables in _STAGES
        for kind, pending in tables.items()
    ]


_JOBS: Final = "jobs"
_STAGES: Final[tuple[tuple[str, timedelta, Mapping[str, type[Pending]]], ...]] = (
    (
        "attribution",
        timedelta(minutes=1),
        {
            "traces": DirtyTrace,
            "reads of counters": DirtyReads,
            "differences from agents": DirtyDeltas,
            "exports": DirtyExports,
            _JOBS: DirtyJob,
        },
    ),
    ("statistics", timedelta(minutes=2), {_JOBS: DirtyStatistics}),
    # Rows stay pending until the end of their ten minutes.
    ("roll-up", timedelta(minutes=20), {"RPCs": DirtyRpcs, "counters": DirtyIo}),
    (
        "evaluation",
        timedelta(minutes=2),
        {_JOBS: DirtyEvidence, "impact": DirtyImpact},
    ),
)

_COVERAGE: Final = {
    tables.RPC_WINDOWS: Coverage.Source.RPC_TRACE,
    tables.REQUEST_WINDOWS: Coverage.Source.REQ_HISTORY,
    tables.SERVICE_COUNTERS: Coverage.Source.MDS_STATS,
    tables.JOB_COUNTERS: Coverage.Source.JOB_STATS,
    tables.TARGET_COUNTERS: Coverage.Source.MD_STATS,
    tables.EXPORT_COUNTERS: Coverage.Source.EXPORTS,
}

_OF_TARGETS: Final = (
    Coverage.Source.JOB_STATS,
    Coverage.Source.MD_STATS,
    Coverage.Source.EXPORTS,
)


def _gaps(
    sources: Sequence[Source], since: Mapping[int, datetime], now: datetime
) -> dict[int, list[Interval] | None]:
    """Return the gaps of each source between `since` and its latest record.

    Data after the latest record is expected, not missing.
    """
    gaps: dict[int, list[Interval] | None] = {source.pk: None for source in sources}
    for kind, observed_by_source in _observed_components(sources).items():
        poll_gaps = {
            pk: gap for components in observed_by_source.values() for pk, gap in components.items()
        }
        observed = defaultdict(list)
        for pk, interval in coverage.by_source(kind, poll_gaps, now - PERIOD, now):
            observed[pk].append(interval)
        for source, components in observed_by_source.items():
            intervals = sorted(interval for pk in components for interval in observed[pk])
            last = max((interval.end for interval in intervals), default=now)
            gaps[source] = [
                gap
                for gap in coverage.gaps(intervals, since[source], last)
                if gap.end - gap.start >= coverage.SHORTEST_GAP
            ]
    return gaps


def _observed_components(
    sources: Sequence[Source],
) -> dict[Coverage.Source, dict[int, dict[int, timedelta]]]:
    """Return the servers or targets that each source observes, with their poll gaps."""
    targets = list(Target.objects.all())
    observed: dict[Coverage.Source, dict[int, dict[int, timedelta]]] = defaultdict(dict)
    for source in sources:
        kind = _COVERAGE.get(BY_NAME[source.format].table)
        if kind in _OF_TARGETS:
            observed[kind][source.pk] = {
                target.pk: target.poll_gap
                for target in targets
                if source.server_id in {None, target.server_id}
                and source.filesystem_id in {None, target.filesystem_id}
            }
        elif kind is not None:
            poll_gaps = (
                coverage.polled if kind is Coverage.Source.MDS_STATS else coverage.contiguous
            )
            observed[kind][source.pk] = poll_gaps(
                [cast("int", source.server_id)]
            )  # by `Source.clean`
    return observed
