"""Roll-ups: sums of the finer levels, including late data, that readers count once."""

from datetime import UTC, datetime, timedelta
from operator import itemgetter

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from ioportal.ingest import attribution_stage
from ioportal.telemetry import levels, piecewise, rollups
from ioportal.telemetry.stage_runs import drain
from tests.logs import Run, at, job_stats, rpc, sacct
from tests.properties import examples

RPC_TABLES = [level.table for level in (*levels.RPC_LEVELS, *levels.LOAD_LEVELS)]

_BY_KIND = sql.SQL("SELECT kind, sum(count)::int FROM {} GROUP BY 1")
_BETWEEN = sql.SQL("SELECT sum(count)::int FROM {} WHERE start >= %s AND start < %s")


@pytest.fixture
def roll_up(db):
    """Run the roll-up stage like a worker."""
    return lambda: drain(rollups.roll_up)


@pytest.fixture
def sums(queries):
    """Return the RPCs of each table by kind of principal."""

    def read():
        return {
            table: dict(queries(_BY_KIND.format(sql.Identifier(table)))) for table in RPC_TABLES
        }

    return read


@pytest.fixture
def trace(site, logs, ingest):
    """Ingest a trace of mds1 with RPCs at given times of day."""

    def load(name, *clocks, **facts):
        text = "\n".join(rpc(clock, **facts) for clock in clocks)
        return ingest("rpctrace", logs(name, text), server="mds1")

    return load


def is_sum_of_all_levels(sums, expected):
    return sums() == dict.fromkeys(RPC_TABLES, expected)


def test_roll_ups_add_up_to_the_attributed_windows(trace, roll_up, sums, queries):
    trace("t", "12:00:05", "12:00:15", "12:00:59", "12:01:00", "12:09:59", "12:10:00")

    roll_up()

    assert is_sum_of_all_levels(sums, {3: 6})
    minutes = queries("SELECT start, count FROM telemetry_rpcminute ORDER BY start")
    assert minutes == [(at("12:00"), 3), (at("12:01"), 1), (at("12:09"), 1), (at("12:10"), 1)]
    assert queries(
        "SELECT service_us_sum, service_us_min, service_us_max, queue_us_max, total_us_sum "
        "FROM telemetry_rpctenminutes ORDER BY start"
    ) == [(150, 30, 30, 10, 200), (30, 30, 30, 10, 40)]


def test_rolling_up_again_changes_nothing(trace, roll_up, sums):
    trace("t", "12:00:05", "12:11:00")
    roll_up()

    attribution_stage.mark_all_dirty()
    drain(attribution_stage.attribute_pending)
    roll_up()

    assert is_sum_of_all_levels(sums, {3: 2})


def test_late_windows_and_late_jobs_reach_all_levels(trace, logs, ingest, roll_up, sums):
    trace("t", "12:00:05", "12:30:00")
    roll_up()
    assert is_sum_of_all_levels(sums, {3: 2})

    trace("earlier", "11:59:55", "11:58:00")
    ingest("sacct", logs("j", sacct(Run("77", nodes="n1"))), cluster="anvil")
    roll_up()

    assert is_sum_of_all_levels(sums, {1: 2, 3: 2})


def test_readers_use_finer_levels_for_open_buckets(trace, sums, queries):
    trace("t", "12:00:05", "12:09:30", "12:10:10", "12:11:15")
    now = at("12:12:10")

    for kind in rollups.RPC_ROLL_UPS:
        rollups.roll_rpcs(kind, now, 100)

    assert sums()["telemetry_loadtenminutes"] == {3: 2}
    assert sums()["telemetry_loadminute"] == {3: 3}
    pieces = piecewise.pieces(levels.LOAD_TEN_MINUTES, at("12:00"), at("12:20"))
    counts = {
        (piece.level.table, piece.start): queries(
            _BETWEEN.format(sql.Identifier(piece.level.table)),
            piece.start,
            piece.end,
        )[0][0]
        for piece in pieces
    }
    assert {bucket: count for bucket, count in counts.items() if count} == {
        ("telemetry_loadtenminutes", at("12:00")): 2,
        ("telemetry_loadminute", at("12:10")): 1,
        ("telemetry_loadwindow", at("12:11")): 1,
    }


def test_an_open_bucket_is_rolled_up_after_its_end(trace, sums):
    trace("t", "12:00:05")
    seconds, minute, _ = rollups.RPC_ROLL_UPS

    assert rollups.roll_rpcs(seconds, at("12:00:09"), 100) == 0
    assert rollups.roll_rpcs(seconds, at("12:00:10"), 100) == 1
    assert rollups.roll_rpcs(minute, at("12:01:20"), 100) == 0
    assert rollups.roll_rpcs(minute, at("12:01:30"), 100) == 1
    assert sums()["telemetry_rpcminute"] == {3: 1}


