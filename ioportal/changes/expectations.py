"""The measured effect of a mitigation next to the expected one, in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioportal.changes.analysis.expectations import Agreement, agreement, joint
from ioportal.changes.comparison_sentences import conclusion, sentence
from ioportal.core.formatting import lowered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.changes.analysis.expectations import ExpectedRatio
    from ioportal.changes.before_after import Neighbour
    from ioportal.changes.models import Mitigation
    from ioportal.jobs.analysis.comparison.results import Effect
    from ioportal.metrics import Metric

_AGREEMENTS = {
    None: "",
    Agreement.AS_EXPECTED: " As expected.",
    Agreement.EXPECTED_DIRECTION: " In the expected direction.",
    Agreement.LESS: " Less than expected.",
    Agreement.MORE: " More than expected.",
    Agreement.OPPOSITE: " The opposite of the expected change.",
    Agreement.ABSENT: " The expected change did not happen.",
    Agreement.UNEXPECTED: " No change was expected.",
    Agreement.UNCERTAIN: " Whether that is as expected is uncertain.",
}


@dataclass(frozen=True)
class Finding:
    """The effect on the expected metric of a mitigation.

    `together`: other events that contribute to the effect.
    """

    mitigation: Mitigation
    metric: Metric
    effect: Effect
    together: Sequence[Neighbour] = ()

    @property
    def expected(self) -> ExpectedRatio | None:
        """The expected effect of all events together; None: one of them is unknown."""
        others = [each.expected(self.metric.name) for each in self.together]
        return joint([self.mitigation.expected, *others])

    @property
    def agreement(self) -> Agreement | None:
        """How the effect agrees with the expected one; None: unknown."""
        return agreement(self.expected, self.effect) if self.expected else None

    @property
    def text(self) -> str:
        """The expected and the measured effect."""
        own = self.mitigation.expected
        if own is None:
            return with_causes(sentence(self.metric, self.effect), self.together)
        with_others = f" {together(self.together)}" if self.together else ""
        expected = self.expected or own
        of_all, measured = with_others, " together" if self.together else ""
        if not self.expected:  # without the expectations of the others, only its own is known
            of_all, measured = "", with_others
        words = expected.in_words(plural=self.metric.is_plural)
        return (
            f"Expected{of_all}: {lowered(self.metric.title)} {words}. "
            f"Measured{measured}: {conclusion(self.metric, self.effect)}."
            f"{_AGREEMENTS[self.agreement]}"
        )


def together(others: Sequence[Neighbour]) -> str:
    """Return 'together with' the titles of other events, hidden if empty, and their dates."""
    titles = (f"“{each.event.text}”" if each.event.text else "another change" for each in others)
    names = (f"{title} ({each.day})" for title, each in zip(titles, others, strict=True))
    return f"together with {' and '.join(names)}"


def with_causes(text: str, others: Sequence[Neighbour]) -> str:
    """Return a sentence about an effect with the other events that contribute to it."""
    return f"T{together(others)[1:]}: {lowered(text)}" if others else text
