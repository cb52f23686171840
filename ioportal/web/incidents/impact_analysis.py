"""Impact analysis of metadata servers in a range: load, impact, slow intervals and latency."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
from django.core.exceptions import ValidationError

from collectors.lustre import opcodes
from ioportal.core.formatting import duration
from ioportal.core.time_ranges import TimeRange
from ioportal.core.times import RECENT
from ioportal.jobs.analysis.anonymity import coarse, hidden_sums
from ioportal.jobs.cache import cached
from ioportal.load import incidents
from ioportal.load.impact import principal_windows, queue_links, queue_users
from ioportal.load.models import Incident
from ioportal.load.principals import BYS, Name, job_group_name, named
from ioportal.site.contacts import contact
from ioportal.site.models import Server, Service
from ioportal.telemetry import coverage
from ioportal.web.incidents import queue_rows, tables
from ioportal.web.incidents.tables import (
    GroupImpact,
    Latency,
    PrincipalImpact,
    SlowInterval,
    rounded,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from django.contrib.auth.models import User
    from django.db.models import QuerySet
    from django.http import QueryDict

    from ioportal.load.incidents import Analysis
    from ioportal.load.top_consumers import PrincipalKey
    from ioportal.site.contacts import Contact
    from ioportal.site.models import Filesystem
    from ioportal.web.common.tables import Table
    from ioportal.web.incidents.queue_rows import QueueRow

_FIGURES = ("rpcs", "share", "service_s", "impact_s", "suffered_s")
_DEFAULT = "1h"  # value of the parameter `last`
_SUGGESTION_RANGE = timedelta(hours=24)  # up to the latest trace
_LISTED = 25
_MIN_IMPACT_S = 0.01  # of groups
_MUCH = 0.9  # of the RPCs: with a usual time
_ALL_OTHERS = Name("all others together")


class ImpactAnalysis:
    """Impact analysis of some metadata servers in a range, as far as `user` may see it.

    Users see their own jobs, and a sum over other users' jobs where these are enough.
    """

    def __init__(
        self,
        filesystem: Filesystem,
        servers: Mapping[int, str],
        window: TimeRange,
        result: Analysis | None,
        user: User,
    ) -> None:
        self.filesystem = filesystem
        self.servers = servers
        self.window = window
        self._result = result
        self._user = user

    @property
    def has_data(self) -> bool:
        """Whether complete traces or service statistics cover some of the range."""
        return self._result is not None

    @property
    def source(self) -> str:
        """How impact was computed; "unknown": there is no baseline, or no capacity."""
        if self._result is None:
            return ""
        return self._result.source if self.knows_impact else "unknown"

    @property
    def baseline_share(self) -> float:
        """The share of RPCs with a baseline."""
        return self._result.impact.known_share if self._result else 0

    @property
    def has_baseline(self) -> bool:
        """Whether any RPCs have a baseline; without one impact is unknown."""
        return self.baseline_share > 0

    @property
    def knows_impact(self) -> bool:
        """Whether impact is known: queues use the baseline of their time, not of the range."""
        return self.has_baseline or any(row.impact_s is not None for row in self.queues)

    @property
    def covers_little(self) -> bool:
        """Whether many RPCs have no usual time: waits above usual leave them out."""
        return 0 < self.baseline_share < _MUCH

    @cached_property
    def _rows(self) -> list[tuple[PrincipalKey, dict[str, Any]]]:
        """All principals, largest impact first."""
        if self._result is None:
            return []
        principals = self._result.impact.principals
        unknown = pl.lit(None, pl.Float64)
        if not self.has_baseline:
            principals = principals.with_columns(suffered_s=unknown)
        if not self.knows_impact:
            principals = principals.with_columns(impact_s=unknown)
        rows = principals.rows(named=True)
        return [(principal_windows.principal_key(row.pop("principal")), row) for row in rows]

    @cached_property
    def _names(self) -> dict[PrincipalKey, Name]:
        """Names of the visible principals, as far as they are listed."""
        ranked = self._rows[:_LISTED] if self._user.is_staff else self._rows
        return named([principal for principal, _ in ranked], self._user, BYS[0])

    @cached_property
    def _owners(self) -> pl.DataFrame:
        """The principals that the user may not see: principal, owner, and key of the job."""
        hidden = [principal for principal, _ in self._rows if principal not in self._names]
        return queue_users.owners(hidden)

    @cached_property
    def _hidden(self) -> dict[str, bool]:
        """Whether each sum over other users' principals could reveal a single user."""
        if self._result is None or self._owners.is_empty():
            return dict.fromkeys(_FIGURES, True)
        parts = self._result.impact.principals.join(self._owners, on="principal")
        sums = hidden_sums(parts.with_columns(everything=0), ["everything"], _FIGURES)
        return sums.select(_FIGURES).row(0, named=True)

    def _hidden_requests(self, *group: str) -> dict[tuple[Any, ...], dict[str, bool]]:
        """Return whether sums over others' requests could reveal a single user, by group."""
        if self._result is None:
            return {}
        parts = self._result.requests.join(self._owners, on="principal")
        sums = hidden_sums(parts, group, ("rpcs", "total_us", "late_us"))
        return {tuple(row.pop(name) for name in group): row for row in sums.iter_rows(named=True)}

    @cached_property
    def shows_others(self) -> bool:
        """Whether other users' jobs are visible, at least as a sum."""
        return self._user.is_staff or not self._hidden["rpcs"]

    @property
    def hides_figures(self) -> bool:
        """Whether some figures of other users are not visible."""
        return not self._user.is_staff and (
            any(self._hidden.values())
            or any(row.rpcs is None for row in self.latency)
            or any(interval.wait_above_usual_s is None for interval in self.slow_intervals)
        )

    @cached_property
    def principals(self) -> list[PrincipalImpact]:
        """The principals with most impact or load; for users, their own and a sum over others."""
        if self._user.is_staff:
            return [
                PrincipalImpact(self._names.get(principal, queue_rows.UNNAMED), **row)
                for principal, row in self._rows[:_LISTED]
            ]
        own = [
            PrincipalImpact(self._names[principal], **_relative(row))
            for principal, row in self._rows
            if principal in self._names
        ]
        return [*own[:_LISTED], self._others] if self.shows_others else own[:_LISTED]

    @property
    def _others(self) -> PrincipalImpact:
        rows = [row for principal, row in self._rows if principal not in self._names]
        sums: Any = {
            name: None if any(row[name] is None for row in rows) else sum(row[name] for row in rows)
            for name in _FIGURES
        }
        shown: Any = {
            name: None if self._hidden[name] else rounded(total) for name, total in sums.items()
        }
        return PrincipalImpact(_ALL_OTHERS, **shown)

    @cached_property
    def busiest(self) -> PrincipalImpact | None:
        """The principal with the most service time."""
        return max(self.principals, key=lambda row: row.service_s or 0, default=None)

    @cached_property
    def largest_impact(self) -> PrincipalImpact | None:
        """The principal with the largest impact; None: no impact, or it is unknown."""
        return next((row for row in self.principals if row.impact_s), None)

    @cached_property
    def latency(self) -> list[Latency]:
        """Latency of each kind of RPC, longest total wait first."""
        if self._result is None or not self.shows_others:
            return []
        services = dict(Service.objects.values_list("pk", "name"))
        rows = self._result.latency.rows(named=True)
        kinds = [
            Latency(
                self.servers[row["server"]],
                services[row["service"]],
                opcodes.name_of(row["opcode"]) if row["opcode"] else "all kinds",
                row["rpcs"],
                row["mean_us"],
                row["usual_us"],
            )
            for row in rows
        ]
        if self._user.is_staff:
            return kinds
        of_kind = ("server", "service", "opcode")
        hidden = self._hidden_requests(*of_kind)
        return [
            kind.rounded(hidden.get(tuple(row[name] for name in of_kind)))
            for kind, row in zip(kinds, rows, strict=True)
        ]

    @cached_property
    def slow_intervals(self) -> list[SlowInterval]:
        """Intervals in which a server was slower than its baseline."""
        slow = self._result.slow if self._result and self.shows_others else []
        intervals = [
            SlowInterval.from_slowdown(each, self.filesystem.name, self.servers[each.server])
            for each in slow
        ]
        if self._user.is_staff:
            return intervals
        hidden = self._hidden_requests("server", "slow")
        return [
            interval.rounded(hidden.get((each.server, each.start)))
            for interval, each in zip(intervals, slow, strict=True)
        ]

    @property
    def about(self) -> dict[str, object]:
        """The JSON export's members next to its rows."""
        return {
            "start": self.window.start,
            "end": self.window.end,
            "impact": self.source,
            "baseline_share": self._visible_baseline_share,
            "wait_above_usual_s": self._visible_waited_s,
            "groups": [group.facts for group in self.groups],
            "slow_intervals": [vars(interval) for interval in self.slow_intervals],
            "latency": [vars(row) for row in self.latency],
            "queues": [row.facts for row in self.queues],
        }

    @property
    def _visible_waited_s(self) -> float | None:
        return self.waited_s if self._user.is_staff and self.has_baseline else None

    @property
    def _visible_baseline_share(self) -> float | None:
        if self._user.is_staff:
            return self.baseline_share
        return coarse(self.baseline_share) if self.shows_others else None

    @property
    def groups(self) -> list[GroupImpact]:
        """Groups of jobs with most impact; for staff."""
        return self._groups[:_LISTED]

    @cached_property
    def _groups(self) -> list[GroupImpact]:
        if not (self._user.is_staff and self._result):
            return []
        rows = self._result.impact.groups.rows(named=True)
        total_s = self._result.impact.waited_s
        return [
            GroupImpact(
                row["kind"],
                job_group_name(row["kind"], row["key"]),
                row["impact_s"],
                row["suffered_s"] if self.has_baseline else None,
                min(1, row["suffered_s"] / total_s) if total_s else None,
                row["share"],
            )
            for row in rows
            if (row["impact_s"] or 0) >= _MIN_IMPACT_S
        ]

    @cached_property
    def queues(self) -> list[QueueRow]:
        """Queues of traced servers in which requests waited most; users see only their own."""
        if self._result is None or self._result.queues.is_empty():
            return []
        queues, parts = (
            frame.with_columns(pl.col("server").replace_strict(self.servers))
            for frame in (self._result.queues, self._result.queue_parts)
        )
        return queue_rows.longest(queues, parts, self.window, self._user)

    @property
    def largest_group(self) -> GroupImpact | None:
        """The group with the largest impact; None: a process or host has more, or there is none."""
        principal = self.largest_impact
        least_s = (principal and principal.impact_s) or 0
        return next((group for group in self.groups[:1] if group.impact_s >= least_s), None)

    @property
    def contact(self) -> Contact | None:
        """How to reach who had the largest impact; None: nothing was slow, or it is unknown."""
        blamed = (self.largest_group or self.largest_impact) if self.slow_intervals else None
        return contact(blamed.name.user, self._user) if blamed else None

    @property
    def waited_s(self) -> float:
        """The wait above usual of all RPCs, whoever caused it."""
        return self._result.impact.waited_s if self._result else 0

    @property
    def table(self) -> Table[PrincipalImpact]:
        """The table of principals."""
        return tables.principals(
            self.principals,
            len(self._rows) - len(self.principals),
            is_staff=self._user.is_staff,
        )

    @property
    def panels(self) -> list[Table[Any]]:
        """The tables of groups and of queues."""
        found = [tables.groups(self.groups, max(0, len(self._groups) - _LISTED))]
        return [*found, tables.queues(self.queues)]

    @property
    def latency_table(self) -> Table[Latency]:
        """The table of latency."""
        return tables.latency(self.latency)


