"""The parameters of a comparison in the URL."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.core.exceptions import ValidationError

from ioportal.changes.comparisons import control_arm
from ioportal.changes.models import Mitigation
from ioportal.core.charts.palette import MOST_ARMS
from ioportal.jobs.analysis.comparison.results import MARGIN
from ioportal.jobs.populations.population_values import Covariate
from ioportal.web.comparisons.arms import Arm, read_arms
from ioportal.web.populations.references import read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.jobs.populations.population_tables import DescribedPopulation
    from ioportal.jobs.populations.selections import Selection

FEWEST_ARMS = 2
OTHERS, NONE = "others", "none"  # values of `control` other than populations
_LARGEST_MARGIN = 50  # per cent
_KEY_DIGITS = 18
_KEPT = ("control", "covariate", "margin", "metric", "mitigation")


class ComparisonQuery:
    """Arms, control, covariate and margin, with messages for invalid values.

    Parameters: `arm` (repeated, a saved population, filters, or the URL of a job list), `control`
    (`others`, `none`, or a population), `covariate`, `margin` in per cent, `metric` of the charts,
    and `mitigation`, whose periods the arms are.
    """

    def __init__(self, user: User, query: QueryDict) -> None:
        self._user = user
        self._query = query
        self.texts = [text for text in query.getlist("arm") if text.strip()]
        self.arms, self._arm_errors = read_arms(user, self.texts[:MOST_ARMS])
        if len(self.texts) > MOST_ARMS:
            self._arm_errors.append(f"Select at most {MOST_ARMS} arms.")
        keys = [arm.selection.key for arm in self.arms]
        if len(set(keys)) < len(keys):
            self._arm_errors.append(
                "Two arms are the same jobs. Change the filters or the period of one arm."
            )

    @cached_property
    def errors(self) -> dict[str, list[str]]:
        """Messages by parameter."""
        errors = {"arm": self._arm_errors}
        try:
            _ = self._control_population
        except ValidationError as error:
            errors["control"] = error.messages
        covariate = self._query.get("covariate", "")
        if covariate and covariate not in set(Covariate):
            errors["covariate"] = [f"{covariate[:32]!r} is not one of {', '.join(Covariate)}."]
        if self._query.get("margin") and self._margin is None:
            errors["margin"] = [f"The margin must be above 0 and at most {_LARGEST_MARGIN} %."]
        return {name: messages for name, messages in errors.items() if messages}

    @property
    def is_complete(self) -> bool:
        """Whether the arms are valid, and at least two."""
        return not self.errors and len(self.arms) >= FEWEST_ARMS

    @property
    def is_before_and_after(self) -> bool:
        """Whether the arms are one population in different periods."""
        periods = {(arm.start, arm.end) for arm in self.arms}
        same = all(arm.filters == self.arms[0].filters for arm in self.arms)
        return same and len(periods) == len(self.arms) > 1

    @property
    def control(self) -> str:
        """The value of `control`; by default, others for one population in different periods."""
        text = self._query.get("control", "").strip()
        if text:
            return text
        return OTHERS if self.is_before_and_after and self.arms[0].filters else NONE

    @cached_property
    def _control_population(self) -> DescribedPopulation | None:
        """The population of `control`; None for `others` and `none`.

        Raises:
            ValidationError: there is none that the user may see.
        """
        if self.control in {OTHERS, NONE} or not self.arms:
            return None
        population = read(self._user, self.control)
        if population.selection.kind is not self.arms[0].kind:
            raise ValidationError(f"The control needs {self.arms[0].kind.plural}.")
        return population

    @property
    def control_title(self) -> str:
        """The control as text; "" without one."""
        if self.control == NONE:
            return ""
        if population := self._control_population:
            return population.title
        return "all other jobs" if self._user.is_staff else "jobs of other users (anonymous)"

    @property
    def control_selections(self) -> list[Selection]:
        """For each arm, the control's jobs in its period; none without a control."""
        if self.control == NONE:
            return []
        population = self._control_population
        if population is None:
            return [control_arm(self._user, arm.selection) for arm in self.arms]
        [control], _ = read_arms(self._user, [self.control])
        texts = [control.query(**arm.times) for arm in self.arms]
        return [arm.selection for arm in read_arms(self._user, texts)[0]]

    @property
    def covariate(self) -> Covariate:
        """What divides the jobs into strata; an invalid value means nodes."""
        covariate = self._query.get("covariate", "")
        return Covariate(covariate) if covariate in set(Covariate) else Covariate.NODES

    @property
    def _margin(self) -> float | None:
        """The margin in per cent; None if it is invalid."""
        try:
            percent = float(self._query.get("margin", ""))
        except ValueError:
            return None
        return percent if 0 < percent <= _LARGEST_MARGIN else None

    @property
    def margin(self) -> float:
        """The margin of equivalence as a share."""
        return MARGIN if self._margin is None else self._margin / 100

    @property
    def margin_percent(self) -> float:
        """The margin in per cent."""
        return round(100 * self.margin, 6)

    @property
    def metric(self) -> str:
        """The name of the metric of the charts; "" or an unknown one: the page selects it."""
        return self._query.get("metric", "")

    @property
    def address(self) -> str:
        """The query string, without unknown parameters."""
        return self._address(self.texts)

    @property
    def permanent_address(self) -> str:
        """The query string with absolute times: relative times move with the latest job."""
        return self._address([_absolute(arm) for arm in self.arms])

    def _address(self, arms: Sequence[str]) -> str:
        return urlencode({"arm": arms, **dict(self._given(*_KEPT))}, doseq=True)

    @cached_property
    def mitigation(self) -> Mitigation | None:
        """The mitigation whose periods are compared; None: none that the user may see."""
        text = self._query.get("mitigation", "")
        if not (text.isascii() and text.isdigit() and len(text) <= _KEY_DIGITS):
            return None
        return Mitigation.objects.visible_to(self._user).filter(pk=text).first()

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """Hidden fields of the form of arms: parameters without a visible field."""
        return self._given("metric", "mitigation")

    @property
    def all_but_metric(self) -> list[tuple[str, str]]:
        """Hidden fields of the form that selects the metric."""
        others = self._given(*(name for name in _KEPT if name != "metric"))
        return [*(("arm", text) for text in self.texts), *others]

    def _given(self, *names: str) -> list[tuple[str, str]]:
        return [(name, value) for name in names if (value := self._query.get(name))]


def _absolute(arm: Arm) -> str:
    is_relative = "last" in arm.selection.filters
    return arm.query(**arm.times) if is_relative else arm.text
