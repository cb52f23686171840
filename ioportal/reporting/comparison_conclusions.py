"""The conclusions of a comparison over all of its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioportal.analysis.comparison.results import Scale, Verdict
from ioportal.reporting.comparison_sentences import change_in_words, sentence, smallest_in_words
from ioportal.reporting.formatting import lowered

if TYPE_CHECKING:
    from ioportal.analysis.comparison.results import Effect
    from ioportal.analysis.metrics import Metric

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


def conclusions(effects: list[tuple[Metric, Effect]]) -> list[str]:
    """Return the largest changes, equivalences, possible changes, then undetected changes."""
    changed = by_change(effects)
    sentences = [sentence(*pair) for pair in changed[:_STATED]]
    if len(changed) > _STATED:
        others = ", ".join(lowered(metric.title) for metric, _ in changed[_STATED:])
        sentences.append(f"Also changed: {others}.")
    if equal := [pair for pair in effects if pair[1].is_within_margin]:
        names = ", ".join(lowered(metric.title) for metric, _ in equal)
        sentences.append(f"Unchanged within ± {100 * equal[0][1].margin:g} %: {names}.")
    if possible := [pair for pair in effects if pair[1].is_possible]:
        changes = ", ".join(
            f"{lowered(metric.title)} {change_in_words(metric, effect)}"
            for metric, effect in possible
        )
        sentences.append(f"Possible, but not confirmed by the test: {changes}.")
    if shifted := [pair for pair in effects if pair[1].is_shifted and not pair[1].is_within_margin]:
        names = ", ".join(lowered(metric.title) for metric, _ in shifted)
        sentences.append(f"The values differ, but no change of the median is confirmed: {names}.")
    undetected = [
        pair
        for pair in effects
        if pair[1].verdict is Verdict.NO_CHANGE_DETECTED
        and not (pair[1].is_within_margin or pair[1].is_possible or pair[1].is_shifted)
    ]
    for is_open, about in (
        (False, "No detectable change (in brackets: what would have been seen)"),
        (True, "Unknown (in brackets: the smallest change that would have been seen)"),
    ):
        names = ", ".join(
            f"{lowered(metric.title)} ({smallest})"
            if (smallest := smallest_in_words(metric, effect))
            else lowered(metric.title)
            for metric, effect in undetected
            if effect.is_open is is_open
        )
        if names:
            sentences.append(f"{about}: {names}.")
    return sentences
