"""Capacity advice on simulated servers: how often the interval has the true knee, and its error."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bench.figures import Figure, say
from ioportal.load.analysis.capacity import WINDOWS, Capacity, capacity
from simulator.capacity import LoadedServer, Scenario, knee_per_s
from simulator.servers import mds

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEGIN = datetime(2026, 9, 1, tzinfo=UTC)
_DAYS, _WINDOW_S = 14, 60
_SEEDS = 5
_COVERED, _LARGEST_ERROR, _LARGEST_SAFE = 0.93, 0.06, 1.03
# Servers whose knee is reached, and servers whose knee is not.
_REACHED: tuple[dict[str, float], ...] = (
    {"capacity_per_s": 5_000, "peak": 0.15, "storms": 12},
    {"capacity_per_s": 5_000, "peak": 0.4},
    {"capacity_per_s": 15_000, "peak": 0.3, "storms": 15},
    {"capacity_per_s": 30_000, "peak": 0.5, "storms": 12, "costly_hours": 6},
    {"capacity_per_s": 30_000, "peak": 0.5, "storms": 12, "convoys": 8, "restarts": 2},
    {"capacity_per_s": 60_000, "peak": 0.5, "storms": 15, "storm_load": 1.1, "restarts": 2},
)
_NOT_REACHED: tuple[dict[str, float], ...] = (
    {"capacity_per_s": 60_000, "peak": 0.3},
    {"capacity_per_s": 40_000, "peak": 0.3, "convoys": 15},
)


def measure(scale: float) -> Iterator[Figure]:
    """Compute the capacity of servers with known knees."""
    seeds = range(max(round(_SEEDS * scale), 1))
    covered, errors, safe = [], [], []
    for options in _REACHED:
        truth = knee_per_s(options["capacity_per_s"])
        for found in _found(options, seeds):
            safe.append(_safe_share(found, truth))
            knee = found.knee.scaled(1 / found.cost_s) if found.knee else None
            covered.append(knee and knee.low <= truth and (not knee.high or truth <= knee.high))
            errors.append(abs(knee.value / truth - 1) if knee else 1.0)
            say(f"{options}: {knee}, safe {safe[-1]:.2f} of the true {truth:.0f}")
    knees = []
    for options in _NOT_REACHED:
        for found in _found(options, seeds):
            knees.append(found.knee)
            safe.append(_safe_share(found, knee_per_s(options["capacity_per_s"])))
            say(f"{options}: safe {safe[-1]:.2f} of the true knee")
    servers = f"{len(covered)} simulated servers"
    yield Figure(
        "capacity_covered",
        f"True knees within the 95 % interval, {servers}",
        100 * float(np.mean(np.array(covered, dtype=bool))),
        "%",
        at_least=100 * _COVERED,
    )
    yield Figure(
        "capacity_error",
        f"Largest error of a knee, {servers}",
        100 * max(errors),
        "%",
        at_most=100 * _LARGEST_ERROR,
    )
    yield Figure(
        "capacity_false",
        f"Knees of {len(knees)} servers that did not reach theirs",
        sum(knee is not None for knee in knees),
        "knees",
        at_most=0,
    )
    yield Figure(
        "capacity_safe",
        f"Highest safe load, {len(safe)} simulated servers",
        100 * max(safe),
        "% of the true knee",
        at_most=100 * _LARGEST_SAFE,
    )


def _safe_share(found: Capacity, truth: float) -> float:
    """Return the safe load relative to the true knee; 0: there is none."""
    return found.safe.load / found.cost_s / truth if found.safe else 0.0


def _found(options: dict[str, float], seeds: range) -> Iterator[Capacity]:
    for seed in seeds:
        server = LoadedServer(Scenario(seed=seed, days=_DAYS, **options))  # type: ignore[arg-type]
        restarts = [_BEGIN + timedelta(seconds=restart) for restart in server.restarts]
        found = capacity(_windows(server), restarts)
        if isinstance(found, Capacity):
            yield found


def _windows(server: LoadedServer) -> pl.DataFrame:
    """Return windows with the baselines that the portal would compute."""
    totals = server.totals(_WINDOW_S)
    load = totals.group_by("second").agg(requests=pl.sum("count"))
    calm = load.filter(pl.col("requests") <= pl.col("requests").median())
    usual = (
        totals.filter(pl.col("count") > 0)
        .join(calm, on="second")
        .group_by("opcode")
        .agg(baseline_us=(pl.col("total_us") / pl.col("count")).median())
    )
    is_free = pl.col("opcode") != mds.LDLM_ENQUEUE
    return (
        totals.join(usual, on="opcode")
        .with_columns(usual_us=pl.col("count") * pl.col("baseline_us"))
        .group_by("second")
        .agg(
            requests=pl.sum("count"),
            work_us=pl.sum("usual_us"),
            took_us=pl.sum("total_us"),
            usual_us=pl.sum("usual_us"),
            free_took_us=pl.col("total_us").filter(is_free).sum(),
            free_usual_us=pl.col("usual_us").filter(is_free).sum(),
        )
        .with_columns(
            start=pl.lit(_BEGIN) + pl.duration(seconds="second"),
            end=pl.lit(_BEGIN) + pl.duration(seconds=pl.col("second") + _WINDOW_S),
            day=pl.col("second") // (24 * 3_600),
        )
        .select(pl.col(name).cast(kind) for name, kind in WINDOWS.items())
    )
