"""The population page: statistics and histograms, and a comparison."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ioportal.jobs.analysis.histograms import Scale
from ioportal.jobs.job_filters import TIME
from ioportal.jobs.models import Population
from ioportal.jobs.populations import population_tables, selections
from ioportal.jobs.populations.population_tables import LAYOUTS, DescribedPopulation
from ioportal.jobs.populations.selections import filters_text, kind_in, population_text
from ioportal.web.common import job_kinds
from ioportal.web.common.requests import changed_query
from ioportal.web.common.selection import SelectedJobs
from ioportal.web.common.tables import Column, Table, to
from ioportal.web.populations.histograms import HistogramPart
from ioportal.web.populations.references import describe, read

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import User

    from ioportal.jobs.populations.selections import Comparison


class PopulationForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Name and filters of a population, and whether it is shared."""

    query = forms.CharField(
        label="Jobs",
        required=False,
        strip=True,
        help_text="URL of a job list or population, or only its filters.",
    )

    class Meta:
        model = Population
        fields = ("name", "is_shared")

    def __init__(self, user: User, data: QueryDict | None = None, **options: Any) -> None:
        # The filter form of the page also has a field `name`.
        super().__init__(data, auto_id="population_%s", **options)
        self._user = user
        self.initial.setdefault("query", self.instance.query)

    def clean_query(self) -> str:
        """Return the filters of the text."""
        text: str = self.cleaned_data["query"]
        return read(self._user, text).selection.filters if text else ""

    def clean_name(self) -> str:
        """Reject a name that the owner uses already."""
        name: str = self.cleaned_data["name"]
        same = Population.objects.filter(owner=self.instance.owner or self._user, name=name)
        if same.exclude(pk=self.instance.pk).exists():
            raise ValidationError(f"A population {name!r} exists already. Choose another name.")
        return name

    def save(self, commit: bool = True) -> Population:  # noqa: FBT001, FBT002  (Django's signature)
        """Save; a new population gets its owner and its permanent slug."""
        population: Population = self.instance
        population.query = self.cleaned_data["query"]
        if not population.pk:
            population.owner = self._user
            population.choose_slug()
        super().save(commit)
        return population


OTHERS = "others"  # compare with all jobs that the user may not see
SHARES = "shares"
_BARS = ("counts", SHARES)
_OPTIONS = ("compare", "scale", "bars")


