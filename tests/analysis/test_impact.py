from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioportal.analysis.impact import (
    BASELINES,
    TIMES,
    WINDOWS,
    Slowdown,
    SlownessCriteria,
    impact,
    slow_intervals,
)

NOON = datetime(2017, 7, 5, 12, tzinfo=UTC)
ENQUEUE, CLOSE = 101, 35
USUAL = pl.DataFrame([(1, 1, ENQUEUE, 100.0), (1, 1, CLOSE, 50.0)], schema=BASELINES, orient="row")


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def windows(*rows, server=1, service=1):
    """Return windows from (second after noon, opcode, principal, RPCs, service us, total us)."""
    return pl.DataFrame(
        [
            (at(second), server, service, opcode, name, rpcs, rpcs * service_us, rpcs * total_us)
            for second, opcode, name, rpcs, service_us, total_us in rows
        ],
        schema=WINDOWS,
        orient="row",
    )


def times(*means_us):
    """Return windows of server 1 from noon on, with 100 RPCs each and a baseline of 100 us."""
    return pl.DataFrame(
        [(1, at(10 * n), 100.0 * us, 10_000.0) for n, us in enumerate(means_us)],
        schema=TIMES,
        orient="row",
    )


def figures(result, column):
    return dict(result.principals.select("principal", column).iter_rows())


def test_waiting_of_others_is_attributed_by_share_of_service_time():
    result = impact(
        windows(
            (0, ENQUEUE, "storm", 9_000, 80, 1_100),
            (0, ENQUEUE, "victim", 1_000, 80, 1_100),
        ),
        USUAL,
    )

    # The victim's 1,000 RPCs took 1,000 us longer than usual: 1 s, 90 % due to the storm.
    assert figures(result, "impact_s")["storm"] == pytest.approx(0.9)
    assert figures(result, "suffered_s") == {"storm": pytest.approx(9), "victim": pytest.approx(1)}
    assert figures(result, "impact_s")["victim"] == 0  # only the storm itself causes its waiting
    assert figures(result, "share") == {"storm": pytest.approx(0.9), "victim": pytest.approx(0.1)}


def test_a_busy_job_without_waiting_of_others_has_no_impact():
    result = impact(
        windows((0, ENQUEUE, "busy", 50_000, 80, 95), (0, ENQUEUE, "other", 500, 80, 100)), USUAL
    )

    assert figures(result, "impact_s") == {"busy": 0, "other": 0}
    assert figures(result, "share")["busy"] > 0.98


def test_waiting_elsewhere_or_at_another_time_is_not_attributed():
    result = impact(
        pl.concat(
            [
                windows((0, ENQUEUE, "storm", 9_000, 80, 100)),
                windows((10, ENQUEUE, "victim", 1_000, 80, 5_000)),
                windows((0, ENQUEUE, "victim", 1_000, 80, 5_000), server=2),
            ]
        ),
        USUAL,
    )

    assert figures(result, "impact_s") == {"storm": 0, "victim": 0}


def test_faster_rpcs_of_others_offset_slower_rpcs():
    result = impact(
        windows(
            (0, ENQUEUE, "storm", 1_000, 100, 100),
            (0, ENQUEUE, "other", 100, 100, 300),
            (0, CLOSE, "other", 1_000, 10, 40),
        ),
        USUAL,
    )

    assert figures(result, "impact_s")["storm"] == pytest.approx(0.01 / 1.2)


def test_rpcs_without_a_baseline_are_excluded_and_reported():
    result = impact(
        windows((0, ENQUEUE, "storm", 300, 80, 900), (0, 36, "victim", 100, 80, 9_000)), USUAL
    )

    assert result.known_share == 0.75
    assert figures(result, "impact_s")["storm"] == 0


def test_no_windows_give_an_empty_result():
    result = impact(windows(), USUAL)

    assert result.principals.is_empty()
    assert result.known_share == 0
    assert slow_intervals(times()) == []


principals = st.sampled_from(["a", "b", "c", "d"])
rows = st.lists(
    st.tuples(
        st.sampled_from([0, 10, 20]),
        st.sampled_from([ENQUEUE, CLOSE]),
        principals,
        st.integers(0, 10_000),
        st.integers(0, 500),
        st.integers(0, 5_000),
    ),
    max_size=30,
)


def _by_the_formula(rows, principal):
    """Compute a principal's impact window by window, in plain Python."""
    usual = {ENQUEUE: 100, CLOSE: 50}
    seconds = 0.0
    for second in {row[0] for row in rows}:
        window = [row for row in rows if row[0] == second]
        work = sum(rpcs * service for _, _, _, rpcs, service, _ in window)
        own = sum(rpcs * service for _, _, name, rpcs, service, _ in window if name == principal)
        works = {name: 0 for _, _, name, *_ in window}
        for _, _, name, rpcs, service, _ in window:
            works[name] += rpcs * service
        late = sum(
            rpcs * total - rpcs * usual[opcode]
            for _, opcode, name, rpcs, _, total in window
            if works[name] < own
        )
        seconds += own / work * max(0, late) / 1e6 if work else 0
    return seconds


@given(rows)
def test_impact_agrees_with_its_formula(rows):
    expected = {name: _by_the_formula(rows, name) for name in {row[2] for row in rows}}

    assert figures(impact(windows(*rows), USUAL), "impact_s") == pytest.approx(expected, abs=1e-9)


def test_an_interval_contains_a_high_factor_and_ends_at_a_low_factor():
    intervals = slow_intervals(
        times(100, 170, 320, 900, 160, 140, 100, 100, 310),
        SlownessCriteria(max_pause=timedelta(seconds=10)),
    )

    assert intervals == [Slowdown(1, at(10), at(50), 9.0, pytest.approx(0.115))]


def test_an_interval_includes_short_pauses():
    [interval] = slow_intervals(times(400, 400, 100, 100, 400))

    assert (interval.start, interval.end) == (at(0), at(50))
