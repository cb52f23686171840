"""Conclusions about look-ups in sentences, the most useful first.

Source: docs/experiments.md, "strace".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from ioportal.experiments.analysis import lookups, search_paths
from ioportal.experiments.analysis.lookups import (
    LUSTRE,
    NODE_AREAS,
    OTHER,
    RELATIVE,
    WORKING_DIRECTORY,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ioportal.experiments.analysis.search_paths import Saving, Searches

_MIN_FAILED_SHARE = 0.05  # of an area's look-ups: fewer are no problem
_MIN_FAILED = 20  # look-ups: fewer cost nothing, whatever their share
_LARGE_SAVING = 0.1  # of an area's look-ups
_CURRENT = "."  # entry of relative paths whose folder is unknown


@dataclass(frozen=True)
class TracedArm:
    """The look-ups of an arm.

    Attributes:
        name: of the arm.
        runs: number of its traced runs; counts are sums over them.
        look_ups: see `lookups.look_ups`.
        prefixes: storage area by prefix.
    """

    name: str
    runs: int
    look_ups: pl.DataFrame
    prefixes: Mapping[str, str]

    @cached_property
    def areas(self) -> pl.DataFrame:
        """See `lookups.by_area`."""
        return lookups.by_area(self.look_ups)

    @cached_property
    def searches(self) -> Searches:
        """See `search_paths.searches`."""
        return search_paths.searches(self.look_ups)

    @cached_property
    def savings(self) -> list[Saving]:
        """What cleaner search paths save in each shared area.

        Large savings come first, and of these the ones on Lustre, whose metadata server all jobs
        share.
        """
        areas = self.areas.filter(~pl.col("area").is_in(sorted(NODE_AREAS)), pl.col("failed") > 0)
        savings = [
            search_paths.saving(self.look_ups, self.searches, area)
            for area in areas["area"].to_list()
        ]
        return sorted(
            savings,
            key=lambda each: (
                each.saved_look_ups < _LARGE_SAVING * each.look_ups,
                each.area != LUSTRE,
                -each.saved_look_ups,
                -each.failed,
            ),
        )

    @cached_property
    def first_searched(self) -> int:
        """How many names are searched in the working directory first."""
        folders = [path for path, area in self.prefixes.items() if area == WORKING_DIRECTORY]
        return search_paths.first_searched(self.searches, [*folders, _CURRENT])

    def total(self, area: str) -> int:
        """Return the look-ups in an area."""
        return int(self.areas.filter(pl.col("area") == area)["total"].sum())


def findings(arms: Sequence[TracedArm]) -> list[str]:
    """Return conclusions about the first arm, and about the others in comparison."""
    if not arms:
        return []
    first = arms[0]
    texts = [_area(saving) for saving in first.savings if _is_problem(saving)]
    texts += _working_directory(first)
    texts += [_blocked(saving) for saving in first.savings if saving.blocked and saving.removed]
    texts += [text for arm in arms[1:] for text in _changes(first, arm)]
    return texts or [_few(first)]


def _few(arm: TracedArm) -> str:
    text = "Few look-ups on shared storage fail: cleaner search paths would save little."
    on_node = arm.areas.filter(pl.col("area").is_in(sorted(NODE_AREAS)))["failed"].sum()
    if on_node < _MIN_FAILED:
        return text
    return f"{text} {on_node:,} look-ups on the node itself fail; they load no shared storage."


def _is_problem(saving: Saving) -> bool:
    is_frequent = saving.failed >= _MIN_FAILED_SHARE * saving.look_ups
    return saving.failed >= _MIN_FAILED and (bool(saving.removed) or is_frequent)


def _area(saving: Saving) -> str:
    """Return the failed share of an area, its causes, and what their removal saves."""
    if saving.opens:
        text = (
            f"{_percent(saving.failed_opens, saving.opens)} of the opens {_in(saving.area)} fail "
            f"({saving.failed_opens:,} of {saving.opens:,})."
        )
    else:
        text = (
            f"{_percent(saving.failed, saving.look_ups)} of the look-ups {_in(saving.area)} fail "
            f"({saving.failed:,} of {saving.look_ups:,})."
        )
    if saving.removed:
        place = _in(saving.area)
        names = _listed(
            [
                f"{entry.path} ({' and '.join(entry.variables)})" if entry.variables else entry.path
                for entry in saving.removed
            ]
        )
        count = len(saving.removed)
        subject = (
            "1 search-path entry causes" if count == 1 else f"{count} search-path entries cause"
        )
        pronoun = "it" if count == 1 else "them"
        return (
            f"{text} {subject} {_percent(saving.saved_look_ups, saving.failed)} of the failed "
            f"look-ups: {names}. Removing {pronoun} from the search path saves "
            f"{_percent(saving.saved_look_ups, saving.look_ups)} of all look-ups {place}. "
            "Every opened file stays reachable."
        )
    if saving.blocked:
        return (
            f"{text} The search-path entries that cause most of them have needed files, such as "
            f"{saving.blocked[0].path}. Search the entries with the most files first, or link the "
            "files into one directory."
        )
    return f"{text} No search-path entry causes them: see the files by failed look-ups."


def _working_directory(arm: TracedArm) -> list[str]:
    if not arm.first_searched:
        return []
    text = (
        f"The working directory is searched first: {arm.first_searched:,} names were looked up "
        "there before they were found elsewhere. Remove empty entries and “.” from the search "
        "paths. In Python, remove the first entry: sys.path = sys.path[1:]."
    )
    return [text]


def _blocked(saving: Saving) -> str:
    entry = saving.blocked[0]
    more = entry.needed - 1
    names = (
        f"{entry.examples[0]} and {more:,} more names are" if more else f"{entry.examples[0]} is"
    )
    return (
        f"Keep {entry.path} in spite of its {entry.look_ups:,} wasted look-ups: {names} found only "
        "there."
    )


def _changes(first: TracedArm, arm: TracedArm) -> list[str]:
    """Return how the look-ups on shared storage changed, per run."""
    texts = []
    for saving in first.savings:
        before, after = saving.look_ups / first.runs, arm.total(saving.area) / arm.runs
        if not after:
            texts.append(f"{arm.name}: no look-ups {_in(saving.area)}.")
        elif not 0.98 < after / before < 1.02:  # noqa: PLR2004  (2 % is no change)
            word = "fewer" if after < before else "more"
            texts.append(
                f"{arm.name} against {first.name}: {_percent(abs(after - before), before)} {word} "
                f"look-ups {_in(saving.area)} ({before:,.0f} → {after:,.0f})."
            )
    return texts


def _in(area: str) -> str:
    """Return an area with its preposition."""
    names = {
        WORKING_DIRECTORY: "in the working directory",
        RELATIVE: "with relative paths",
        OTHER: "on other storage",
    }
    return names.get(area, f"on {area}")


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