def _relative(row: dict[str, Any]) -> dict[str, Any]:
    """Return an own row in which figures that others are a part of are rounded."""
    return row | {name: rounded(row[name]) for name in ("share", "impact_s")}


def for_filesystem(filesystem: Filesystem, window: TimeRange, user: User) -> ImpactAnalysis:
    """Analyse all metadata servers of a filesystem."""
    servers = dict(_servers(filesystem).values_list("pk", "name"))
    result = cached(
        "impact-4",  # to be changed with `Analysis`
        (sorted(servers), window.start, window.end),
        lambda: incidents.analyse(servers, window.start, window.end),
    )
    return ImpactAnalysis(filesystem, servers, window, result, user)


def for_incident(incident: Incident, user: User) -> ImpactAnalysis:
    """Analyse a saved incident."""
    window = TimeRange(incident.start, incident.end)
    servers = {incident.server_id: incident.server.name}
    filesystem = incident.server.filesystem
    return ImpactAnalysis(filesystem, servers, window, incidents.analyse_incident(incident), user)


def selected_range(query: QueryDict, default: TimeRange) -> TimeRange:
    """Read a range as `TimeRange.from_query`.

    Raises:
        ValidationError: it is invalid, or too long to analyse.
    """
    window = TimeRange.from_query(query, default)
    if window.end - window.start > queue_links.LONGEST:
        longest = duration(queue_links.LONGEST.total_seconds())
        raise ValidationError(f"The range is longer than {longest}. Select a shorter range.")
    return window


