"""Measures the quality of the flags over some seeds, and reports it.

The scores of a set are kept until the next commit: a run that was stopped continues.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django
from django.conf import settings
from pydantic import TypeAdapter

from bench import portal
from bench.figures import say
from bench.flag_quality import feed
from bench.flag_quality.feed import Inputs
from bench.flag_quality.scores import Scores, scores
from bench.flag_quality.summary import DELAYS, FIGURES, summary
from simulator.labelled import labelled_set

if TYPE_CHECKING:
    from collections.abc import Sequence

_RESULT = settings.BASE_DIR / "var" / "flag-quality.json"
_KEPT = settings.BASE_DIR / "var" / "flag-quality"  # a folder by commit
_SCORES = TypeAdapter(Scores)
_MODES = {
    "overall": Inputs(),
    "no_traces": Inputs(traces=False),
    "job_stats_only": Inputs(exports=False, services=False, traces=False),
}
_AT_ONCE = 2  # seeds, and processes
_DATABASE = f"ioportal_flag_quality_{os.getpid()}"


def measure(seeds: Sequence[int]) -> None:
    """Write, load and compare the labelled sets of some seeds."""
    results: dict[str, list[Scores]] = {mode: [] for mode in _MODES}
    kept = _KEPT / _commit()
    kept.mkdir(parents=True, exist_ok=True)
    os.environ["POLARS_MAX_THREADS"] = "1"  # of the processes: frames are small, cores are few
    with (
        portal.empty_database(_DATABASE) as template,
        # A process for each run: caches belong to one database.
        ProcessPoolExecutor(
            _AT_ONCE, get_context("spawn"), django.setup, max_tasks_per_child=1
        ) as processes,
        ThreadPoolExecutor(_AT_ONCE) as threads,
    ):
        portal.refuse_connections(template)
        of_seed = partial(_of_seed, processes, template, kept)
        for n, of_modes in enumerate(threads.map(of_seed, seeds), start=1):
            for mode, result in of_modes.items():
                results[mode].append(result)
            _save(seeds[:n], results)
    for mode, sets in results.items():
        _show(mode, summary(sets))


def _of_seed(processes: Executor, template: str, kept: Path, seed: int) -> dict[str, Scores]:
    files = {mode: kept / f"{seed}-{mode}.json" for mode in _MODES}
    missing = [mode for mode, path in files.items() if not path.exists()]
    if missing:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "labelled"
            say(f"seed {seed}: writing the labelled set")
            processes.submit(labelled_set.write, folder, seed=seed).result()
            truth = json.loads((folder / "truth.json").read_text())
            say(f"seed {seed}: loading it with all inputs and with fewer")
            running = {
                mode: processes.submit(feed.named, folder, truth, template, _MODES[mode])
                for mode in missing
            }
            for mode, run in running.items():
                found = scores(truth, run.result().flags, run.result().observed)
                files[mode].write_bytes(_SCORES.dump_json(found))
    say(f"seed {seed}: done")
    return {mode: _SCORES.validate_json(path.read_bytes()) for mode, path in files.items()}


def _commit() -> str:
    asked = ["git", "rev-parse", "HEAD"]
    return subprocess.check_output(asked, cwd=settings.BASE_DIR, text=True).strip()


def _save(seeds: Sequence[int], results: dict[str, list[Scores]]) -> None:
    _RESULT.parent.mkdir(exist_ok=True)
    figures = {mode: summary(sets) for mode, sets in results.items()}
    _RESULT.write_text(json.dumps({"seeds": list(seeds), **figures}, indent=1))


def _show(mode: str, figures: dict[str, Any]) -> None:
    counts = f"{figures['cases']} cases, {sum(figures['notices'].values())} notices"
    print(f"{mode}: {figures['harmful']} harmful subjects, {counts}")  # noqa: T201
    for name in FIGURES:
        values = (figures[key] for key in (name, f"{name}_lower", f"{name}_upper"))
        texts = ["-" if value is None else f"{value:.3f}" for value in values]
        print(f"  {name:20} {texts[0]:>8} ({texts[1]} to {texts[2]})")  # noqa: T201
    for name in (*DELAYS, "redundant", "estimates", "spoofing_blamed"):
        print(f"  {name:20} {figures[name]}")  # noqa: T201
    for title in ("by_severity", "by_part", "false_by_rule", "notices"):
        print(f"  {title}")  # noqa: T201
        for name, tally in figures[title].items():
            print(f"    {name:28} {tally}")  # noqa: T201
