"""Stacked bars of the steps of runs by arm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.core.charts.arms import LOOKS
from ioportal.core.charts.palette import HUES, REST
from ioportal.experiments.charts.bars import Segment, stacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.core.charts.time_axis import Figure
    from ioportal.experiments.analysis.efficiency import StepTimes


def figure(arms: Sequence[StepTimes]) -> Figure:
    """Draw the mean seconds of each step, and the rest of the wall-clock time, stacked.

    Args:
        arms: at least one.
    """
    names = list(dict.fromkeys(name for arm in arms for name in arm.seconds))
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