def default_range(filesystem: Filesystem) -> TimeRange | None:
    """Return the latest hour of traces or service statistics; None: there are none.

    It is cached as well: analyses of ranges up to the latest trace are reused with their range.
    """
    servers = list(_servers(filesystem).values_list("pk", flat=True))
    latest = cached("latest-traces", sorted(servers), lambda: _latest(servers, RECENT[_DEFAULT]))
    return replace(latest, last=_DEFAULT) if latest else None


def suggestions() -> list[SlowInterval]:
    """Return the slow intervals of the last day of data that no saved incident covers."""
    servers = Server.objects.filter(kind=Server.Kind.MDS).select_related("filesystem").in_bulk()
    window = _latest(servers, _SUGGESTION_RANGE)
    if window is None:
        return []
    saved_incidents = Incident.objects.filter(start__lt=window.end, end__gt=window.start)
    saved = list(saved_incidents.values_list("server", "start", "end"))
    slow = incidents.slowdowns(list(servers), window.start, window.end)
    return [
        SlowInterval.from_slowdown(each, server.filesystem.name, server.name)
        for each in slow
        for server in [servers[each.server]]
        if not any(
            each.server == key and each.start < end and start < each.end
            for key, start, end in saved
        )
    ][:_LISTED]


def _latest(server_ids: Collection[int], length: timedelta) -> TimeRange | None:
    last = coverage.last_timed(server_ids)
    if last is None:
        return None
    end = last.replace(microsecond=0) + timedelta(seconds=1)
    return TimeRange(end - length, end)


def _servers(filesystem: Filesystem) -> QuerySet[Server]:
    return Server.objects.filter(filesystem=filesystem, kind=Server.Kind.MDS)
