from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioportal.core.timelines import (
    OBSERVED,
    WINDOW,
    Gap,
    Known,
    clipped,
    in_fewer_steps,
    rates,
    united,
    within,
)

NOON = datetime(2017, 7, 5, 12, tzinfo=UTC)


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def windows(*rows):
    """Return fully observed windows from (source, start, end, opens), in seconds from noon."""
    return pl.DataFrame(
        [(source, at(start), at(end), end - start, opens) for source, start, end, opens in rows],
        schema={**WINDOW, "open": pl.Int64},
        orient="row",
    )


def observed(*rows):
    return pl.DataFrame(
        [(source, at(start), at(end)) for source, start, end in rows], schema=OBSERVED, orient="row"
    )


def tuples(steps):
    """Return steps as (start, end, observed sources, opens per second), in seconds from noon."""
    return [
        ((start - NOON).total_seconds(), (end - NOON).total_seconds(), count, rate)
        for start, end, count, rate in steps.frame.iter_rows()
    ]


def test_a_window_is_a_step_of_the_same_width():
    steps = rates(windows((1, 0, 60, 120), (1, 60, 90, 30)), observed((1, 0, 90)), ["open"], 1)

    assert tuples(steps) == [(0, 60, 1, 2.0), (60, 90, 1, 1.0)]


def test_overlapping_sources_are_summed():
    steps = rates(
        windows((1, 0, 60, 60), (2, 20, 80, 120)), observed((1, 0, 60), (2, 20, 80)), ["open"], 2
    )

    assert tuples(steps) == [(0, 20, 1, 1.0), (20, 60, 2, 3.0), (60, 80, 1, 2.0)]


def test_observed_time_without_a_window_is_zero_and_other_time_is_a_gap():
    steps = rates(windows((1, 0, 10, 5)), observed((1, 0, 30), (1, 50, 60)), ["open"], 1)

    assert tuples(steps) == [(0, 10, 1, 0.5), (10, 30, 1, 0.0), (50, 60, 1, 0.0)]
    assert steps.gaps(at(0), at(60)) == [Gap(at(30), at(50), Known.NOTHING)]


def test_a_window_between_distant_reads_is_a_step_and_a_gap():
    steps = rates(windows((1, 0, 3600, 7200)), observed(), ["open"], 1)

    assert tuples(steps) == [(0, 3600, 0, 2.0)]
    assert steps.gaps(at(0), at(3600)) == [Gap(at(0), at(3600), Known.MEAN)]


def test_a_source_without_observation_makes_steps_partly_observed():
    steps = rates(windows((1, 0, 60, 60)), observed((1, 0, 60)), ["open"], 2)

    assert steps.gaps(at(-10), at(70)) == [
        Gap(at(-10), at(0), Known.NOTHING),
        Gap(at(0), at(60), Known.PART),
        Gap(at(60), at(70), Known.NOTHING),
    ]


def test_missing_data_is_one_gap():
    steps = rates(windows(), observed(), ["open"], 1)

    assert steps.frame.is_empty()
    assert steps.gaps(at(0), at(1)) == [Gap(at(0), at(1), Known.NOTHING)]


def test_a_missing_counter_adds_nothing():
    steps = rates(
        windows((1, 0, 10, None), (2, 0, 10, 20)), observed((1, 0, 10), (2, 0, 10)), ["open"], 2
    )

    assert tuples(steps) == [(0, 10, 2, 2.0)]


def test_a_window_of_no_length_has_no_rate():
    steps = rates(windows((1, 5, 5, 20)), observed((1, 0, 10)), ["open"], 1)

    assert tuples(steps) == [(0, 10, 1, 0.0)]


spans = st.tuples(
    st.integers(1, 3), st.integers(0, 500), st.integers(1, 200), st.integers(0, 10**12)
)


@given(st.lists(spans, max_size=20))
def test_the_area_of_steps_is_the_sum_of_counts(rows):
    counted = windows(*((source, start, start + length, n) for source, start, length, n in rows))
    steps = rates(counted, counted.select(list(OBSERVED)), ["open"], 3)

    area = sum((end - start) * rate for start, end, _, rate in tuples(steps))
    assert area == pytest.approx(sum(n for *_, n in rows), rel=1e-9, abs=1e-3)
    assert all(rate >= 0 for *_, rate in tuples(steps))
    for earlier, later in zip(tuples(steps), tuples(steps)[1:], strict=False):
        assert earlier[1] <= later[0]


@given(st.lists(st.integers(0, 100), min_size=1, max_size=60), st.integers(1, 20))
def test_joined_steps_have_the_same_area(counts, at_most):
    counted = windows(*((1, 10 * n, 10 * n + 10, count) for n, count in enumerate(counts)))
    steps = rates(counted, counted.select(list(OBSERVED)), ["open"], 1)
    joined = in_fewer_steps(steps, at_most)

    assert joined.frame.height <= at_most
    assert sum((e - s) * r for s, e, _, r in tuples(joined)) == pytest.approx(sum(counts))


def test_steps_are_not_joined_across_a_gap():
    counted = windows((1, 0, 10, 10), (1, 10, 20, 30), (1, 100, 110, 50))
    joined = in_fewer_steps(rates(counted, counted.select(list(OBSERVED)), ["open"], 1), 2)

    assert tuples(joined) == [(0, 20, 1, 2.0), (100, 110, 1, 5.0)]


def test_a_mean_over_a_gap_is_not_connected_to_observed_steps():
    counted = windows((1, 0, 10, 10), (1, 10, 100, 90), (1, 100, 110, 50))
    joined = in_fewer_steps(rates(counted, observed((1, 0, 10), (1, 100, 110)), ["open"], 1), 1)

    assert tuples(joined) == [(0, 10, 1, 1.0), (10, 100, 0, 1.0), (100, 110, 1, 5.0)]


def test_steps_are_cut_to_the_range():
    counted = windows((1, 0, 60, 60), (1, 60, 120, 120), (1, 120, 180, 0))
    cut = within(rates(counted, counted.select(list(OBSERVED)), ["open"], 1), at(30), at(70))

    assert tuples(cut) == [(30, 60, 1, 1.0), (60, 70, 1, 2.0)]


def test_a_clipped_window_has_only_its_traced_seconds():
    cut = clipped(windows((1, 0, 10, 39)), observed((1, 4, 4.5), (2, 0, 10)), ["open"])

    assert cut.rows() == [(1, at(4), at(4.5), 0.5, 39)]


def test_a_clipped_window_has_the_seconds_of_all_traces():
    cut = clipped(windows((1, 0, 10, 39)), observed((1, 0, 2), (1, 7, 8)), ["open"])

    assert cut.rows() == [(1, at(0), at(8), 3.0, 39)]


def test_adjacent_intervals_are_merged():
    assert united(observed((1, 0, 10), (1, 10, 20), (1, 30, 30), (2, 5, 15))).rows() == [
        (1, at(0), at(20)),
        (2, at(5), at(15)),
    ]
