"""The runs of a page as a frame, without those of IOR, which have their own section."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioportal.experiments.analysis.run_frame import run_frame

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from ioportal.experiments.models import Run

IOR_LABEL = "operation"
IOR_METRIC = "bandwidth_bytes_per_s"


def is_of_ior(run: Run) -> bool:
    """Whether a run is a result of IOR."""
    return IOR_LABEL in run.labels and (IOR_METRIC in run.metrics or "total_s" in run.metrics)


def frame(runs: Iterable[Run]) -> pl.DataFrame:
    """Return the runs as a frame; see `run_frame.run_frame`."""
    return run_frame(facts(run) for run in runs)


def facts(run: Run) -> dict[str, Any]:
    """Return what a frame needs of a run."""
    names = ("name", "state", "scale", "events", "labels", "metrics")
    return {"arm": run.arm.name, **{name: getattr(run, name) for name in names}}
