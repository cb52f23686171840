"""Who made others wait at metadata servers in a range, and when they were slow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from collectors.lustre import opcodes
from ioportal.activity import baselines, impact
from ioportal.activity import incidents as judging
from ioportal.activity.models import Incident
from ioportal.analysis.populations import coarse
from ioportal.reporting.principals import BYS, Name, named
from ioportal.reporting.time_ranges import TimeRange
from ioportal.site.models import Server, Service
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage, Principal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from django.contrib.auth.models import User

    from ioportal.activity.incidents import Analysis
    from ioportal.activity.top_consumers import Who
    from ioportal.analysis.impact import Slowdown
    from ioportal.site.models import Filesystem

LONGEST = timedelta(hours=24)  # every window of 10 s and every principal in it is read
HEADER = ("principal", "rpcs", "share", "service_s", "impact_s", "suffered_s")
_BY_DEFAULT = timedelta(hours=1)
_SUGGESTED = timedelta(hours=24)  # up to the newest trace
_LISTED = 25
_LEAST_JOBS = 10  # of others that are told of together
_OTHER = Name("another")  # beyond those that are named
_ALL_OTHERS = Name("all others together")


@dataclass(frozen=True)
class Part:
    """One principal's part in a range; times are seconds of waiting beyond the usual.

    None: it would tell of others who are too few.
    """

    name: Name
    rpcs: int
    share: float | None  # of the servers' work
    service_s: float
    impact_s: float | None  # others' waiting because of it
    suffered_s: float  # its own

    @property
    def values(self) -> tuple[Any, ...]:
        """The row of its twins: `HEADER`."""
        facts = (self.rpcs, self.share, self.service_s, self.impact_s, self.suffered_s)
        return (self.name.words, *facts)


@dataclass(frozen=True)
class Latency:
    """How long RPCs of a kind took, from arrival to end."""

    server: str
    service: str
    opcode: str
    rpcs: int
    mean_us: float
    usual_us: float | None

    @property
    def times(self) -> float | None:
        """How many times as long as usual."""
        return self.mean_us / self.usual_us if self.usual_us else None


class Examined:
    """A range of some metadata servers, looked at for harm.

    Whoever is not staff learns of their own jobs, and of others only together, where they are many.
    """

    def __init__(
        self, servers: Mapping[int, str], window: TimeRange, judged: Analysis | None, user: User
    ) -> None:
        self.servers = servers
        self.window = window
        self._judged = judged
        self._user = user

    @property
    def is_traced(self) -> bool:
        """Whether anything is known of the range."""
        return self._judged is not None

    @property
    def known_share(self) -> float:
        """The part of the RPCs of which it is known how long they usually take."""
        return self._judged.impact.known_share if self._judged else 0

    @cached_property
    def _rows(self) -> list[tuple[Who, dict[str, Any]]]:
        """All principals, most harmful first."""
        rows = self._judged.impact.principals.rows(named=True) if self._judged else []
        return [(impact.who(row.pop("principal")), row) for row in rows]

    @cached_property
    def _names(self) -> dict[Who, Name]:
        """The names of those who may be named and matter."""
        ranked = self._rows[:_LISTED] if self._user.is_staff else self._rows
        return named([who for who, _ in ranked], self._user, BYS[0])

    @property
    def is_judged(self) -> bool:
        """Whether it is known what is usual, and so who waited."""
        return self.known_share > 0

    @cached_property
    def is_told(self) -> bool:
        """Whether all together may be told of."""
        if self._user.is_staff:
            return True
        jobs = {who for who, _ in self._rows if who[0] == Principal.JOB}
        return len(jobs - self._names.keys()) >= _LEAST_JOBS

    @cached_property
    def parts(self) -> list[Part]:
        """Those who did most harm, or most work; others together, for who may not know them."""
        if self._user.is_staff:
            return [Part(self._names.get(who, _OTHER), **row) for who, row in self._rows[:_LISTED]]
        untold = {} if self.is_told else {"share": None, "impact_s": None}
        own = [
            Part(self._names[who], **{**row, "share": coarse(row["share"]), **untold})
            for who, row in self._rows
            if who in self._names
        ]
        return [*own[:_LISTED], self._others] if self.is_told else own[:_LISTED]

    @property
    def _others(self) -> Part:
        rows = [row for who, row in self._rows if who not in self._names]
        sums: Any = {name: sum(row[name] for row in rows) for name in HEADER[1:]}
        return Part(_ALL_OTHERS, **{name: type(of)(coarse(of)) for name, of in sums.items()})

    @property
    def more(self) -> int:
        """How many principals are not listed."""
        return len(self._rows) - len(self.parts)

    @cached_property
    def busiest(self) -> Part | None:
        """Who kept the servers busiest."""
        return max(self.parts, key=lambda part: part.service_s, default=None)

    @cached_property
    def most_harmful(self) -> Part | None:
        """Who made others wait longest; None: nobody did, or it is not known."""
        return next((part for part in self.parts if part.impact_s), None)

    @cached_property
    def latency(self) -> list[Latency]:
        """How long RPCs of each kind took, those that waited most first."""
        rows = self._judged.latency.rows(named=True) if self._judged and self.is_told else []
        services = dict(Service.objects.values_list("pk", "name")) if rows else {}
        return [
            Latency(
                self.servers[row["server"]],
                services[row["service"]],
                opcodes.name_of(row["opcode"]),
                row["rpcs"],
                row["mean_us"],
                row["usual_us"],
            )
            for row in rows
        ]

    @cached_property
    def slow(self) -> list[tuple[str, Slowdown, TimeRange]]:
        """When servers left their baseline, by server, and the range that shows it."""
        found = self._judged.slow if self._judged and self.is_told else []
        return [(self.servers[one.server], one, TimeRange(one.start, one.end)) for one in found]

    @property
    def about(self) -> dict[str, object]:
        """What its JSON twin says beside the rows."""
        return {
            "start": self.window.start,
            "end": self.window.end,
            "known_share": self.known_share if self.is_told else None,
            "slow": [
                {
                    "server": server,
                    "start": one.start,
                    "end": one.end,
                    "times_as_long": one.factor,
                    "waited_s": one.waited_s,
                }
                for server, one, _ in self.slow
            ],
            "latency": [vars(one) for one in self.latency],
        }

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of its twins."""
        return (part.values for part in self.parts)


