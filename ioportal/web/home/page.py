"""The home page: cases, metadata load and data freshness for staff; their own jobs for users."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import Max, Q
from django.urls import reverse
from django.utils import timezone

from ioportal.core.time_ranges import TimeRange
from ioportal.core.times import RECENT
from ioportal.findings import latest_data, server_states
from ioportal.findings.cases import case_texts as cases
from ioportal.findings.flags import flag_texts
from ioportal.findings.models import Case
from ioportal.ingest import health
from ioportal.ingest.models import Segment
from ioportal.jobs.models import DirtyStatistics, Job
from ioportal.jobs.populations.selections import BATCH_JOBS, pending_statistics
from ioportal.load.impact import impact_totals, request_times
from ioportal.load.series import last_observed
from ioportal.site.models import Cluster, Filesystem, Server, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage
from ioportal.web.home.load import MetadataLoad
from ioportal.web.ingest import segments
from ioportal.web.jobs import columns

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.findings.cases.case_texts import CaseSummary
    from ioportal.findings.server_states import ServerState
    from ioportal.ingest.health import Standstill
    from ioportal.load.impact.impact_totals import ImpactRow, ImpactTotal
    from ioportal.load.step_charts import StepsChart
    from ioportal.load.top_consumers import PrincipalKey
    from ioportal.site.models import Source
    from ioportal.telemetry.models import StageFailure

_LISTED_JOBS = 10
_LISTED_NAMES = 5
_LISTED_CASES = 3
_CHARTS = 3  # of request times
_DEFAULT = "6h"  # value of the parameter `last`
_LONGEST = timedelta(days=1)  # every poll and every window of 10 s in the range is read
_LAST_DAY = timedelta(hours=24)
_LONGEST_RUN = timedelta(days=7)  # earlier starts are not searched, which keeps the query short
_COLUMNS = (
    "job",
    "user",
    "metadata_operations",
    "peak_metadata_rate",
    "quality",
    "name",
    "state",
    "started",
    "node_count",
    "duration_s",
    "project",
)
JOB_COLUMNS = tuple(columns.BY_NAME[name] for name in _COLUMNS)


@dataclass(frozen=True)
class SourceKind:
    """All sources of one kind, and the end of each one's latest observed interval."""

    title: str
    last_observed: dict[str, datetime | None]
    longest_gap: timedelta  # between two deliveries of a live source
    is_polled: bool = False  # continuously: a source that falls behind is silent

    @property
    def latest(self) -> datetime | None:
        """The latest data of all sources."""
        return max(filter(None, self.last_observed.values()), default=None)

    @property
    def is_old(self) -> bool:
        """Whether newer data is overdue."""
        return self.latest is not None and timezone.now() - self.latest > self.longest_gap

    @property
    def never_observed(self) -> int:
        """Number of sources without any observed interval."""
        return sum(last is None for last in self.last_observed.values())

    @cached_property
    def silent(self) -> list[tuple[str, datetime]]:
        """Sources that stopped while others continue, each with its last observation."""
        latest = self.latest
        if latest is None or not self.is_polled:
            return []
        return [
            (name, last)
            for name, last in self.last_observed.items()
            if last and latest - last > self.longest_gap
        ]

    @property
    def listed_silent(self) -> list[tuple[str, datetime]]:
        """The silent sources that the page names."""
        return self.silent[:_LISTED_NAMES]

    @property
    def more_silent(self) -> int:
        """Number of silent sources beyond those."""
        return max(0, len(self.silent) - _LISTED_NAMES)


