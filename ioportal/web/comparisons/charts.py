"""The charts of a comparison, each with its table and export."""

from __future__ import annotations

from datetime import datetime, time
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import polars as pl
from django.utils import timezone

from ioportal.changes import mitigation_marks
from ioportal.changes.arm_details import arm_jobs
from ioportal.changes.charts import comparisons as charts
from ioportal.changes.charts.comparisons import Days, Distribution, Quantity, Ratio, Region, Shares
from ioportal.core import formatting
from ioportal.core.charts.time_axis import CalendarAxis, Mark, Meaning, drawn_unit
from ioportal.core.charts.timelines import Chart, Style
from ioportal.core.formatting import lowered, signed
from ioportal.core.units import Unit
from ioportal.jobs import trends as questions
from ioportal.jobs.analysis import trends
from ioportal.jobs.analysis.comparison.results import Scale as EffectScale
from ioportal.jobs.analysis.comparison.results import Verdict
from ioportal.jobs.analysis.histograms import Scale
from ioportal.jobs.analysis.trends import MAX_BUCKETS, Step
from ioportal.jobs.cache import cached
from ioportal.jobs.charts import histograms
from ioportal.jobs.charts import trends as trend_charts
from ioportal.jobs.populations.selections import BATCH_JOBS, figures_version
from ioportal.jobs.trends import BATCH_RECORDS, PANDA_RECORDS
from ioportal.web.common.parts import Part
from ioportal.web.common.tables import Column, by_position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ioportal.core.charts.time_axis import Figure
    from ioportal.core.time_ranges import TimeRange
    from ioportal.jobs.analysis.trends import Buckets
    from ioportal.jobs.populations.selections import JobKind
    from ioportal.web.comparisons.compared_arms import ComparedArms

_BOX = {"p5": 5, "p25": 25, "p50": 50, "p75": 75, "p95": 95}
_TABLE_PERCENTS = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 100)
_WIDE = 30  # p95 / p5 above which a value axis is logarithmic
_DRAWN_KINDS = 8  # of operations; the table has all
_OUTSIDE = "outside"
_NOON = time(12)


def ratios(page: ComparedArms) -> Part[Any]:
    """Return the ratios to the first arm, a row for each metric."""
    others = page.arms[1:]
    rows: list[list[Any]] = []
    drawn = []
    table: list[Any] = []
    for metric, compared in page.compared:
        cells: list[Ratio | None] = []
        values: list[float | None] = []
        for arm, effect in zip(others, compared.effects, strict=True):
            known = effect.scale is EffectScale.RATIO and effect.verdict is not Verdict.REFUSED
            ratio = effect.estimate if known else None
            cells.append(None if ratio is None else Ratio(arm.name, ratio, effect.low, effect.high))
            values += (ratio, effect.low, effect.high) if known else (None, None, None)
            rows.append(
                [metric.name, arm.name, str(effect.scale), effect.estimate, effect.low, effect.high]
            )
        if any(cells):
            drawn.append((metric.title, cells))
            table.append((metric.title, *values))
    return Part(
        "Ratios of medians",
        by_position(
            Column("metric", "Metric"),
            *(
                Column("", title, unit="", form=formatting.significant)
                for arm in others
                for title in (f"{arm.name}: ratio", "from", "to")
            ),
        ),
        table,
        "ratios",
        charts.ratios(drawn, page.arms[0].name),
        about=f"Median of each metric, divided by the median of {page.arms[0].name}, with 95 % "
        "intervals. Left of 1: lower; right: higher.",
        exported=(("metric", "arm", "scale", "estimate", "low", "high"), rows),
    )


def distributions(page: ComparedArms) -> Part[Any]:
    """Return the distribution functions of the selected metric."""
    metric = page.metric
    quantiles = [figures.quantiles for figures in page.selected.arms]
    columns = by_position(
        Column("percent", "Jobs", form="{} %".format),
        *(
            Column(letter, name, unit=metric.unit)
            for letter, name in zip(page.letters, page.names, strict=True)
        ),
    )
    rows = [(percent, *_at(quantiles, percent)) for percent in range(101)]
    return Part(
        f"Distribution of {lowered(metric.title)}",
        columns,
        [rows[percent] for percent in _TABLE_PERCENTS],
        "distributions",
        charts.distributions(_quantity(page), _distributions(page)),
        has_figure=any(quantiles),
        about=f"Share of the jobs with at most a value{page.weighting}.",
        exported=([column.name for column in columns], rows),
    )


