"""Sums over a time span, compared with a plain implementation."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioportal.jobs.analysis import sustained

NOON = datetime(2017, 3, 1, 12, tzinfo=UTC)
WITHIN = timedelta(minutes=5)
TIME = pl.Datetime("us", "UTC")


def seconds(low, high):
    return st.integers(low, high).map(lambda number: timedelta(seconds=number))


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
    schema = {"key": pl.Int64(), "start": TIME, "end": TIME, "amount": pl.Int64()}
    return pl.DataFrame(rows, schema=schema, orient="row")


@given(WINDOWS)
def test_windows_entirely_within_the_span_are_summed(windows):
    rows = frame(windows).sort("key", "end", "start").rows()

    sums = sustained.sums(frame(windows), WITHIN, ["amount"]).rows()

    assert [row[:2] for row in sums] == [(key, end) for key, _, end, _ in rows]
    for (key, start, end, amount), (_, _, total) in zip(rows, sums, strict=True):
        inside = sum(a for k, s, e, a in rows if k == key and s >= end - WITHIN and e <= end)
        on_average = amount * (WITHIN / (end - start))
        assert total == pytest.approx(on_average if end - start > WITHIN else inside)
