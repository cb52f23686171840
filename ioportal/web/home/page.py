"""What somebody wants to know first: is anything new known, and who is to be looked at."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Max, Q
from django.utils import timezone

from ioportal.ingest import health
from ioportal.ingest.models import Segment
from ioportal.jobs.models import Job, StaleStatistics
from ioportal.reporting.series import last_observed
from ioportal.site.models import Cluster, Filesystem, Server, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage
from ioportal.web.flags import badges
from ioportal.web.home.load import NewestLoad
from ioportal.web.ingest import segments
from ioportal.web.jobs import columns

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.site.models import Source
    from ioportal.web.flags.inbox import Shown

_JOBS_SHOWN = 10
_NAMES_SHOWN = 5
_FLAGS_SHOWN = 3
_NEWEST = timedelta(hours=24)
_LONGEST_RUN = timedelta(days=7)  # of jobs that are looked at: what began before is not searched
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
class Kind:
    """All sources of one kind: when each of them was observed last."""

    title: str
    lasts: dict[str, datetime | None]
    apart: timedelta  # how far apart two reads of them may be
    goes_on: bool = False  # it is read all the time: who is not has fallen silent

    @property
    def newest(self) -> datetime | None:
        """When any of them was observed last."""
        return max(filter(None, self.lasts.values()), default=None)

    @property
    def is_old(self) -> bool:
        """Whether newer data should have come by now."""
        newest = self.newest
        return newest is not None and timezone.now() - newest > self.apart

    @property
    def never(self) -> int:
        """How many of them were never observed."""
        return sum(last is None for last in self.lasts.values())

    @cached_property
    def silent(self) -> list[tuple[str, datetime]]:
        """Those that are not read any more while others are, and when each was last."""
        newest = self.newest
        if newest is None or not self.goes_on:
            return []
        known = [(name, last) for name, last in self.lasts.items() if last]
        return [(name, last) for name, last in known if newest - last > self.apart]

    @property
    def shown_silent(self) -> list[tuple[str, datetime]]:
        """The first of them."""
        return self.silent[:_NAMES_SHOWN]

    @property
    def more_silent(self) -> int:
        """How many more there are."""
        return max(0, len(self.silent) - _NAMES_SHOWN)


class StaffHome:
    """The site at a glance."""

    def __init__(self, user: User, asked_hours: str) -> None:
        self._user = user
        self._asked_hours = asked_hours

    @cached_property
    def _targets(self) -> dict[str, list[Target]]:
        """Targets by kind."""
        found: dict[str, list[Target]] = defaultdict(list)
        for target in Target.objects.all():
            found[target.kind].append(target)
        return found

    @cached_property
    def newest_start(self) -> datetime | None:
        """When the newest job began; None: none did."""
        newest: datetime | None = Job.objects.aggregate(newest=Max("started_at"))["newest"]
        return newest

    @cached_property
    def sources(self) -> list[Kind]:
        """What data come from and how new they are; what the site has none of is left out."""
        mdts, osts = (self._targets[kind] for kind in (Target.Kind.MDT, Target.Kind.OST))
        servers = Server.objects.filter(kind=Server.Kind.MDS)
        traced = coverage.last_observed(
            Coverage.Source.RPC_TRACE, coverage.contiguous(server.pk for server in servers)
        )
        kinds = (
            _read("job_stats of MDTs", mdts, self.load.lasts),
            _read("job_stats of OSTs", osts, last_observed(Coverage.Source.JOB_STATS, osts)),
            _read("md_stats of MDTs", mdts, last_observed(Coverage.Source.MD_STATS, mdts)),
            Kind("RPC traces of MDSs", _named(servers, traced), settings.POLL_GAP),
        )
        return [kind for kind in kinds if kind.lasts]

    @cached_property
    def load(self) -> NewestLoad:
        """Who loads the metadata servers."""
        return NewestLoad(self._targets[Target.Kind.MDT], self._asked_hours)

    @cached_property
    def heavy(self) -> list[Job]:
        """The jobs of the newest day with most metadata operations."""
        if self.newest_start is None:
            return []
        since = self.newest_start - _NEWEST
        jobs = Job.objects.filter(
            Q(ended_at__gt=since) | Q(ended_at=None), started_at__gte=since - _LONGEST_RUN
        )
        return _worst(jobs, self._user)

    @cached_property
    def in_trouble(self) -> list[tuple[Source, str]]:
        """Sources of agents that are silent or behind, and what is wrong with each."""
        return health.sources_with_problems(timezone.now())

    @cached_property
    def flags(self) -> list[Shown]:
        """The worst of those that somebody should look at."""
        return badges.worst_to_triage(self._user, _FLAGS_SHOWN)

    @property
    def waiting(self) -> dict[str, Any]:
        """What waits for somebody."""
        rejects = Segment.objects.loaded().filter(rejected__gt=0)
        return {
            **segments.waiting(),
            "rejects": segments.up_to_many(rejects),
            "stale": segments.up_to_many(StaleStatistics.objects.all()),
        }

    @property
    def is_empty(self) -> bool:
        """Whether nothing was loaded yet."""
        return self.newest_start is None and not any(kind.newest for kind in self.sources)

    @property
    def is_registered(self) -> bool:
        """Whether the site is known."""
        return Cluster.objects.exists() or Filesystem.objects.exists()

    @property
    def simulated(self) -> bool:
        """Whether some of it is made up."""
        return (
            Cluster.objects.filter(simulated=True).exists()
            or Filesystem.objects.filter(simulated=True).exists()
        )


class UserHome:
    """Somebody's own jobs."""

    def __init__(self, user: User) -> None:
        self._user = user
        self._visible = Job.objects.visible_to(user)
        self._own = self._visible.filter(owner=user.get_username())

    @cached_property
    def newest(self) -> list[Job]:
        """Those that were submitted last."""
        return _shown(self._own.order_by("-submitted_at", "-pk"), self._user)

    @cached_property
    def heavy(self) -> list[Job]:
        """Those with most metadata operations."""
        return _worst(self._own, self._user)

    @cached_property
    def of_others(self) -> list[Job]:
        """The newest of the same projects that are not their own."""
        others = self._visible.exclude(pk__in=self._own.values("pk"))
        return _shown(others.order_by("-submitted_at", "-pk"), self._user)

    @cached_property
    def flags(self) -> list[Shown]:
        """The worst of theirs that are not resolved."""
        return badges.of_owner(self._user.get_username(), self._user)

    @property
    def simulated(self) -> bool:
        """Whether some of what is shown is made up."""
        shown = (*self.newest, *self.heavy, *self.of_others)
        return any(job.cluster.simulated for job in shown)


def _shown(jobs: Any, user: User) -> list[Job]:
    """Fetch the first jobs with all that a row shows."""
    found = list(jobs.select_related("cluster", "statistics")[:_JOBS_SHOWN])
    badges.mark(found, user)
    return found


def _worst(jobs: Any, user: User) -> list[Job]:
    known = jobs.filter(statistics__metadata_operations__gt=0)
    return _shown(known.order_by("-statistics__metadata_operations", "-pk"), user)


def _read(title: str, targets: list[Target], lasts: dict[int, datetime]) -> Kind:
    apart = max((target.poll_gap for target in targets), default=settings.POLL_GAP)
    return Kind(title, _named(targets, lasts), apart, goes_on=True)


def _named(
    sources: Iterable[Server | Target], lasts: dict[int, datetime]
) -> dict[str, datetime | None]:
    return {one.name: lasts.get(one.pk) for one in sorted(sources, key=attrgetter("name"))}
