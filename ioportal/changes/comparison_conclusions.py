"""The conclusions of a comparison over all of its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioportal.changes.comparison_sentences import (
    change_in_words,
    noun_of,
    sentence,
    smallest_in_words,
)
from ioportal.core.formatting import lowered
from ioportal.jobs.analysis.comparison.results import Outcome, Scale

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ioportal.jobs.analysis.comparison.results import Effect
    from ioportal.metrics import Metric

_STATED = 4  # changes with their sizes; the table of a comparison has all


def by_change(effects: Any) -> list[tuple[Metric, Effect]]:
    """Return the changed metrics: ratios by their size, then differences."""

    def size(pair: tuple[Metric, Effect]) -> float:
        effect = pair[1]
        if effect.scale is Scale.DIFFERENCE or not effect.estimate:
            return 0.0
        return max(effect.estimate, 1 / effect.estimate)

    changed = (pair for pair in effects if pair[1].is_change)
    return sorted(changed, key=size, reverse=True)


def conclusions(effects: list[tuple[Metric, Effect]], *, is_contrast: bool = False) -> list[str]:
    """Return the largest changes, equivalences, possible changes, then undetected changes.

    Args:
        effects: metrics and their effects in an arm.
        is_contrast: whether the arms are different jobs, instead of one population over time.
    """
    noun = noun_of(is_contrast=is_contrast)
    changed = by_change(effects)
    sentences = [sentence(*pair, is_contrast=is_contrast) for pair in changed[:_STATED]]
    if len(changed) > _STATED:
        also = "Also different" if is_contrast else "Also changed"
        sentences.append(f"{also}: {_names(changed[_STATED:])}.")
    if equal := [pair for pair in effects if pair[1].is_within_margin]:
        unchanged = "Equal" if is_contrast else "Unchanged"
        sentences.append(
            f"{unchanged} within \u00b1 {100 * equal[0][1].margin:g} %: {_names(equal)}."
        )
    if possible := _with(effects, Outcome.POSSIBLE):
        changes = ", ".join(
            f"{lowered(metric.title)} {change_in_words(metric, effect, is_contrast=is_contrast)}"
            for metric, effect in possible
        )
        sentences.append(f"Possible, but not confirmed by the test: {changes}.")
    if shifted := _with(effects, Outcome.SHIFTED):
        sentences.append(
            f"The values differ, but no {noun} of the median is confirmed: {_names(shifted)}."
        )
    for outcome, about in (
        (Outcome.NOT_DETECTED, f"No detectable {noun} (in brackets: what would have been seen)"),
        (
            Outcome.UNKNOWN,
            f"Unknown (in brackets: the smallest {noun} that would have been seen)",
        ),
    ):
        names = ", ".join(
            f"{lowered(metric.title)} ({smallest})"
            if (smallest := smallest_in_words(metric, effect))
            else lowered(metric.title)
            for metric, effect in _with(effects, outcome)
        )
        if names:
            sentences.append(f"{about}: {names}.")
    return sentences


def _with(effects: list[tuple[Metric, Effect]], outcome: Outcome) -> list[tuple[Metric, Effect]]:
    return [pair for pair in effects if pair[1].outcome is outcome]


def _names(pairs: Iterable[tuple[Metric, Effect]]) -> str:
    return ", ".join(lowered(metric.title) for metric, _ in pairs)