def of_filesystem(filesystem: Filesystem, window: TimeRange, user: User) -> Examined:
    """Look at all metadata servers of a filesystem."""
    servers = dict(_servers(filesystem).values_list("pk", "name"))
    return Examined(servers, window, judging.analyse(servers, window.start, window.end), user)


def of_incident(incident: Incident, user: User) -> Examined:
    """Look at an incident that was kept."""
    window = TimeRange(incident.start, incident.end)
    servers = {incident.server_id: incident.server.name}
    return Examined(servers, window, judging.analyse_incident(incident), user)


def default_range(filesystem: Filesystem) -> TimeRange | None:
    """Return the last hour that was traced; None: nothing ever was."""
    return _newest(_servers(filesystem).values_list("pk", flat=True), _BY_DEFAULT)


def suggested() -> list[tuple[Server, Slowdown]]:
    """Return when servers were slow in the newest day of traces, but for what was kept of it."""
    servers = Server.objects.filter(kind=Server.Kind.MDS).select_related("filesystem").in_bulk()
    window = _newest(servers, _SUGGESTED)
    if window is None:
        return []
    kept = Incident.objects.filter(start__lt=window.end, end__gt=window.start)
    spans = list(kept.values_list("server", "start", "end"))
    usual = baselines.at_time(servers, window.end)
    found = baselines.slowdowns(servers, window.start, window.end, usual)
    return [
        (servers[one.server], one)
        for one in found
        if not any(
            one.server == server and one.start < end and start < one.end
            for server, start, end in spans
        )
    ][:_LISTED]


def _newest(server_ids: Any, length: timedelta) -> TimeRange | None:
    servers = coverage.contiguous(server_ids)
    last = max(coverage.last_observed(Coverage.Source.RPC_TRACE, servers).values(), default=None)
    if last is None:
        return None
    end = last.replace(microsecond=0) + timedelta(seconds=1)
    return TimeRange(end - length, end)


def _servers(filesystem: Filesystem) -> Any:
    return Server.objects.filter(filesystem=filesystem, kind=Server.Kind.MDS)
