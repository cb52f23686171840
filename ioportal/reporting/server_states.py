"""The state of each metadata server now: how slow it is, the cause and the contact."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Max, Q, Sum
from django.utils import timezone

from ioportal.analysis.rules.evidence import PEAK_SPAN
from ioportal.reporting.contacts import contacts
from ioportal.reporting.impacts import OUTERMOST, names_of
from ioportal.site.models import Server
from ioportal.telemetry import levels
from ioportal.telemetry.models import ImpactWindow, Principal, ceil_to_window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.activity.top_consumers import PrincipalKey
    from ioportal.reporting.contacts import Contact
    from ioportal.reporting.principals import Name

_SLOW_TIMES = 1.5  # others' requests take this many times as long as usual
_LARGEST_PART = 0.8  # of a user's impact: then the job is named
_LATE = timedelta(minutes=10)
_NOW = timedelta(seconds=30)  # before the end of the data
_OVER = timedelta(minutes=1)  # without slow requests


class Cause(NamedTuple):
    """Who slows down others at a server."""

    name: Name
    share: float  # of the server's work while it was slow
    impact_s: float
    is_estimated: bool
    job: Name | None  # that causes most of a user's impact
    contact: Contact | None  # of a user


@dataclass(frozen=True)
class ServerState:
    """A metadata server in the latest five minutes of its data."""

    server: Server
    until: datetime | None  # end of the latest data about the times of its requests
    times: float | None = None  # others' slow requests / usual; None: about usual
    times_now: float | None = None  # the same in the latest 30 s; None: not known to be slow
    cause: Cause | None = None
    slow_until: datetime | None = None  # end of the last window with impact of the cause

    @property
    def is_over(self) -> bool:
        """Whether requests were slow, and are no longer."""
        return bool(self.slow_until and self.until and self.until - self.slow_until >= _OVER)

    @property
    def is_late(self) -> bool:
        """Whether the data is not current."""
        return self.until is not None and timezone.now() - self.until > _LATE


class _Impact(NamedTuple):
    server: int
    kind: int
    key: int
    impact_us: int
    work_us: int
    all_work_us: int
    others_us: int
    others_usual_us: int
    estimated_us: int
    others_now_us: int
    others_usual_now_us: int
    last: datetime  # start of the last window

    @property
    def principal(self) -> PrincipalKey:
        """The principal, or the group of jobs."""
        return self.kind, self.key

    @property
    def is_slow(self) -> bool:
        """Whether others' requests take much longer than usual."""
        return self.others_us >= _SLOW_TIMES * self.others_usual_us

    @property
    def times(self) -> float | None:
        """Time of others' requests over the usual time; None: unknown."""
        return self.others_us / self.others_usual_us if self.others_usual_us else None

    @property
    def times_now(self) -> float | None:
        """The same in the latest windows; None: without impact, or unknown."""
        return self.others_now_us / self.others_usual_now_us if self.others_usual_now_us else None


def current(user: User, ends: Mapping[int, datetime]) -> list[ServerState]:
    """Return the state of all metadata servers, slowest first.

    Args:
        user: a member of staff.
        ends: as `latest_data.timed_until` returns them.
    """
    impacts = _impacts(ends)
    largest = {server: row for server, rows in impacts.items() if (row := _largest(rows))}
    jobs = {server: job for server in largest if (job := _job(largest[server], impacts[server]))}
    names = names_of({row.principal for row in (*largest.values(), *jobs.values())}, user)
    known = contacts((name.user for name in names.values()), user)

    def state(server: Server) -> ServerState:
        row, job = largest.get(server.pk), jobs.get(server.pk)
        if row is None:
            return ServerState(server, ends.get(server.pk))
        name = names[row.principal]
        cause = Cause(
            name,
            row.work_us / row.all_work_us if row.all_work_us else 0,
            row.impact_us / 1e6,
            row.estimated_us > row.impact_us / 2,
            names[job.principal] if job else None,
            known.get(name.user),
        )
        slow_until = row.last + levels.IMPACT.width
        until = ends[server.pk]
        return ServerState(server, until, row.times, row.times_now, cause, slow_until)

    servers = Server.objects.filter(kind=Server.Kind.MDS).order_by("name")
    return sorted(map(state, servers), key=lambda state: -(state.times or 0))


def _impacts(ends: Mapping[int, datetime]) -> dict[int, list[_Impact]]:
    """Return the impact in the five minutes before the end of each server's data, highest first."""
    latest = now = Q(pk__in=[])
    for server, end in ends.items():
        until = ceil_to_window(end)
        latest |= Q(server_id=server, start__gte=until - PEAK_SPAN, start__lt=until)
        now |= Q(server_id=server, start__gte=until - _NOW)
    windows = ImpactWindow.objects.filter(latest, kind__in=[*OUTERMOST, Principal.JOB])
    sums = windows.values_list("server_id", "kind", "principal_id").annotate(
        *(Sum(name) for name in _Impact._fields[3:-4]),
        estimated_us=Sum("impact_us", filter=Q(is_estimated=True), default=0),
        others_now_us=Sum("others_us", filter=now, default=0),
        others_usual_now_us=Sum("others_usual_us", filter=now, default=0),
        last=Max("start"),
    )
    by_server: dict[int, list[_Impact]] = defaultdict(list)
    for row in sums.order_by("-impact_us__sum", "kind", "principal_id"):
        by_server[row[0]].append(_Impact(*row))
    return by_server


def _largest(rows: Sequence[_Impact]) -> _Impact | None:
    """Return the largest impact at a server; None: requests take about as long as usual."""
    largest = next((row for row in rows if row.kind in OUTERMOST), None)
    return largest if largest and largest.is_slow else None


def _job(largest: _Impact, rows: Sequence[_Impact]) -> _Impact | None:
    """Return the job that causes most of the largest impact; None: no single job."""
    job = next((row for row in rows if row.kind == Principal.JOB), None)
    return job if job and job.impact_us >= _LARGEST_PART * largest.impact_us else None
