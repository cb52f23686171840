"""A population as its URL describes it: its statistics and histograms, another one beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ioportal.analysis.histograms import Scale
from ioportal.analysis.metrics import BY_NAME, METRICS, Metric, Unit
from ioportal.analysis.populations import FEWEST, Spread
from ioportal.charts import histograms as charts
from ioportal.jobs import populations
from ioportal.jobs.filters import BOUNDS, JobFilter
from ioportal.jobs.models import Population
from ioportal.jobs.populations import Selection
from ioportal.web import formatting
from ioportal.web.chosen import ChosenJobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.contrib.auth.models import User

    from ioportal.analysis.histograms import Bin, Histogram
    from ioportal.jobs.populations import Comparison, Summary

OTHERS = "others"  # beside one's own jobs: all that one may not see
ALL_JOBS = "All jobs"
_OWN_JOBS = "Your jobs"
_BARS = ("counts", "shares")
_OPTIONS = ("beside", "scale", "bars")
_NAMED = re.compile(r"(?:.*/populations/)?(?P<slug>[-\w]+)/?", re.ASCII)
_STATISTICS = {
    "n": "Known",
    "unknown": "Unknown",
    "min": "Min",
    "max": "Max",
    "mean": "Average",
    "std": "Std. Dev.",
    "p50": "p50",
    "p90": "p90",
    "p99": "p99",
}
TABLE_HEADER = ["population", "metric", "unit", *_STATISTICS]
_GB = 10**9


@dataclass(frozen=True)
class Column:
    """A metric of the table, and how its values are written there."""

    metric: Metric
    title: str
    write: Callable[[float], str]


def _plain(decimals: int, divisor: int = 1) -> Callable[[float], str]:
    """Write numbers with their thousands apart; whole ones need no decimals if 0 are asked for."""

    def write(value: float) -> str:
        scaled = value / divisor
        is_whole = not decimals and scaled == round(scaled)
        return f"{scaled:,.{0 if is_whole else decimals or 2}f}"

    return write


def _human(unit: Unit) -> Callable[[float], str]:
    if unit in {Unit.COUNT, Unit.RPCS}:
        return _plain(0)
    return lambda value: formatting.human(value, unit)


# The table of the 1,175 PanDA jobs of a week on Titan had these columns.
COLUMNS = (
    Column(BY_NAME["node_count"], "Num. Nodes", _plain(0)),
    Column(BY_NAME["duration_s"], "Duration (s)", _plain(0)),
    Column(BY_NAME["read_bytes"], "Read (GB)", _plain(2, _GB)),
    Column(BY_NAME["write_bytes"], "Written (GB)", _plain(2, _GB)),
    Column(BY_NAME["read_bytes_per_node"], "GB Read/nodes", _plain(5, _GB)),
    Column(BY_NAME["write_bytes_per_node"], "GB Written/nodes", _plain(5, _GB)),
    Column(BY_NAME["opens"], "open()", _plain(0)),
    Column(BY_NAME["closes"], "close()", _plain(0)),
)
FURTHER = tuple(
    Column(metric, metric.title, _human(metric.unit))
    for metric in METRICS
    if metric not in {column.metric for column in COLUMNS}
)


@dataclass(frozen=True)
class Shown:
    """A population of the page: its jobs and what it is called."""

    title: str
    selection: Selection
    jobs_url: str  # "" where they may not be seen one by one


@dataclass(frozen=True)
class Table:
    """The statistics of one population."""

    shown: Shown
    summary: Summary
    columns: tuple[Column, ...]
    colour: int  # of its bars, and of the mark beside its name
    fewest = FEWEST

    @property
    def rows(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield each statistic's name and cells: what is written and, for a title, exactly."""
        if not self.summary.spreads:
            return
        for name, title in _STATISTICS.items():
            yield title, [self._cell(column, name) for column in self.columns]

    def _cell(self, column: Column, name: str) -> tuple[str, str]:
        value = getattr(self.summary.spreads[column.metric.name], name)
        if name in {"n", "unknown"}:
            return f"{value:,}", f"{value:,} jobs"
        if value is None:
            told = "not told of other people's jobs" if self.is_anonymous else "not known"
            return formatting.UNKNOWN, told
        return column.write(value), formatting.exact(value, column.metric.unit)

    @property
    def is_anonymous(self) -> bool:
        """Whether these are other people's jobs."""
        return self.shown.selection.is_anonymous

    @property
    def values(self) -> Iterator[list[Any]]:
        """Yield the rows of the twins: a metric each, in its own unit."""
        for column in self.columns:
            found = self.summary.spreads.get(column.metric.name)
            figures = [getattr(found, name, None) for name in _STATISTICS]
            yield [self.shown.title, column.metric.name, str(column.metric.unit), *figures]


