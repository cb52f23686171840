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
from ioportal.analysis.metrics import BY_NAME, METRICS, PANDA_METRICS, Metric, Source, Unit
from ioportal.analysis.populations import FEWEST, Spread
from ioportal.charts import histograms as charts
from ioportal.jobs import populations
from ioportal.jobs.kept import eyes
from ioportal.jobs.models import Population
from ioportal.jobs.populations import BATCH_JOBS, PANDA_JOBS, UNITS, Counted, Selection
from ioportal.web import formatting
from ioportal.web.chosen import ChosenJobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.contrib.auth.models import User

    from ioportal.analysis.histograms import Bin, Histogram
    from ioportal.jobs.populations import Comparison, Summary

OTHERS = "others"  # beside one's own jobs: all that one may not see
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
_BATCH_LEVEL = "Its batch job, shared"
TABLE_HEADER = ["population", "filters", "metric", "value_of", "unit", *_STATISTICS]
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
_WRITTEN = {Unit.SECONDS: _plain(0), Unit.CORES: _plain(0), Unit.SHARE: _human(Unit.SHARE)}
_TITLES = {Unit.SECONDS: " (s)"}
PANDA_COLUMNS = tuple(
    Column(metric, metric.title + _TITLES.get(metric.unit, ""), _WRITTEN[metric.unit])
    for metric in PANDA_METRICS
)


@dataclass(frozen=True)
class Layout:
    """How populations of a unit are shown: the columns of both tables, and where a list is."""

    columns: tuple[Column, ...]
    further: tuple[Column, ...]
    list_name: str

    @property
    def by_metric(self) -> dict[str, Column]:
        """The columns of the first table by their metrics' names."""
        return {column.metric.name: column for column in self.columns}


LAYOUTS = {
    BATCH_JOBS.name: Layout(COLUMNS, FURTHER, "job_list"),
    PANDA_JOBS.name: Layout((*PANDA_COLUMNS, *COLUMNS), FURTHER, "panda_list"),
}


@dataclass(frozen=True)
class Shown:
    """A population of the page: its jobs, what it is called, and its filters in words."""

    title: str
    words: str
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

    @property
    def counted(self) -> Counted:
        """What is counted."""
        return self.shown.selection.counted

    @property
    def groups(self) -> list[tuple[str, int, bool]]:
        """Whose values stand in how many columns, where some are batch jobs': with that."""
        own = [self.counted.is_own(column.metric.name) for column in self.columns]
        if all(own):
            return []
        parts = [
            (self.counted.singular, own.count(True), False),
            (_BATCH_LEVEL, own.count(False), True),
        ]
        return [part for part in parts if part[1]]

    def _cell(self, column: Column, name: str) -> tuple[str, str]:
        spread = self.summary.spreads.get(column.metric.name)
        value = getattr(spread, name, None)
        if value is not None and name in {"n", "unknown"}:
            return f"{value:,}", f"{value:,} {self.counted.plural}"
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
            yield [
                self.shown.title,
                self.shown.words,
                column.metric.name,
                value_of(column.metric),
                str(column.metric.unit),
                *figures,
            ]


class HistogramPart:
    """The histogram of one metric on the page, with its table and twins."""

    def __init__(self, page: PopulationPage, metric: Metric) -> None:
        self.metric = metric
        self.counted = page.counted
        self._page = page
        self._tables = page.main_tables

    @property
    def histogram(self) -> Histogram:
        """The counts."""
        return self._page.comparison.histograms[self.metric.name, self._page.scale]

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
        chart = charts.Chart(
            self._label, tick, self._page.scale, self._page.as_shares, self.counted.plural
        )
        links = [self._jobs_url(0, bounds) for bounds in self.histogram.bins]
        return charts.figure(chart, self.histogram.bins, self._bars, links)

    @property
    def is_shared(self) -> bool:
        """Whether its values are of batch jobs that several may share."""
        return not self.counted.is_own(self.metric.name)

    @property
    def each(self) -> str:
        """What is counted, for each of what: 'operations a batch job'."""
        unit = "seconds" if self.metric.unit is Unit.SECONDS else str(self.metric.unit)
        return f"{unit} a {'batch job' if self.is_shared else self.counted.singular}"

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
            if (found := table.summary.spreads.get(self.metric.name))
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
        return f"{value:,} s" if self.metric.unit is Unit.SECONDS else f"{value:,}"

    def _jobs_url(self, number: int, bounds: Bin) -> str:
        """Return the list of the jobs in a bin: within bounds that the filters set already."""
        jobs = self._tables[number].shown
        if not jobs.jobs_url:
            return ""
        filters = QueryDict(urlsplit(jobs.jobs_url).query, mutable=True)
        names = self.counted.bounds[self.metric.name]
        for name, bound, tighter in zip(names, bounds, (max, min), strict=True):
            set_before = filters.get(name)
            filters[name] = str(tighter(bound, int(set_before)) if set_before else bound)
        return f"{reverse(LAYOUTS[self.counted.name].list_name)}?{filters.urlencode()}"


