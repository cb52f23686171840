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
    """Windows of (second from noon, opcode, principal, RPCs, service us each, total us each)."""
    return pl.DataFrame(
        [
            (at(second), server, service, opcode, who, rpcs, rpcs * service_us, rpcs * total_us)
            for second, opcode, who, rpcs, service_us, total_us in rows
        ],
        schema=WINDOWS,
        orient="row",
    )


def times(*means_us):
    """Windows of server 1 from noon on, of 100 RPCs each that usually take 100 us."""
    return pl.DataFrame(
        [(1, at(10 * n), 100.0 * us, 10_000.0) for n, us in enumerate(means_us)],
        schema=TIMES,
        orient="row",
    )


def figures(found, column):
    return dict(found.principals.select("principal", column).iter_rows())


def test_who_fills_the_server_answers_for_the_others_waiting():
    found = impact(
        windows(
            (0, ENQUEUE, "storm", 9_000, 80, 1_100),
            (0, ENQUEUE, "victim", 1_000, 80, 1_100),
        ),
        USUAL,
    )

    # The victim's 1,000 RPCs took 1,000 us more than usual: 1 s, nine tenths of it by the storm.
    assert figures(found, "impact_s")["storm"] == pytest.approx(0.9)
    assert figures(found, "suffered_s") == {"storm": pytest.approx(9), "victim": pytest.approx(1)}
    assert figures(found, "impact_s")["victim"] == 0  # the storm waits for itself
    assert figures(found, "share") == {"storm": pytest.approx(0.9), "victim": pytest.approx(0.1)}


def test_a_busy_job_that_makes_nobody_wait_does_no_harm():
    found = impact(
        windows((0, ENQUEUE, "busy", 50_000, 80, 95), (0, ENQUEUE, "other", 500, 80, 100)), USUAL
    )

    assert figures(found, "impact_s") == {"busy": 0, "other": 0}
    assert figures(found, "share")["busy"] > 0.98


def test_waiting_elsewhere_or_at_another_time_is_not_its_doing():
    found = impact(
        pl.concat(
            [
                windows((0, ENQUEUE, "storm", 9_000, 80, 100)),
                windows((10, ENQUEUE, "victim", 1_000, 80, 5_000)),
                windows((0, ENQUEUE, "victim", 1_000, 80, 5_000), server=2),
            ]
        ),
        USUAL,
    )

    assert figures(found, "impact_s") == {"storm": 0, "victim": 0}


def test_others_who_are_faster_than_usual_make_up_for_those_who_wait():
    found = impact(
        windows(
            (0, ENQUEUE, "storm", 1_000, 100, 100),
            (0, ENQUEUE, "other", 100, 100, 300),
            (0, CLOSE, "other", 1_000, 10, 40),
        ),
        USUAL,
    )

    assert figures(found, "impact_s")["storm"] == pytest.approx(0.01 / 1.2)


def test_what_has_no_baseline_is_said_and_not_judged():
    found = impact(
        windows((0, ENQUEUE, "storm", 300, 80, 900), (0, 36, "victim", 100, 80, 9_000)), USUAL
    )

    assert found.known_share == 0.75
    assert figures(found, "impact_s")["storm"] == 0


def test_nothing_gives_nothing():
    found = impact(windows(), USUAL)

    assert found.principals.is_empty()
    assert found.known_share == 0
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


def _by_the_formula(rows, who):
    """Reckon a principal's impact a window at a time, in plain Python."""
    usual = {ENQUEUE: 100, CLOSE: 50}
    seconds = 0.0
    for second in {row[0] for row in rows}:
        here = [row for row in rows if row[0] == second]
        work = sum(rpcs * service for _, _, _, rpcs, service, _ in here)
        own = sum(rpcs * service for _, _, name, rpcs, service, _ in here if name == who)
        works = {name: 0 for _, _, name, *_ in here}
        for _, _, name, rpcs, service, _ in here:
            works[name] += rpcs * service
        late = sum(
            rpcs * total - rpcs * usual[opcode]
            for _, opcode, name, rpcs, _, total in here
            if works[name] < own
        )
        seconds += own / work * max(0, late) / 1e6 if work else 0
    return seconds


@given(rows)
def test_impact_is_what_its_formula_says(rows):
    found = figures(impact(windows(*rows), USUAL), "impact_s")

    assert found == {
        who: pytest.approx(_by_the_formula(rows, who), abs=1e-9) for who in {row[2] for row in rows}
    }


def test_an_interval_begins_far_above_the_usual_and_ends_near_it():
    found = slow_intervals(
        times(100, 170, 320, 900, 160, 140, 100, 100, 310),
        SlownessCriteria(max_pause=timedelta(seconds=10)),
    )

    assert found == [Slowdown(1, at(10), at(50), 9.0, pytest.approx(0.115))]


def test_a_short_pause_is_part_of_it():
    [found] = slow_intervals(times(400, 400, 100, 100, 400))

    assert (found.start, found.end) == (at(0), at(50))
