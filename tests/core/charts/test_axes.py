"""Texts of charts; ticks and ranges of logarithmic axes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioportal.core.charts.axes import axis_title, log_axis, log_ticks, plotly_text, round_step


@given(low=st.floats(1e-6, 1e12), ratio=st.floats(1.05, 1e12))
def test_ticks_are_few_round_values_within_the_range(low, ratio):
    ticks = log_ticks(low, low * ratio)

    assert 1 <= len(ticks) <= 7
    assert all(low <= tick <= low * ratio * (1 + 1e-9) for tick in ticks)
    assert ticks == sorted(ticks)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (60, 110, [60, 70, 80, 90, 100, 110]),
        (3, 120, [5, 10, 20, 50, 100]),
        (3, 12_000, [10, 100, 1_000, 10_000]),
    ],
)
def test_ticks_depend_on_the_range(low, high, ticks):
    assert log_ticks(low, high) == ticks


def test_a_single_value_is_inside_the_range():
    axis = log_axis(1_000, 1_000)

    assert axis["range"][0] < 3 < axis["range"][1]
    assert 1_000 in axis["tickvals"]


@given(st.floats(1e-6, 1e12))
def test_a_round_step_is_the_next_one_two_or_five(least):
    step = round_step(least)

    assert least <= step <= 2.5 * least * (1 + 1e-9)
    assert re.match("[125]", f"{step:e}")


def test_markup_and_control_characters_are_escaped():
    assert plotly_text("<b>a\u202eb\n</b>") == "&lt;b>a\\u202eb\\n&lt;/b>"


@pytest.mark.parametrize(
    ("title", "unit", "text"),
    [
        ("Service times of metadata RPCs", "s", "Service times (s)"),
        ("Running jobs by state", "jobs", "Running jobs"),
        ("Metadata operations by user", "ops/s", "Metadata operations (ops/s)"),
    ],
)
def test_an_axis_names_its_unit_unless_its_title_does(title, unit, text):
    assert axis_title(title, unit)["text"] == text
