"""Tables of pages: columns are declared once, for the page and for its exports."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.utils.html import format_html

from ioportal.core import formatting, visible_text
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ioportal.core.units import Unit

Row = TypeVar("Row")


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table.

    Args:
        name: its name in exports; "": it is on the page only.
        title: its heading; "": it is in exports only.
        value: the exact value of a row; None: unknown.
        unit: of a number; text and times have none.
        address: of the page that a cell links to; "": none.
        note: text after the value, less prominent.
    """

    name: str
    title: str
    value: Callable[[Row], Any]
    unit: Unit | None = None
    address: Callable[[Row], str] | None = None
    note: Callable[[Row], str] | None = None

    @property
    def header_unit(self) -> str:
        """The unit in the heading."""
        return formatting.SHORT_UNITS[self.unit] if self.unit else ""

    def cell(self, row: Row) -> str:
        """Return the cell of a row as HTML."""
        value = self.value(row)
        text = _text(value, self.unit)
        if self.address and (address := self.address(row)):
            text = format_html('<a href="{}">{}</a>', address, text)
        if self.note and (note := self.note(row)):
            text = format_html('{} <span class="soft">{}</span>', text, note)
        return text


@dataclass(frozen=True)
class Table(Generic[Row]):
    """Rows with their columns; the first column of the page names the row."""

    label: str
    columns: Sequence[Column[Row]]
    rows: Sequence[Row]

    @property
    def shown(self) -> list[Column[Row]]:
        """The columns of the page."""
        return [column for column in self.columns if column.title]

    @property
    def header(self) -> list[str]:
        """The names of the columns of exports."""
        return [column.name for column in self.columns if column.name]

    def values(self) -> Iterator[list[Any]]:
        """Yield the rows of exports."""
        exported = [column for column in self.columns if column.name]
        for row in self.rows:
            yield [column.value(row) for column in exported]

    def cells(self) -> Iterator[list[tuple[str, bool]]]:
        """Yield the cells of each row, and whether they are numbers."""
        shown = self.shown
        for row in self.rows:
            yield [(column.cell(row), column.unit is not None) for column in shown]


def _text(value: Any, unit: Unit | None) -> str:
    if unit:
        return show.measure(value, unit)
    if isinstance(value, datetime):
        return show.when(value)
    return visible_text.visible(str(value)) if value not in {None, ""} else show.when(None)