def boxes(page: ComparedArms) -> Part[Any]:
    """Return a box for each arm."""
    metric = page.metric
    values = [
        [figures.quantiles[at] if figures.quantiles else None for at in _BOX.values()]
        for figures in page.selected.arms
    ]
    return Part(
        f"Quartiles of {lowered(metric.title)}",
        by_position(Column("arm", "Arm"), *(Column(name, name, unit=metric.unit) for name in _BOX)),
        [(name, *row) for name, row in zip(page.names, values, strict=True)],
        "boxes",
        charts.boxes(_quantity(page), _distributions(page)),
        has_figure=any(figures.quantiles for figures in page.selected.arms),
        about=f"Box: quartiles and median. Whiskers: p5 to p95. Dashed: mean{page.weighting}.",
    )


def histogram(page: ComparedArms) -> Part[Any] | None:
    """Return the overlaid histograms; None: the values are fractions."""
    counted = page.metric_details.histogram
    if counted is None:
        return None
    metric = page.metric
    bars = [
        histograms.Bars(arm.name, sum(filter(None, counts)), counts)
        for arm, counts in zip(page.arms, counted.counts, strict=True)
    ]

    def label(value: int) -> str:
        if metric.unit is Unit.BYTES:
            return formatting.all_bytes(value)
        return f"{value:,} s" if metric.unit is Unit.SECONDS else f"{value:,}"

    tick = label if metric.unit is Unit.BYTES else formatting.short
    size, unit = drawn_unit(metric.unit, _highest(page))
    chart = histograms.Chart(
        metric.title,
        unit,
        label,
        tick,
        Scale.LOG,
        as_shares=True,
        counted=page.kind.plural,
        size=size,
    )
    rows = [
        (*bounds, *counts)
        for bounds, counts in zip(counted.bins, zip(*counted.counts, strict=True), strict=True)
    ]
    columns: tuple[Column[Any], ...] = (
        Column("", metric.title, lambda row: histograms.bounds_in_words(label, row[:2])),
        *(
            Column(letter, name, itemgetter(at), "")
            for at, (letter, name) in enumerate(zip(page.letters, page.names, strict=True), 2)
        ),
    )
    return Part(
        f"Histogram of {lowered(metric.title)}",
        columns,
        [row for row in rows if any(row[2:])],
        "histogram",
        histograms.figure(chart, counted.bins, bars, [""] * len(counted.bins)),
        has_figure=bool(counted.bins),
        about="Share of the jobs of each arm in each bin, without weights.",
        exported=(("from", "below", *page.letters), rows),
    )


def days(page: ComparedArms) -> Part[Any]:
    """Return the median of each day, with the quartiles."""
    metric = page.metric
    size, unit = drawn_unit(metric.unit, _highest(page))
    zone = timezone.get_current_timezone()
    arms = []
    for arm, frame in zip(page.arms, page.metric_details.days, strict=True):
        scaled = frame.with_columns(pl.col("p25", "median", "p75") / size)
        middles = [datetime.combine(day, _NOON, zone) for day in scaled["day"]]
        columns = (scaled[name].to_list() for name in ("median", "p25", "p75", "n"))
        arms.append(Days(arm.name, middles, *columns))
    rows = [
        (arm.name, day, n, p25, median, p75)
        for arm, frame in zip(page.arms, page.metric_details.days, strict=True)
        for day, p25, median, p75, n in frame.iter_rows()
    ]
    span = page.span
    return Part(
        f"Daily medians of {lowered(metric.title)}",
        by_position(
            Column("arm", "Arm"),
            Column("day", "Day"),
            Column("jobs", "Jobs", unit=""),
            Column("p25", "p25", unit=metric.unit),
            Column("median", "Median", unit=metric.unit),
            Column("p75", "p75", unit=metric.unit),
        ),
        rows,
        "days",
        charts.daily_medians(
            Quantity(metric.title, unit, _is_log(page)),
            arms,
            _axis(span),
            _marks(page, span),
            questions.unread(span.start, span.end) if metric.is_counted else [],
        )
        if span
        else {},
        about="By the day of the start, without weights. Band: quartiles. Dotted lines: bounds of "
        "the arms. Lines are interrupted at days without values.",
    )


