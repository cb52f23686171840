"""Stages claim pending rows; this runs one until there are none."""

from collections.abc import Callable


def drain(stage: Callable[[], int]) -> None:
    """Run a stage until it finds nothing to do."""
    while stage():
        pass
