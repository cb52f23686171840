"""A section of an experiment's page: findings, charts, tables and exports of a kind of data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from ioportal.experiments.pages.page import ExperimentPage
    from ioportal.web.common.parts import Part
    from ioportal.web.common.tables import Table


_AT_HEAD = 3  # findings of each section


class Section(ABC):
    """Base of the sections; `page` has the experiment, its arms and runs, and the query.

    Class attributes:
        name: in addresses; as ids and names of CSS classes.
        title: heading.
        template: of the section; its context has `data` (the section) and `page`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    template: ClassVar[str]

    def __init__(self, page: ExperimentPage) -> None:
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
    def parts(self) -> list[Part[Any]]:
        """The charts, with the addresses of their exports."""
        return [part.at(self.page.export_url(self, part.name)) for part in self.charts()]

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
            name.replace("-", "_"): replace(table, exports_url=self.page.export_url(self, name))
            for name, table in self.tables().items()
        }

    def export(self, name: str) -> Table[Any] | None:
        """Return the chart or table with a name."""
        table = self.tables().get(name)
        return table or next((part for part in self.parts if part.name == name), None)
