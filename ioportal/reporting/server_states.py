"""The state of each metadata server now: how slow it is, because of whom, and the contact."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Q, Sum
from django.utils import timezone

from ioportal.activity import job_groups
from ioportal.analysis.rules.evidence import PEAK_SPAN
from ioportal.reporting.principals import BYS, Name, job_group_name, named
from ioportal.site.models import Server, UserAccount
from ioportal.telemetry import coverage
from ioportal.telemetry.models import ImpactWindow, JobGroup, Principal, ceil_to_window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User

_SLOW_TIMES = 1.5  # others' requests take this many times as long as usual
_OUTERMOST = (JobGroup.Kind.USER, Principal.PROCESS, Principal.HOST)  # without common RPCs
_LARGEST_PART = 0.8  # of a user's impact: then the job is named
_LATE = timedelta(minutes=10)


class Cause(NamedTuple):
    """Who slows down others at a server."""

    name: Name
    share: float  # of the server's work
    impact_s: float
    is_estimated: bool
    job: Name | None  # that causes most of a user's impact
    account: UserAccount | None  # of a user


@dataclass(frozen=True)
class ServerState:
    """A metadata server in the latest five minutes of its data."""

    server: Server
    until: datetime | None  # end of the latest data about the times of its requests
    times: float | None = None  # others' requests / usual; None: about usual
    cause: Cause | None = None

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


def current(user: User) -> list[ServerState]:
    """Return the state of all metadata servers, slowest first; for staff."""
    if not user.is_staff:
        return []
    servers = list(Server.objects.filter(kind=Server.Kind.MDS).order_by("name"))
    ends = coverage.last_timed_by_server([server.pk for server in servers])
    impacts = _impacts(ends)
    states = [
        _state(server, ends.get(server.pk), impacts.get(server.pk, []), user) for server in servers
    ]
    return sorted(states, key=lambda state: -(state.times or 0))


def _impacts(ends: Mapping[int, datetime]) -> dict[int, list[_Impact]]:
    """Return the impact in the five minutes before the end of each server's data, highest first."""
    latest = Q(pk__in=[])
    for server, end in ends.items():
        until = ceil_to_window(end)
        latest |= Q(server_id=server, start__gte=until - PEAK_SPAN, start__lt=until)
    windows = ImpactWindow.objects.filter(latest, kind__in=[*_OUTERMOST, Principal.JOB])
    estimated_us = Sum("impact_us", filter=Q(is_estimated=True), default=0)
    sums = windows.values_list("server_id", "kind", "principal_id").annotate(
        *(Sum(name) for name in _Impact._fields[3:-1]), estimated_us=estimated_us
    )
    by_server: dict[int, list[_Impact]] = defaultdict(list)
    for row in sums.order_by("-impact_us__sum", "kind", "principal_id"):
        by_server[row[0]].append(_Impact(*row))
    return by_server


def _state(
    server: Server, until: datetime | None, rows: Sequence[_Impact], user: User
) -> ServerState:
    cause = next((row for row in rows if row.kind in _OUTERMOST), None)
    if cause is None or cause.others_us < _SLOW_TIMES * cause.others_usual_us:
        return ServerState(server, until)
    times = cause.others_us / cause.others_usual_us if cause.others_usual_us else None
    return ServerState(server, until, times, _cause(cause, rows, user))


def _cause(cause: _Impact, rows: Sequence[_Impact], user: User) -> Cause:
    largest = next((row for row in rows if row.kind == Principal.JOB), None)
    is_one_job = largest and largest.impact_us >= _LARGEST_PART * cause.impact_us
    job = named([(Principal.JOB, largest.key)], user, BYS[0]) if largest and is_one_job else {}
    account = None
    if cause.kind in Principal.values:
        name = named([(cause.kind, cause.key)], user, BYS[0])[cause.kind, cause.key]
    else:
        ((kind, text, *_),) = job_groups.by_key([cause.key]).iter_rows()
        name = job_group_name(kind, text)
        account = UserAccount.objects.visible_to(user).filter(name=text).first()
    return Cause(
        name,
        cause.work_us / cause.all_work_us if cause.all_work_us else 0,
        cause.impact_us / 1e6,
        cause.estimated_us > cause.impact_us / 2,
        next(iter(job.values()), None),
        account,
    )
