"""The history of a flag's measure as a chart with its threshold, and marks of flags on charts."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import polars as pl
from django.utils import timezone

from collectors.tables import UTC_US
from ioportal.core.charts.time_axis import Mark, Meaning
from ioportal.core.charts.timelines import Chart, Style
from ioportal.core.time_ranges import TimeRange
from ioportal.core.timelines import Steps
from ioportal.findings import history
from ioportal.findings.flags.flag_values import title_of, unit_of
from ioportal.jobs.analysis.anonymity import coarsened
from ioportal.load.step_charts import StepsChart
from ioportal.rules.evidence import OF_OTHERS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from ioportal.findings.history.source import MeasureHistory
    from ioportal.findings.models import Flag

_MAX_STEPS = 720
_OTHER_THRESHOLDS = " The flag also required the rule's other thresholds."


def history_chart(flag: Flag, subject: str, measured: MeasureHistory | None) -> StepsChart | None:
    """Return the chart of a history; None: there is none, or its data is past retention.

    Args:
        flag: the flag.
        subject: the name of its subject.
        measured: the history of one of its numbers.
    """
    if measured is None or measured.amounts is None:
        return None
    window = TimeRange(*measured.span).with_margin
    chart = Chart(
        "evidence",
        title_of(flag, measured.number),
        str(unit_of(flag, measured.number) or ""),
        measured.about + (_OTHER_THRESHOLDS if len(flag.thresholds) > 1 else ""),
        Style.LINES,
        {"amount": subject, "threshold": "threshold"},
    )
    amounts = measured.amounts
    if measured.number in OF_OTHERS:
        amounts = amounts.with_columns(amount=coarsened(amounts["amount"].to_numpy()))
    stepped = _stepped(amounts, window, adds_up=measured.adds_up)
    frame = stepped.with_columns(threshold=pl.lit(flag.thresholds[measured.number], pl.Float64))
    steps = Steps(frame, ("amount", "threshold"), 1)
    return StepsChart(chart, steps, lambda: _history_marks(flag, measured), window)


def _history_marks(flag: Flag, measured: MeasureHistory) -> list[Mark]:
    """Mark the run, the first excess, and the last finding of an ended flag: charts go on."""
    bounds = (flag.job.started_at, flag.job.ended_at) if flag.job else ()
    run = [Mark(moment, "", Meaning.RUN) for moment in bounds if moment]
    if flag.ended_at and flag.until < measured.span.end:
        run.append(Mark(flag.until, "last finding", Meaning.FLAG))
    reached = measured.first_reached(flag.thresholds[measured.number])
    if reached is None:
        return run
    ended_at = flag.job.ended_at if flag.job else None
    return [flag_mark(reached, "threshold reached", ended_at), *run]


def job_marks(flags: Iterable[Flag], ended_at: datetime | None) -> list[Mark]:
    """Return marks for a job's timelines, where its flags reached their thresholds.

    Flags that share a place, such as the end of the run, share a mark.
    """
    places: dict[datetime, list[tuple[datetime, str]]] = defaultdict(list)
    for flag in flags:
        at, label = _reached(flag)
        places[min(at, ended_at or at)].append((at, label))
    return [
        flag_mark(
            max(at for at, _ in marks),
            marks[0][1] if len(marks) == 1 else f"{len(marks)} flags",
            ended_at,
        )
        for marks in places.values()
    ]


def _reached(flag: Flag) -> tuple[datetime, str]:
    """Return when a flag's measure reached its threshold, or else was evaluated, and a label."""
    measured = history.for_flag(flag)
    if measured is None or measured.number != flag.measure:
        return flag.since, f"{flag.title} (whole run)"
    reached = measured.first_reached(flag.thresholds[measured.number])
    return (reached, flag.title) if reached else (flag.since, f"{flag.title} (evaluated)")


def flag_mark(at: datetime, label: str, ended_at: datetime | None) -> Mark:
    """Return a flag's mark, at the job's end if that is earlier.

    Charts of a job end shortly after its run, but the interval that counted its last operations
    may end much later.
    """
    if ended_at is None or at <= ended_at:
        return Mark(at, label, Meaning.FLAG)
    clock, day = timezone.localtime(at), timezone.localtime(ended_at).date()
    form = "%H:%M:%S" if clock.date() == day else "%Y-%m-%d %H:%M:%S"
    return Mark(ended_at, f"{label}, counted by {clock:{form}}", Meaning.FLAG)


def _stepped(amounts: pl.DataFrame, window: TimeRange, *, adds_up: bool) -> pl.DataFrame:
    """Return steps of amounts at the ends of intervals, which may overlap or leave gaps.

    In gaps a cumulative amount is constant, and any other is null; gaps count as observed.
    """
    group = -(-amounts.height // _MAX_STEPS) or 1
    before = pl.col("end").shift()
    steps = (
        amounts.group_by("end")
        .agg(pl.min("start"), pl.max("amount"))
        .sort("end")
        .group_by(pl.int_range(pl.len()) // group, maintain_order=True)
        .agg(pl.first("start"), pl.last("end"), pl.max("amount"))
        .select(pl.max_horizontal("start", before), "end", "amount")
        .filter(pl.col("end") > pl.col("start"))
    )
    begin, end = (pl.lit(moment, UTC_US) for moment in (window.start, window.end))
    before_each = steps.select(start=before.fill_null(begin), end="start")
    after_all = steps.tail(1).select(start="end", end=end)
    gaps = (
        pl.concat([before_each, after_all])
        .filter(pl.col("end") > pl.col("start"))
        .with_columns(amount=pl.lit(None, pl.Float64))
    )
    amount = pl.col("amount").forward_fill() if adds_up else pl.col("amount")
    return (
        pl.concat([steps.cast({"amount": pl.Float64}), gaps])
        .sort("start")
        .select("start", "end", observed=pl.lit(1, pl.Int64), amount=amount)
    )
