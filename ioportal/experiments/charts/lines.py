"""Lines over the time of runs or by scale: look-ups, samples, bursts of output, scaling tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ioportal.core.charts import time_axis
from ioportal.core.charts.axes import plotly_text, shown_unit
from ioportal.core.charts.palette import LOOKS
from ioportal.core.charts.time_axis import ElapsedAxis, number_format
from ioportal.experiments.analysis.bursts import BAND
from ioportal.experiments.analysis.stragglers import RECOVERY_S
from ioportal.experiments.charts.axes import (
    error_bars,
    layout,
    line,
    logarithmic_axis,
    number,
    values_axis,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ioportal.core.charts.palette import Look
    from ioportal.core.charts.time_axis import Figure
    from ioportal.experiments.analysis.scaling import Scaling
    from ioportal.experiments.analysis.stragglers import Persistence, Skill


_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)  # any; the axis counts from the first call
_THIN = 0.35  # opacity of all look-ups, behind the failed ones
_BAND = 0.16
_MINUTE_S = 60


def over_time(arms: Sequence[tuple[str, pl.DataFrame]], width_s: int) -> Figure:
    """Draw the failed and all look-ups per second of each arm.

    Args:
        arms: name, and a frame with ``second``, ``ok`` and ``failed`` by interval.
        width_s: width of the intervals.
    """
    end_s = max((second for _, frame in arms for second in frame["second"].to_list()), default=0)
    axis = ElapsedAxis.of_run(_ORIGIN, _ORIGIN + timedelta(seconds=end_s + width_s))
    data = []
    highest = 0.0
    for (name, frame), look in zip(arms, LOOKS, strict=False):
        places = [axis.length(timedelta(seconds=second)) for second in frame["second"].to_list()]
        total = [(ok + failed) / width_s for ok, failed in frame.select("ok", "failed").iter_rows()]
        failed = [count / width_s for count in frame["failed"].to_list()]
        highest = max([highest, *total])
        for label, values, opacity in (("all", total, f"/{_THIN}"), ("failed", failed, "")):
            drawn = line(f"{name}, {label}", look, places, values, "%{y:,.4~s}/s")
            drawn["line"] |= {"color": f"{look.token}{opacity}", "shape": "hv"}
            data.append(drawn)
    base = time_axis.layout(axis, (), (), title="Look-ups", unit="1/s", highest=highest)
    base["yaxis"]["tickformat"] = number_format(highest, "1/s")
    return {"data": data, "layout": {**base, "dragmode": False}}


def over_run(
    title: str, unit: str, runs: Sequence[tuple[str, int, pl.DataFrame]], column: str
) -> Figure:
    """Draw a column of the curves of runs as lines over the time since their start.

    Args:
        title: of the chart.
        unit: unit of the column.
        runs: name, number of the look from 0, and a frame with ``elapsed_s`` and the column; null:
            interrupts the line.
        column: a level or a rate of `experiments.analysis.runs.curves`.
    """
    end_s = max((s for _, _, frame in runs for s in frame["elapsed_s"].to_list()), default=0.0)
    axis = ElapsedAxis.of_run(_ORIGIN, _ORIGIN + timedelta(seconds=max(end_s, 1)))
    values = [value for _, _, frame in runs for value in frame[column].drop_nulls().to_list()]
    highest = max(values, default=0.0)
    hover = f"%{{y:,{number(unit, highest)}}} {unit}"
    data = [
        line(
            name,
            LOOKS[look],
            [axis.length(timedelta(seconds=elapsed_s)) for elapsed_s in frame["elapsed_s"]],
            frame[column],
            hover,
            mode="lines" if frame.height > 1 else "markers",
        )
        for name, look, frame in runs
    ]
    base = time_axis.layout(axis, (), (), title=title, unit=unit, highest=highest)
    return {"data": data, "layout": {**base, "dragmode": False}}


def of_bursts(
    quantity: tuple[str, str], x_min: Sequence[float], lines: Sequence[tuple[str, Sequence[float]]]
) -> Figure:
    """Draw values of bursts over time.

    Args:
        quantity: title and unit.
        x_min: start of each burst in minutes.
        lines: name and values of each line; at most as many as looks.
    """
    title, unit = quantity
    highest = max(max(values) for _, values in lines)
    hover = f"%{{x:.1f}} min: %{{y:{number(unit, highest)}}} {shown_unit(unit)}"
    data = [
        line(name, look, x_min, values, hover, mode="lines+markers")
        for (name, values), look in zip(lines, LOOKS, strict=False)
    ]
    for drawn in data:
        drawn["line"] = {**drawn["line"], "width": 1.2, "dash": "solid"}
        drawn["marker"]["size"] = 4
    axes = values_axis("Time", "min", 0), values_axis(title, unit, highest)
    return {"data": data, "layout": layout(*axes)}


def scores(pair: Sequence[float], lag: Sequence[float]) -> Figure:
    """Draw the distribution of effective bandwidths, with the band from 0.4 to 0.9.

    Args:
        pair: pair effective bandwidth at 0 %, 1 %, ..., 100 % of the transfers.
        lag: lag effective bandwidth at the same percentages.
    """
    named = (("pair (upper bound)", pair), ("lag (lower bound)", lag))
    return {
        "data": [
            line(name, look, values, range(len(values)), "%{y} % up to %{x:.3f}")
            for (name, values), look in zip(named, LOOKS, strict=False)
        ],
        "layout": layout(
            values_axis("Effective bandwidth, relative to the peak", "", max(*pair, *lag)),
            values_axis("% of transfers", "", 100, range=[0, 101], dtick=25),
            shapes=[
                {
                    "type": "rect",
                    "yref": "paper",
                    "x0": BAND[0],
                    "x1": BAND[1],
                    "y0": 0,
                    "y1": 1,
                    "fillcolor": "--series-3/0.12",
                    "line": {"width": 0},
                    "layer": "below",
                }
            ],
        ),
    }


def survival(states: Sequence[tuple[str, Persistence]]) -> Figure:
    """Draw the share of episodes that last longer than a time, with lines at 2 and 10 minutes.

    Args:
        states: name and persistence of each state; those without episodes have no line.
    """
    drawn = [(name, each) for name, each in states if each.times_s]
    longest = max([each.times_s[-1] for _, each in drawn] + [RECOVERY_S[-1]])
    data = [
        line(
            name,
            look,
            [time / _MINUTE_S for time in each.times_s],
            each.lasting,
            "%{y:.1~%} longer than %{x:.1f} min",
        )
        for (name, each), look in zip(drawn, LOOKS, strict=False)
    ]
    for each in data:
        each["line"]["shape"] = "hv"
    return {
        "data": data,
        "layout": layout(
            values_axis("Time since the first burst in the state", "min", longest / _MINUTE_S),
            values_axis("Share of episodes", "", 1, tickformat=".0%", range=[0, 1.03]),
            shapes=[_vertical(limit / _MINUTE_S) for limit in RECOVERY_S],
        ),
    }


def _vertical(at: float) -> Figure:
    return {
        "type": "line",
        "yref": "paper",
        "x0": at,
        "x1": at,
        "y0": 0,
        "y1": 1,
        "line": {"color": "--ink-soft", "width": 1, "dash": "dot"},
    }


def skill(named: Sequence[tuple[str, Sequence[Skill]]]) -> Figure:
    """Draw the skill of "avoid components slow k minutes ago" by k, with 95 % intervals.

    Args:
        named: name and skills of each component (targets, clients).
    """
    data = []
    for (name, skills), look in zip(named, LOOKS, strict=False):
        values = [each.skill for each in skills]
        bars = error_bars(
            look,
            [each.high - each.value for each in values],
            [each.value - each.low for each in values],
        )
        lags_min = [each.lag_s / _MINUTE_S for each in skills]
        hover = "%{x:~g} min: %{y:.3f}"
        drawn = line(name, look, lags_min, [each.value for each in values], hover, error_y=bars)
        drawn["mode"], drawn["marker"]["size"] = "lines+markers", 8
        data.append(drawn)
    return {
        "data": data,
        "layout": layout(
            values_axis("Age of the information", "min", 0),
            values_axis("Skill: 0 no information, 1 all avoided", "", 1, rangemode="normal"),
        ),
    }


def by_scale(
    quantity: tuple[str, str],
    series: Sequence[tuple[str, Look, Scaling, Sequence[tuple[float, float, str]]]],
) -> Figure:
    """Draw the values of a scaling test: single runs, means with 95 % intervals, fits with bands.

    Args:
        quantity: title and unit.
        series: of each arm its name, look, analysis and runs (scale, value, name); values and
            scales are above 0.
    """
    title, unit = quantity
    points = [run for _, _, _, runs in series for run in runs]
    scales, values = [scale for scale, _, _ in points], [value for _, value, _ in points]
    value = f"%{{y:{number(unit, max(values))}}} {shown_unit(unit)}"
    axes = logarithmic_axis("Nodes", "", scales), logarithmic_axis(title, unit, values)
    return {
        "data": [drawn for each in series for drawn in _arm(*each, value)],
        "layout": layout(*axes),
    }


def _arm(
    name: str,
    look: Look,
    scaling: Scaling,
    runs: Sequence[tuple[float, float, str]],
    value: str,
) -> list[Figure]:
    scales, values, names = zip(*runs, strict=True)
    outlying = [at in scaling.outliers for at in range(len(runs))]
    dots = line(
        f"{name}, runs",
        look,
        scales,
        values,
        f"%{{text}}: {value} at %{{x:,~g}}<extra></extra>",
        mode="markers",
        text=list(map(plotly_text, names)),
        showlegend=False,
        marker={
            "color": f"{look.token}/0.5",
            "size": [9 if is_outlying else 5 for is_outlying in outlying],
            "symbol": ["x" if is_outlying else "circle" for is_outlying in outlying],
        },
    )
    levels = scaling.levels
    intervals = [level.mean for level in levels]
    # A bound below zero has no place on the axis.
    below = [min(mean.value - mean.low, 0.9 * mean.value) for mean in intervals]
    means = line(
        f"{name}: mean, 95 % interval",
        look,
        [level.scale for level in levels],
        [mean.value for mean in intervals],
        f"mean of %{{customdata}} runs at %{{x:,~g}}: {value}<extra></extra>",
        mode="markers",
        error_y=error_bars(look, [mean.high - mean.value for mean in intervals], below),
        customdata=[level.count for level in levels],
    )
    means["marker"]["size"] = 9
    return [*_fit(scaling, look, name), dots, means]


def _fit(scaling: Scaling, look: Look, name: str) -> list[Figure]:
    """Return the band as two lines with the area between them, and the fitted line."""
    if scaling.growth is None:
        return []
    curve = scaling.growth.curve
    scales = [point.scale for point in curve]
    edge = {"line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    band = {**edge, "fill": "tonexty", "fillcolor": f"{look.token}/{_BAND}"}
    return [
        line(name, look, scales, [point.low for point in curve], "", **edge),
        line(name, look, scales, [point.high for point in curve], "", **band),
        line(f"{name}: fit", look, scales, [point.value for point in curve], "", hoverinfo="skip"),
    ]
