"""Whether data come, and whether the stages keep up: the health page, and what monitoring reads."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, cast

from django.db.models import Count, Min, OuterRef, Subquery, Sum

from collectors import tables
from collectors.formats import BY_NAME
from ioportal.ingest.models import (
    Batch,
    Segment,
    TouchedDeltas,
    TouchedJob,
    TouchedReads,
    TouchedTrace,
)
from ioportal.jobs.models import StaleEvidence, StaleStatistics
from ioportal.site.models import Source, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage, StageFailure, TouchedImpact, TouchedIo, TouchedRpcs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from ioportal.telemetry.coverage import Interval
    from ioportal.telemetry.models import Pending

PERIOD: Final = timedelta(days=1)  # gaps and refused lines are those of this long
_MISSED_POLLS = 3  # one may be late, or lost on the way
_AT_LEAST = timedelta(minutes=1)  # nothing is silent, or behind, sooner
_CLOCK_S = 5.0  # windows are of ten seconds


@dataclass(frozen=True)
class SourceHealth:
    """A source: what its agent says of itself, and what came of it."""

    source: Source
    now: datetime
    latest_record_at: datetime | None  # the last record of its newest batch
    latest_stored_at: datetime | None  # when that batch was stored
    rejected: int  # lines, within `PERIOD`
    gaps: list[Interval] | None  # within `PERIOD`, since it first sent; None: its format has none

    @property
    def lag_s(self) -> float | None:
        """How old the last record of the newest batch was when it was stored."""
        if self.latest_record_at is None or self.latest_stored_at is None:
            return None
        return (self.latest_stored_at - self.latest_record_at).total_seconds()

    @property
    def gap_s(self) -> float | None:
        """How long it was not observed."""
        return None if self.gaps is None else coverage.seconds(self.gaps)

    @property
    def problems(self) -> list[str]:
        """What is wrong with it, worst first."""
        found = [] if (told := problem(self.source, self.now)) is None else [told]
        offset = self.source.clock_offset_s
        if offset is not None and abs(offset) > _CLOCK_S:
            way = "ahead of" if offset > 0 else "behind"
            found.append(f"its clock is {abs(offset):,.0f} s {way} the portal's: run NTP")
        if self.gaps:
            found.append(f"not observed for {self.gap_s:,.0f} s of the last day")
        if self.rejected:
            found.append(f"{self.rejected:,} lines of the last day were not readable")
        return found


@dataclass(frozen=True)
class Backlog:
    """The pending rows of one table."""

    stage: str
    what: str
    rows: int
    oldest: datetime | None
    late_after: timedelta  # a stage that works has none as old as this
    now: datetime

    @property
    def age_s(self) -> float | None:
        """How long the oldest of them has waited."""
        return None if self.oldest is None else (self.now - self.oldest).total_seconds()

    @property
    def is_late(self) -> bool:
        """Whether nobody seems to do them."""
        return self.age_s is not None and self.age_s > self.late_after.total_seconds()


def problem(source: Source, now: datetime) -> str | None:
    """Say what is wrong with a source as far as its own row tells; None: nothing."""
    patience = max(_MISSED_POLLS * timedelta(seconds=source.poll_interval_s), _AT_LEAST)
    if source.last_batch_at is None:
        return "has sent nothing yet: see that its agent runs, and with its token"
    if now - source.last_batch_at > patience:
        return "is silent: ask “python -m collectors status” on its host"
    if source.spool_oldest_at and source.last_batch_at - source.spool_oldest_at > patience:
        return f"is behind: {source.spool_batches:,} batches wait on its disk"
    return None


def sources_with_problems(now: datetime) -> list[tuple[Source, str]]:
    """Return the sources that are silent or behind, and what is wrong with each."""
    told = ((source, problem(source, now)) for source in Source.objects.all())
    return [(source, what) for source, what in told if what is not None]


def sources(now: datetime) -> list[SourceHealth]:
    """Return all sources, by name: in six statements, however many there are."""
    batches = Batch.objects.filter(source=OuterRef("pk"))
    newest, first = batches.order_by("-pk"), batches.order_by("pk")
    found = list(
        Source.objects.select_related("cluster", "filesystem", "server__filesystem").annotate(
            newest=Subquery(newest.values("segment__end")[:1]),
            arrived=Subquery(newest.values("segment__loaded_at")[:1]),
            first=Subquery(first.values("segment__loaded_at")[:1]),
        )
    )
    rejected = dict(
        Segment.objects.filter(rejected__gt=0, loaded_at__gte=now - PERIOD, batch__isnull=False)
        .values_list("batch__source")
        .annotate(lines=Sum("rejected"))
    )
    since = {source.pk: max(source.first or now, now - PERIOD) for source in found}
    gaps = _gaps(found, since, now)
    return [
        SourceHealth(
            source, now, source.newest, source.arrived, rejected.get(source.pk, 0), gaps[source.pk]
        )
        for source in found
    ]


def failing_stages() -> list[StageFailure]:
    """Return the stages whose latest run failed, longest first."""
    return list(StageFailure.objects.order_by("since"))


def backlogs(now: datetime) -> list[Backlog]:
    """Return what waits for each stage."""
    return [
        Backlog(
            stage,
            what,
            late_after=late_after,
            now=now,
            **pending._default_manager.aggregate(  # noqa: SLF001  (documented)
                rows=Count("pk"), oldest=Min("asked_at")
            ),
        )
        for stage, late_after, tables in _STAGES
        for what, pending in tables.items()
    ]


_STAGES: Final[tuple[tuple[str, timedelta, Mapping[str, type[Pending]]], ...]] = (
    (
        "attribution",
        timedelta(minutes=1),
        {
            "traces": TouchedTrace,
            "reads of counters": TouchedReads,
            "differences from agents": TouchedDeltas,
            "jobs": TouchedJob,
        },
    ),
    ("statistics", timedelta(minutes=2), {"jobs": StaleStatistics}),
    # Rows wait until the ten minutes that they are of have ended.
    ("roll-up", timedelta(minutes=20), {"RPCs": TouchedRpcs, "counters": TouchedIo}),
    (
        "evaluate",
        timedelta(minutes=2),
        {"jobs": StaleEvidence, "who makes others wait": TouchedImpact},
    ),
)

_COVERAGE: Final = {
    tables.RPC_WINDOWS: Coverage.Source.RPC_TRACE,
    tables.REQUEST_WINDOWS: Coverage.Source.REQ_HISTORY,
    tables.SERVICE_COUNTERS: Coverage.Source.MDS_STATS,
    tables.JOB_COUNTERS: Coverage.Source.JOB_STATS,
    tables.TARGET_COUNTERS: Coverage.Source.MD_STATS,
}


def _gaps(
    found: Sequence[Source], since: Mapping[int, datetime], now: datetime
) -> dict[int, list[Interval] | None]:
    """Return when each source was not observed, between `since` and its newest record.

    What comes after that is not missing, but awaited.
    """
    gaps: dict[int, list[Interval] | None] = {source.pk: None for source in found}
    for kind, watched in _watched(found).items():
        apart = {pk: gap for things in watched.values() for pk, gap in things.items()}
        observed = defaultdict(list)
        for pk, interval in coverage.by_source(kind, apart, now - PERIOD, now):
            observed[pk].append(interval)
        for source, things in watched.items():
            seen = sorted(interval for pk in things for interval in observed[pk])
            last = max((interval.end for interval in seen), default=now)
            gaps[source] = [
                gap
                for gap in coverage.gaps(seen, since[source], last)
                if gap.end - gap.start >= coverage.SHORTEST_GAP
            ]
    return gaps


def _watched(found: Sequence[Source]) -> dict[Coverage.Source, dict[int, dict[int, timedelta]]]:
    """Return what each source observes, and how far apart reads of that may be without a gap."""
    targets = list(Target.objects.all())
    watched: dict[Coverage.Source, dict[int, dict[int, timedelta]]] = defaultdict(dict)
    for source in found:
        kind = _COVERAGE.get(BY_NAME[source.format].table)
        if kind in {Coverage.Source.JOB_STATS, Coverage.Source.MD_STATS}:
            watched[kind][source.pk] = {
                target.pk: target.poll_gap
                for target in targets
                if source.server_id in {None, target.server_id}
                and source.filesystem_id in {None, target.filesystem_id}
            }
        elif kind is not None:
            apart = coverage.polled if kind is Coverage.Source.MDS_STATS else coverage.contiguous
            watched[kind][source.pk] = apart([cast("int", source.server_id)])  # by `Source.clean`
    return watched