_TOTALS_QUERY = sql.SQL("""
SELECT date_bin({}, start, 'epoch'), server_id, service_id, opcode, {} FROM {}
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
""")
_TIMES = sql.SQL("""
sum(count)::int, sum(timed)::int, sum(service_us_sum)::int, sum(total_us_sum)::int,
coalesce(min(service_us_min) FILTER (WHERE timed > 0), 0), max(service_us_max),
coalesce(min(queue_us_min) FILTER (WHERE timed > 0), 0), max(queue_us_max)
""")
_BATCHES = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 1_500),  # seconds from noon
            st.integers(1, 4),  # the NID
            st.sampled_from([33, 101]),
            st.one_of(st.none(), st.tuples(st.integers(0, 90), st.integers(90, 99))),
        ),
        min_size=1,
        max_size=12,
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=examples(5), suppress_health_check=list(HealthCheck))
@given(_BATCHES)
def test_totals_are_the_sums_of_the_raw_windows(site, logs, ingest, queries, batches):
    """Totals are independent of clients and unchanged by late job records."""
    with transaction.atomic():
        for number, batch in enumerate(batches):
            text = "\n".join(
                rpc(at("12:00") + timedelta(hours=number, seconds=s), f"{nid}@gni", opcode, us=us)
                for s, nid, opcode, us in sorted(batch, key=itemgetter(0))
            )
            ingest("rpctrace", logs(f"t{number}", text), server="mds1")
            if number:
                drain(rollups.roll_up)
        ingest("sacct", logs("j", sacct(Run("77", nodes="n[1-2]"))), cluster="anvil")
        drain(rollups.roll_up)

        for level in levels.RPC_TOTAL_LEVELS:
            totals, raw = (
                queries(_TOTALS_QUERY.format(level.width, _TIMES, sql.Identifier(table)))
                for table in (level.table, levels.RPC_WINDOWS.table)
            )
            assert totals == raw
        assert piecewise.discrepancies(at("12:00"), at("16:00")) == []
        transaction.set_rollback(True)


def test_a_wrong_total_is_reported(trace, roll_up, queries):
    trace("t", "12:00:05", "12:10:00")
    roll_up()

    queries(
        "UPDATE telemetry_rpctotal SET total_us_sum = 0"
        " WHERE start < '2017-07-05 12:05Z' RETURNING 1"
    )

    [sentence] = piecewise.discrepancies(at("12:00"), at("12:20"))
    assert "telemetry_rpctotal: 80 µs from arrival to end attributed" in sentence
    assert "40 rolled up" in sentence


def test_total_operations_of_a_poll_include_all_principals(site, logs, ingest, roll_up, queries):
    for clock, opens in {"12:00": 1, "12:10": 6, "12:20": 9}.items():
        text = job_stats(
            "lake-MDT0000", {"77": {"open": opens}, "cp.0": {"close": opens * 2}}, snapshot=clock
        )
        ingest("job_stats", logs(f"r{clock}", text), at=at(clock).isoformat())
    roll_up()
    ingest("sacct", logs("j", sacct(Run("77"))), cluster="anvil")
    roll_up()

    assert queries(
        'SELECT start, "end", metadata_operations FROM telemetry_iototal WHERE basis < 5 ORDER BY 1'
    ) == [(at("12:00"), at("12:10"), 15), (at("12:10"), at("12:20"), 9)]


def test_polls_are_rolled_up_without_splitting(site, logs, ingest, roll_up, queries):
    """An interval is counted in the ten minutes of its start and retains its bounds."""
    for clock, opens in {"11:55": 1, "11:58": 3, "12:03": 7, "12:08": 15, "12:13": 31}.items():
        text = job_stats("lake-MDT0000", {"77": {"open": opens}}, snapshot=clock)
        ingest("job_stats", logs(f"r{clock}", text), at=at(clock).isoformat())

    roll_up()

    rows = queries(
        'SELECT bucket, start, "end", basis, open, metadata_operations '
        "FROM telemetry_iotenminutes ORDER BY bucket, basis DESC"
    )
    assert rows == [
        (at("11:50"), at("11:55"), at("11:55"), 5, 1, 1),  # unknown duration: separate
        (at("11:50"), at("11:55"), at("12:03"), 1, 6, 6),
        (at("12:00"), at("12:03"), at("12:13"), 1, 24, 24),
    ]


def test_counters_missing_from_all_polls_are_null_in_sums(site, logs, ingest, roll_up, queries):
    for minute in range(3):
        text = job_stats("lake-MDT0000", {"7": {"open": 5 * minute + 1}})
        ingest("job_stats", logs(f"r{minute}", text), at=at(f"12:0{minute}").isoformat())

    roll_up()

    assert queries(
        "SELECT open, mkdir, read_bytes FROM telemetry_iotenminutes WHERE basis < 5"
    ) == [(10, None, None)]


def test_late_polls_and_late_jobs_update_the_sums_of_polls(site, logs, ingest, roll_up, queries):
    def poll(clock, opens):
        text = job_stats("lake-MDT0000", {"77": {"open": opens}}, snapshot=clock)
        ingest("job_stats", logs(f"r{clock}", text), at=at(clock).isoformat())

    poll("12:00", 1)
    poll("12:12", 9)
    roll_up()

    poll("12:06", 2)
    ingest("sacct", logs("j", sacct(Run("77"))), cluster="anvil")
    roll_up()

    rows = queries("SELECT kind, start, open FROM telemetry_iotenminutes WHERE basis < 5")
    assert sorted(rows) == [(1, at("12:00"), 8)]
    assert queries("SELECT DISTINCT kind FROM telemetry_iotenminutes") == [(1,)]


def test_data_in_the_future_is_not_rolled_up(trace, roll_up, queries):
    ahead = datetime.now(UTC) + timedelta(minutes=4)  # of clocks
    trace("t", ahead)

    roll_up()

    assert queries("SELECT count(*) FROM telemetry_rpcminute") == [(0,)]
    assert queries("SELECT count(*) FROM telemetry_dirtyrpcs") == [(1,)]
