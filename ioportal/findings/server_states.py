"""The state of each metadata server now: how slow it is, the cause and the contact."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Max, Q, Sum

from ioportal.core.times import is_current
from ioportal.findings import latest_data, slow_servers
from ioportal.findings.flags.episodes import principal
from ioportal.findings.flags.flag_texts import about_principals
from ioportal.findings.models import Flag
from ioportal.load.impact import episodes, impact_totals, queue_links
from ioportal.load.impact.impact_totals import OUTERMOST, names_of
from ioportal.rules.evidence import PEAK_SPAN
from ioportal.rules.rule import Subject
from ioportal.site.contacts import contacts
from ioportal.site.models import Server
from ioportal.telemetry import levels, retention
from ioportal.telemetry.models import ImpactWindow, JobGroup, Principal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.findings.slow_servers import ObservedServer
    from ioportal.load.impact.episodes import Episode
    from ioportal.load.principals import Name
    from ioportal.load.top_consumers import PrincipalKey
    from ioportal.site.contacts import Contact

_SLOW_TIMES = 1.5  # others' requests take this many times as long as usual
_LARGEST_PART = 0.8  # of a user's impact: then the job is named
_LEAST_PART = 0.1  # of the extra wait of others: a cause of less is not named
_NOW = timedelta(seconds=30)  # before the end of the data
_OVER = timedelta(minutes=1)  # without slow requests


class Cause(NamedTuple):
    """Who slows down others at a server: a user, a process, a host or load without a job."""

    name: Name
    episode: Episode  # whole: not only of the latest five minutes
    impact_s: float  # in the latest five minutes
    slow_until: datetime  # end of the latest window with impact
    job: Name | None  # that causes most of a user's impact
    contact: Contact | None  # of a user
    queue: str  # address of the page of its worst queue; "": it was not traced
    case: int | None  # the worst unresolved case about it

    @property
    def times(self) -> str:
        """How slow others' requests were."""
        return episodes.times_text(self.episode)

    @property
    def interval(self) -> str:
        """When they were slow, as far as it is known."""
        return episodes.interval_text(self.episode.start, self.episode.end)


@dataclass(frozen=True)
class ServerState:
    """A metadata server in the latest five minutes of its data."""

    server: Server
    until: datetime | None  # up to when the times of its requests are evaluated
    cause: Cause | None = None  # None: requests take about as long as usual
    times_now: float | None = None  # others' requests / usual in the latest 30 s; None: not slow
    observed: ObservedServer | None = None  # slow now
    is_shared: bool = False  # requests were slow, and no single cause had much of the impact

    @property
    def is_over(self) -> bool:
        """Whether requests were slow, and are no longer."""
        if self.cause is None or self.until is None or self.observed:
            return False
        return self.until - self.cause.slow_until >= _OVER

    @property
    def is_late(self) -> bool:
        """Whether the data is not current."""
        return self.until is not None and not is_current(self.until)


class _Impact(NamedTuple):
    server: int
    kind: int
    key: int
    impact_us: int
    others_us: int
    others_usual_us: int
    others_now_us: int
    others_usual_now_us: int
    latest: datetime  # start of the latest window with impact

    @property
    def principal(self) -> PrincipalKey:
        """The principal, or the group of jobs."""
        return self.kind, self.key

    @property
    def is_slow(self) -> bool:
        """Whether others' requests take much longer than usual."""
        return self.others_us >= _SLOW_TIMES * self.others_usual_us

    @property
    def waited_us(self) -> int:
        """The time of others' requests above usual, whoever caused it."""
        return self.others_us - self.others_usual_us

    @property
    def times_now(self) -> float | None:
        """Time of others' requests in the latest windows / usual; None: no impact, or unknown."""
        return self.others_now_us / self.others_usual_now_us if self.others_usual_now_us else None


