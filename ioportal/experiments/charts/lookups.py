"""Charts of look-ups: by storage area, by search-path entry, and over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ioportal.core.charts.arms import LOOKS
from ioportal.core.charts.labels import plotly_text
from ioportal.core.charts.log_axis import log_axis
from ioportal.core.charts.time_axis import ElapsedAxis, layout, number_format
from ioportal.experiments.charts.bars import Segment, stacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ioportal.core.charts.time_axis import Figure

LOOK_UPS = "look-ups"
OK, FAILED = "found", "failed"
_ENTRY_CHARACTERS = 44
_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)  # any; the axis counts from the first call
_THIN = 0.35  # opacity of what was found, behind what failed


def by_area(rows: Sequence[tuple[str, int, int]]) -> Figure:
    """Draw the failed and the other look-ups of each row, on a logarithmic axis.

    Args:
        rows: storage area and arm, number of look-ups, and of failed ones; from top to bottom.
    """
    segments = [
        Segment(FAILED, "--series-2", [failed or None for _, _, failed in rows], "/"),
        Segment(OK, "--series-1", [total - failed or None for _, total, failed in rows]),
    ]
    figure = stacked([name for name, _, _ in rows], segments, "Look-ups", "", hover=",")
    highest = max((total for _, total, _ in rows), default=1)
    figure["layout"] |= {"barmode": "group"}
    figure["layout"]["xaxis"] |= log_axis(1, highest)
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
        for label, values, opacity in (("all", total, f"/{_THIN}"), (FAILED, failed, "")):
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": f"{plotly_text(name)}, {label}",
                    "x": places,
                    "y": values,
                    "line": {
                        "color": f"{look.token}{opacity}",
                        "width": 1.8,
                        "dash": look.dash,
                        "shape": "hv",
                    },
                    "hovertemplate": "%{y:,.4~s}/s",
                }
            )
    base = layout(axis, (), (), title="Look-ups", unit="1/s", highest=highest)
    base["yaxis"]["tickformat"] = number_format(highest, "1/s")
    return {"data": data, "layout": {**base, "dragmode": False}}