class HistogramPart:
    """The histogram of one metric on the page, with its table and twins."""

    def __init__(self, page: PopulationPage, metric: Metric) -> None:
        self.metric = metric
        self._page = page
        self._tables = page.tables(COLUMNS)

    @property
    def histogram(self) -> Histogram:
        """The counts."""
        return self._page.comparison(COLUMNS).histograms[self.metric.name, self._page.scale]

    @property
    def script_id(self) -> str:
        """The id of the element that carries the figure."""
        return f"figure-{self.metric.name}"

    @property
    def twin(self) -> str:
        """The address of its twins, but for the format."""
        return f"{reverse('histogram', args=[self.metric.name])}?{self._page.address}"

    @property
    def is_empty(self) -> bool:
        """Whether it is known of no job."""
        return not self.histogram.bins

    @property
    def figure(self) -> charts.Figure:
        """The chart for Plotly."""
        tick = self._label if self.metric.unit is Unit.BYTES else formatting.short
        chart = charts.Chart(self._label, tick, self._page.scale, self._page.as_shares)
        links = [self._jobs_url(0, bounds) for bounds in self.histogram.bins]
        return charts.figure(chart, self.histogram.bins, self._bars, links)

    @property
    def titles(self) -> list[str]:
        """The populations."""
        return [table.shown.title for table in self._tables]

    @property
    def known(self) -> list[tuple[str, int, int]]:
        """How many jobs of each population the bars are made of, and how many are unknown."""
        return [
            (table.shown.title, found.n, found.unknown)
            for table in self._tables
            if (found := self._spread(table))
        ]

    @property
    def rows(self) -> Iterator[tuple[str, list[tuple[int | None, float, str]]]]:
        """Yield bins with jobs: bounds, and of each population the count, share and link."""
        for bounds, counts in self._by_bin():
            if any(counts):
                yield (
                    charts.bounds_in_words(self._label, bounds),
                    [
                        (count, bars.share(count or 0), self._jobs_url(number, bounds))
                        for number, (bars, count) in enumerate(zip(self._bars, counts, strict=True))
                    ],
                )

    @property
    def header(self) -> list[str]:
        """The names of its twins' columns."""
        beside = ["beside_count", "beside_share"] if len(self._tables) > 1 else []
        return ["from", "below", "count", "share", *beside]

    @property
    def values(self) -> Iterator[list[Any]]:
        """Yield the rows of its twins: every bin."""
        for (low, high), counts in self._by_bin():
            row: list[Any] = [low, high]
            for bars, count in zip(self._bars, counts, strict=True):
                row += [count, None if count is None else bars.share(count)]
            yield row

    @cached_property
    def _bars(self) -> list[charts.Bars]:
        return [
            charts.Bars(table.shown.title, self._spread(table).n, counts)
            for table, counts in zip(self._tables, self.histogram.counts, strict=True)
        ]

    def _spread(self, table: Table) -> Spread:
        return table.summary.spreads.get(self.metric.name, Spread(0, 0))

    def _by_bin(self) -> Iterator[tuple[Bin, tuple[int | None, ...]]]:
        yield from zip(self.histogram.bins, zip(*self.histogram.counts, strict=True), strict=True)

    def _label(self, value: int) -> str:
        if self.metric.unit is Unit.BYTES:
            return formatting.all_bytes(value)
        return f"{value:,}"

    def _jobs_url(self, number: int, bounds: Bin) -> str:
        """Return the list of the jobs in a bin: within bounds that the filters set already."""
        jobs = self._tables[number].shown
        if not jobs.jobs_url:
            return ""
        filters = QueryDict(jobs.selection.filters, mutable=True)
        for name, bound, tighter in zip(BOUNDS[self.metric.name], bounds, (max, min), strict=True):
            set_before = filters.get(name)
            filters[name] = str(tighter(bound, int(set_before)) if set_before else bound)
        return f"{reverse('job_list')}?{filters.urlencode()}"