def current(user: User, ends: Mapping[int, datetime]) -> list[ServerState]:
    """Return the state of all metadata servers, slowest first.

    Args:
        user: a member of staff.
        ends: as `latest_data.evaluated_until` returns them.
    """
    complete = latest_data.complete_until(ends)
    impacts = _impacts(complete)
    slowest = {server: row for server, rows in impacts.items() if (row := _largest(rows))}
    causes = {server: row for server, row in slowest.items() if _is_named(row, impacts[server])}
    jobs = {server: job for server, row in causes.items() if (job := _job(row, impacts[server]))}
    whole = _episodes(causes, complete)
    names = names_of({row.principal for row in (*causes.values(), *jobs.values())}, user)
    observed = {each.server.pk: each for each in slow_servers.current(user)}
    known = contacts((name.user for name in names.values()), user)
    cases = _cases(names, user)

    def state(server: Server) -> ServerState:
        until, slow = ends.get(server.pk), observed.get(server.pk)
        # The cause of an earlier queue, or of old data, does not apply to the present queue.
        if slow and not (slow.is_accused and until and is_current(until)):
            return ServerState(server, until, observed=slow)
        if server.pk not in whole:
            shared = slowest.get(server.pk) if server.pk not in causes else None
            times_now = shared and shared.times_now
            return ServerState(server, until, None, times_now, slow, is_shared=bool(shared))
        row, job = causes[server.pk], jobs.get(server.pk)
        name = names[row.principal]
        cause = Cause(
            name,
            whole[server.pk],
            row.impact_us / 1e6,
            row.latest + levels.IMPACT.width,
            names[job.principal] if job else None,
            known.get(name.user),
            queue_links.of_episode(
                server, whole[server.pk], queue_links.group(row.principal, name.user)
            ),
            cases.get(job.principal if job else row.principal) or cases.get(name.user),
        )
        return ServerState(server, until, cause, row.times_now, slow)

    servers = Server.objects.filter(kind=Server.Kind.MDS).order_by("name")
    return sorted(map(state, servers), key=_slowest_first)


def _cases(names: Mapping[PrincipalKey, Name], user: User) -> dict[PrincipalKey | str, int]:
    """Return the worst unresolved case of principals and of users."""
    if not names:
        return {}
    users = {name.user for name in names.values()} - {""}
    of_users = Q(subject_kind=Subject.USER, subject__in=users)
    found = Flag.objects.visible_to(user).unresolved().filter(about_principals(names) | of_users)
    fields = ("case_id", "job_id", "subject_kind", "subject")
    worst_last = found.only(*fields).order_by("severity", "pk")
    return {principal(flag) or flag.subject: flag.case_id for flag in worst_last}


def of_server(user: User, name: str) -> list[ServerState]:
    """Return the state of one metadata server; empty: there is none of this name."""
    ends = latest_data.evaluated_until(latest_data.timed_until())
    return [state for state in current(user, ends) if state.server.name == name]


def _slowest_first(state: ServerState) -> tuple[float, float]:
    mean = state.cause.episode.mean_times if state.cause else None
    return -(state.times_now or 0), -(mean or 0)


def _episodes(causes: Mapping[int, _Impact], ends: Mapping[int, datetime]) -> dict[int, Episode]:
    """Return the worst episode of the cause at each server that reaches its latest five minutes.

    A pause divides a storm: the latest episode may cover only a moment.
    """
    if not causes:
        return {}
    until = [ends[server] for server in causes]
    found = episodes.of_principals(
        {row.principal for row in causes.values()},
        min(until) - episodes.LOOK_BACK,
        retention.ALWAYS.end,
        ends,
    )
    return {
        episode.server_id: episode
        for episode in reversed(found)  # the largest impact last
        if (cause := causes.get(episode.server_id))
        and cause.principal == episode.principal
        and episode.end > ends[episode.server_id] - PEAK_SPAN
    }


def _impacts(ends: Mapping[int, datetime]) -> dict[int, list[_Impact]]:
    """Return the impact in the five minutes before the end of each server's data, highest first."""
    now = impact_totals.before(ends, _NOW)
    latest = impact_totals.before(ends, PEAK_SPAN)
    windows = ImpactWindow.objects.filter(latest, kind__in=[*OUTERMOST, Principal.JOB])
    sums = windows.values_list("server_id", "kind", "principal_id").annotate(
        *(Sum(name) for name in _Impact._fields[3:-3]),
        others_now_us=Sum("others_us", filter=now, default=0),
        others_usual_now_us=Sum("others_usual_us", filter=now, default=0),
        latest=Max("start"),
    )
    by_server: dict[int, list[_Impact]] = defaultdict(list)
    for row in sums.order_by("-impact_us__sum", "kind", "principal_id"):
        by_server[row[0]].append(_Impact(*row))
    return by_server


def _largest(rows: Sequence[_Impact]) -> _Impact | None:
    """Return the largest impact at a server; None: requests take about as long as usual."""
    largest = next((row for row in rows if row.kind in OUTERMOST), None)
    return largest if largest and largest.is_slow else None


def _is_named(largest: _Impact, rows: Sequence[_Impact]) -> bool:
    """Return whether a cause has much of the extra wait: others of less are bystanders."""
    return largest.impact_us >= _LEAST_PART * max(row.waited_us for row in rows)


def _job(largest: _Impact, rows: Sequence[_Impact]) -> _Impact | None:
    """Return the job that causes most of the largest impact; None: no single job."""
    if largest.kind != JobGroup.Kind.USER:
        return None
    job = next((row for row in rows if row.kind == Principal.JOB), None)
    return job if job and job.impact_us >= _LARGEST_PART * largest.impact_us else None
