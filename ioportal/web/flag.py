"""One flag: its evidence, how it came about, whom it hurt, and what solved the same before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import Case, F, Q, Sum, Value, When
from django.db.models.functions import Coalesce

from collectors.tables import METADATA_OPERATIONS, UTC_US
from ioportal.analysis.metrics import BY_NAME
from ioportal.analysis.rules.evidence import PEAKS
from ioportal.analysis.timelines import Steps
from ioportal.charts.time_axis import Mark, Meaning
from ioportal.charts.timelines import Chart, Style
from ioportal.flags import peaks
from ioportal.flags.models import Flag, FlagEvent
from ioportal.jobs.models import Server
from ioportal.telemetry import coverage, levels, retention
from ioportal.telemetry.models import ImpactWindow, IoWindow
from ioportal.web.flags import in_words, principal_of, shown, unit_of, with_subjects
from ioportal.web.job_requests import run_of, shown_by_default
from ioportal.web.timelines import StepsChart

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.jobs.models import Job
    from ioportal.web.flags import Shown
    from ioportal.web.ranges import TimeRange

_SIMILAR = 10
_IMPACTS = 12
_STEPS_SHOWN = 720
_OF_THE_JUDGE = {FlagEvent.What.OPENED, FlagEvent.What.GREW, FlagEvent.What.ESCALATED}


# Of numbers that are neither limits nor metrics.
_TITLES = {
    "impact_s": "Others' waiting because of it, altogether",
    "largest_job_operations": "Metadata operations of the largest job",
    "namesakes": "Jobs of the same name",
    "namesakes_read_bytes": "What these usually read",
    "startup_opens": "Opens at the start",
    "unattributed_rpcs": "RPCs that are charged to nobody",
    "usual_per_node": "Metadata operations a node, as usual among its peers",
    **{f"count_{kind}": f"Operations of kind {kind}" for kind in METADATA_OPERATIONS},
}


@dataclass(frozen=True)
class Number:
    """One of a flag's numbers, beside its limit."""

    title: str
    value: str
    limit: str  # "": it has none
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
        """Its evidence: the measure first, then what else was found, then limits of nothing."""
        flag = self.flag
        names = [*dict.fromkeys([flag.measure, *flag.numbers, *flag.limits])]
        return [
            Number(
                _title(flag, name),
                in_words(flag, name, flag.numbers.get(name)),
                in_words(flag, name, flag.limits[name]) if name in flag.limits else "",
                name == flag.measure,
            )
            for name in names
            if name in flag.numbers or name in flag.limits
        ]

    @cached_property
    def waiting(self) -> list[Waiting]:
        """When others waited because of it, and where: the worst first."""
        who = principal_of(self.flag)
        if who is None:
            return []
        kind, key = who
        rows = ImpactWindow.objects.filter(kind=kind, who=key).order_by("server_id", "start")
        return sorted(
            _joined(rows.values_list("server_id", "start", "impact_us")),
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
        """Resolved flags of the same rule: of the same owner, or jobs of that name, first."""
        flag = self.flag
        alike = Q(owner=flag.owner) if flag.owner else Q(pk__in=[])
        if flag.job and flag.job.name:
            alike |= Q(job__name=flag.job.name)
        past = (
            Flag.objects.visible_to(self._user)
            .filter(rule=flag.rule, state=Flag.State.RESOLVED)
            .exclude(pk=flag.pk)
            .order_by(
                Case(When(alike, then=Value(0)), default=Value(1)),
                Case(When(resolved_by="", then=Value(1)), default=Value(0)),
                "-until",
                "-pk",
            )
        )
        return shown(with_subjects(past)[:_SIMILAR], self._user)

    @property
    def events(self) -> Iterable[FlagEvent]:
        """Its history; what staff say among themselves is for them."""
        events = self.flag.events.order_by("pk")
        return events if self._user.is_staff else events.filter(what__in=_OF_THE_JUDGE)

    @property
    def for_a_ticket(self) -> str:
        """The finding in plain text."""
        flag, job = self.flag, self.flag.job
        lines = [f"{flag.title} ({flag.get_severity_display()}): {self.shown.subject.words}"]
        if job:
            lines.append(f"{job.cluster}, user {job.owner}, {job.node_count} nodes")
        lines.append(f"{_title(flag, flag.measure)}: {self.shown.value}, limit {self.shown.limit}")
        lines.append(flag.advice)
        return "\n".join(lines)

    @cached_property
    def course(self) -> StepsChart | None:
        """How its measure grew over the job's run; None: it is none over time, or not kept."""
        flag = self.flag
        run = run_of(flag.job) if flag.job else None
        if flag.job is None or run is None or flag.limit is None:
            return None
        needed = [levels.IO_WINDOWS, levels.CHARGED_RPCS, levels.IMPACT]
        if not retention.is_kept(needed, run.start, run.end):
            return None
        peak, apart = (
            ("sustained_operations", flag.job.node_count)
            if flag.measure == "sustained_per_node"
            else (flag.measure, 1)
        )
        if peak in PEAKS:
            frame = peaks.course(flag.job.pk, peak).with_columns(pl.col("amount") / apart)
            minutes = peaks.span_of(peak) // timedelta(minutes=1)
            about = f"Within {minutes} minutes, up to the end of each interval that was counted."
        elif flag.measure == "metadata_operations":
            frame = _adding_up(flag.job)
            about = "Added up by the end of each interval that was counted (job_stats)."
        else:
            return None
        return _chart(flag, frame, about, shown_by_default(run))


def _title(flag: Flag, number: str) -> str:
    rule = flag.judged_by
    if rule and number in rule.limits:
        return rule.limits[number].title
    if number in BY_NAME:
        return BY_NAME[number].title
    return _TITLES.get(number) or number.replace("_", " ").capitalize()


def _joined(rows: Iterable[tuple[int, datetime, int]]) -> list[Waiting]:
    """Join windows of a server that are close to each other; rows by server and time."""
    servers = Server.objects.select_related("filesystem").in_bulk()
    found: list[tuple[int, datetime, datetime, int]] = []
    for server, start, impact_us in rows:
        if found and found[-1][0] == server and start - found[-1][2] <= coverage.APART:
            _, first, _, so_far = found.pop()
            found.append((server, first, start + levels.IMPACT.width, so_far + impact_us))
        else:
            found.append((server, start, start + levels.IMPACT.width, impact_us))
    return [
        Waiting(servers[server].name, servers[server].filesystem.name, start, end, us / 1e6)
        for server, start, end, us in found
    ]


def _adding_up(job: Job) -> pl.DataFrame:
    """Return the metadata operations of a job by the end of each of its windows."""
    rows = (
        IoWindow.objects.of_job(job.pk)
        .exclude(target_id=0)
        .values("start", "end")
        .annotate(amount=_sum_of(METADATA_OPERATIONS))
        .order_by("end", "start")
        .values_list("start", "end", "amount")
    )
    frame = pl.DataFrame(
        list(rows), schema={"start": UTC_US, "end": UTC_US, "amount": pl.Float64}, orient="row"
    )
    return frame.with_columns(pl.col("amount").cum_sum())


def _sum_of(kinds: Iterable[str]) -> Any:
    """Return the sum of some counters, null being nothing."""
    parts: list[Any] = [Coalesce(Sum(F(kind)), Value(0)) for kind in kinds]
    return reduce(add, parts)


def _chart(flag: Flag, frame: pl.DataFrame, about: str, window: TimeRange) -> StepsChart:
    unit = unit_of(flag, flag.measure)
    chart = Chart(
        "evidence",
        _title(flag, flag.measure),
        str(unit or ""),
        about,
        Style.LINES,
        {"amount": "this job", "limit": "limit"},
    )
    marks = [Mark(flag.since, "flagged", Meaning.FLAG)]
    if flag.job:
        ends = (flag.job.started_at, flag.job.ended_at)
        marks += [Mark(moment, "", Meaning.RUN) for moment in ends if moment]
    steps = Steps(_stepped(frame, flag.limit or 0, window), ("amount", "limit"), 1)
    return StepsChart(chart, steps, lambda: marks, window)


def _stepped(frame: pl.DataFrame, limit: float, window: TimeRange) -> pl.DataFrame:
    """Make steps of amounts at the ends of windows, which may overlap or leave gaps; the limit too.

    Where there is no window nothing was counted: there is no line, but it is not called unobserved.
    """
    together = -(-frame.height // _STEPS_SHOWN) or 1
    before = pl.col("end").shift()
    steps = (
        frame.group_by("end")
        .agg(pl.min("start"), pl.max("amount"))
        .sort("end")
        .group_by(pl.int_range(pl.len()) // together, maintain_order=True)
        .agg(pl.first("start"), pl.last("end"), pl.max("amount"))
        .select(pl.max_horizontal("start", before), "end", "amount")
        .filter(pl.col("end") > pl.col("start"))
    )
    begin, end = (pl.lit(moment, UTC_US) for moment in (window.start, window.end))
    before_each = steps.select(start=before.fill_null(begin), end="start")
    after_all = steps.tail(1).select(start="end", end=end)
    between = (
        pl.concat([before_each, after_all])
        .filter(pl.col("end") > pl.col("start"))
        .with_columns(amount=pl.lit(None, pl.Float64))
    )
    return (
        pl.concat([steps.cast({"amount": pl.Float64}), between])
        .sort("start")
        .select(
            "start",
            "end",
            observed=pl.lit(1, pl.Int64),
            amount="amount",
            limit=pl.lit(limit, pl.Float64),
        )
    )
