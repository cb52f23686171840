"""Measures the quality of the flags over some seeds, and reports it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from bench.figures import say
from bench.flag_quality import feed
from bench.flag_quality.scores import Scores, scores
from bench.flag_quality.summary import summary

if TYPE_CHECKING:
    from collections.abc import Iterable

_RESULT = settings.BASE_DIR / "var" / "flag-quality.json"
_MODES = {"overall": True, "no_traces": False}  # with traces


def measure(seeds: Iterable[int]) -> None:
    """Write, load and compare the labelled sets of some seeds."""
    results: dict[str, list[Scores]] = {mode: [] for mode in _MODES}
    done: list[int] = []
    for seed in seeds:
        for mode, result in _of_seed(seed).items():
            results[mode].append(result)
        done.append(seed)
        _save(done, results)
    for mode, sets in results.items():
        _show(mode, summary(sets))


def _of_seed(seed: int) -> dict[str, Scores]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "labelled"
        say(f"writing the labelled set of seed {seed}")
        subprocess.run(
            [sys.executable, "-m", "simulator", "labelled", "--seed", str(seed), str(folder)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        truth = json.loads((folder / "truth.json").read_text())
        return {
            mode: scores(truth, feed.flags(folder, truth, with_traces=with_traces))
            for mode, with_traces in _MODES.items()
        }


def _save(seeds: list[int], results: dict[str, list[Scores]]) -> None:
    _RESULT.parent.mkdir(exist_ok=True)
    figures = {mode: summary(sets) for mode, sets in results.items()}
    _RESULT.write_text(json.dumps({"seeds": seeds, **figures}, indent=1))


def _show(mode: str, figures: dict[str, Any]) -> None:
    print(f"{mode}: {figures['harmful']} harmful subjects, {figures['cases']} cases")  # noqa: T201
    for name in ("precision", "recall", "auc", "false_cases_per_day"):
        values = (figures[key] for key in (name, f"{name}_lower", f"{name}_upper"))
        texts = ["-" if value is None else f"{value:.3f}" for value in values]
        print(f"  {name:20} {texts[0]:>8} ({texts[1]} to {texts[2]})")  # noqa: T201
    for name in ("delay_p50_s", "delay_p95_s", "spoofing_blamed"):
        print(f"  {name:20} {figures[name]}")  # noqa: T201
    for title in ("by_severity", "by_part", "false_by_rule"):
        print(f"  {title}")  # noqa: T201
        for name, tally in figures[title].items():
            print(f"    {name:28} {tally}")  # noqa: T201
