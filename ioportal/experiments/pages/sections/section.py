"""A section of an experiment's page: findings, charts, tables and exports of a kind of data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from ioportal.core.formatting import UNKNOWN, with_unit
from ioportal.experiments.analysis.runs import run_frame
from ioportal.web.common import requests
from ioportal.web.common.tables import Column, follow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from ioportal.core.units import Unit
    from ioportal.experiments.models import Run
    from ioportal.experiments.pages.experiment_runs import ExperimentRuns
    from ioportal.load.analysis.load_ramp import Interval
    from ioportal.web.common.parts import Part
    from ioportal.web.common.tables import Table


@dataclass(frozen=True)
class Choice:
    """A select field: its parameter, label, options (value and title), and the selected value."""

    name: str
    label: str
    options: Sequence[tuple[str, str]]
    selected: str


_AT_HEAD = 3  # findings of each section


class Section(ABC):
    """Base of the sections; `page` has the experiment, its arms and runs, and the query.

    Class attributes:
        name: in addresses; as ids and names of CSS classes.
        title: heading.
        template: of the section; its context has `data` (the section) and `page`.
        parameters: URL parameters other than the `choices`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    template: ClassVar[str] = "experiments/_section.html"
    parameters: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, page: ExperimentRuns) -> None:
        self.page = page

    @property
    @abstractmethod
    def is_present(self) -> bool:
        """Whether the experiment has data of this kind."""

    @property
    @abstractmethod
    def findings(self) -> list[str]:
        """Conclusions in sentences, the most important first."""

    @property
    def first_findings(self) -> list[str]:
        """The findings at the head of the page."""
        return self.findings[:_AT_HEAD]

    @property
    def further_findings(self) -> list[str]:
        """The findings in the section itself."""
        return self.findings[_AT_HEAD:]

    @cached_property
    def choices(self) -> list[Choice]:
        """Select fields whose values stay in the address of the page."""
        return []

    def choice(
        self, name: str, label: str, options: Sequence[tuple[str, str]], default: str
    ) -> Choice:
        """Return a field with the value of the query if it is an option, else the default."""
        wanted = self.page.query.get(name)
        selected = next((value for value, _ in options if value == wanted), default)
        return Choice(name, label, options, selected)

    @property
    def other_parameters(self) -> list[tuple[str, str]]:
        """Parameters of the page that the form of the section must repeat."""
        own = {choice.name for choice in self.choices} | self.parameters
        return requests.other_parameters(self.page.query, own)

    @cached_property
    def parts(self) -> list[Part[Any]]:
        """The charts, with the addresses of their exports."""
        return [part.at(self.page.export_url(self.name, part.name)) for part in self.charts()]

    def charts(self) -> list[Part[Any]]:
        """Return the charts; their names are unique in the page."""
        return []

    def tables(self) -> dict[str, Table[Any]]:
        """Return the tables by name."""
        return {}

    @cached_property
    def listed(self) -> dict[str, Table[Any]]:
        """The tables, with the addresses of their exports; names have underscores."""
        return {
            name.replace("-", "_"): replace(
                table, exports_url=self.page.export_url(self.name, name)
            )
            for name, table in self.tables().items()
        }

    def export(self, name: str) -> Table[Any] | None:
        """Return the chart or table with a name."""
        table = self.tables().get(name)
        return table or next((part for part in self.parts if part.name == name), None)


def bounds(unit: Unit, path: str) -> tuple[Column[Any], Column[Any]]:
    """Return the columns of the bounds of an interval, whose bounds are equal with one run."""

    def text(row: Any) -> str:
        interval: Interval | None = follow(row, path)
        if interval is None or interval.low == interval.high:
            return UNKNOWN
        return f"{with_unit(interval.low, unit)} to {with_unit(interval.high, unit)}"

    low = Column[Any]("low", "95 % interval", f"{path}__low", "", cell=text)
    return low, Column("high", "", f"{path}__high")


IOR_LABEL = "operation"
IOR_METRIC = "bandwidth_bytes_per_s"


def is_of_ior(run: Run) -> bool:
    """Whether a run is a result of IOR."""
    return IOR_LABEL in run.labels and (IOR_METRIC in run.metrics or "total_s" in run.metrics)


def frame(runs: Iterable[Run]) -> pl.DataFrame:
    """Return the runs as a frame; see `analysis.runs.run_frame`."""
    names = ("name", "state", "scale", "events", "labels", "metrics")
    return run_frame(
        {"arm": run.arm.name, **{name: getattr(run, name) for name in names}} for run in runs
    )