class StaffHome:
    """The site at a glance."""

    recent = "15m 1h 6h 24h"

    def __init__(self, user: User, query: QueryDict) -> None:
        self._user = user
        self._query = query

    @cached_property
    def _targets(self) -> dict[str, list[Target]]:
        """Targets by kind."""
        targets: dict[str, list[Target]] = defaultdict(list)
        for target in Target.objects.all():
            targets[target.kind].append(target)
        return targets

    @cached_property
    def latest_start(self) -> datetime | None:
        """The latest start of a job; None: no job has started."""
        latest: datetime | None = Job.objects.aggregate(latest=Max("started_at"))["latest"]
        return latest

    @cached_property
    def sources(self) -> list[SourceKind]:
        """The kinds of sources that the site has."""
        mdts, osts = (self._targets[kind] for kind in (Target.Kind.MDT, Target.Kind.OST))
        servers = Server.objects.filter(kind=Server.Kind.MDS)
        traced = coverage.last_observed(
            Coverage.Source.RPC_TRACE, coverage.contiguous(server.pk for server in servers)
        )
        jobs, loads, exports = (
            Coverage.Source.JOB_STATS,
            Coverage.Source.MD_STATS,
            Coverage.Source.EXPORTS,
        )
        kinds = (
            self._polled("job_stats of MDTs", jobs, mdts, self._counted_until),
            self._polled("job_stats of OSTs", jobs, osts, last_observed(jobs, osts)),
            self._polled("md_stats of MDTs", loads, mdts, last_observed(loads, mdts)),
            self._polled("exports of MDTs", exports, mdts, last_observed(exports, mdts)),
            SourceKind("RPC traces of MDSs", _by_name(servers, traced), settings.POLL_GAP),
        )
        return [kind for kind in kinds if kind.last_observed]

    def _polled(
        self, title: str, kind: Coverage.Source, targets: list[Target], last: dict[int, datetime]
    ) -> SourceKind:
        gaps = (target.poll_gap for target in targets)  # of files, which no agent sends
        longest = health.expected_within(self._agents, kind) or max(gaps, default=settings.POLL_GAP)
        return SourceKind(title, _by_name(targets, last), longest, is_polled=True)

    @cached_property
    def _counted_until(self) -> dict[int, datetime]:
        """The end of the counters of each metadata target that was observed."""
        return last_observed(Coverage.Source.JOB_STATS, self._targets[Target.Kind.MDT])

    @cached_property
    def _range(self) -> tuple[TimeRange | None, list[str]]:
        """The range of the charts and errors of the query; None: nothing was observed."""
        ends = [*self._counted_until.values(), *self._timed_until.values()]
        if not ends:
            return None, []
        end = max(ends) + timedelta(seconds=1, microseconds=-1)
        end = end.replace(microsecond=0)  # rounded up
        latest = TimeRange(end - RECENT[_DEFAULT], end, last=_DEFAULT)
        window, errors = TimeRange.or_default(self._query, latest)
        if window.end - window.start > _LONGEST:
            return latest, ["The range is longer than 24 hours. Trends show longer ranges."]
        return window, errors

    @property
    def window(self) -> TimeRange | None:
        """The range of the charts; None: nothing was observed."""
        return self._range[0]

    @property
    def range_errors(self) -> list[str]:
        """Errors of the query's range."""
        return self._range[1]

    @cached_property
    def load(self) -> MetadataLoad:
        """Load of the metadata servers."""
        return MetadataLoad(self._targets[Target.Kind.MDT], self._counted_until, self.window)

    @cached_property
    def request_times(self) -> list[tuple[Server, StepsChart, str]]:
        """The servers whose data is latest: each with its request times and their export's URL."""
        if self.window is None:
            return []
        ends = self._timed_until
        servers = Server.objects.select_related("filesystem").filter(pk__in=ends)
        latest = sorted(servers, key=lambda server: ends[server.pk])[: -_CHARTS - 1 : -1]
        charts = [
            (server, request_times.chart(server, self.window, self._user)) for server in latest
        ]
        return [
            (server, chart, request_times.export_url(server, self.window))
            for server, chart in charts
            if not chart.is_empty
        ]

    @property
    def load_url(self) -> str:
        """The URL of the export of the load."""
        window = self.window
        times = {"start": window.start, "end": window.end} if window else {}
        given = {key: time.isoformat() for key, time in times.items()}
        return f"{reverse('load')}?{urlencode(given)}"

    @cached_property
    def heaviest_jobs(self) -> list[Job]:
        """The jobs of the last 24 h of data with the most metadata operations."""
        if self.latest_start is None:
            return []
        since = self.latest_start - _LAST_DAY
        jobs = Job.objects.filter(
            Q(ended_at__gt=since) | Q(ended_at=None), started_at__gte=since - _LONGEST_RUN
        )
        return _heaviest(jobs, self._user)

    @cached_property
    def _agents(self) -> list[Source]:
        return health.registered()

    @property
    def source_problems(self) -> list[tuple[Source, str]]:
        """Agents' sources that are silent or behind, each with its problem."""
        return health.with_problems(self._agents, timezone.now())

    @cached_property
    def failing_stages(self) -> list[StageFailure | Standstill]:
        """Stages whose latest run failed."""
        return health.failing_stages()

    @cached_property
    def _timed_until(self) -> dict[int, datetime]:
        """The end of the data about times of requests, by metadata server."""
        return latest_data.timed_until()

    @cached_property
    def _evaluated_until(self) -> dict[int, datetime]:
        """Up to when these times are evaluated."""
        return latest_data.evaluated_until(self._timed_until)

    @cached_property
    def _latest_impact(self) -> dict[PrincipalKey, ImpactTotal]:
        """Impact in the latest five minutes."""
        return latest_data.impact(self._evaluated_until)

    @property
    def states(self) -> list[ServerState]:
        """The state of the metadata servers now."""
        return server_states.current(self._user, self._evaluated_until)

    @cached_property
    def cases(self) -> list[CaseSummary]:
        """The worst cases that need triage."""
        rows = Case.objects.visible_to(self._user).to_triage()
        return cases.worst(rows, self._user, _LISTED_CASES, self._latest_impact)

    @cached_property
    def impacts(self) -> list[ImpactRow]:
        """Users, processes and hosts that slow down others now."""
        return impact_totals.current_rows(self._user, self._latest_impact)

    @property
    def pending_work(self) -> dict[str, Any]:
        """Counts of pending work and of rejected data, by name."""
        rejects = Segment.objects.filter(rejected__gt=0)
        return {
            **segments.tab_counts(),
            "rejects": segments.limited_count(rejects),
            "recomputations": segments.limited_count(DirtyStatistics.objects.all()),
        }

    @property
    def is_empty(self) -> bool:
        """Whether the site has no data."""
        return self.latest_start is None and not any(kind.latest for kind in self.sources)

    @property
    def is_registered(self) -> bool:
        """Whether a cluster or a filesystem is registered."""
        return Cluster.objects.exists() or Filesystem.objects.exists()

    @property
    def simulated(self) -> bool:
        """Whether some of the data is simulated."""
        return (
            Cluster.objects.filter(simulated=True).exists()
            or Filesystem.objects.filter(simulated=True).exists()
        )


