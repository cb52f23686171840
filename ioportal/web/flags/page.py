"""One flag: its evidence, how it came about, whom it hurt, and what solved the same before."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.db.models import Case, Q, Value, When
from django.urls import reverse

from ioportal.analysis.rules.evidence import DAY, PEAK_SPAN
from ioportal.analysis.rules.rule import Subject
from ioportal.flags import history
from ioportal.flags.models import Flag, FlagEvent
from ioportal.reporting.flag_values import in_words, title_of
from ioportal.site.models import Server
from ioportal.telemetry import coverage, levels
from ioportal.telemetry.models import ImpactWindow
from ioportal.web.flags import history_chart
from ioportal.web.flags.inbox import principal_of, shown, with_subjects
from ioportal.web.flags.similar_jobs import PeersHistogram

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.flags.history.source import MeasureHistory
    from ioportal.reporting.timelines import StepsChart
    from ioportal.web.flags.inbox import Shown

_SIMILAR = 10
_IMPACTS = 12
_OF_THE_JUDGE = {FlagEvent.Kind.OPENED, FlagEvent.Kind.GREW, FlagEvent.Kind.ESCALATED}


@dataclass(frozen=True)
class Number:
    """One of a flag's numbers, beside its threshold."""

    title: str
    value: str
    threshold: str  # "": it has none
    is_measure: bool


@dataclass(frozen=True)
class Waiting:
    """An interval in which others waited at a server because of a principal."""

    server: str
    filesystem: str
    start: datetime
    end: datetime
    impact_s: float


class Told:
    """All that is known of a flag, as far as `user` may know it."""

    def __init__(self, shown_flag: Shown, user: User) -> None:
        self.shown = shown_flag
        self.flag = shown_flag.flag
        self._user = user

    @property
    def numbers(self) -> list[Number]:
        """Numbers of the finding: the measure, other thresholds in the rule's order, the rest."""
        flag = self.flag
        limited = {title_of(flag, name) for name in flag.thresholds}
        # (what the database keeps as JSON has no order of its own)
        in_order = flag.definition.thresholds if flag.definition else ()
        names = dict.fromkeys([flag.measure, *in_order, *flag.thresholds, *flag.numbers])
        return [
            Number(
                title_of(flag, name),
                in_words(flag, name, flag.numbers.get(name)),
                in_words(flag, name, flag.thresholds[name]) if name in flag.thresholds else "",
                name == flag.measure,
            )
            for name in names
            # (a number that has no threshold of its own may have one by another name)
            if name in flag.thresholds
            or (name in flag.numbers and title_of(flag, name) not in limited)
        ]

    @cached_property
    def waiting(self) -> list[Waiting]:
        """When others waited because of it, and where: the worst first."""
        who = principal_of(self.flag)
        if who is None:
            return []
        kind, key = who
        rows = ImpactWindow.objects.filter(kind=kind, who=key)
        if self.flag.subject_kind == Subject.HOST:  # it was there before, and elsewhere
            servers = Server.objects.filter(filesystem=self.flag.filesystem_id)
            span = (self.flag.since - PEAK_SPAN, self.flag.until)
            rows = rows.between(*span).filter(server_id__in=servers.values("pk"))
        return sorted(
            _joined(
                rows.values_list("server_id", "start", "impact_us").order_by("server_id", "start")
            ),
            key=lambda one: -one.impact_s,
        )

    @property
    def worst_waiting(self) -> list[Waiting]:
        """The first of these, in order of time."""
        return sorted(self.waiting[:_IMPACTS], key=lambda one: one.start)

    @property
    def more_waiting(self) -> int:
        """How many there are besides."""
        return max(0, len(self.waiting) - _IMPACTS)

    @property
    def waited_s(self) -> float:
        """For how long others waited because of it, altogether."""
        return sum(one.impact_s for one in self.waiting)

    @property
    def similar(self) -> list[Shown]:
        """Resolved flags of the same rule: first what somebody solved, of the like of it first."""
        flag = self.flag
        alike = Q(subject_kind=flag.subject_kind, subject=flag.subject)
        if flag.owner:
            alike |= Q(owner=flag.owner)
        if flag.job and flag.job.name:
            alike |= Q(job__name=flag.job.name)
        past = (
            Flag.objects.visible_to(self._user)
            .filter(rule=flag.rule, state=Flag.State.RESOLVED)
            .exclude(pk=flag.pk)
            .order_by(
                Case(When(resolved_by="", then=Value(1)), default=Value(0)),
                Case(When(alike, then=Value(0)), default=Value(1)),
                "-until",
                "-pk",
            )
        )
        return shown(with_subjects(past)[:_SIMILAR], self._user)

    @cached_property
    def peers(self) -> PeersHistogram | None:
        """The peers of an outlier; for staff, since few of them may be in a bin."""
        return PeersHistogram.of(self.flag) if self._user.is_staff else None

    @property
    def whence(self) -> tuple[str, str] | None:
        """What the finding adds up from, in words, and the address where that is listed.

        Of a user the jobs that count together, the heaviest first; of a filesystem the NIDs that
        belong to no node.
        """
        flag = self.flag
        if flag.subject_kind == Subject.FILESYSTEM:
            return "unregistered NIDs", reverse("unregistered_nids")
        if flag.subject_kind != Subject.USER:
            return None
        span = {"start": (flag.since - DAY).isoformat(), "end": flag.until.isoformat()}
        query = {"user": flag.subject, **span, "sort": "-metadata_operations"}
        return "these jobs", f"{reverse('job_list')}?{urlencode(query)}"

    @property
    def events(self) -> Iterable[FlagEvent]:
        """Its history; what staff say among themselves is for them."""
        events = self.flag.events.order_by("pk")
        return events if self._user.is_staff else events.filter(kind__in=_OF_THE_JUDGE)

    @property
    def for_a_ticket(self) -> str:
        """The finding in plain text."""
        flag, job = self.flag, self.flag.job
        lines = [f"{flag.title} ({flag.get_severity_display()}): {self.shown.subject.words}"]
        if job:
            lines.append(f"{job.cluster}, user {job.owner}, {job.node_count} nodes")
        lines.append(
            f"{title_of(flag, flag.measure)}: {self.shown.value}, threshold {self.shown.threshold}"
        )
        lines.append(flag.advice)
        return "\n".join(lines)

    @cached_property
    def measure_history(self) -> MeasureHistory | None:
        """How its measure came about; None: not over time."""
        return history.for_flag(self.flag)

    @cached_property
    def chart(self) -> StepsChart | None:
        """Its history against its threshold; None: it has none, or not any more."""
        return history_chart.drawn(self.flag, self.shown.subject.words, self.measure_history)


def _joined(rows: Iterable[tuple[int, datetime, int]]) -> list[Waiting]:
    """Join windows of a server that are close to each other; rows by server and time."""
    servers = Server.objects.select_related("filesystem").in_bulk()
    found: list[tuple[int, datetime, datetime, int]] = []
    for server, start, impact_us in rows:
        if found and found[-1][0] == server and start - found[-1][2] <= coverage.SHORTEST_GAP:
            _, first, _, so_far = found.pop()
            found.append((server, first, start + levels.IMPACT.width, so_far + impact_us))
        else:
            found.append((server, start, start + levels.IMPACT.width, impact_us))
    return [
        Waiting(servers[server].name, servers[server].filesystem.name, start, end, us / 1e6)
        for server, start, end, us in found
    ]
