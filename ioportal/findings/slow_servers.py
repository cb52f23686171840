"""Servers that are slow now, with the names that a user may see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ioportal.findings import observation_stage
from ioportal.jobs.analysis.anonymity import coarse
from ioportal.load.impact.impact_totals import names_of
from ioportal.load.impact.latest_work import MIN_SHARE
from ioportal.telemetry.models import JobGroup, Principal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

    from django.contrib.auth.models import User

    from ioportal.load.principals import Name
    from ioportal.load.top_consumers import PrincipalKey
    from ioportal.site.models import Server

COLUMNS = (
    *("server", "since", "until", "times", "estimated", "accused"),
    *("kind", "name", "user", "share"),
)
_KINDS = {**dict(Principal.choices), **dict(JobGroup.Kind.choices)}
_PREFIXES: dict[int, str] = {
    **dict.fromkeys((Principal.JOB, Principal.CLAIMED), "job "),
    JobGroup.Kind.USER: "jobs of ",
    JobGroup.Kind.PROJECT: "jobs of project ",
}


@dataclass(frozen=True)
class ObservedSubject:
    """A job, process, host or group of jobs with much of the latest work of a slow server."""

    principal: PrincipalKey
    kind: str
    name: Name
    share: float


@dataclass(frozen=True)
class ObservedServer:
    """A server that is slow now."""

    server: Server
    since: datetime | None  # start of the slow interval
    until: datetime  # up to when it was evaluated
    times: float | None  # time of requests / usual, in its worst window; None: for staff only
    is_estimated: bool
    is_accused: bool  # whether whoever does most of the work is; otherwise it is under observation
    is_known: bool  # whether the work of any principal is known
    subjects: list[ObservedSubject]  # largest share first
    hides_others: bool  # further subjects are other users'

    min_share = MIN_SHARE

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield a row of `COLUMNS` for each subject; one without a subject if there are none."""
        about = (
            *(self.server.name, self.since, self.until, self.times),
            *(self.is_estimated, self.is_accused),
        )
        for each in self.subjects:
            yield (*about, each.kind, each.name.text, each.name.user, each.share)
        if not self.subjects:
            yield (*about, "", "", "", None)


def current(user: User, now: datetime | None = None) -> list[ObservedServer]:
    """Return the servers that are slow now, by name.

    Args:
        user: staff see all names; others see their own and their projects' jobs with rounded
            shares, and no times of requests: they may all come from a single other user.
        now: the current time, if it is not the clock's.
    """
    observed = observation_stage.current(now)
    keys = {share.principal for each in observed for share in each.shares}
    names = names_of(keys, user)
    servers = []
    for row, shares, is_accused in observed:
        subjects = [
            ObservedSubject(
                key,
                _KINDS[key[0]],
                _described(key, names[key]),
                share if user.is_staff else coarse(share),
            )
            for key, share in shares
            if key in names
        ]
        servers.append(
            ObservedServer(
                server=row.server,
                since=row.since,
                until=row.until,
                times=row.times if user.is_staff else None,
                is_estimated=row.is_estimated,
                is_accused=is_accused,
                is_known=row.is_known,
                subjects=subjects,
                hides_others=not user.is_staff,
            )
        )
    return servers


def _described(key: PrincipalKey, name: Name) -> Name:
    return replace(name, text=f"{_PREFIXES.get(key[0], '')}{name.text}")
