"""Figures over several sets, with intervals over their seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from bench.flag_quality.scores import ORDINARY, Case, Detection, Scores

_NORMAL_JOBS = 10_000  # a day of a large centre
_RESAMPLES = 1_000
_INTERVAL = (2.5, 97.5)  # percentiles
_SEVERITIES_S = (60, 120, 600, 3_600, np.inf)

DELAYS = ("observed_p50_s", "observed_p95_s", "delay_p50_s", "delay_p95_s")

Figure = Callable[[Sequence[Scores]], float | None]


def summary(sets: Sequence[Scores]) -> dict[str, Any]:
    """Return all figures of some sets."""
    figures: dict[str, Any] = {}
    for name, figure in FIGURES.items():
        figures[name] = figure(sets)
        figures[f"{name}_lower"], figures[f"{name}_upper"] = _interval(sets, figure)
    subjects, cases = _subjects(sets), _cases(sets)
    borderline = [subject for subject in subjects if subject.is_borderline]
    return figures | {
        "harmful": len(subjects),
        "cases": len(cases),
        "borderline": len(borderline),
        "borderline_found": _count_detected(borderline),
        **_delays("observed", [subject.observed_s for subject in subjects]),
        **_delays("delay", [subject.delay_s for subject in subjects]),
        "redundant": sum(case.is_redundant and not case.is_true for case in cases),
        "estimates": sum(len(each.estimates) for each in sets),
        "spoofing_blamed": sum(each.spoofing_blamed for each in sets),
        "notices": dict(sum((Counter(each.notices) for each in sets), Counter())),
        "errors": [_errors(each) for each in sets],
        "curve": _curve(sets),
        "by_severity": _by_severity(subjects),
        "by_part": {
            part: _tally([subject for subject in subjects if subject.part == part])
            for part in sorted({subject.part for subject in subjects})
        },
        "false_by_rule": {
            rule: {
                "cases": sum(case.rule == rule for case in cases),
                "false": sum(case.rule == rule and not case.is_true for case in cases),
                "on": dict(
                    Counter(
                        part
                        for case in cases
                        if case.rule == rule and not case.is_true
                        for part in case.parts
                    )
                ),
            }
            for rule in sorted({case.rule for case in cases})
        },
    }


def _delays(name: str, delays: Sequence[float | None]) -> dict[str, float | None]:
    known = [delay for delay in delays if delay is not None]
    return {
        f"{name}_p{percent}_s": float(np.percentile(known, percent)) if known else None
        for percent in (50, 95)
    }


def _subjects(sets: Sequence[Scores]) -> list[Detection]:
    return [subject for each in sets for subject in each.subjects]


def _cases(sets: Sequence[Scores]) -> list[Case]:
    return [case for each in sets for case in each.cases]


def _count_detected(subjects: Sequence[Detection]) -> int:
    return sum(subject.strength is not None for subject in subjects)


def _tally(subjects: Sequence[Detection]) -> dict[str, int]:
    return {"harmful": len(subjects), "detected": _count_detected(subjects)}


def _by_severity(subjects: Sequence[Detection]) -> dict[str, dict[str, int]]:
    return {
        f"{lower:.0f} s": _tally(
            [subject for subject in subjects if lower <= subject.harm_s < upper]
        )
        for lower, upper in pairwise(_SEVERITIES_S)
    }


def _precision(sets: Sequence[Scores]) -> float | None:
    cases = _cases(sets)
    return sum(case.is_true for case in cases) / len(cases) if cases else None


def _recall(sets: Sequence[Scores]) -> float | None:
    subjects = _subjects(sets)
    return _count_detected(subjects) / len(subjects) if subjects else None


def _false_cases_per_day(sets: Sequence[Scores]) -> float | None:
    """Return the number for a day with the heavy subjects of a set and 10,000 ordinary jobs."""
    false = [case for case in _cases(sets) if not case.is_true]
    ordinary = sum(case.parts == (ORDINARY,) for case in false)
    jobs = sum(each.ordinary_jobs for each in sets)
    return (len(false) - ordinary) / len(sets) + ordinary / max(jobs, 1) * _NORMAL_JOBS


def _within(factor: float, sets: Sequence[Scores]) -> float | None:
    """Return the share of estimates that are wrong by at most a factor."""
    estimates = [estimate for each in sets for estimate in each.estimates]
    if not estimates:
        return None
    return sum(estimate.factor <= factor for estimate in estimates) / len(estimates)


def _errors(each: Scores) -> dict[str, Any]:
    """Return the missed subjects and the false cases of a set."""
    return {
        "seed": each.seed,
        "missed": [
            {
                "subject": [subject.kind, subject.name],
                "part": subject.part,
                "harm_s": subject.harm_s,
            }
            for subject in each.subjects
            if subject.strength is None
        ],
        "false": [
            {
                "rule": case.rule,
                "strength": case.strength,
                "parts": case.parts,
                "subjects": case.subjects,
                "harm_s": case.harm_s,
                "is_redundant": case.is_redundant,
            }
            for case in each.cases
            if not case.is_true
        ],
    }


def _area(sets: Sequence[Scores]) -> float | None:
    """Return the area under the curve; recall that is never reached adds nothing."""
    curve = _curve(sets)
    if not curve:
        return None
    recall = np.array([0.0, *(point["recall"] for point in curve)])
    precision = np.array([point["precision"] for point in curve])
    return float((np.diff(recall) * precision).sum())


def _curve(sets: Sequence[Scores]) -> list[dict[str, float]]:
    """Return precision and recall of the flags above each strength, strongest first."""
    subjects, cases = _subjects(sets), _cases(sets)
    if not subjects or not cases:
        return []
    detections = np.sort([-each.strength for each in subjects if each.strength is not None])
    strengths = np.array([-case.strength for case in cases])
    order = np.argsort(strengths, kind="stable")
    true = np.cumsum(np.array([case.is_true for case in cases])[order])
    cutoffs = np.unique(strengths)
    upto = np.searchsorted(strengths[order], cutoffs, side="right")
    return [
        {"strength": -cutoff, "precision": precision, "recall": recall}
        for cutoff, precision, recall in zip(
            cutoffs.tolist(),
            (true[upto - 1] / upto).tolist(),
            (np.searchsorted(detections, cutoffs, side="right") / len(subjects)).tolist(),
            strict=True,
        )
    ]


FIGURES: dict[str, Figure] = {
    "precision": _precision,
    "recall": _recall,
    "auc": _area,
    "false_cases_per_day": _false_cases_per_day,
    "within_1_5": partial(_within, 1.5),
    "within_2": partial(_within, 2.0),
}


def _interval(sets: Sequence[Scores], figure: Figure) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a figure: sets are drawn with replacement."""
    chance = np.random.default_rng(len(sets))
    draws = chance.integers(len(sets), size=(_RESAMPLES, len(sets))).tolist()
    values = [figure([sets[n] for n in draw]) for draw in draws]
    known = [value for value in values if value is not None]
    if not known:
        return None, None
    lower, upper = np.percentile(known, _INTERVAL)
    return float(lower), float(upper)
