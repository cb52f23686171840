"""Tables of pages: columns are declared once, for the page and for its exports."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import groupby
from operator import itemgetter
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import QueryDict
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import slugify

from ioportal.core.formatting import SHORT_UNITS
from ioportal.core.units import Unit
from ioportal.web.common.pagination import COUNTED, CountedPaginator
from ioportal.web.common.requests import changed_query
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from django.core.paginator import Page

Row = TypeVar("Row")
if TYPE_CHECKING:
    Source: TypeAlias = str | Callable[[Row], Any]  # a path, or a function
_ROWS_AT_ONCE = 2_000
_OBJECTS_AT_ONCE = 500  # some have large texts


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table.

    Args:
        name: in exports and addresses, stable; "": it is only on the page.
        title: heading; "": it is only in exports.
        value: exact value of a row, as a function or as a path of attributes with "__" between
            them; the path is the name by default.
        unit: of numbers, or other small text below the heading.
        form: text of a known value; by default as of its unit or type.
        cell: content of the page where it is not the value: a value, text or HTML.
        link: address that the cell links to; "": none. See `to`.
        note: less prominent text after the value.
        hint: explanation of the value of a row. These four are functions or paths like `value`.
        about: explanation of the heading.
        group: heading above adjacent columns.
        css: classes of the cells.
        ascending_first: the direction of the first click on the heading.
    """

    name: str
    title: str
    value: Source[Row] = ""
    unit: Unit | str | None = None
    _: KW_ONLY
    form: Callable[[Any], str] | None = None
    cell: Source[Row] = ""
    link: Source[Row] = ""
    note: Source[Row] = ""
    hint: Source[Row] = ""
    about: str = ""
    group: str = ""
    css: str | Callable[[Row], str] = ""
    ascending_first: bool = False

    @property
    def path(self) -> str:
        """The path of the value; "" if a function returns it."""
        return "" if callable(self.value) else self.value or self.name

    def exact(self, row: Row) -> Any:
        """Return the exact value of a row; None if it is unknown."""
        return _read(self.value or self.name, row)

    def content(self, row: Row) -> str:
        """Return the content of the cell of a row."""
        value = _read(self.cell, row) if self.cell else self.exact(row)
        text = value if isinstance(value, SafeString) else self._text(value)
        if self.link and (address := _read(self.link, row)):
            text = format_html('<a href="{}">{}</a>', address, text)
        if self.hint and (hint := _read(self.hint, row)):
            text = format_html('<span title="{}">{}</span>', hint, text)
        if self.note and (note := _read(self.note, row)):
            text = format_html('{} <span class="soft">{}</span>', text, note)
        return text

    def _text(self, value: Any) -> str:
        if self.form and value is not None and value != "":
            return self.form(value)
        if isinstance(self.unit, Unit) and not isinstance(value, str):
            return show.measure(value, self.unit)
        return text_of(value)

    def classes(self, row: Row | None = None) -> SafeString:
        """Return the attribute of the classes of a cell, or of the heading."""
        css = self.css if isinstance(self.css, str) else self.css(row) if row is not None else ""
        names = ("numeric" if self.unit is not None else "", css)
        return format_html(' class="{}"', " ".join(filter(None, names))) if any(names) else _NOTHING

    @property
    def unit_text(self) -> str:
        """The small text below the heading."""
        return SHORT_UNITS[self.unit] if isinstance(self.unit, Unit) else self.unit or ""

    def order(self, sort: str) -> tuple[str, str]:
        """Return the ``aria-sort`` of the column in an order, and the next order by it."""
        descending = f"-{self.name}"
        if sort == descending:
            return "descending", self.name
        if sort == self.name:
            return "ascending", descending
        return "", self.name if self.ascending_first else descending


