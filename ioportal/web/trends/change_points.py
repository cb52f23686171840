"""Change points of selected jobs, as proposals to log a mitigation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.urls import reverse

from ioportal.changes import change_points
from ioportal.changes.models import Mitigation
from ioportal.core import ratios
from ioportal.core.formatting import human, lowered, significant, with_unit
from ioportal.jobs.populations import scopes
from ioportal.jobs.populations.selections import midnight
from ioportal.web.trends.page import TrendsPage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.changes.change_points import Effect, Explained

_CACHE_VERSION = 2  # to be changed with the classes of `changes.change_points`
COLUMNS = (
    "day",
    "metric",
    "before",
    "after",
    "ratio",
    "ratio_with_same_mix",
    "mitigations",
    "upgrades",
)


@dataclass(frozen=True)
class Proposal:
    """A change of the jobs' metrics, what explains it, and how to log what does."""

    explained: Explained
    scope: str

    @property
    def effects(self) -> list[str]:
        """Its effects as text, largest first."""
        return [effect_text(effect) for effect in self.explained.change.effects]

    @property
    def same_mix(self) -> str:
        """The largest effect among jobs of the same applications; "": it is similar."""
        mix = self.explained.change.same_mix
        if mix is None:
            return ""
        if mix.is_other:
            return "The jobs are of other applications than before."
        if mix.effect is None:
            return "Too few jobs or days to check whether the mix of applications changed."
        low, high = (significant(bound) for bound in (mix.effect.low, mix.effect.high))
        changed = (
            "shows no change"
            if mix.effect.low < 1 < mix.effect.high
            else ratios.measured(mix.effect.value)
        )
        return (
            f"The mix of applications changed: with the same mix, {lowered(self._title)} "
            f"{changed} (ratio {low} to {high})."
        )

    @property
    def _title(self) -> str:
        return self.explained.change.largest.metric.title

    @property
    def log_url(self) -> str:
        """The form that logs a mitigation, filled in with the day, the jobs and the effect."""
        largest = self.explained.change.largest
        values = {
            "started_at": midnight(self.explained.change.day).isoformat(),
            "scope": self.scope,
            "metric": largest.metric.name,
            "factor": f"{largest.ratio:.3g}",
            "source": Mitigation.Source.CHANGE_POINT.value,
        }
        return f"{reverse('log_mitigation')}?{urlencode(values)}"


def effect_text(effect: Effect) -> str:
    """Return an effect as text: the metric, how it changed, and its values."""
    metric = effect.metric
    before, after = human(effect.before, metric.unit), with_unit(effect.after, metric.unit)
    return f"{metric.title} {ratios.measured(effect.ratio)} ({before} to {after})"


class ChangePointsPage(TrendsPage):
    """Change points of selected jobs in a period."""

    @property
    def scope(self) -> str:
        """The filters of the jobs, without times."""
        return scopes.scope_of(self.unit_query())

    @cached_property
    def proposals(self) -> list[Proposal]:
        """Change points, latest first; dismissed ones are left out."""
        if self.window is None:
            return []
        start, end = self.window.start, self.window.end
        found = self.cached(
            "change-points",
            (_CACHE_VERSION, start, end),
            lambda: change_points.changes(self.job_kind, self.filtered, start, end),
        )
        scope = self.scope
        explained = change_points.explained(found, scope, self.user, start, end)
        return [Proposal(each, scope) for each in reversed(explained)]

    @property
    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield a row of `COLUMNS` for each metric that changed."""
        for proposal in self.proposals:
            explained = proposal.explained
            mix = explained.change.same_mix
            for effect in explained.change.effects:
                is_largest = effect is explained.change.largest
                yield (
                    explained.change.day.isoformat(),
                    effect.metric.name,
                    effect.before,
                    effect.after,
                    effect.ratio,
                    mix.effect.value if mix and mix.effect and is_largest else None,
                    [mitigation.title for mitigation in explained.mitigations],
                    list(explained.upgrades),
                )
