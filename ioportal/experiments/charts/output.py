"""Figures of output performance: bursts over time, scores, persistence, prediction, targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.core.charts.arms import LOOKS
from ioportal.core.charts.labels import plotly_text, shown_unit
from ioportal.experiments.analysis.bursts import BAND
from ioportal.experiments.analysis.stragglers import RECOVERY_S
from ioportal.experiments.charts.axes import layout, number, values_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ioportal.core.charts.time_axis import Figure
    from ioportal.experiments.analysis.stragglers import Persistence, Skill

_MINUTE_S = 60
_SHARE = ".1~%"


def over_time(
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
    value = f"%{{y:{number(unit, highest)}}} {shown_unit(unit)}"
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": plotly_text(name),
                "x": list(x_min),
                "y": list(values),
                "line": {"color": look.token, "width": 1.2},
                "marker": {"size": 4, "symbol": look.symbol},
                "hovertemplate": f"%{{x:.1f}} min: {value}",
            }
            for (name, values), look in zip(lines, LOOKS, strict=False)
        ],
        "layout": layout(
            values_axis("Time", "min", 0),
            values_axis(title, unit, highest),
        ),
    }


def scores(pair: Sequence[float], lag: Sequence[float]) -> Figure:
    """Draw the distribution of effective bandwidths, with the band from 0.4 to 0.9.

    Args:
        pair: pair effective bandwidth at 0 %, 1 %, ..., 100 % of the transfers.
        lag: lag effective bandwidth likewise.
    """
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": list(values),
                "y": list(range(len(values))),
                "line": {"color": look.token, "width": 1.8, "dash": look.dash},
                "hovertemplate": "%{y} % up to %{x:.3f}",
            }
            for name, values, look in (
                ("pair (upper bound)", pair, LOOKS[0]),
                ("lag (lower bound)", lag, LOOKS[1]),
            )
        ],
        "layout": layout(
            values_axis("Effective bandwidth, relative to the peak", "", max(*pair, *lag)),
            values_axis("% of transfers", "", 100, range=[0, 101], dtick=25),
            shapes=[
                {
                    "type": "rect",
                    "xref": "x",
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
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines",
                "name": plotly_text(name),
                "x": [time / _MINUTE_S for time in each.times_s],
                "y": list(each.lasting),
                "line": {"color": look.token, "width": 1.8, "shape": "hv", "dash": look.dash},
                "hovertemplate": f"%{{y:{_SHARE}}} longer than %{{x:.1f}} min",
            }
            for (name, each), look in zip(drawn, LOOKS, strict=False)
        ],
        "layout": layout(
            values_axis("Time since the first burst in the state", "min", longest / _MINUTE_S),
            values_axis("Share of episodes", "", 1, tickformat=".0%", range=[0, 1.03]),
            shapes=[_vertical(limit / _MINUTE_S) for limit in RECOVERY_S],
        ),
    }


def _vertical(at: float) -> Figure:
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": at,
        "x1": at,
        "y0": 0,
        "y1": 1,
        "line": {"color": "--ink-soft", "width": 1, "dash": "dot"},
    }


def skill(named: Sequence[tuple[str, Sequence[Skill]]]) -> Figure:
    """Draw the skill of "avoid what was slow k minutes ago" by k, with 95 % intervals.

    Args:
        named: name and skills of each component (targets, clients).
    """
    data = []
    for (name, skills), look in zip(named, LOOKS, strict=False):
        values = [each.skill for each in skills]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": plotly_text(name),
                "x": [each.lag_s / _MINUTE_S for each in skills],
                "y": [each.value for each in values],
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": [each.high - each.value for each in values],
                    "arrayminus": [each.value - each.low for each in values],
                    "color": look.token,
                },
                "line": {"color": look.token, "width": 1.4, "dash": look.dash},
                "marker": {"size": 8, "symbol": look.symbol},
                "hovertemplate": "%{x:~g} min: %{y:.3f}",
            }
        )
    return {
        "data": data,
        "layout": layout(
            values_axis("Age of the information", "min", 0),
            values_axis("Skill: 0 no information, 1 all avoided", "", 1, rangemode="normal"),
        ),
    }


def targets(table: pl.DataFrame, mean_bytes: float) -> Figure:
    """Draw the bytes of each target, the most first, with a line at their mean.

    Args:
        table: `placement.Imbalance.targets`.
        mean_bytes: mean of the targets.
    """
    highest = float(table["bytes"].max() or 0)  # type: ignore[arg-type]  # a number
    return {
        "data": [
            {
                "type": "bar",
                "name": "bytes",
                "x": [plotly_text(name) for name in table["target"]],
                "y": table["bytes"].to_list(),
                "marker": {"color": "--series-1"},
                "hovertemplate": f"%{{x}}: %{{y:{number('B', highest)}}}B<extra></extra>",
            }
        ],
        "layout": {
            **layout(
                {"type": "category", "fixedrange": True, "nticks": 12, "automargin": True},
                values_axis("Bytes by target", "B", highest),
                shapes=[
                    {
                        "type": "line",
                        "xref": "paper",
                        "yref": "y",
                        "x0": 0,
                        "x1": 1,
                        "y0": mean_bytes,
                        "y1": mean_bytes,
                        "line": {"color": "--series-2", "width": 1.5, "dash": "dash"},
                    }
                ],
            ),
            "showlegend": False,
        },
    }