@dataclass(frozen=True)
class Table(Generic[Row]):
    """Rows in columns; the first column of the page names the row.

    Args:
        title: label, and heading of a panel.
        columns: all columns; some are only on the page, others only in exports.
        rows: all rows.
        exported: names of columns and rows of the exports, if they differ from the page.
        most: rows on the page at most; 0: no limit.
        look_up: completes rows that are shown or exported, some at a time.
        about: text of a panel.
        nothing: text of a panel without rows.
        exports_url: address of the exports without the format, for a panel.
        is_folded: whether a panel is opened by a click.
        css: classes of the frame.
        row_css: classes of a row.
        is_grouped: whether rows with equal names in sequence share the cell.
        sort: column that the rows are sorted by, "-" before it: descending; "": links sort nothing.
        address: address that sorts by a column; by default of the same page.
        query: query of the page, for a table with several pages.
        per_page: rows of a page.
    """

    title: str
    columns: Sequence[Column[Row]]
    rows: Sequence[Row] | QuerySet[Any, Row]
    _: KW_ONLY
    about: str = ""
    nothing: str = ""
    exports_url: str = ""
    is_folded: bool = False
    css: str = ""
    row_css: Callable[[Row], str] | None = None
    is_grouped: bool = False
    sort: str = ""
    address: Callable[[str], str] | None = None
    query: QueryDict = field(default_factory=QueryDict)
    per_page: int = 0
    most: int = 0
    look_up: Callable[[Iterable[Any]], Iterable[Row]] | None = None
    exported: tuple[Sequence[str], Iterable[Sequence[Any]]] | None = None

    @property
    def id(self) -> str:
        """The name of the table in its page."""
        return f"table-{slugify(self.title)}"

    @cached_property
    def page(self) -> Page[Row]:
        """The page of the query: an invalid number means the first, a large one the last."""
        kind = CountedPaginator if isinstance(self.rows, QuerySet) else Paginator
        return kind(self.rows, self.per_page).get_page(self.query.get("page"))

    @property
    def has_rows(self) -> bool:
        """Whether there is any row."""
        return bool(self.page if self.per_page else self.rows)

    @property
    def shown(self) -> Iterable[Row]:
        """The rows of the page."""
        rows = self.page if self.per_page else self.rows[: self.most or None]
        return self.look_up(rows) if self.look_up else rows

    @property
    def more_rows(self) -> int:
        """The number of rows that only the exports have."""
        return max(0, len(self.rows) - self.most) if self.most else 0

    @property
    def export(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """The names of the exported columns, and the exact values of each row, up to `COUNTED`."""
        if self.exported:
            return self.exported
        columns = [column for column in self.columns if column.name]
        names, paths = [column.name for column in columns], [column.path for column in columns]
        rows: Any = self.rows
        if isinstance(rows, QuerySet):
            rows = rows[:COUNTED] if self.per_page else rows
            if all(paths) and not self.look_up:
                return names, rows.values_list(*paths).iterator(_ROWS_AT_ONCE)
            rows = rows.iterator(_OBJECTS_AT_ONCE)
        rows = self.look_up(rows) if self.look_up else rows
        return names, ([column.exact(row) for column in columns] for row in rows)

    @property
    def facts(self) -> list[dict[str, Any]]:
        """The rows as JSON objects."""
        names, rows = self.export
        return [dict(zip(names, row, strict=True)) for row in rows]

    @property
    def head(self) -> SafeString:
        """The rows of the heading: of columns, and of their groups if there are any."""
        upper, lower = [], []
        for group, columns in groupby(self._visible, lambda column: column.group):
            if group:
                grouped = list(map(self._heading, columns))
                upper.append(_colgroup(group, len(grouped)))
                lower += grouped
            else:
                upper += [self._heading(column, self._height) for column in columns]
        rows = ((SafeString("".join(row)),) for row in (upper, lower) if row)
        return format_html_join("", "<tr>{}</tr>", rows)

    @property
    def body(self) -> SafeString:
        """The rows, in a group or several."""
        if not self.is_grouped:
            return format_html('<tbody hx-boost="false">{}</tbody>', self._rows(self.shown, ""))
        first = self._visible[0]
        groups = ((name, list(rows)) for name, rows in groupby(self.shown, first.content))
        return format_html_join(
            "",
            "<tbody>{}</tbody>",
            ((self._rows(rows, _shared(name, len(rows))),) for name, rows in groups),
        )

    @property
    def _visible(self) -> list[Column[Row]]:
        return [column for column in self.columns if column.title]

    @property
    def _height(self) -> int:
        return 2 if any(column.group for column in self._visible) else 1

    def _heading(self, column: Column[Row], height: int = 1) -> SafeString:
        title, order = format_html("{}", column.title), ""
        if self.sort and column.name:
            order, next_sort = column.order(self.sort)
            address = self.address or (lambda sort: changed_query(self.query, sort=sort))
            title = format_html('<a href="{}">{}</a>', address(next_sort), title)
        unit = column.unit_text
        return format_html(
            '<th scope="col"{}{}{}{}>{}{}</th>',
            format_html(' rowspan="{}"', height) if height > 1 else "",
            column.classes(),
            format_html(' title="{}"', column.about) if column.about else "",
            format_html(' aria-sort="{}"', order) if order else "",
            title,
            format_html(' <span class="unit">{}</span>', unit) if unit else "",
        )

    def _rows(self, rows: Iterable[Row], shared: str) -> SafeString:
        """Return rows; the first row begins with the `shared` cell, if given."""
        first, *others = self._visible
        lines = (
            (
                format_html(' class="{}"', css)
                if self.row_css and (css := self.row_css(row))
                else "",
                (shared if number == 0 else "")
                if shared
                else format_html(
                    '<th scope="row"{}>{}</th>', first.classes(row), first.content(row)
                ),
                format_html_join(
                    "",
                    "<td{}>{}</td>",
                    ((column.classes(row), column.content(row)) for column in others),
                ),
            )
            for number, row in enumerate(rows)
        )
        return format_html_join("", "<tr{}>{}{}</tr>", lines)


def by_position(*columns: Column[Any]) -> tuple[Column[Any], ...]:
    """Return columns of tuple rows; a column without a value shows the item at its position."""
    return tuple(
        column if column.value else replace(column, value=itemgetter(position))
        for position, column in enumerate(columns)
    )


def _colgroup(title: str, columns: int) -> SafeString:
    return format_html(
        '<th scope="colgroup" colspan="{}" class="group-head">{}</th>', columns, title
    )


def _shared(name: str, rows: int) -> SafeString:
    return format_html('<th scope="rowgroup" rowspan="{}">{}</th>', rows, name)


def text_of(value: Any) -> str:
    """Return a value as text, by its type."""
    if value is None or value == "":
        return show.when(None)
    return _FORMS[type(value)](value) if type(value) in _FORMS else show.visible(str(value))


def to(route: str, *paths: str, query: str = "") -> Callable[[Any], str]:
    """Return a link to the page of a row; "" unless all its arguments, `paths`, are known."""

    def address(row: Any) -> str:
        arguments = [follow(row, path) for path in paths]
        return "" if None in arguments else f"{reverse(route, args=arguments)}{query}"

    return address


def bad_if(path: str) -> Callable[[Any], str]:
    """Return the class of a cell that is bad unless a value is zero or empty."""
    return lambda row: "bad" if follow(row, path) else ""


def _read(source: Source[Row], row: Row) -> Any:
    return source(row) if callable(source) else follow(row, source)


def follow(row: Any, path: str) -> Any:
    """Return what a path of attributes, keys or methods leads to; None where a part is missing."""
    for name in path.split("__"):
        if row is None:
            return None
        try:
            row = row.get(name) if isinstance(row, dict) else getattr(row, name)
        except ObjectDoesNotExist:
            return None
        if isinstance(row, MethodType | partial):
            row = row()
    return row


def included(template: str, **context: Any) -> SafeString:
    """Return a part of a page as the content of a cell."""
    return render_to_string(template, context)


def lines(parts: Iterable[str]) -> SafeString:
    """Return texts below each other."""
    return format_html_join(SafeString("<br>"), "{}", ((part,) for part in parts))


_NOTHING = SafeString("")
_FORMS: dict[type, Callable[[Any], str]] = {
    bool: lambda value: "yes" if value else "no",
    int: show.whole,
    float: show.significant,
    datetime: show.when,
}
