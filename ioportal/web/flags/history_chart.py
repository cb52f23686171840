"""The measured of a flag's number as a chart against its threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from django.utils import timezone

from collectors.tables import UTC_US
from ioportal.analysis.timelines import Steps
from ioportal.charts.time_axis import Mark, Meaning
from ioportal.charts.timelines import Chart, Style
from ioportal.reporting.flag_values import title_of, unit_of
from ioportal.reporting.time_ranges import TimeRange
from ioportal.reporting.timelines import StepsChart

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.flags.history.source import MeasureHistory
    from ioportal.flags.models import Flag

_STEPS_SHOWN = 720
_BESIDES = " Flagged once it was over the rule's other thresholds, too."


def drawn(flag: Flag, whose: str, measured: MeasureHistory | None) -> StepsChart | None:
    """Draw the measured of one of a flag's numbers; None: it has none, or it is no longer kept.

    Args:
        flag: its thresholds.
        whose: what its subject is called.
        measured: of the flag.
    """
    if measured is None or measured.amounts is None:
        return None
    window = TimeRange(*measured.span).with_margin
    chart = Chart(
        "evidence",
        title_of(flag, measured.number),
        str(unit_of(flag, measured.number) or ""),
        measured.about + (_BESIDES if len(flag.thresholds) > 1 else ""),
        Style.LINES,
        {"amount": whose, "threshold": "threshold"},
    )
    stepped = _stepped(measured.amounts, window, adds_up=measured.adds_up)
    frame = stepped.with_columns(threshold=pl.lit(flag.thresholds[measured.number], pl.Float64))
    steps = Steps(frame, ("amount", "threshold"), 1)
    return StepsChart(chart, steps, lambda: _marks(flag, measured), window)


def _marks(flag: Flag, measured: MeasureHistory) -> list[Mark]:
    ends = (flag.job.started_at, flag.job.ended_at) if flag.job else ()
    run = [Mark(moment, "", Meaning.RUN) for moment in ends if moment]
    reached = measured.first_reached(flag.thresholds[measured.number])
    if reached is None:
        return run
    ended_at = flag.job.ended_at if flag.job else None
    return [flag_mark(reached, "threshold reached", ended_at), *run]


def flag_mark(at: datetime, words: str, ended_at: datetime | None) -> Mark:
    """Return a flag's mark, at the job's end if that is earlier.

    Charts of a job end shortly after its run, but the interval that counted its last operations
    may end much later.
    """
    if ended_at is None or at <= ended_at:
        return Mark(at, words, Meaning.FLAG)
    clock, day = timezone.localtime(at), timezone.localtime(ended_at).date()
    form = "%H:%M:%S" if clock.date() == day else "%Y-%m-%d %H:%M:%S"
    return Mark(ended_at, f"{words}, counted by {clock:{form}}", Meaning.FLAG)


def _stepped(amounts: pl.DataFrame, window: TimeRange, *, adds_up: bool) -> pl.DataFrame:
    """Make steps of amounts at the ends of intervals, which may overlap or leave gaps.

    Where nothing was kind, a sum stays, and else there is no line; it is not called unobserved.
    """
    together = -(-amounts.height // _STEPS_SHOWN) or 1
    before = pl.col("end").shift()
    steps = (
        amounts.group_by("end")
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
    so_far = pl.col("amount").forward_fill() if adds_up else pl.col("amount")
    return (
        pl.concat([steps.cast({"amount": pl.Float64}), between])
        .sort("start")
        .select(
            "start",
            "end",
            observed=pl.lit(1, pl.Int64),
            amount=so_far,
        )
    )
