"""Runs as a frame, with labels and metrics, and samples of the processes of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from collectors.tables import PROCESS_LEVELS, PROCESS_TOTALS
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


MOST_POINTS = 500  # of a curve
CORES = "cores"  # column: CPU time per time
_CPU = ("utime_s", "stime_s")


def curves(samples: pl.DataFrame, most_points: int = MOST_POINTS) -> pl.DataFrame:
    """Return levels and rates over time.

    Args:
        samples: columns of `tables.PROCESS_SAMPLES` except ``line``, in any order; null: unknown.
        most_points: neighbouring samples are joined beyond this number.

    Returns:
        Columns ``elapsed_s`` (end of the interval), each of `PROCESS_LEVELS` (the highest of the
        joined samples), a rate per second of each of `PROCESS_TOTALS`, and ``cores``. The first
        row has no rates. A fall of a counter counts as no increase.
    """
    ordered = samples.sort("elapsed_s").unique("elapsed_s", keep="last", maintain_order=True)
    every = max(-(-ordered.height // most_points), 1)
    increases = ordered.select(
        "elapsed_s",
        *PROCESS_LEVELS,
        *(pl.col(name).diff().clip(lower_bound=0) for name in PROCESS_TOTALS),
        seconds=pl.col("elapsed_s").diff(),
    )
    joined = increases.group_by(
        part=(pl.int_range(pl.len()) + every - 1) // every, maintain_order=True
    ).agg(
        pl.col("elapsed_s").last(),
        pl.col(*PROCESS_LEVELS).max(),
        # A sum of unknown values is unknown, not 0.
        *(
            pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()).alias(name)
            for name in PROCESS_TOTALS
        ),
        pl.col("seconds").sum(),
    )
    rates = [
        pl.when(pl.col("seconds") > 0).then(pl.col(name) / pl.col("seconds")).alias(name)
        for name in PROCESS_TOTALS
    ]
    return joined.select("elapsed_s", *PROCESS_LEVELS, *rates).with_columns(
        pl.sum_horizontal(_CPU, ignore_nulls=False).alias(CORES)
    )


@dataclass(frozen=True)
class Totals:
    """Figures of a run; None: not sampled.

    Counters are sums over living and ended processes. In old versions of prmon they fall when a
    process vanishes: only increases count, so that totals are lower bounds.
    """

    samples: int
    seconds: float  # since the start, at the last sample
    highest: dict[str, float | None]  # by level
    totals: dict[str, float | None]  # by counter: sum of increases, with the first value
    falls: dict[str, int]  # number of decreases, of counters that fall

    @property
    def cores(self) -> float | None:
        """Mean number of busy cores."""
        user_s, system_s = (self.totals[name] for name in _CPU)
        if user_s is None or system_s is None or not self.seconds:
            return None
        return (user_s + system_s) / self.seconds


def totals(samples: pl.DataFrame) -> Totals:
    """Return the figures of a run.

    Args:
        samples: as in `curves`.
    """
    ordered = samples.sort("elapsed_s")
    summed, falls = {}, {}
    for name in PROCESS_TOTALS:
        known = ordered[name].drop_nulls()
        steps = known.diff().drop_nulls()
        summed[name] = float(known[0] + steps.clip(lower_bound=0).sum()) if known.len() else None
        if fell := int((steps < 0).sum()):
            falls[name] = fell
    return Totals(
        samples.height,
        float(ordered["elapsed_s"].max() or 0),  # type: ignore[arg-type]  # a column of floats
        {name: _maximum(samples[name]) for name in PROCESS_LEVELS},
        summed,
        falls,
    )


def _maximum(values: pl.Series) -> float | None:
    highest = values.max()
    return None if highest is None else float(highest)  # type: ignore[arg-type]  # a float
