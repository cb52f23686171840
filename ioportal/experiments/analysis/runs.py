"""Runs as a frame: one row per run, with columns for labels and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.metrics import Metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


ARM = "arm"
LABEL = "label:"  # prefix of the columns of labels
_COLUMNS = {
    "name": pl.String(),
    ARM: pl.String(),
    "state": pl.String(),
    "scale": pl.Float64(),
    "events": pl.Int64(),
}
UNUSABLE = ("failed", "hung")  # states without figures


def run_frame(runs: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Return a row per run.

    Args:
        runs: each with name, arm, state, scale, events; labels (name to text) and metrics (name to
            number).

    Returns:
        These columns, ``label:NAME`` for each label (null: without), and a column for each metric
        (null: unknown). ``efficiency_share`` is cpu_s / (wall_s x cores, or 1 core) where it is not
        given.
    """
    runs = list(runs)
    labels = dict.fromkeys(name for run in runs for name in run["labels"])
    metrics = dict.fromkeys(name for run in runs for name in run["metrics"] if name not in _COLUMNS)
    rows = [
        {
            **{name: run[name] for name in _COLUMNS},
            **{f"{LABEL}{name}": str(text) for name, text in run["labels"].items()},
            **{name: run["metrics"][name] for name in metrics if name in run["metrics"]},
        }
        for run in runs
    ]
    schema = {
        **_COLUMNS,
        **{f"{LABEL}{name}": pl.String() for name in labels},
        **dict.fromkeys(metrics, pl.Float64()),
    }
    return _with_efficiency(pl.DataFrame(rows, schema=schema, orient="row"))


def _with_efficiency(runs: pl.DataFrame) -> pl.DataFrame:
    if not {"cpu_s", "wall_s"} <= set(runs.columns):
        return runs
    cores = pl.col("cores").fill_null(1.0) if "cores" in runs.columns else pl.lit(1.0)
    wall_s = pl.col("wall_s") * cores
    derived = pl.when(wall_s > 0).then(pl.col("cpu_s") / wall_s)
    given = ["efficiency_share"] if "efficiency_share" in runs.columns else []
    return runs.with_columns(efficiency_share=pl.coalesce(*given, derived))


def label_names(runs: pl.DataFrame) -> list[str]:
    """Return the names of the labels of a frame of runs."""
    return [name.removeprefix(LABEL) for name in runs.columns if name.startswith(LABEL)]


def metric_names(runs: pl.DataFrame) -> list[str]:
    """Return the names of the metrics of a frame of runs."""
    return [name for name in runs.columns if name not in _COLUMNS and not name.startswith(LABEL)]


def usable(runs: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Return the runs with a known value that are not failed or hung."""
    return runs.filter(~pl.col("state").is_in(UNUSABLE), pl.col(metric).is_not_null())


_UNITS = {  # by the end of the name; the longest first
    "_bytes_per_s": Unit.BYTES_PER_SECOND,
    "_per_s": Unit.PER_SECOND,
    "_bytes": Unit.BYTES,
    "_share": Unit.SHARE,
    "_us": Unit.MICROSECONDS,
    "_s": Unit.SECONDS,
}
_UNITS_OF_NAMES = {"bytes": Unit.BYTES, "cores": Unit.CORES, "events": Unit.EVENTS}
_ACRONYMS = {"cpu": "CPU", "io": "I/O", "ior": "IOR", "api": "API", "pss": "PSS", "rss": "RSS"}
_TITLES = {
    "duration_s": "Duration",
    "latency_s": "Latency",
    "cpu_s": "CPU time",
    "wall_s": "Wall time",
    "user_s": "User CPU time",
    "sys_s": "System CPU time",
    "read_bytes": "Read",
    "write_bytes": "Written",
    "efficiency_share": "CPU efficiency",
}


def run_metric(name: str) -> Metric:
    """Return the title and the unit of a metric by its name.

    Args:
        name: such as ``copy_s`` or ``bandwidth_bytes_per_s``; without a unit it is a number.

    Source: docs/experiments.md, "Metrics of runs".
    """
    end = next((end for end in _UNITS if name.endswith(end) and name != end), "")
    unit = _UNITS.get(end) or _UNITS_OF_NAMES.get(name, Unit.RATIO)
    title = _TITLES.get(name) or titled(name.removesuffix(end))
    if unit is Unit.PER_SECOND:
        title = f"{title} per second"
    if unit is Unit.SECONDS and "time" not in title and name not in _TITLES:
        title = f"{title} time"
    return Metric(name, title, unit, Source.EXPERIMENT, "as the run reports")


def titled(name: str) -> str:
    """Return the name of a metric or label as a title: ``open_files`` is "Open files"."""
    words = [_ACRONYMS.get(word, word) for word in name.split("_") if word]
    text = " ".join(words)
    return text[:1].upper() + text[1:]
