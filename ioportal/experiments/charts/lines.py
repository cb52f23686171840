"""Lines over the time of runs: look-ups, and samples of processes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ioportal.core.charts.arms import LOOKS
from ioportal.core.charts.labels import plotly_text
from ioportal.core.charts.time_axis import ElapsedAxis, layout, number_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ioportal.core.charts.time_axis import Figure


_FAILED = "failed"
_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)  # any; the axis counts from the first call
_THIN = 0.35  # opacity of what was found, behind what failed


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
        for label, values, opacity in (("all", total, f"/{_THIN}"), (_FAILED, failed, "")):
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


def over_run(
    title: str, unit: str, runs: Sequence[tuple[str, int, pl.DataFrame]], column: str
) -> Figure:
    """Draw a column of the curves of runs as lines over the time since their start.

    Args:
        title: of the chart.
        unit: unit of the column.
        runs: name, number of the look from 0, and a frame with ``elapsed_s`` and the column; null:
            interrupts the line.
        column: a level or a rate of `experiments.analysis.process_samples.curves`.
    """
    end_s = max((_last(frame) for _, _, frame in runs), default=0.0)
    axis = ElapsedAxis.of_run(_ORIGIN, _ORIGIN + timedelta(seconds=max(end_s, 1)))
    values = [value for _, _, frame in runs for value in frame[column].drop_nulls().to_list()]
    highest = max(values, default=0.0)
    number = f",.4~{number_format(highest, unit)[-1]}"
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines" if frame.height > 1 else "markers",
                "name": plotly_text(name),
                "x": [
                    axis.length(timedelta(seconds=elapsed_s))
                    for elapsed_s in frame["elapsed_s"].to_list()
                ],
                "y": frame[column].to_list(),
                "line": {"color": LOOKS[look].token, "width": 1.8, "dash": LOOKS[look].dash},
                "marker": {"color": LOOKS[look].token, "symbol": LOOKS[look].symbol},
                "hovertemplate": f"%{{y:{number}}} {unit}",
            }
            for name, look, frame in runs
        ],
        "layout": {
            **layout(axis, (), (), title=title, unit=unit, highest=highest),
            "dragmode": False,
        },
    }


def _last(frame: pl.DataFrame) -> float:
    return float(frame["elapsed_s"].max() or 0)  # type: ignore[arg-type]  # a column of floats