class PopulationPage(ChosenJobs):
    """Jobs by filters, or by a name that stands for filters, as `user` may see them."""

    carried_on = _OPTIONS

    def __init__(self, user: User, query: QueryDict, named: Population | None = None) -> None:
        self._asked = query
        if named:
            filters = QueryDict(named.query, mutable=True)
            for name in query.keys() & set(_OPTIONS):
                filters.setlist(name, query.getlist(name))
            query = filters
        super().__init__(user, query)
        self.named = named
        self._user = user

    @property
    def title(self) -> str:
        """What the population is called."""
        return self.named.name if self.named else self.filters_in_words

    @property
    def filters_in_words(self) -> str:
        """Which jobs they are."""
        return _title(self._user, self.filters_query())

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
            return read(self._user, text)
        if self._user.is_staff:
            raise ValidationError("Nobody's jobs are hidden from you: name another population.")
        selected = populations.others(self._user, self.filters_query())
        words = in_words(selected.filters)
        return Shown(f"Other people's jobs{f', {words}' if words else ''}", selected, "")

    @cached_property
    def populations(self) -> list[Shown]:
        """This population and, if the address asks for one, the other."""
        itself = _shown(self._user, self.title, self)
        beside = None if "beside" in self.unknown else self.beside
        return [itself, beside] if beside else [itself]

    def comparison(self, columns: tuple[Column, ...]) -> Comparison:
        """Return all that is computed for some columns."""
        if columns not in self._comparisons:
            self._comparisons[columns] = populations.compare(
                [shown.selection for shown in self.populations],
                [column.metric.name for column in columns],
            )
        return self._comparisons[columns]

    @cached_property
    def _comparisons(self) -> dict[tuple[Column, ...], Comparison]:
        return {}

    def tables(self, columns: tuple[Column, ...]) -> list[Table]:
        """Return the statistics of each population."""
        summaries = self.comparison(columns).summaries
        return [
            Table(shown, summary, columns, number + 1)
            for number, (shown, summary) in enumerate(zip(self.populations, summaries, strict=True))
        ]

    @property
    def jobs(self) -> int:
        """How many jobs there are."""
        return self.comparison(COLUMNS).summaries[0].jobs or 0

    @property
    def simulated(self) -> bool:
        """Whether anything of it is made up."""
        return any(summary.simulated for summary in self.comparison(COLUMNS).summaries)

    @property
    def main_tables(self) -> list[Table]:
        """The tables by what is asked for first."""
        return self.tables(COLUMNS)

    @property
    def further_tables(self) -> list[Table]:
        """The tables of all other metrics."""
        return self.tables(FURTHER)

    @cached_property
    def histograms(self) -> list[HistogramPart]:
        """The four histograms."""
        return [HistogramPart(self, BY_NAME[name]) for name in BOUNDS]

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
    def address(self) -> str:
        """The query of this page by its filters, for what has no name: parts, twins, jobs."""
        options = {name: self.query.get(name) for name in _OPTIONS}
        return self.filters_query() + "".join(
            f"&{urlencode({name: value})}" for name, value in options.items() if value
        )

    @property
    def about(self) -> dict[str, Any]:
        """What the JSON twins say besides their rows."""
        return {
            "populations": [
                {
                    "title": table.shown.title,
                    "filters": table.shown.selection.filters,
                    "jobs": table.summary.jobs,
                    "quality": table.summary.by_quality,
                    "simulated": table.summary.simulated,
                }
                for table in self.main_tables
            ],
            "std": "of a sample: divided by n - 1",
            "percentiles": "interpolated linearly",
        }


def in_words(filters: str) -> str:
    """Return filters for people: 'user: alice; state: failed'."""
    return "; ".join(
        f"{JobFilter.base_filters[name].label.lower()}: {', '.join(map(_word, values))}"
        for name, values in QueryDict(filters).lists()
        if name in JobFilter.base_filters
    )


def _word(value: str) -> str:
    """Return a filter's value for people: a moment on the site's clock, anything else as it is."""
    try:
        moment = parse_datetime(value)
        if moment and timezone.is_aware(moment):
            moment = timezone.localtime(moment)
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        return formatting.visible(value)
    return f"{moment:%Y-%m-%d %H:%M:%S}".removesuffix(":00")


def read(user: User, text: str) -> Shown:
    """Return the population that a text names: by slug, by its filters, or by any address.

    Raises:
        ValidationError: it names none that `user` can see.
    """
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if not parts.query and "=" in text:
        parts = parts._replace(path="/", query=text)
    if match := _NAMED.fullmatch(parts.path):
        named = Population.objects.visible_to(user).filter(slug=match["slug"]).first()
        if named is None:
            raise ValidationError(f"You can see no population {match['slug'][:64]!r}.")
        return _shown(user, named.name, ChosenJobs(user, QueryDict(named.query)))
    chosen = ChosenJobs(user, QueryDict(parts.query))
    if not parts.path.startswith("/") or not chosen.is_valid:
        raise ValidationError(f"{text[:64]!r} is not the address of jobs or of a population.")
    return _shown(user, _title(user, chosen.filters_query()), chosen)


def _title(user: User, filters: str) -> str:
    return in_words(filters) or (ALL_JOBS if user.is_staff else _OWN_JOBS)


def _shown(user: User, title: str, chosen: ChosenJobs) -> Shown:
    filters = chosen.filters_query()
    selected = Selection(filters, populations.eyes(user), chosen.filtered)
    return Shown(title, selected, f"{reverse('job_list')}?{filters}")