def completed(page: ComparedArms) -> Part[Any]:
    """Return the completed jobs of each day, with the periods of the arms shaded."""
    span = page.span
    outcome = "completed" if page.kind is BATCH_JOBS else "finished"
    title = f"{outcome.capitalize()} {page.kind.plural} per day"
    buckets = _buckets(span) if span else None
    counts = _counts(page, buckets, outcome) if buckets else {}
    labels = dict(zip(counts, [*page.names, _OUTSIDE], strict=False))
    frame = pl.DataFrame(counts)
    figure: Figure = {}
    rows: list[tuple[Any, ...]] = []
    if buckets:
        chart = Chart("completed", title, page.kind.plural, "", Style.STACK, labels, _colours)
        axis = trend_charts.axis_of(buckets)
        drawn = trend_charts.figure(chart, frame, buckets)
        figure = charts.with_regions(drawn, axis, _regions(page))
        rows = [
            (*bounds, *values)
            for bounds, values in zip(buckets.bounds, frame.iter_rows(), strict=True)
        ]
    return Part(
        title,
        by_position(
            Column("start", "Day", form=lambda start: f"{timezone.localtime(start).date()}"),
            Column("end", ""),
            *(Column(name, label, unit="") for name, label in labels.items()),
        ),
        rows,
        "completed",
        figure,
        has_figure=any(frame[kind].sum() for kind in counts),
        about="By the day of the end, from the first to the last time of the arms. Shaded: the "
        "period of each arm.",
    )


def mix(page: ComparedArms) -> Part[Any]:
    """Return the shares of the kinds of metadata operations."""
    about = (
        f"Share of each kind in all metadata operations of the arm (job_stats); the {_DRAWN_KINDS} "
        "most frequent kinds."
    )
    counts = [each.operations for each in page.details.mixes]
    return _mix(page, "mix", "metadata operations", about, counts)


def rpcs(page: ComparedArms) -> Part[Any] | None:
    """Return the shares of the kinds of metadata RPCs; None: no job was traced."""
    mixes = page.details.mixes
    if not any(each.traced for each in mixes):
        return None
    traced = ", ".join(
        f"{each.traced:,} of {each.jobs:,} in “{arm.name}”"
        for arm, each in zip(page.arms, mixes, strict=True)
    )
    about = (
        f"Share of each kind in all metadata RPCs of the arm (rpctrace); the {_DRAWN_KINDS} most "
        f"frequent kinds. Batch jobs with traces: {traced}."
    )
    return _mix(page, "rpcs", "metadata RPCs", about, [each.rpcs for each in mixes])


def _mix(
    page: ComparedArms, name: str, things: str, about: str, mixes: Sequence[Mapping[str, int]]
) -> Part[Any]:
    """Return the shares of kinds in each arm, and their differences to the first arm.

    Args:
        page: the page.
        name: name of the chart.
        things: name of the counted items, in the plural.
        about: explanation of the chart.
        mixes: counts by kind of each arm.
    """
    totals = [sum(counts.values()) for counts in mixes]
    shares = {
        kind: [
            counts.get(kind, 0) / total if total else None
            for counts, total in zip(mixes, totals, strict=True)
        ]
        for kind in sorted({kind for counts in mixes for kind, n in counts.items() if n})
    }
    by_kind = sorted(shares.items(), key=lambda row: -max(filter(None, row[1])))
    arms = [
        Shares(arm.name, [of_kind[number] for _, of_kind in by_kind])
        for number, arm in enumerate(page.arms)
    ]
    unit = things.rsplit(maxsplit=1)[-1]
    rows = [
        (kind, *of_kind, *(counts.get(kind, 0) for counts in mixes)) for kind, of_kind in by_kind
    ]
    columns = by_position(
        Column("kind", "Kind"),
        *(
            Column(letter, arm.name, unit=Unit.SHARE)
            for letter, arm in zip(page.letters, page.arms, strict=True)
        ),
        *(Column(f"{letter}_{unit.lower()}", "") for letter in page.letters),
    )
    differences = [
        Column[Any](
            "",
            arm.name,
            _difference(number),
            "difference (percentage points)",
            form=lambda points: signed(points, ".1f"),
        )
        for number, arm in enumerate(page.arms[1:], 2)
    ]
    return Part(
        f"Mix of {things}",
        (*columns, *differences),
        rows,
        name,
        charts.shares(f"Share of the {unit}", [kind for kind, _ in by_kind][:_DRAWN_KINDS], arms),
        about=about,
    )


def _difference(number: int) -> Callable[[Sequence[Any]], float | None]:
    """Return the difference of a share to the first in percentage points."""

    def difference(row: Sequence[Any]) -> float | None:
        first, share = row[1], row[number]
        return None if first is None or share is None else 100 * (share - first)

    return difference


PARTS: dict[str, Callable[[ComparedArms], Part[Any] | None]] = {
    "ratios": ratios,
    "mix": mix,
    "rpcs": rpcs,
    "days": days,
    "completed": completed,
    "distributions": distributions,
    "histogram": histogram,
    "boxes": boxes,
}


