"""The arms of a comparison, as the URL selects them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone

from ioportal.jobs.job_filters import TIME
from ioportal.jobs.populations.selections import filters_text
from ioportal.web.common import job_kinds
from ioportal.web.populations.references import read

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.jobs.populations.population_tables import DescribedPopulation
    from ioportal.jobs.populations.selections import JobKind, Selection

_MOMENT = timedelta(microseconds=1)
_MONTH = timedelta(days=28)
_LONGEST_NAME = 40  # characters, of three or four arms


@dataclass(frozen=True)
class Arm:
    """One side of a comparison.

    Args:
        text: its reference in the URL.
        population: its jobs.
        name: a short name, unique among the arms.
        start: start of its period; None: unbounded.
        end: end of its period.
        number: 0 for the first arm, the reference.
    """

    text: str
    population: DescribedPopulation
    name: str
    start: datetime | None
    end: datetime | None
    number: int

    @property
    def selection(self) -> Selection:
        """Its jobs for queries."""
        return self.population.selection

    @property
    def kind(self) -> JobKind:
        """Batch jobs or PanDA jobs."""
        return self.selection.kind

    @property
    def colour(self) -> int:
        """Number of its hue."""
        return self.number + 1

    @property
    def url(self) -> str:
        """The URL of its statistics."""
        return f"{reverse('populations')}?{job_kinds.with_unit(self.kind, self._all_filters)}"

    @property
    def _all_filters(self) -> str:
        return urlencode({**self.filters, **self.times}, doseq=True)

    @property
    def times(self) -> dict[str, str]:
        """The bounds of its period as filters."""
        bounds = (("start", self.start), ("end", self.end))
        return {name: timezone.localtime(at).isoformat() for name, at in bounds if at}

    @property
    def period(self) -> str:
        """Its period as text."""
        return period_text(self.start, self.end)

    @property
    def filters(self) -> dict[str, list[str]]:
        """Its filters without unit and period."""
        return {
            name: values
            for name, values in QueryDict(self.selection.filters).lists()
            if name not in {*TIME, "unit"}
        }

    @property
    def filters_text(self) -> str:
        """Its filters without period as text."""
        return filters_text(self.kind, urlencode(self.filters, doseq=True))

    def query(self, **changes: str) -> str:
        """Return its filters without period, with changes, as a reference."""
        return job_kinds.with_unit(self.kind, urlencode({**self.filters, **changes}, doseq=True))


def read_arms(user: User, texts: Sequence[str]) -> tuple[list[Arm], list[str]]:
    """Return the arms of references, in order, and messages for invalid references."""
    arms: list[Arm] = []
    errors = []
    for text in texts:
        try:
            population = read(user, text)
        except ValidationError as error:
            errors += error.messages
            continue
        arm = Arm(text, population, "", *_period(population), len(arms))
        if arms and arm.kind is not arms[0].kind:
            errors.append(
                f"{population.title!r} has {arm.kind.plural}, the first arm {arms[0].kind.plural}. "
                "Select jobs of one kind."
            )
            continue
        arms.append(arm)
    names = _names(arms)
    return [replace(arm, name=name) for arm, name in zip(arms, names, strict=True)], errors


def _period(population: DescribedPopulation) -> tuple[datetime | None, datetime | None]:
    selection = population.selection
    form = selection.kind.filter_set(QueryDict(selection.filters)).form
    if not form.is_valid():
        return None, None
    return form.cleaned_data["start"], form.cleaned_data["end"]


def _names(arms: Sequence[Arm]) -> list[str]:
    """Return what differs between the arms, or their letters if nothing does."""
    if len(arms) == 2 and _is_before(*arms):  # noqa: PLR2004  (a pair)
        return [_short_period(arm) for arm in arms] if _are_months(*arms) else ["Before", "After"]
    names = [_difference(arm, arms) for arm in arms]
    if len(arms) > 2:  # noqa: PLR2004  (a pair)
        return [f"{number}: {_shortened(name)}" for number, name in enumerate(names, 1)]
    return [
        name if name and names.count(name) == 1 else " ".join(filter(None, [_letter(at), name]))
        for at, name in enumerate(names)
    ]


def _letter(number: int) -> str:
    return f"Arm {number + 1}"


def _difference(arm: Arm, arms: Sequence[Arm]) -> str:
    if arm.population.title != arm.population.filters:  # a saved name
        return arm.population.title
    common = [
        name
        for name, values in arm.filters.items()
        if all(other.filters.get(name) == values for other in arms)
    ]
    own = {name: values for name, values in arm.filters.items() if name not in common}
    parts = [filters_text(arm.kind, urlencode(own, doseq=True))]
    if len({(other.start, other.end) for other in arms}) > 1:
        is_pair = len(arms) == 2  # noqa: PLR2004  (a pair)
        parts.append(period_text(arm.start, arm.end) if is_pair else _short_period(arm))
    return "; ".join(filter(None, parts))


def _is_before(first: Arm, second: Arm) -> bool:
    """Whether two arms have the same filters and consecutive periods."""
    is_same = first.filters == second.filters
    return bool(is_same and first.end and second.start and first.end <= second.start)


def _are_months(first: Arm, second: Arm) -> bool:
    """Whether two consecutive periods are whole days without a gap, of about a month or more."""
    if not (first.start and first.end and second.start and second.end):
        return False
    edges = (first.start, first.end, second.start, second.end)
    is_long = min(first.end - first.start, second.end - second.start) >= _MONTH
    return is_long and first.end == second.start and all(map(_is_midnight, edges))


def _short_period(arm: Arm) -> str:
    """Return the first and last day of a period without the year: '31 Aug to 10 Sep'."""
    if not (arm.start and arm.end):
        return arm.period
    days = [timezone.localtime(at) for at in (arm.start, arm.end - _MOMENT)]
    return " to ".join(dict.fromkeys(f"{day:%-d %b}" for day in days))


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME].rstrip()}…"


def period_text(start: datetime | None, end: datetime | None) -> str:
    """Return a period in the site's zone: '17 Aug to 19 Aug 2017', with times if not midnight."""
    if start is None and end is None:
        return "any time"
    is_whole = all(_is_midnight(at) for at in (start, end) if at)
    form = "%-d %b %Y" if is_whole else "%-d %b %Y %H:%M"
    # Whole days are named by their first and last day.
    last = end - _MOMENT if end and is_whole else end
    texts = [f"{timezone.localtime(at):{form}}" if at else "" for at in (start, last)]
    if texts[0] == texts[1]:
        return texts[0]
    if not texts[0]:
        return f"until {texts[1]}"
    return f"{texts[0]} to {texts[1]}" if texts[1] else f"since {texts[0]}"


def _is_midnight(moment: datetime) -> bool:
    return timezone.localtime(moment).time().isoformat() == "00:00:00"
