"""One declaration of columns gives the cells of a page and the rows of its exports."""

import re
from types import SimpleNamespace

import pytest
from django.http import QueryDict
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString

from ioportal.core.units import Unit
from ioportal.web.common.tables import Column, Table, by_position
from ioportal.web.templatetags.tables import fact
from tests.logs import at


def row(**facts):
    return SimpleNamespace(**facts)


@pytest.mark.parametrize(
    ("column", "value", "cell"),
    [
        pytest.param(Column("v", "V"), None, "<span.*>\N{EN DASH}</span>", id="unknown"),
        pytest.param(Column("v", "V", unit=Unit.BYTES), 0, r"<data value=.0.*>0 B</data>", id="0"),
        pytest.param(Column("v", "V"), "<b>\x1b", r"&lt;b&gt;\\x1b", id="untrusted text"),
        pytest.param(Column("v", "V"), SafeString("<b>x</b>"), "<b>x</b>", id="HTML"),
        pytest.param(Column("v", "V"), at("12:00"), "<time.*12:00:00</time>", id="a time"),
        pytest.param(Column("v", "V"), True, "yes", id="yes or no"),
        pytest.param(Column("v", "V"), 1234, "1,234", id="a number"),
        pytest.param(Column("v", "V", form="{:.3f}".format), 1.5, "1.500", id="own form"),
        pytest.param(Column("v", "V", cell=lambda r: r.v + 1), 1, "2", id="own content"),
        pytest.param(
            Column("v", "V", link="/x/{0.v}".format, note=lambda _: "<", hint=lambda _: "h"), 1,
            '<span title="h"><a href="/x/1">1</a></span> <span class="soft">&lt;</span>', id="more",
        ),
    ],
)  # fmt: skip
def test_a_cell_shows_a_value_by_its_unit_or_type(column, value, cell):
    assert re.fullmatch(cell, conditional_escape(column.content(row(v=value))), re.DOTALL)


@pytest.mark.parametrize(
    ("path", "value"), [("a__b", 1), ("a__c__d", 2), ("none__b", None)], ids=str
)
def test_a_path_leads_through_attributes_and_keys(path, value):
    of = row(a=row(b=1, c={"d": 2}), none=None)

    assert Column("", "", path).exact(of) == value


COLUMNS = (
    Column("name", "Name", css="wrap", ascending_first=True),
    Column("id", "", lambda each: each.number * 10),
    Column("number", "Number", unit="lines", css=lambda each: "bad" if each.number > 1 else ""),
    Column("", "Actions", lambda _: "Do"),
)


def test_exports_have_exact_values_of_the_named_columns():
    table = Table("T", COLUMNS, [row(name="a", number=1)])

    assert table.facts == [{"name": "a", "id": 10, "number": 1}]


def test_headings_have_scopes_units_orders_and_links():
    query = QueryDict("user=x&page=2")
    head = Table("T", COLUMNS, [], sort="-number", query=query).head

    assert '<th scope="col" class="wrap"><a href="?user=x&amp;sort=name">Name</a></th>' in head
    assert '<th scope="col" class="numeric" aria-sort="descending">' in head
    assert '<span class="unit">lines</span>' in head
    assert '<th scope="col">Actions</th>' in head


def test_rows_have_a_heading_and_may_share_it():
    rows = [row(name="a", number=number) for number in (1, 2)]

    body = Table("T", COLUMNS, rows, row_css=lambda each: f"n{each.number}").body
    assert '<tr class="n1"><th scope="row" class="wrap">a</th>' in body
    assert '<td class="numeric bad">2</td>' in body
    shared = Table("T", COLUMNS, rows, is_grouped=True).body
    assert shared.count('<th scope="rowgroup" rowspan="2">a</th>') == 1


def test_columns_are_grouped_under_a_heading():
    columns = (Column("a", "A"), *(Column(name, name, group="Both") for name in "bc"))

    assert Table("T", columns, []).head.startswith(
        '<tr><th scope="col" rowspan="2">A</th><th scope="colgroup" colspan="2"'
    )


def test_a_table_has_pages_and_may_export_other_rows():
    rows = [row(name="a", number=number) for number in range(3)]
    table = Table("T", COLUMNS, rows, query=QueryDict("page=2"), per_page=2)

    assert [each.number for each in table.shown] == [2]
    assert len(table.facts) == 3
    assert Table("T", COLUMNS, rows, most=2).more_rows == 1
    assert Table("T", COLUMNS, rows, exported=(["x"], [[1]])).facts == [{"x": 1}]


def test_columns_of_tuples_have_the_values_of_their_positions():
    columns = by_position(Column("a", "A"), Column("b", "B", lambda each: each[0] + each[1]))

    assert Table("T", columns, [(1, 2)]).facts == [{"a": 1, "b": 3}]


@pytest.mark.parametrize(
    ("value", "optional", "shown"),
    [(1234, False, "1,234"), ("", True, ""), ("a\x1b", True, r"a\x1b"), ("", False, "unknown")],
)
def test_facts_are_shown_by_their_type(value, optional, shown):
    assert shown in fact("Title", value, is_optional=optional)
