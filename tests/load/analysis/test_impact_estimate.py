"""Estimated impact: properties, and agreement with the waiting that simulated storms cause."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from ioportal.load.analysis.impact_estimate import (
    CAUSE_SHARE,
    LOADS,
    WAITS,
    baseline,
    by_nodes,
    by_window,
    windows,
)
from ioportal.load.analysis.waiting import BASELINES, GROUPS, MEMBERS
from ioportal.load.analysis.waiting import impact as summed
from simulator.activity import Burst, Source
from simulator.randomness import stream
from simulator.servers import trace
from tests.properties import examples

START = datetime(2025, 11, 22, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


SERVICE = 3
USUAL_US = 5_000.0
USUAL = pl.DataFrame([(1, SERVICE, 0, USUAL_US)], schema=BASELINES, orient="row")


def waits(*intervals):
    """Return intervals of a minute: requests and their time."""
    rows = [
        (START + n * MINUTE, START + (n + 1) * MINUTE, SERVICE, requests, 0.0, took_us)
        for n, (requests, took_us) in enumerate(intervals)
    ]
    return pl.DataFrame(rows, schema=WAITS, orient="row")


def loads(*rows, counted_by="job"):
    """Return loads: first and last minute, principal, operations and time."""
    return pl.DataFrame(
        [
            (START + first * MINUTE, START + last * MINUTE, name, counted_by, *amounts)
            for first, last, name, *amounts in rows
        ],
        schema=LOADS,
        orient="row",
    )


def of_one_user_each(frame):
    """Return the groups of principals that are jobs of different users."""
    names = frame.select("principal", user="principal").unique()
    return pl.concat([pl.DataFrame(schema=MEMBERS), names], how="diagonal")


def estimate(load, wait, usual=USUAL, calm_minutes=0):
    span = START, START + 10 * MINUTE
    rows = windows(1, wait, load, span)
    members = of_one_user_each(rows)
    calm = [start for start in rows["start"].unique() if start < START + calm_minutes * MINUTE]
    rows_slow = rows.filter(~pl.col("start").is_in(calm))
    return summed(rows_slow, usual, members, by_window(rows, usual, members, calm)).principals


def impacts(*arguments, **options):
    return dict(estimate(*arguments, **options).select("principal", "impact_s").iter_rows())


def shares(*arguments):
    return dict(estimate(*arguments).select("principal", "share").iter_rows())


_NAMES = {"unattributed": "others", "claim": ("claim of " + pl.col("principal")).alias("principal")}


def confirmed(*rows):
    """Return the total operations of each principal in ten minutes, from (name, kind, total)."""
    span = START, START + 10 * MINUTE
    frame = pl.concat(
        loads((0, 10, name, float(total), None), counted_by=kind) for name, kind, total in rows
    )
    result = by_nodes(frame, [span], **_NAMES).group_by("principal").agg(pl.sum("operations"))
    return {name: pytest.approx(total) for name, total in result.iter_rows()}


def test_a_job_whose_nodes_sent_little_has_their_operations():
    assert confirmed(("x", "job", 10_000), ("x", "node", 100)) == {"x": 100, "others": 9_900}


def test_a_job_whose_nodes_sent_more_has_their_operations():
    assert confirmed(("x", "job", 100), ("x", "node", 10_000)) == {"x": 10_000}


def test_counters_of_a_job_stand_if_its_nodes_sent_about_as_much():
    assert confirmed(("x", "job", 1_000), ("x", "node", 600)) == {"x": 1_000}
    assert confirmed(("x", "job", 1_000), ("x", "node", 1_900)) == {"x": 1_000}


def test_counters_of_a_job_stand_if_other_clients_may_send_for_it():
    assert confirmed(("x", "job", 10_000), ("", "unclear", 6_000)) == {"x": 10_000}
    assert confirmed(("x", "job", 10_000), ("x", "new node", 6_000)) == {"x": 10_000}


def test_counters_of_a_job_stand_where_nodes_were_not_counted():
    rows = loads((0, 10, "x", 10_000.0, None))

    assert by_nodes(rows, [], **_NAMES).equals(rows)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ((), {"claim of x": 10_000}),
        ((("x", "node", 2_000), ("x", "new node", 9_000)), {"x": 2_000, "claim of x": 8_000}),
        ((("x", "node", 10_000),), {"x": 10_000}),
    ],
    ids=["no own nodes", "in part by own nodes", "by own nodes"],
)
def test_a_claim_on_shared_nodes_is_proven_by_own_nodes(sent, expected):
    unclear = () if sent else (("", "unclear", 9_000),)
    assert confirmed(("x", "claim", 10_000), *sent, *unclear) == expected


def test_a_storm_is_the_cause_of_what_comes_on_top_of_the_usual():
    calm, slow = (1_000, 5e6), (1_000, 105e6)
    load = loads(
        (0, 2, "steady", 600.0, None), (1, 2, "storm", 600.0, None), (1, 2, "x", 75.0, None)
    )

    rows = estimate(load, waits(calm, slow), calm_minutes=1)

    found = {row["principal"]: row for row in rows.iter_rows(named=True)}
    # Of 975 operations, the usual 1,000 requests of the steady job are none of the excess.
    assert found["storm"]["share"] == pytest.approx(600 / 975)
    others_s = 100 * 375 / 975
    share = 600 / 675
    assert found["storm"]["impact_s"] == pytest.approx((1 - (1 - share) ** 2) * others_s, rel=0.01)
    assert found["steady"]["impact_s"] == found["x"]["impact_s"] == 0


@pytest.mark.parametrize(("others", "is_cause"), [(1, True), (2, False)])
def test_of_several_equal_storms_none_is_known_to_be_the_cause(others, is_cause):
    assert 1 / 3 < CAUSE_SHARE < 1 / 2
    storms = [(0, 1, name, 500.0, None) for name in "abc"[: 1 + others]]

    estimated = impacts(loads(*storms, (0, 1, "x", 10.0, None)), waits((1_000, 105e6)))

    assert (estimated["a"] > 0) is is_cause


def test_many_small_jobs_of_a_user_are_one_storm_and_nobody_waits_outside_jobs():
    load = loads(*((0, 1, f"job {n}", 10.0, None) for n in range(90)), (0, 1, "victim", 50.0, None),
                 (0, 1, "daemon", 50.0, None))  # fmt: skip
    rows = windows(1, waits((1_000, 105e6)), load, (START, START + MINUTE))
    jobs = [*(f"job {n}" for n in range(90)), "victim"]
    users = ["stormy"] * 90 + ["calm"]
    members = pl.DataFrame({"principal": jobs, "user": users, "project": users,
                            "application": users, "campaign": users,
                            "source": None, "is_claim": None},
                           schema=MEMBERS)  # fmt: skip

    found = by_window(rows, USUAL, members, [])

    assert set(found.select("kind", "key").rows()) == {(kind, "stormy") for kind in GROUPS}
    of_user = found.filter(kind="user").sum()
    share = 0.9
    assert of_user["impact_us"].item() == pytest.approx((1 - (1 - share) ** 2) * 5e6, rel=0.01)
    assert of_user["outside_us"].item() == pytest.approx(of_user["impact_us"].item())


def test_known_times_of_operations_are_the_load():
    slow = waits((1_000, 105e6))
    timed = loads((0, 1, "few", 600.0, 900.0), (0, 1, "many", 900.0, 400.0))
    untimed = timed.with_columns(time_us=pl.when(pl.col("principal") == "few").then("time_us"))

    assert shares(timed, slow)["few"] > 0.5
    assert shares(untimed, slow)["few"] == pytest.approx(0.4)


def test_operations_that_are_blocked_on_locks_are_little_load():
    slow = waits((1_000, 105e6))
    load = loads((0, 1, "convoy", 100.0, 60e6), (0, 1, "storm", 10_000.0, 1e6))

    assert shares(load, slow)["convoy"] < 0.03
    assert impacts(load, slow)["convoy"] == 0


def test_times_of_zero_are_no_load():
    slow = waits((1_000, 105e6))

    assert impacts(loads((0, 1, "few", 100.0, 0.0), (0, 1, "many", 900.0, 0.0)), slow) == impacts(
        loads((0, 1, "few", 100.0, None), (0, 1, "many", 900.0, None)), slow
    )
    assert impacts(loads((0, 1, "none", 0.0, 0.0)), slow) == {}


def test_operations_of_a_host_count_once():
    """Exports count the operations of hosts, job_stats counts them again by process."""
    jobs = loads((0, 1, "job", 500.0, None))
    hosts = loads((0, 1, "host", 1_500.0, None), counted_by="host")
    processes = loads(
        (0, 1, "find", 1_500.0, None), (0, 1, "rsync", 500.0, None), counted_by="process"
    )

    rows = by_nodes(pl.concat([jobs, hosts, processes]), [], **_NAMES)
    found = shares(rows, waits((1_000, 105e6)))

    assert found == pytest.approx({"host": 0.6, "job": 0.2, "find": 0.15, "rsync": 0.05})


def test_operations_of_a_client_are_timed_by_those_of_its_processes():
    """A client is polled every two minutes, its process each minute: it was busy in the second."""
    host = loads((0, 2, "host", 1_000.0, 1e3), counted_by="host")
    processes = loads(
        (0, 1, "find", 100.0, 1e6), (1, 2, "find", 1_000.0, 9e7), counted_by="process"
    )

    rows = by_nodes(pl.concat([host, processes]), [], **_NAMES)

    by_minute = (
        rows.group_by("principal", minute=pl.col("start").dt.truncate("1m"))
        .agg(pl.sum("operations", "time_us"))
        .sort("principal", "minute")
    )
    each = [(100 / 11, 1e6 / 11), (1_000 / 11, 9e7 / 11)]  # of 1,100 operations, 100 are left
    expected = [*(tuple(10 * n for n in pair) for pair in each)]
    assert [row[2:] for row in by_minute.rows()] == [
        pytest.approx(pair) for pair in [each[0], each[1], expected[0], expected[1]]
    ]


def test_operations_of_a_client_that_no_process_did_remain():
    host = loads((0, 1, "host", 1_000.0, 500.0), counted_by="host")
    process = loads((0, 1, "find", 400.0, 8_000.0), counted_by="process")

    rows = by_nodes(pl.concat([host, process]), [], **_NAMES)

    assert rows["principal"].unique().to_list() == ["host"]
    assert rows["operations"].sum() == pytest.approx(1_000)
    assert rows["time_us"].sum() == pytest.approx(8_000 + 300)


def test_the_baseline_is_the_median_of_calm_intervals():
    calm = [(100 + n, (100 + n) * 200.0) for n in range(20)]
    storm = [(1_000 + n, 1e9) for n in range(20)]

    assert baseline(1, waits(*calm, *storm)).rows() == [(1, SERVICE, 0, 200.0)]
    assert baseline(1, waits(*calm[2:], *storm)).is_empty()


SHARES = st.lists(st.floats(0.01, 100), min_size=1, max_size=6)
INTERVALS = st.lists(
    st.tuples(st.integers(1_000, 10**6), st.floats(0, 1e10)),
    max_size=4,
)


@given(SHARES, INTERVALS)
@settings(max_examples=examples(50))
def test_impact_is_part_of_the_waiting_of_others(shares, intervals):
    rows = [(0, len(intervals) or 1, str(n), 1e4 * share, None) for n, share in enumerate(shares)]
    excess_s = sum(max(took - n * USUAL_US, 0) for n, took in intervals) / 1e6

    estimated_rows = estimate(loads(*rows), waits(*intervals))

    rounding_s = 1e-3 * excess_s + 1e-3 * len(shares) * len(intervals)
    for row in estimated_rows.iter_rows(named=True):
        assert 0 <= row["impact_s"] <= excess_s * (1 - row["share"]) + rounding_s
    assert estimated_rows["suffered_s"].sum() <= excess_s + rounding_s
    if len(shares) == 1:
        assert estimated_rows["impact_s"].sum() == 0


STORMS = [(450, 5), (560, 6), (620, 6), (640, 8), (660, 3), (700, 8), (760, 4), (850, 5)]
KNEE_PER_S, STORM_S, END_S = 600.0, 60, 180
MIX = {"open": 0.46, "getattr": 0.43, "close": 0.08, "getxattr": 0.03}
QUIET = {"getattr": 0.6, "open": 0.2, "close": 0.2}


def served(number, rate, others):
    """Return the requests of a storm and of other jobs on a simulated server."""
    start = int(START.timestamp())
    chance = stream(number, "storms of the estimate")

    def source(name, per_s, mix, begin, end):
        counts = {kind: int(per_s * share * (end - begin)) for kind, share in mix.items()}
        return Source(name, np.arange(8), (Burst(start + begin, start + end, counts),))

    sources = [source("storm", rate, MIX, 60, 60 + STORM_S)]
    sources += [source(f"job {n}", chance.uniform(2, 12), QUIET, 0, END_S) for n in range(others)]
    requests = trace.requests(sources, start, start + END_S, 0, chance)
    done, of_source = trace.serve(requests, sources, KNEE_PER_S, chance)
    return pl.DataFrame(
        {
            "end": pl.Series(done.end_us).cast(pl.Datetime("us", "UTC")),
            "opcode": done.opcode,
            "principal": pl.Series([each.job_id for each in sources]).gather(of_source),
            "service_us": done.service_us,
            "total_us": done.service_us + done.wait_us,
        }
    )


def estimated(rpcs, *, is_timed):
    """Return the impact of the storm from statistics of each minute."""
    calm = rpcs.filter(pl.col("end") < START + timedelta(seconds=50))
    usual = USUAL.with_columns(baseline_us=pl.lit(calm["total_us"].mean()))
    minute = {"start": pl.col("end").dt.truncate("1m")}
    minute["end"] = minute["start"] + MINUTE
    by_minute = rpcs.with_columns(**minute)
    requests = pl.len().cast(pl.Float64)
    times = by_minute.group_by("start", "end").agg(
        pl.lit(SERVICE).alias("service"),
        requests=requests,
        handled_us=pl.sum("service_us").cast(pl.Float64),
        took_us=pl.sum("total_us").cast(pl.Float64),
    )
    time_us = pl.sum("service_us").cast(pl.Float64) if is_timed else pl.lit(None, pl.Float64)
    operations = by_minute.group_by("start", "end", "principal").agg(
        pl.lit("job").alias("counted_by"), operations=requests, time_us=time_us
    )
    found = impacts(operations.select(*LOADS), times.select(*WAITS), usual, calm_minutes=1)
    return found.get("storm", 0.0)


def spared(rpcs):
    """Return the extra time of others' requests, compared with the calm minute."""
    others = rpcs.filter(pl.col("principal") != "storm")
    usual = others.filter(pl.col("end") < START + timedelta(seconds=50))["total_us"].mean()
    return (others["total_us"] - usual).sum() / 1e6


@pytest.mark.parametrize(
    ("is_timed", "factor"),
    [
        pytest.param(True, 2, id="operations with times"),
        pytest.param(False, 3, id="numbers of operations"),
    ],
)
def test_estimates_of_storms_agree_with_the_waiting_they_cause(is_timed, factor, storms):
    pairs = [(spared(rpcs), estimated(rpcs, is_timed=is_timed)) for rpcs in storms]

    expected_s, estimated_s = zip(*pairs, strict=True)
    assert min(expected_s) > 0
    assert spearmanr(expected_s, estimated_s).statistic >= 0.9
    for expected, estimate_s in pairs:
        assert expected / factor <= estimate_s <= expected * factor


@pytest.fixture(scope="module")
def storms():
    return [served(n, *storm) for n, storm in enumerate(STORMS)]