class PopulationPage(SelectedJobs):
    """A population by filters, or saved under a name, as far as `user` may see it."""

    hidden_parameters = (*_OPTIONS, "unit")
    unit_page = "populations"
    unit_parameters = ("scale", "bars")

    def __init__(self, user: User, query: QueryDict, saved: Population | None = None) -> None:
        self._parameters = query
        if saved:
            query = _changed(saved.query, query)
        super().__init__(user, query, kind=kind_in(query))
        self.saved = saved
        self._user = user
        self.layout = LAYOUTS[self.job_kind.name]

    @property
    def title(self) -> str:
        """The name of the population, or its filters."""
        return self.saved.name if self.saved else self.filters_text

    @property
    def filters_text(self) -> str:
        """Its filters as text."""
        return population_text(self.population_query, self._user)

    @property
    def population_query(self) -> str:
        """The filters as saved."""
        return self.unit_query()

    @property
    def arms_query(self) -> str:
        """Its query for a comparison, with the compared population if there is one."""
        has_own_time = any(self._parameters.get(name) for name in TIME)
        own = self.saved.slug if self.saved and not has_own_time else self.population_query
        compared = self.query.get("compare", "")
        others = [compared] if compared not in {"", OTHERS} else []
        return urlencode({"arm": [own, *others]}, doseq=True)

    @property
    def scale(self) -> Scale:
        """The scale of the bins; an invalid one means logarithmic."""
        scale = self.query.get("scale")
        return Scale(scale) if scale in set(Scale) else Scale.LOG

    @property
    def as_shares(self) -> bool:
        """Whether bars are shares of the known values; by default for populations of two sizes."""
        bars = self.query.get("bars")
        if bars in _BARS:
            return bars == SHARES
        return len({summary.jobs for summary in self.comparison.summaries}) > 1

    @cached_property
    def option_errors(self) -> dict[str, list[str]]:
        """Errors of options, which the page ignores."""
        choices = {"scale": tuple(Scale), "bars": _BARS}
        errors = {
            name: [f"{value[:64]!r} is not one of {', '.join(values)}."]
            for name, values in choices.items()
            if (value := self.query.get(name)) and value not in values
        }
        if message := job_kinds.unit_error(self.query):
            errors["unit"] = [message]
        try:
            _ = self.compared
        except ValidationError as error:
            errors["compare"] = error.messages
        return errors

    @property
    def errors(self) -> dict[str, list[str]]:
        """All errors of the query by parameter."""
        return {**self.filter.errors, **self.option_errors}

    @cached_property
    def compared(self) -> DescribedPopulation | None:
        """The population to compare with.

        Raises:
            ValidationError: the URL names none that `user` may see.
        """
        text = self.query.get("compare", "").strip()
        if not text:
            return None
        if text != OTHERS:
            population = read(self._user, text)
            if population.selection.kind is not self.job_kind:
                raise ValidationError(
                    f"{population.title!r} has {population.selection.kind.plural}. "
                    f"Select {self.job_kind.plural}."
                )
            return population
        if self._user.is_staff:
            raise ValidationError("Staff see all jobs. Select another population.")
        selection = selections.other_jobs(self._user, self.job_kind, self.filters_query())
        filters = filters_text(self.job_kind, selection.filters)
        title = ", ".join(filter(None, [f"Other users' {self.job_kind.plural}", filters]))
        return DescribedPopulation(title, title, selection, "")

    @cached_property
    def populations(self) -> list[DescribedPopulation]:
        """This population, and the compared one."""
        population = describe(self._user, self.title, self)
        compared = None if "compare" in self.option_errors else self.compared
        return [population, compared] if compared else [population]

    @cached_property
    def comparison(self) -> Comparison:
        """The aggregates of the main metrics, and of others with a histogram."""
        main = (column.metric.name for column in self.layout.columns)
        return self._compare(dict.fromkeys([*main, *self.job_kind.bounds]))

    @cached_property
    def main_tables(self) -> list[population_tables.Table]:
        """Tables of the main metrics."""
        return self._tables(self.layout.columns, self.comparison)

    @cached_property
    def other_tables(self) -> list[population_tables.Table]:
        """Tables of all other metrics."""
        columns = self.layout.other
        return self._tables(columns, self._compare(column.metric.name for column in columns))

    def _compare(self, metrics: Iterable[str]) -> Comparison:
        selected = [population.selection for population in self.populations]
        return selections.compare(selected, list(metrics))

    def _tables(
        self, columns: tuple[population_tables.Column, ...], comparison: Comparison
    ) -> list[population_tables.Table]:
        return [
            population_tables.Table(population, summary, columns, number + 1)
            for number, (population, summary) in enumerate(
                zip(self.populations, comparison.summaries, strict=True)
            )
        ]

    @property
    def jobs(self) -> int:
        """The number of jobs."""
        return self.comparison.summaries[0].jobs or 0

    @property
    def simulated(self) -> bool:
        """Whether any of the jobs is simulated."""
        return any(summary.simulated for summary in self.comparison.summaries)

    @cached_property
    def histograms(self) -> list[HistogramPart]:
        """Histograms of the main metrics."""
        columns = self.layout.by_metric
        return [
            HistogramPart(
                columns[name].metric,
                self.comparison.histograms[name, self.scale],
                self.main_tables,
                self.job_kind,
                self.scale,
                as_shares=self.as_shares,
                address=self.address,
            )
            for name in self.job_kind.bounds
        ]

    @property
    def comparison_fields(self) -> list[tuple[str, str]]:
        """Hidden fields of the comparison form: the other parameters of the URL."""
        return [
            (name, value)
            for name, values in self._parameters.lists()
            for value in values
            if name not in {"compare", "format"}
        ]

    @cached_property
    def saved_populations(self) -> Table[Population]:
        """All visible saved populations."""
        visible = Population.objects.visible_to(self._user).select_related("owner")
        columns: tuple[Column[Population], ...] = (
            Column("name", "Name", link=to("population", "slug")),
            Column("filters", "Jobs", lambda each: population_text(each.query), css="wrap"),
            Column("owner", "Owner", "owner__username", cell=_owner),
            Column("is_shared", "Shared"),
            Column("", "Actions", cell=self._compare_link),
        )
        about = "Filters saved under a name: a week, a campaign, a user before and after a change."
        nothing = (
            "No saved populations. Filter the jobs, then press Save as… to get a permanent link."
        )
        return Table("Saved populations", columns, list(visible), about=about, nothing=nothing)

    def _compare_link(self, population: Population) -> SafeString:
        if population == self.saved:
            return SafeString("")
        address = changed_query(self._parameters, compare=population.slug)
        return format_html('<a href="{}">compare</a>', address)

    @property
    def url(self) -> str:
        """The URL of this page."""
        if self.saved:
            return f"{reverse('population', args=[self.saved.slug])}?{self._options}"
        return f"{reverse('populations')}?{self.address}"

    @property
    def address(self) -> str:
        """The query for parts of this page and their exports."""
        query = f"saved={self.saved.slug}" if self.saved else self.population_query
        return "&".join(filter(None, [query, self._options]))

    @property
    def _options(self) -> str:
        names = (*TIME, *_OPTIONS) if self.saved else _OPTIONS
        options = {name: self._parameters.get(name) for name in names}
        return urlencode({name: value for name, value in options.items() if value})

    @property
    def about(self) -> dict[str, Any]:
        """Members of JSON exports other than rows."""
        return {
            "populations": [
                {
                    "title": table.population.title,
                    "filters": table.population.selection.filters,
                    "description": table.population.filters,
                    "jobs": table.summary.jobs,
                    "batch_jobs": table.summary.batch_jobs,
                    "states": table.summary.by_state,
                    "failed_share": table.summary.failed_share,
                    "quality": table.summary.by_quality,
                    "simulated": table.summary.simulated,
                }
                for table in self.main_tables
            ],
            "counted": self.job_kind.plural,
            "pending_statistics": self.pending_statistics,
            "std": "of a sample: divided by n - 1",
            "percentiles": "interpolated linearly",
        }


def _owner(population: Population) -> str:
    return population.owner.username if population.owner else "a former user"


def _changed(saved_query: str, query: QueryDict) -> QueryDict:
    """Return saved filters with the options of a query, and with its time if it has one."""
    filters = QueryDict(saved_query, mutable=True)
    if any(query.get(name) for name in TIME):
        for name in TIME:
            filters.pop(name, None)
    for name in query.keys() & {*TIME, *_OPTIONS}:
        filters.setlist(name, query.getlist(name))
    return filters
