"""Rows and columns of the tables of an impact analysis, of incidents and of reports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.utils.html import format_html, format_html_join

from ioportal.core.units import Unit
from ioportal.jobs.analysis.anonymity import coarse
from ioportal.load.models import Incident, Report
from ioportal.web.common.tables import Column, Table, included, to
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.utils.safestring import SafeString

    from ioportal.load.analysis.waiting import Slowdown
    from ioportal.load.principals import Name
    from ioportal.web.incidents.queue_rows import QueueRow


@dataclass(frozen=True)
class PrincipalImpact:
    """Load and impact of one principal; times are seconds of wait beyond the usual.

    None: not visible, because it could reveal another user's jobs.
    """

    name: Name
    rpcs: int
    share: float | None  # of the servers' work
    service_s: float | None
    impact_s: float | None  # extra wait of others
    suffered_s: float | None  # own wait above usual


@dataclass(frozen=True)
class GroupImpact:
    """Load and impact of a group of jobs; None: unknown."""

    kind: str
    name: Name
    impact_s: float  # extra wait of others
    suffered_s: float | None  # own wait above usual
    own_share: float | None  # of the wait above usual of all RPCs
    share: float  # of the work of the servers

    @property
    def facts(self) -> dict[str, Any]:
        """Its members in exports."""
        return {**vars(self), "name": self.name.text}


@dataclass(frozen=True)
class Latency:
    """Mean time of RPCs of one kind, from arrival to end; None: not visible, or unknown."""

    server: str
    service: str
    opcode: str
    rpcs: int | None
    mean_us: float | None
    usual_us: float | None

    @property
    def ratio(self) -> float | None:
        """The mean over the usual time."""
        return self.mean_us / self.usual_us if self.mean_us and self.usual_us else None

    def rounded(self, hidden: Mapping[str, bool] | None) -> Latency:
        """Return it as users may see it; None: all is hidden."""
        if hidden is None or hidden["rpcs"] or hidden["total_us"]:
            return replace(self, rpcs=None, mean_us=None, usual_us=rounded(self.usual_us))
        figures = {name: rounded(getattr(self, name)) for name in ("rpcs", "mean_us", "usual_us")}
        return replace(self, **figures)


@dataclass(frozen=True)
class SlowInterval:
    """An interval in which RPCs of a server took much longer than usual; None: not visible."""

    filesystem: str
    server: str
    start: datetime
    end: datetime
    worst_ratio: float | None  # to the usual time
    wait_above_usual_s: float | None  # of all requests, whoever caused it

    @classmethod
    def from_slowdown(cls, slowdown: Slowdown, filesystem: str, server: str) -> SlowInterval:
        """Return a slowdown with the names of its filesystem and server."""
        return cls(
            filesystem,
            server,
            slowdown.start,
            slowdown.end,
            slowdown.factor,
            slowdown.waited_s,
        )

    def rounded(self, hidden: Mapping[str, bool] | None) -> SlowInterval:
        """Return it as users may see it; None: all is hidden."""
        is_hidden = hidden is None or any(hidden.values())
        return replace(
            self,
            worst_ratio=None if is_hidden else rounded(self.worst_ratio),
            wait_above_usual_s=None if is_hidden else rounded(self.wait_above_usual_s),
        )


def rounded(value: float | None) -> Any:
    """Round a figure of several users; integers remain integers."""
    return None if value is None else type(value)(coarse(value))


_SOFT = '<span class="soft">{}</span>'
_IMPACT: Column[Any] = Column("impact_s", "Impact", unit="s", form=show.waiting)
_OWN_WAIT: Column[Any] = Column("suffered_s", "Own wait above usual", unit="s", form=show.waiting)
_WORK: Column[Any] = Column("share", "Share of work in range", unit="%", form=show.work_share)
PRINCIPALS: tuple[Column[PrincipalImpact], ...] = (
    Column("principal", "Job, process or host", "name__text", link="name__address"),
    _IMPACT,
    _OWN_WAIT,
    _WORK,
    Column("service_s", "Service time", unit="s"),
    Column("rpcs", "Timed RPCs", unit=""),
)
_GROUPS: tuple[Column[GroupImpact], ...] = (
    Column("name", "Name", "name__text", link="name__address"),
    Column("kind", "Kind"),
    _IMPACT,
    _OWN_WAIT,
    Column("own_share", "Share of all wait above usual", unit="%", form=show.hundredfold),
    _WORK,
)
_LATENCY: tuple[Column[Latency], ...] = (
    Column("opcode", "RPC"),
    Column("service", "Service"),
    Column("server", "Server"),
    *(
        Column[Any](name, title, unit="", form=lambda value: show.measure(value, Unit.MICROSECONDS))
        for name, title in (("mean_us", "Mean"), ("usual_us", "Usual"))
    ),
    Column("ratio", "Ratio", unit="\N{MULTIPLICATION SIGN} usual", form=show.times),
    Column("rpcs", "Timed RPCs", unit=""),
)
_QUEUES: tuple[Column[QueueRow], ...] = (
    Column("start", "From", link="address"),
    Column("length_s", "Length", unit="s", form=show.whole),
    Column("server", "Server"),
    Column(
        "name",
        "Group of most impact",
        cell=lambda row: row.name.text if row.name else format_html(_SOFT, "no single group"),
        note="kind",
    ),
    Column("share", "Share of work", unit="%", form=show.work_share),
    _IMPACT,
    Column("outside_s", "Pings, daemons, unnamed", unit="s", form=show.waiting),
    Column("waited_s", "All waiting", unit="s", form=show.waiting),
)
_AT: Column[Report] = Column("at", "Time")
_DESCRIPTION: Column[Report] = Column(
    "description",
    "Description",
    cell=lambda report: show.visible_lines(report.description),
    css="wrap user-text",
)
_REPORTER: Column[Report] = Column("reporter", "Reported by")


def principals(rows: Sequence[PrincipalImpact], more: int, *, is_staff: bool) -> Table[Any]:
    """Return the table of principals, of which `more` are not listed."""
    return Table(
        "Load and impact" if is_staff else "Your jobs",
        PRINCIPALS,
        rows,
        about="Impact: extra wait that it caused others. Wait above usual: waiting of its own "
        "RPCs, from any cause. Work: usual time of the RPCs, without waits for locks."
        + _not_listed(more if is_staff else 0),
        nothing="No RPCs of your jobs in this range.",
    )


def groups(rows: Sequence[GroupImpact], more: int) -> Table[Any]:
    """Return the table of groups of jobs, of which `more` are not listed."""
    return Table(
        "Groups of jobs",
        _GROUPS,
        rows,
        about="Impact of all their jobs together. Application: jobs of one user with the same "
        "name, without numbers. Campaign: the same of a project." + _not_listed(more),
    )


def _not_listed(more: int) -> str:
    return f" {more:,} more are not listed." if more else ""


def queues(rows: Sequence[QueueRow]) -> Table[Any]:
    """Return the table of queues."""
    return Table(
        "Queues",
        _QUEUES,
        rows,
        about="Each queue with its group of most impact. Impact: extra wait of other users' "
        "requests in this queue because of the group. Pings, daemons and unnamed requests: the "
        "same, of requests for which no user waits. All waiting: of all requests in the queue. "
        "Flags do not use a queue that reaches the end of the trace.",
    )


def latency(rows: Sequence[Latency]) -> Table[Any]:
    """Return the table of the latency of RPCs."""
    return Table(
        "RPC latency",
        _LATENCY,
        rows,
        about="Mean time from arrival to end. Usual: median of earlier calm windows.",
    )


def reports(rows: Sequence[Report], *, is_staff: bool) -> Table[Any]:
    """Return the table of reports around a time."""
    return Table(
        "Reports" if is_staff else "Your reports",
        (_AT, _DESCRIPTION, _REPORTER),
        rows,
        nothing="No reports for this filesystem around this time.",
    )


def listed_reports(
    rows: Sequence[Report], incidents: Mapping[int, Iterable[Incident]], *, is_staff: bool
) -> Table[Any]:
    """Return the table of reports on the page of incidents, with the incidents of each."""
    seen: tuple[Column[Report], ...] = (
        (_REPORTER, Column("", "Servers", _to_analysis))
        if is_staff
        else (Column("", "Incident", lambda report: _incident_links(incidents[report.pk])),)
    )
    return Table(
        "Reports without incident" if is_staff else "Your reports",
        (_AT, Column("filesystem", "Filesystem", "filesystem__name"), _DESCRIPTION, *seen),
        rows,
        nothing="No reports.",
    )


def _to_analysis(report: Report) -> SafeString:
    return included(
        "incidents/_impact_link.html",
        filesystem=report.filesystem.name,
        start=report.since,
        end=report.until,
        label="Impact analysis",
    )


def _incident_links(incidents: Iterable[Incident]) -> SafeString:
    links = ((to("incident", "pk")(each), each.pk) for each in incidents)
    return format_html_join(", ", '<a href="{}">Incident {}</a>', links) or format_html(
        _SOFT, "no saved incident"
    )


def saved_incidents(user: User) -> tuple[Column[Incident], ...]:
    """Return the columns of saved incidents."""
    times: tuple[Column[Incident], ...] = (
        Column("server", "Server", "server__name"),
        Column("filesystem", "", "server__filesystem__name"),
        Column("start", "From"),
        Column("end", "To"),
    )
    page = to("incident", "pk")
    if not user.is_staff:
        name = Column[Incident](
            "id", "Incident", cell=lambda each: f"Incident {each.pk}", link=page
        )
        return (name, *times)
    return (
        Column("id", ""),
        *(Column("title", "Title", link=page), *times),
        Column("saved_by", "Saved by"),
        Column("saved_at", ""),
    )