class PopulationPage(ChosenJobs):
    """Jobs by filters, or by a name that stands for filters, as `user` may see them."""

    carried_on = (*_OPTIONS, "unit")

    def __init__(self, user: User, query: QueryDict, named: Population | None = None) -> None:
        self._asked = query
        if named:
            filters = QueryDict(named.query, mutable=True)
            for name in query.keys() & set(_OPTIONS):
                filters.setlist(name, query.getlist(name))
            query = filters
        super().__init__(user, query, counted=_counted(query))
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
        return _with_unit(self.counted, self.filters_query())

    @property
    def units(self) -> list[tuple[str, str, bool]]:
        """What may be counted: its name, the query with those filters that fit, whether it is."""
        found = []
        for counted in UNITS.values():
            fitting = [
                name for name in self.filter.filters if name in counted.filter_set.base_filters
            ]
            given = urlencode(dict(self._given([*fitting, "scale", "bars"])), doseq=True)
            title = "batch jobs" if counted is BATCH_JOBS else counted.plural
            found.append((title, _with_unit(counted, given), counted is self.counted))
        return found

    @property
    def list_url(self) -> str:
        """Where the jobs are listed."""
        return _list_url(self)

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
        choices = {"scale": tuple(Scale), "bars": _BARS, "unit": tuple(UNITS)}
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
            shown = read(self._user, text)
            if shown.selection.counted is not self.counted:
                raise ValidationError(f"{shown.title!r} counts {shown.selection.counted.plural}.")
            return shown
        if self._user.is_staff:
            raise ValidationError("Nobody's jobs are hidden from you: name another population.")
        selected = populations.others(self._user, self.counted, self.filters_query())
        filters = _filters_in_words(self.counted, selected.filters)
        words = ", ".join(filter(None, [f"Other people's {self.counted.plural}", filters]))
        return Shown(words, words, selected, "")

    @cached_property
    def populations(self) -> list[Shown]:
        """This population and, if the address asks for one, the other."""
        itself = _shown(self._user, self.title, self)
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


def value_of(metric: Metric) -> str:
    """Return whose value a metric is, for twins."""
    return "PanDA job" if metric.source is Source.PANDA else "batch job"


def in_words(query: str, user: User | None = None) -> str:
    """Return a population's filters for people: 'user: alice; state: failed'."""
    parameters = QueryDict(query)
    counted = _counted(parameters)
    filters = _filters_in_words(counted, query)
    if not filters:
        return f"{'All' if user is None or user.is_staff else 'Your'} {counted.plural}"
    return filters if counted is BATCH_JOBS else f"{counted.plural}, {filters}"


def _filters_in_words(counted: Counted, filters: str) -> str:
    known = counted.filter_set.base_filters
    return "; ".join(
        f"{known[name].label.lower()}: {', '.join(map(_word, values))}"
        for name, values in QueryDict(filters).lists()
        if name in known
    )


def _counted(query: QueryDict) -> Counted:
    """Return what an address counts; nonsense means batch jobs."""
    return UNITS.get(query.get("unit", ""), BATCH_JOBS)


def _with_unit(counted: Counted, filters: str) -> str:
    unit = "" if counted is BATCH_JOBS else f"unit={counted.name}"
    return "&".join(filter(None, [unit, filters]))


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
        query = QueryDict(named.query)
        return _shown(user, named.name, ChosenJobs(user, query, counted=_counted(query)))
    query = QueryDict(parts.query)
    is_panda_list = parts.path.startswith(reverse("panda_list"))
    chosen = ChosenJobs(user, query, counted=PANDA_JOBS if is_panda_list else _counted(query))
    if not parts.path.startswith("/") or not chosen.is_valid:
        raise ValidationError(f"{text[:64]!r} is not the address of jobs or of a population.")
    return _shown(user, in_words(_with_unit(chosen.counted, chosen.filters_query()), user), chosen)


def _shown(user: User, title: str, chosen: ChosenJobs) -> Shown:
    filters = _with_unit(chosen.counted, chosen.filters_query())
    selected = Selection(chosen.counted, filters, eyes(user), chosen.filtered)
    return Shown(title, in_words(filters, user), selected, _list_url(chosen))


def _list_url(chosen: ChosenJobs) -> str:
    return f"{reverse(LAYOUTS[chosen.counted.name].list_name)}?{chosen.filters_query()}"
