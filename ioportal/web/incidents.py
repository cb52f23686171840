"""Who made others wait at a filesystem's metadata servers in a range, and when they were slow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ioportal.analysis.impact import Impact, Slowdown
from ioportal.analysis.impact import impact as impact_of
from ioportal.jobs import baselines, impact
from ioportal.jobs.models import Server
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage, floor_to_window
from ioportal.web.principals import BYS, Name, named
from ioportal.web.ranges import TimeRange

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl
    from django.contrib.auth.models import User

    from ioportal.jobs.models import Filesystem

LONGEST = timedelta(hours=24)  # every window of 10 s and every principal in it is read
HEADER = ("principal", "rpcs", "share", "service_s", "impact_s", "suffered_s")
_BY_DEFAULT = timedelta(hours=1)
_LISTED = 25
_OTHER = Name("another")  # beyond those that are named


@dataclass(frozen=True)
class Part:
    """One principal's part in an incident; times are seconds of waiting beyond the usual."""

    name: Name
    rpcs: int
    share: float  # of the servers' work
    service_s: float
    impact_s: float  # others' waiting because of it
    suffered_s: float  # its own

    @property
    def values(self) -> tuple[Any, ...]:
        """The row of its twins: `HEADER`."""
        facts = (self.rpcs, self.share, self.service_s, self.impact_s, self.suffered_s)
        return (self.name.words, *facts)


class Incident:
    """A range of a filesystem, looked at for harm."""

    def __init__(self, filesystem: Filesystem, window: TimeRange, user: User) -> None:
        self.filesystem = filesystem
        self.window = window
        self._user = user
        self.servers = dict(_servers(filesystem).values_list("pk", "name"))

    @cached_property
    def _windows(self) -> pl.DataFrame:
        start = floor_to_window(self.window.start)
        return impact.windows(self.servers, start, self.window.end)

    @cached_property
    def _usual(self) -> pl.DataFrame:
        return baselines.usual(self.servers, floor_to_window(self.window.start))

    @property
    def is_traced(self) -> bool:
        """Whether anything is known of the range."""
        return not self._windows.is_empty()

    @cached_property
    def impact(self) -> Impact:
        """Who carried the load, who did harm and who suffered."""
        return impact_of(self._windows, self._usual)

    @cached_property
    def parts(self) -> list[Part]:
        """Those who did most harm, or most work."""
        rows = self.impact.principals.head(_LISTED).rows(named=True)
        names = named([impact.who(row["principal"]) for row in rows], self._user, BYS[0])
        return [Part(names.get(impact.who(row.pop("principal")), _OTHER), **row) for row in rows]

    @property
    def more(self) -> int:
        """How many principals are not listed."""
        return self.impact.principals.height - len(self.parts)

    @cached_property
    def busiest(self) -> Part | None:
        """Who kept the servers busiest."""
        return max(self.parts, key=lambda part: part.service_s, default=None)

    @cached_property
    def most_harmful(self) -> Part | None:
        """Who made others wait longest; None: nobody did, or it is not known."""
        return next((part for part in self.parts if part.impact_s > 0), None)

    @cached_property
    def slow(self) -> list[tuple[str, Slowdown, TimeRange]]:
        """When servers left their baseline, by server, and the range that shows it."""
        start = floor_to_window(self.window.start)
        found = baselines.slowdowns(self.servers, start, self.window.end, self._usual)
        return [(self.servers[one.server], one, TimeRange(one.start, one.end)) for one in found]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of its twins."""
        return (part.values for part in self.parts)


def default_range(filesystem: Filesystem) -> TimeRange | None:
    """Return the last hour that was traced; None: nothing ever was."""
    servers = coverage.whole(_servers(filesystem).values_list("pk", flat=True))
    last = max(coverage.last_observed(Coverage.Source.RPC_TRACE, servers).values(), default=None)
    if last is None:
        return None
    end = last.replace(microsecond=0) + timedelta(seconds=1)
    return TimeRange(end - _BY_DEFAULT, end)


def _servers(filesystem: Filesystem) -> Any:
    return Server.objects.filter(filesystem=filesystem, kind=Server.Kind.MDS)