def _at(quantiles: Sequence[Sequence[float | None]], percent: int) -> list[float | None]:
    return [values[percent] if values else None for values in quantiles]


def _highest(page: ComparedArms) -> float:
    """Return the highest p95 of any arm, by which the unit of charts is chosen."""
    return max((_quantile(figures.quantiles, 95) for figures in page.selected.arms), default=0.0)


def _quantile(quantiles: Sequence[float | None], percent: int) -> float:
    return (quantiles[percent] or 0.0) if quantiles else 0.0


def _is_log(page: ComparedArms) -> bool:
    """Whether the arms together span a wide range of positive values."""
    lows = [_quantile(figures.quantiles, 5) for figures in page.selected.arms if figures.quantiles]
    return bool(lows) and min(lows) > 0 and _highest(page) > _WIDE * min(lows)


def _quantity(page: ComparedArms) -> Quantity:
    _, unit = drawn_unit(page.metric.unit, _highest(page))
    return Quantity(page.metric.title, unit, _is_log(page))


def _distributions(page: ComparedArms) -> list[Distribution]:
    size, _ = drawn_unit(page.metric.unit, _highest(page))

    def scaled(value: float | None) -> float | None:
        return None if value is None else value / size

    return [
        Distribution(arm.name, [scaled(value) for value in figures.quantiles], scaled(figures.mean))
        for arm, figures in zip(page.arms, page.selected.arms, strict=True)
    ]


def _axis(span: TimeRange) -> CalendarAxis:
    return CalendarAxis(span.start, span.end, timezone.get_current_timezone())


def _marks(page: ComparedArms, span: TimeRange) -> list[Mark]:
    bounds = {at for arm in page.arms for at in (arm.start, arm.end) if at}
    return [
        *(Mark(at, "", Meaning.RUN) for at in sorted(bounds) if span.start < at < span.end),
        *(Mark(at, text, Meaning.BREAK) for at, text in page.upgrades),
        *mitigation_marks.for_populations([arm.query() for arm in page.arms], span, page.user),
    ]


def _buckets(span: TimeRange) -> Buckets:
    step = Step.DAY
    if not step.fits(span.start, span.end, MAX_BUCKETS):
        step = trends.step_for(span.start, span.end)
    return trends.buckets(span.start, span.end, step, timezone.get_current_timezone())


def _regions(page: ComparedArms) -> list[Region]:
    """Return the different periods of the arms, and the time between consecutive periods."""
    if len({(arm.start, arm.end) for arm in page.arms}) == 1:
        return []
    periods = [
        Region(arm.name, arm.start, arm.end, arm.number)
        for arm in page.arms
        if arm.start and arm.end
    ]
    periods.sort(key=lambda region: region.start)
    between = [
        Region("excluded", before.end, after.start, None)
        for before, after in pairwise(periods)
        if before.end < after.start
    ]
    return [*periods, *between]


def _colours(kinds: list[str]) -> dict[str, str]:
    numbers = {kind: None if kind == _OUTSIDE else int(kind[3:]) - 1 for kind in kinds}
    return {kind: charts.token_of(number) for kind, number in numbers.items()}


def _counts(page: ComparedArms, buckets: Buckets, outcome: str) -> dict[str, list[int]]:
    """Return the ended jobs of each bucket by arm; of one population also outside of its arms."""
    selections = [arm.selection for arm in page.arms]
    keys = [selection.key for selection in selections]
    ended: list[list[int]] = cached(
        "comparison-ended",
        (keys, page.query.is_before_and_after, buckets.edges),
        lambda: [_ended(jobs, page.kind, buckets, outcome) for jobs in _populations(page)],
        lambda: figures_version(page.kind),
    )
    counts = dict(zip(page.letters, ended, strict=False))
    if len(ended) > len(counts):
        inside = (sum(column) for column in zip(*counts.values(), strict=True))
        pairs = zip(ended[-1], inside, strict=True)
        counts[_OUTSIDE] = [max(0, everything - n) for everything, n in pairs]
    return counts


def _populations(page: ComparedArms) -> Iterator[Any]:
    """Yield the jobs of each arm, and of one population all of its jobs."""
    yield from (arm_jobs(arm.selection) for arm in page.arms)
    if page.query.is_before_and_after:
        yield page.whole_population


def _ended(jobs: Any, kind: JobKind, buckets: Buckets, outcome: str) -> list[int]:
    records = BATCH_RECORDS if kind is BATCH_JOBS else PANDA_RECORDS
    rows = questions.outcomes(jobs, records, buckets)
    return [int(n) for n in trends.table(rows, records.ended, len(buckets), 0)[outcome]]