class UserHome:
    """A user's own jobs."""

    def __init__(self, user: User) -> None:
        self._user = user
        self._visible = Job.objects.visible_to(user)
        self._own = self._visible.filter(owner=user.get_username())

    @cached_property
    def latest_jobs(self) -> list[Job]:
        """The user's jobs that were submitted last."""
        return _listed(self._own.order_by("-submitted_at", "-pk"), self._user)

    @cached_property
    def heaviest_jobs(self) -> list[Job]:
        """The user's jobs with the most metadata operations."""
        return _heaviest(self._own, self._user)

    @cached_property
    def project_jobs(self) -> list[Job]:
        """The latest jobs of other users of the same projects."""
        jobs = self._visible.exclude(pk__in=self._own.values("pk"))
        return _listed(jobs.order_by("-submitted_at", "-pk"), self._user)

    @cached_property
    def cases(self) -> list[CaseSummary]:
        """The worst unresolved cases of the user."""
        return cases.for_owner(self._user.get_username(), self._user)

    @cached_property
    def pending_statistics(self) -> int:
        """The number of the user's and the projects' jobs whose statistics or flags are pending."""
        return pending_statistics(BATCH_JOBS, self._visible)

    @property
    def simulated(self) -> bool:
        """Whether some of the listed jobs are simulated."""
        jobs = (*self.latest_jobs, *self.heaviest_jobs, *self.project_jobs)
        return any(job.cluster.simulated for job in jobs)


def _listed(jobs: Any, user: User) -> list[Job]:
    """Fetch the first jobs with everything that a row shows."""
    rows = list(jobs.select_related("cluster", "statistics")[:_LISTED_JOBS])
    flag_texts.mark_jobs(rows, user)
    return rows


def _heaviest(jobs: Any, user: User) -> list[Job]:
    counted = jobs.filter(statistics__metadata_operations__gt=0)
    return _listed(counted.order_by("-statistics__metadata_operations", "-pk"), user)


def _by_name(
    sources: Iterable[Server | Target], last: dict[int, datetime]
) -> dict[str, datetime | None]:
    return {source.name: last.get(source.pk) for source in sorted(sources, key=attrgetter("name"))}
