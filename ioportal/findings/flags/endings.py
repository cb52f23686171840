"""Why a finding no longer applies, as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ioportal.core.units import Unit
from ioportal.metrics import BY_NAME
from ioportal.rules.rule import GROUPS, Subject

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ioportal.rules.rule import Rule

SWITCHED_OFF = "The rule was switched off here."
CHANGED_THRESHOLDS = "Below the changed thresholds."
NARROWER_GROUP = "A job or a narrower group has most of it now, and is evaluated instead."
NOT_APPLICABLE = "The rule does not apply to the latest data."
_UNKNOWN = "Unknown in the latest data"
_BELOW = "Below the thresholds again"
_RECOMPUTED = "Recomputed with changed data: below the thresholds"
_MAX_LENGTH = 200  # of `Flag.ending`
_SMALL = 100  # smaller numbers are written with decimals


def of_evidence(
    rule: Rule, kind: Subject, thresholds: Mapping[str, float], frame: pl.DataFrame
) -> dict[str, str]:
    """Return why subjects of a frame are no findings, by subject.

    The evaluation is repeated with less in its way: without narrower groups, then with thresholds
    that every known figure reaches.

    Args:
        rule: the rule.
        kind: kind of the subjects.
        thresholds: the thresholds that the findings do not reach.
        frame: evidence of the subjects.
    """
    reasons = dict.fromkeys(frame["subject"], NOT_APPLICABLE)
    whole = frame.with_columns(
        pl.lit(None, frame.schema[name]).alias(name)
        for name in frame.columns
        if kind in GROUPS and name.startswith("part")
    )
    for subject, numbers in _numbers(rule, _weakest(rule), whole):
        # Evidence about a job only grows: less of it is another computation.
        said = _RECOMPUTED if kind is Subject.JOB else _BELOW
        reasons[subject] = f"{said}{_first_below(rule, thresholds, numbers)}."[:_MAX_LENGTH]
    for subject, _ in _numbers(rule, thresholds, whole):
        reasons[subject] = NARROWER_GROUP
    for subject, reason in reasons.items():
        if reason == NOT_APPLICABLE:
            unknown = _unknown(rule, whole.filter(subject=subject))
            if unknown:
                reasons[subject] = f"{_UNKNOWN}: {', '.join(unknown)}."[:_MAX_LENGTH]
    return reasons


def _unknown(rule: Rule, row: pl.DataFrame) -> list[str]:
    """Return the titles of the unknown figures without which a subject is no finding."""
    nulls = [
        name for name in row.columns if row.schema[name].is_numeric() and row[name].is_null().all()
    ]
    filled = row.with_columns(pl.col(nulls).fill_null(1))
    if not _numbers(rule, _weakest(rule), filled):
        return []
    needed = (
        name for name in nulls if not _numbers(rule, _weakest(rule), filled.with_columns(row[name]))
    )
    return [_title(rule, name) for name in needed]


def _title(rule: Rule, name: str) -> str:
    if name in rule.thresholds:
        return rule.thresholds[name].title
    return BY_NAME[name].title if name in BY_NAME else name.replace("_", " ")


def _weakest(rule: Rule) -> dict[str, float]:
    """Return thresholds that every known figure reaches."""
    return {
        name: float("inf") if threshold.is_ceiling else 0.0
        for name, threshold in rule.thresholds.items()
    }


def _numbers(
    rule: Rule, thresholds: Mapping[str, float], frame: pl.DataFrame
) -> list[tuple[str, dict[str, float | None]]]:
    findings = rule.check(frame, thresholds)
    return list(findings.select("subject", "numbers").iter_rows())


def _first_below(
    rule: Rule, thresholds: Mapping[str, float], numbers: Mapping[str, float | None]
) -> str:
    """Return the first figure that does not reach its threshold, the measure before others."""
    for name in (rule.measure, *rule.thresholds):
        threshold, value, limit = rule.thresholds[name], numbers.get(name), thresholds[name]
        if value is None or (value <= limit if threshold.is_ceiling else value >= limit):
            continue
        written = (_written(each, threshold.unit) for each in (value, limit))
        return ": {} {} (ends below {})".format(threshold.title, *written)
    return ""


def _written(value: float, unit: Unit) -> str:
    if unit is Unit.SHARE:
        return f"{value:.1%}"
    text = f"{value:.3g}" if abs(value) < _SMALL else f"{value:,.0f}"
    return text if unit is Unit.RATIO else f"{text} {unit.symbol}"
