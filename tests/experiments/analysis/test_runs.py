import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.experiments import prmon
from collectors.source import Source
from collectors.tables import PROCESS_LEVELS, PROCESS_TOTALS
from ioportal.experiments.analysis.runs import curves, totals

FIXTURES = Path(__file__).parents[2] / "fixtures" / "prmon"


@pytest.fixture
def samples():
    text = (FIXTURES / "prmon.txt").read_bytes()
    [parsed] = prmon.parse(Source(io.BytesIO(text), "prmon.txt"))
    return parsed.table.drop("line", "at")


def frame(elapsed_s, **columns):
    """Return samples with unknown values in all other columns."""
    names = (*PROCESS_LEVELS, *PROCESS_TOTALS)
    unknown = dict.fromkeys(names, [None] * len(elapsed_s))
    schema = dict.fromkeys(("elapsed_s", *names), pl.Float64)
    return pl.DataFrame({"elapsed_s": elapsed_s, **unknown, **columns}, schema=schema, strict=False)


def test_rates_and_levels_of_a_run(samples):
    drawn = curves(samples)

    assert drawn["elapsed_s"].to_list() == [30, 61, 90, 121, 150]
    assert drawn["read_bytes"].to_list() == [None, *(27_222_400 / s for s in (31, 29, 31, 29))]
    assert drawn["rss_bytes"].to_list() == [1_024 * (310_000 + 40_000 * n) for n in range(5)]
    # The counter of system time falls once: no rate is negative.
    assert drawn["cores"].to_list() == [
        None,
        *map(pytest.approx, (27 / 31, 27 / 29, 25 / 31, 30 / 29)),
    ]


def test_totals_of_a_run(samples):
    figures = totals(samples)

    assert figures.totals["read_bytes"] == 5 * 27_222_400
    assert figures.totals["stime_s"] == 2 + 2 + 2 + 0 + 5
    assert figures.falls == {"stime_s": 1}
    assert figures.highest["swap_bytes"] == 4 * 2**20
    assert figures.highest["nthreads"] is None
    assert figures.cores == pytest.approx((125 + 11) / 150)


def test_unknown_columns_stay_unknown():
    drawn = curves(frame([0, 10, 20], read_bytes=[0, 100, 400]))

    assert drawn["read_bytes"].to_list() == [None, 10, 30]
    assert drawn["utime_s"].null_count() == drawn["cores"].null_count() == 3


def test_one_sample_has_levels_but_no_rates():
    drawn = curves(frame([5], rss_bytes=[7], read_bytes=[3]))

    assert drawn.select("rss_bytes", "read_bytes").rows() == [(7, None)]
    assert totals(frame([5], read_bytes=[3])).totals["read_bytes"] == 3


@given(
    steps=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 10**9)), min_size=2, max_size=80),
    most_points=st.integers(2, 20),
)
def test_joined_samples_keep_all_increases(steps, most_points):
    seconds = np.cumsum([step for step, _ in steps]).astype(float)
    values = np.cumsum([amount for _, amount in steps]).astype(float)
    drawn = curves(frame(seconds.tolist(), wchar_bytes=values.tolist()), most_points)

    assert drawn.height <= most_points + 1
    widths = np.diff(drawn["elapsed_s"].to_numpy())
    rates = drawn["wchar_bytes"].to_numpy()[1:]
    assert (widths * rates).sum() == pytest.approx(values[-1] - values[0])
