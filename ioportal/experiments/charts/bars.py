"""Bars, boxes and heat maps: charts of categories such as runs, arms or search-path entries."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

from ioportal.core.charts.axes import axis_title, category_text, plotly_text
from ioportal.core.charts.palette import HUES, LOOKS, REST
from ioportal.experiments.charts.axes import categories, layout, number, values_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ioportal.core.charts.time_axis import Figure
    from ioportal.experiments.analysis.access_methods import StepTimes
    from ioportal.experiments.analysis.latency_model import Prediction
    from ioportal.experiments.analysis.storage_timing import Timing


OK, FAILED = "found", "failed"
_ENTRY_CHARACTERS = 44
_ROW = 46  # pixels
_FRAME = 90  # pixels above and below the rows


@dataclass(frozen=True)
class Segment:
    """A part of each row in the unit of the axis; None: unknown, and not drawn."""

    name: str
    token: str
    values: Sequence[float | None]
    pattern: str = ""  # so that colour is not the only cue


def stacked(
    rows: Sequence[str], segments: Sequence[Segment], title: str, unit: str, *, hover: str = ".4~g"
) -> Figure:
    """Draw a bar per row with its segments from left to right.

    Args:
        rows: names, from top to bottom; names may repeat.
        segments: each with a value per row.
        title: title of the value axis.
        unit: unit of the values.
        hover: d3's format of a value.
    """
    values = zip(*(segment.values for segment in segments), strict=True)
    highest = max((sum(abs(value or 0) for value in of_row) for of_row in values), default=0.0)
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "name": plotly_text(segment.name),
                "y": list(range(len(rows))),
                "x": list(segment.values),
                "customdata": [plotly_text(name) for name in rows],
                "marker": {
                    "color": segment.token,
                    "pattern": {"shape": segment.pattern, "size": 6, "solidity": 0.25},
                },
                "hovertemplate": f"%{{customdata}}, {plotly_text(segment.name)}: "
                f"%{{x:{hover}}} {unit}<extra></extra>",
            }
            for segment in segments
        ],
        "layout": layout(
            values_axis(title, unit, highest),
            {
                "automargin": True,
                "fixedrange": True,
                "gridcolor": "--line",
                "zeroline": False,
                "tickvals": list(range(len(rows))),
                "ticktext": [category_text(name) for name in rows],
                "range": [len(rows) - 0.5, -0.5],
            },
            height=_ROW * len(rows) + _FRAME,
            barmode="relative",
        ),
    }


def steps(arms: Sequence[StepTimes], names: Sequence[str]) -> Figure:
    """Draw the mean seconds of each step, and the rest of the wall-clock time, stacked.

    Args:
        arms: at least one.
        names: of the steps.
    """
    segments = [
        Segment(
            name,
            HUES[number % len(HUES)],
            [arm.seconds.get(name) for arm in arms],
            LOOKS[number % len(LOOKS)].pattern,
        )
        for number, name in enumerate(names)
    ]
    rest = Segment("rest of the run", REST, [arm.rest_s for arm in arms])
    return stacked([arm.arm for arm in arms], [*segments, rest], "Mean time", "s")


PARTS = ("CPU", "reads", "other waiting")
_LOOKS = (("--series-1", ""), ("--series-2", "/"), ("--series-rest", "."))


def time_shares(timings: Sequence[Timing]) -> list[tuple[float | None, ...]]:
    """Return the shares of the wall time: CPU, reads, other waiting; None: unknown.

    Other waiting is the rest. It is 0 if CPU time and reads overlap.
    """
    shares: list[tuple[float | None, ...]] = []
    for each in timings:
        cpu, reads = each.figures["cpu_share"], each.figures["read_share"]
        rest = None if cpu is None or reads is None else max(1 - cpu - reads, 0.0)
        shares.append((cpu, reads, rest))
    return shares


def wall_time(timings: Sequence[Timing]) -> Figure:
    """Draw the uses of the wall time of each arm in per cent.

    Reads take processor time, too: of reads that overlap it, the part beyond is drawn.

    Args:
        timings: one per arm, from top to bottom.
    """
    drawn = [
        (cpu, reads if cpu is None or reads is None else min(reads, max(1 - cpu, 0.0)), rest)
        for cpu, reads, rest in time_shares(timings)
    ]
    by_part = zip(*drawn, strict=True) if timings else iter(())
    segments = [
        Segment(name, token, [None if share is None else 100 * share for share in shares], pattern)
        for name, (token, pattern), shares in zip(PARTS, _LOOKS, by_part, strict=False)
    ]
    return stacked([each.name for each in timings], segments, "Share of the wall time", "%")


def terms(predictions: Sequence[Prediction]) -> Figure:
    """Draw the latency and the transfer term of each load, with the measured time as a mark.

    Args:
        predictions: from top to bottom; times in s.
    """
    names = [each.load.name for each in predictions]
    figure = stacked(
        names,
        [
            Segment("latency", "--series-2", [each.latency_s for each in predictions], "/"),
            Segment("transfer", "--series-1", [each.transfer_s for each in predictions]),
        ],
        "Time in storage (s)",
        "s",
    )
    measured = [
        (row, each.load.measured_s)
        for row, each in enumerate(predictions)
        if each.load.measured_s is not None
    ]
    if measured:
        figure["data"].append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "measured",
                "x": [value for _, value in measured],
                "y": [row for row, _ in measured],
                "customdata": [plotly_text(names[row]) for row, _ in measured],
                "marker": {
                    "symbol": "diamond",
                    "size": 11,
                    "color": "--ink",
                    "line": {"color": "--panel", "width": 1.5},
                },
                "hovertemplate": "%{customdata}, measured: %{x:.4~g} s<extra></extra>",
            }
        )
    return figure


def by_entry(entries: Sequence[tuple[str, int, int]]) -> Figure:
    """Draw the wasted look-ups of search-path entries.

    Args:
        entries: path, wasted look-ups, and opens among them; from top to bottom.
    """
    return stacked(
        [shortened(path) for path, _, _ in entries],
        [
            Segment("open", "--series-1", [opens for _, _, opens in entries]),
            Segment("stat and others", "--series-3", [n - opens for _, n, opens in entries], "."),
        ],
        "Wasted look-ups",
        "",
        hover=",",
    )


def shortened(path: str) -> str:
    """Return a path with its first characters replaced if it is long."""
    keep = _ENTRY_CHARACTERS - 1
    return path if len(path) <= _ENTRY_CHARACTERS else f"\N{HORIZONTAL ELLIPSIS}{path[-keep:]}"


def targets(table: pl.DataFrame, mean_bytes: float) -> Figure:
    """Draw the bytes of each target, the most first, with a line at their mean.

    Args:
        table: `output.Imbalance.targets`.
        mean_bytes: mean of the targets.
    """
    highest = float(table["bytes"].max() or 0)  # type: ignore[arg-type]  # a number
    drawn = layout(
        {"type": "category", "fixedrange": True, "nticks": 12, "automargin": True},
        values_axis("Bytes by target", "B", highest),
        shapes=[
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": mean_bytes,
                "y1": mean_bytes,
                "line": {"color": "--series-2", "width": 1.5, "dash": "dash"},
            }
        ],
        showlegend=False,
    )
    bar = {
        "type": "bar",
        "name": "bytes",
        "x": [plotly_text(name) for name in table["target"]],
        "y": table["bytes"].to_list(),
        "marker": {"color": "--series-1"},
        "hovertemplate": f"%{{x}}: %{{y:{number('B', highest)}}}B<extra></extra>",
    }
    return {"data": [bar], "layout": drawn}


_FENCES = ("lowerfence", "q1", "median", "q3", "upperfence")


def box_plot(
    quantity: tuple[str, str], boxes: Sequence[tuple[str, str, Sequence[float]]]
) -> Figure:
    """Draw a horizontal box for each category: quartiles and median, with whiskers p5 to p95.

    Args:
        quantity: title and unit.
        boxes: at least one: its name, its group (a colour: the looks of arms, repeated after the
            fourth), and values at 5, 25, 50, 75 and 95 %.
    """
    groups = list(dict.fromkeys(group for _, group, _ in boxes))
    names = [category_text(name) for name, _, _ in boxes]
    data = []
    for group, look in zip(groups, cycle(LOOKS), strict=False):
        own = [(name, values) for name, of, values in boxes if of == group]
        data.append(
            {
                "type": "box",
                "orientation": "h",
                "name": plotly_text(group),
                "y": [category_text(name) for name, _ in own],
                **{part: [values[at] for _, values in own] for at, part in enumerate(_FENCES)},
                "fillcolor": f"{look.token}/0.25",
                "line": {"color": look.token, "width": 1.8},
                "whiskerwidth": 0.5,
            }
        )
    drawn = layout(
        values_axis(*quantity, max(values[-1] for _, _, values in boxes)),
        {**categories(), "categoryorder": "array", "categoryarray": names},
        rows=names,
        boxmode="overlay",
        showlegend=len(groups) > 1,
    )
    return {"data": data, "layout": drawn}


_SCALE = "Cividis"  # readable with any colour blindness, and in both themes
_PALE_SCALE = [[0, "--series-1/0.04"], [1, "--series-1/0.5"]]  # behind texts
_CELL = 44  # pixels
_FEW = 12  # rows with texts in their cells
_MARGIN = 110
_TALLEST = 620


def heat_map(
    names: tuple[str, str],
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    texts: Sequence[Sequence[str]] | None = None,
    quantity: tuple[str, str],
    bounds: tuple[float, float] | None = None,
) -> Figure:
    """Draw values as colours; small maps have texts in their cells.

    Args:
        names: of rows and columns.
        rows: names of the rows, the first at the top.
        columns: names of the columns.
        values: a list per row; None: no value.
        texts: in the cells; None: none.
        quantity: title of the colours, and d3's format of the values.
        bounds: of the colours; None: of the values.
    """
    title, form = quantity
    gap = 1 if len(rows) <= _FEW else 0
    trace = {
        "type": "heatmap",
        "x": [plotly_text(column) for column in columns],
        "y": [category_text(row) for row in rows],
        "z": [list(row) for row in values],
        "colorscale": _SCALE,
        "hoverongaps": False,
        "xgap": gap,
        "ygap": gap,
        "colorbar": {
            "title": {"text": plotly_text(title), "side": "right"},
            "tickformat": form,
            "thickness": 14,
        },
        "hovertemplate": f"%{{y}}, %{{x}}: %{{z:{form}}}<extra></extra>",
    }
    if bounds:
        trace |= {"zmin": bounds[0], "zmax": bounds[1]}
    if texts and len(rows) <= _FEW:
        trace |= {
            "text": [list(row) for row in texts],
            "texttemplate": "%{text}",
            "textfont": {"color": "--ink"},
            "colorscale": _PALE_SCALE,
        }
    cell = _CELL if len(rows) <= _FEW else _TALLEST / len(rows)
    drawn = layout(
        {
            **categories(),
            "autorange": True,
            "title": axis_title(names[1], ""),
            "showgrid": False,
            "nticks": _FEW,
        },
        {**categories(), "title": axis_title(names[0], ""), "showgrid": False},
    )
    return {
        "data": [trace],
        "layout": {**drawn, "height": round(cell * len(rows)) + _MARGIN, "showlegend": False},
    }
