"""A population as its URL describes it: its statistics and histograms, another one beside it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.urls import reverse

from ioportal.analysis.histograms import Scale
from ioportal.studies import populations
from ioportal.web.common import job_kinds
from ioportal.web.common.selection import ChosenJobs
from ioportal.web.populations.descriptions import Shown, filters_in_words, in_words, read, show
from ioportal.web.populations.histograms import HistogramPart
from ioportal.web.populations.tables import LAYOUTS, Column, Table

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from ioportal.studies.models import Population
    from ioportal.studies.populations import Comparison

OTHERS = "others"  # beside one's own jobs: all that one may not see
_BARS = ("counts", "shares")
_OPTIONS = ("beside", "scale", "bars")


class PopulationPage(ChosenJobs):
    """Jobs by filters, or by a name that stands for filters, as `user` may see them."""

    carried_on = (*_OPTIONS, "unit")
    counts_either = "populations"
    kept_by_units = ("scale", "bars")

    def __init__(self, user: User, query: QueryDict, named: Population | None = None) -> None:
        self._asked = query
        if named:
            filters = QueryDict(named.query, mutable=True)
            for name in query.keys() & set(_OPTIONS):
                filters.setlist(name, query.getlist(name))
            query = filters
        super().__init__(user, query, counted=job_kinds.counted_in(query))
        self.named = named
        self._user = user
        self.layout = LAYOUTS[self.counted.name]

    @property
    def title(self) -> str:
        """What the population is called."""
        return self.named.name if self.named else self.in_words

    @property
    def in_words(self) -> str:
        """Which jobs they are."""
        return in_words(self.population_query, self._user)

    @property
    def population_query(self) -> str:
        """The filters as a named population keeps them."""
        return self.unit_query()

    @property
    def scale(self) -> Scale:
        """How wide bins are; nonsense means the default."""
        wanted = self.query.get("scale")
        return Scale(wanted) if wanted in set(Scale) else Scale.LOG

    @property
    def as_shares(self) -> bool:
        """Whether bars are shares of the known values rather than counts."""
        return self.query.get("bars") == "shares"

    @cached_property
    def unknown(self) -> dict[str, list[str]]:
        """What else is wrong with the address; the page leaves it out."""
        choices = {"scale": tuple(Scale), "bars": _BARS}
        wrong = {
            name: [f"{wanted[:64]!r} is none of {', '.join(known)}."]
            for name, known in choices.items()
            if (wanted := self.query.get(name)) and wanted not in known
        }
        if message := job_kinds.misunderstood(self.query):
            wrong["unit"] = [message]
        try:
            _ = self.beside
        except ValidationError as error:
            wrong["beside"] = error.messages
        return wrong

    @property
    def errors(self) -> dict[str, list[str]]:
        """What of the address was not understood, by parameter."""
        return {**self.filter.errors, **self.unknown}

    @cached_property
    def beside(self) -> Shown | None:
        """The population beside this one.

        Raises:
            ValidationError: the address names none that can be shown.
        """
        text = self.query.get("beside", "").strip()
        if not text:
            return None
        if text != OTHERS:
            shown = read(self._user, text)
            if shown.selection.counted is not self.counted:
                raise ValidationError(f"{shown.title!r} counts {shown.selection.counted.plural}.")
            return shown
        if self._user.is_staff:
            raise ValidationError("Nobody's jobs are hidden from you: name another population.")
        selected = populations.others(self._user, self.counted, self.filters_query())
        filters = filters_in_words(self.counted, selected.filters)
        words = ", ".join(filter(None, [f"Other people's {self.counted.plural}", filters]))
        return Shown(words, words, selected, "")

    @cached_property
    def populations(self) -> list[Shown]:
        """This population and, if the address asks for one, the other."""
        itself = show(self._user, self.title, self)
        beside = None if "beside" in self.unknown else self.beside
        return [itself, beside] if beside else [itself]

    @cached_property
    def comparison(self) -> Comparison:
        """All that is computed for what is asked for first."""
        return self._compare(self.layout.columns)

    @cached_property
    def main_tables(self) -> list[Table]:
        """The tables by what is asked for first."""
        return self._tables(self.layout.columns, self.comparison)

    @cached_property
    def further_tables(self) -> list[Table]:
        """The tables of all other metrics."""
        return self._tables(self.layout.further, self._compare(self.layout.further))

    def _compare(self, columns: tuple[Column, ...]) -> Comparison:
        return populations.compare(
            [shown.selection for shown in self.populations],
            [column.metric.name for column in columns],
        )

    def _tables(self, columns: tuple[Column, ...], found: Comparison) -> list[Table]:
        return [
            Table(shown, summary, columns, number + 1)
            for number, (shown, summary) in enumerate(
                zip(self.populations, found.summaries, strict=True)
            )
        ]

    @property
    def jobs(self) -> int:
        """How many jobs there are."""
        return self.comparison.summaries[0].jobs or 0

    @property
    def simulated(self) -> bool:
        """Whether anything of it is made up."""
        return any(summary.simulated for summary in self.comparison.summaries)

    @cached_property
    def histograms(self) -> list[HistogramPart]:
        """The histograms."""
        columns = self.layout.by_metric
        return [HistogramPart(self, columns[name].metric) for name in self.counted.bounds]

    @property
    def beside_the_other(self) -> list[tuple[str, str]]:
        """What the form of the other population carries on: all that this page's address says."""
        return [
            (name, value)
            for name, values in self._asked.lists()
            for value in values
            if name not in {"beside", "format"}
        ]

    @property
    def url(self) -> str:
        """The address of this page."""
        if self.named:
            return f"{reverse('population', args=[self.named.slug])}?{self._options}"
        return f"{reverse('populations')}?{self.address}"

    @property
    def address(self) -> str:
        """The query by which parts of this page, and their twins, know it."""
        itself = f"named={self.named.slug}" if self.named else self.population_query
        return "&".join(filter(None, [itself, self._options]))

    @property
    def _options(self) -> str:
        options = {name: self.query.get(name) for name in _OPTIONS}
        return urlencode({name: value for name, value in options.items() if value})

    @property
    def about(self) -> dict[str, Any]:
        """What the JSON twins say besides their rows."""
        return {
            "populations": [
                {
                    "title": table.shown.title,
                    "filters": table.shown.selection.filters,
                    "in_words": table.shown.words,
                    "jobs": table.summary.jobs,
                    "batch_jobs": table.summary.batch_jobs,
                    "states": table.summary.by_state,
                    "failed_share": table.summary.failed_share,
                    "quality": table.summary.by_quality,
                    "simulated": table.summary.simulated,
                }
                for table in self.main_tables
            ],
            "counted": self.counted.plural,
            "std": "of a sample: divided by n - 1",
            "percentiles": "interpolated linearly",
        }
