"""Charts of the processes of runs over time: memory, swap, CPU and I/O."""

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

_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)  # any; the axis counts from the start of each run


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
