"""The most within a span of time, against adding up by hand."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioportal.analysis import sustained

NOON = datetime(2017, 3, 1, 12, tzinfo=UTC)
WITHIN = timedelta(minutes=5)
TIME = pl.Datetime("us", "UTC")


def seconds(least, most):
    return st.integers(least, most).map(lambda number: timedelta(seconds=number))


WINDOWS = st.lists(
    st.tuples(
        st.sampled_from([3, 7, 900]),
        seconds(0, 1_200),
        st.sampled_from([10, 60, 70, 300, 400]).map(lambda number: timedelta(seconds=number)),
        st.integers(0, 100),
    ),
    unique_by=lambda window: window[:3],
    max_size=40,
)


def frame(windows):
    rows = [
        (key, NOON + begin, NOON + begin + width, amount) for key, begin, width, amount in windows
    ]
    schema = {"key": pl.Int64(), "start": TIME, "end": TIME, "done": pl.Int64()}
    return pl.DataFrame(rows, schema=schema, orient="row")


@given(WINDOWS)
def test_what_lies_in_the_span_as_a_whole_is_added_up(windows):
    rows = frame(windows).sort("key", "end", "start").rows()

    found = sustained.sums(frame(windows), WITHIN, ["done"]).rows()

    assert [row[:2] for row in found] == [(key, end) for key, _, end, _ in rows]
    for (key, start, end, amount), (_, _, done) in zip(rows, found, strict=True):
        inside = sum(a for k, s, e, a in rows if k == key and s >= end - WITHIN and e <= end)
        on_average = amount * (WITHIN / (end - start))
        assert done == pytest.approx(on_average if end - start > WITHIN else inside)
