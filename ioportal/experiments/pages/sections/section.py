"""A section of an experiment's page: findings, charts, tables and exports of a kind of data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ioportal.experiments.pages.page import ExperimentPage
    from ioportal.web.common.parts import Part


_AT_HEAD = 3  # findings of each section


@dataclass(frozen=True)
class Export:
    """Rows to download."""

    title: str
    header: Sequence[str]
    rows: Iterable[Sequence[Any]]


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
    def parts(self) -> list[Part]:
        """The charts, with the addresses of their exports."""
        return [part.at(self.page.export_url(self, part.name)) for part in self.charts()]

    def charts(self) -> list[Part]:
        """Return the charts; their names are unique in the page."""
        return []

    def tables(self) -> dict[str, Export]:
        """Return the exports of tables by name."""
        return {}

    def export(self, name: str) -> Part | Export | None:
        """Return the chart or table with a name."""
        table = self.tables().get(name)
        return table or next((part for part in self.parts if part.name == name), None)
