"""Expected effects, and whether measured effects agree with them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from math import inf, prod
from typing import TYPE_CHECKING

from ioportal.core import ratios
from ioportal.jobs.analysis.comparison.results import Scale, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection

    from ioportal.jobs.analysis.comparison.results import Effect


@dataclass(frozen=True)
class ExpectedRatio:
    """The range of an expected ratio of medians, after / before: of a factor, or of a direction."""

    low: float
    high: float

    @property
    def is_no_change(self) -> bool:
        """Whether the medians are expected to stay."""
        return self.low == self.high == 1

    @property
    def is_fall(self) -> bool:
        """Whether the median is expected to fall."""
        return self.low < 1

    @property
    def inverse(self) -> ExpectedRatio:
        """The range when the change is undone."""
        return ExpectedRatio(1 / self.high, 1 / self.low if self.low else inf)

    def in_words(self, *, plural: bool) -> str:
        """Return the range as a verb: 'falls 4x', 'falls', 'falls at least 4x'."""
        bound = self.high if self.is_fall else self.low
        if self.low == self.high or bound != 1:
            text = ratios.expected(bound, plural=plural)
            verb, _, times = text.partition(" ")
            return text if self.low == self.high else f"{verb} at least {times}"
        return ratios.direction(is_fall=self.is_fall, plural=plural)


FALL = ExpectedRatio(0, 1)
RISE = ExpectedRatio(1, inf)


def joint(expected: Collection[ExpectedRatio | None]) -> ExpectedRatio | None:
    """Return the expectation of several changes together; None: one or the direction is unknown."""
    known = [each for each in expected if each]
    if len(known) < len(expected):
        return None
    product = ExpectedRatio(prod(each.low for each in known), prod(each.high for each in known))
    return None if product.low < 1 < product.high else product


class Agreement(Enum):
    """How a measured effect agrees with the expected one."""

    AS_EXPECTED = auto()
    EXPECTED_DIRECTION = auto()  # a difference cannot be compared with a factor
    LESS = auto()
    MORE = auto()
    OPPOSITE = auto()
    ABSENT = auto()  # the interval excludes the expected change
    UNEXPECTED = auto()  # no change was expected
    UNCERTAIN = auto()  # no change was detected, but the interval includes changes: a larger one
    # than the margin where none was expected, or the expected one


def agreement(expected: ExpectedRatio, effect: Effect) -> Agreement | None:
    """Compare an effect with its expectation; None: there is no conclusion about the effect.

    Expected factors are round numbers: a factor agrees if it lies within the interval, widened by
    the margin of equivalence.
    """
    if effect.verdict is Verdict.REFUSED or effect.estimate is None:
        return None
    if expected.is_no_change:
        if effect.is_change:
            return Agreement.UNEXPECTED
        return Agreement.AS_EXPECTED if effect.is_within_margin else Agreement.UNCERTAIN
    if effect.is_change:
        return _of_change(expected, effect, effect.estimate)
    is_open = effect.scale is Scale.DIFFERENCE or _overlaps(expected, effect)
    return Agreement.UNCERTAIN if is_open and not effect.is_within_margin else Agreement.ABSENT


def _of_change(expected: ExpectedRatio, effect: Effect, estimate: float) -> Agreement:
    is_ratio = effect.scale is Scale.RATIO
    if expected.is_fall != (estimate < (1 if is_ratio else 0)):
        return Agreement.OPPOSITE
    if not is_ratio:
        return Agreement.EXPECTED_DIRECTION
    if _overlaps(expected, effect):
        return Agreement.AS_EXPECTED
    return Agreement.MORE if (estimate < expected.low) == expected.is_fall else Agreement.LESS


def _overlaps(expected: ExpectedRatio, effect: Effect) -> bool:
    tolerance = 1 + effect.margin
    low, high = effect.low or 0.0, inf if effect.high is None else effect.high
    return low / tolerance <= expected.high and expected.low <= high * tolerance
