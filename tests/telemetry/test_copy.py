"""COPY of frames into tables: every type, nulls, and many rows."""

import cProfile
import pstats
from collections import Counter
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from collectors.tables import COUNTERS, UTC_US
from ioportal.telemetry.copy import copy_frame, read_frame, replace_frame
from ioportal.telemetry.models import Coverage, DirtyImpact, TargetSnapshot
from tests.properties import examples

pytestmark = pytest.mark.django_db

BIGINTS = st.integers(-(2**63), 2**63 - 1)
INTEGERS = st.integers(-(2**31), 2**31 - 1)
MOMENTS = st.datetimes(
    datetime(1970, 1, 1), datetime(2106, 1, 1), timezones=st.just(UTC)  # noqa: DTZ001
)  # fmt: skip
SCHEMA = {
    "taken_at": UTC_US,
    "segment_id": pl.Int64,
    "target_id": pl.Int32,
    "snapshot_at": UTC_US,
    "open": pl.Int64,
    "write_bytes": pl.Int64,
}
ROWS = st.fixed_dictionaries(
    {
        "taken_at": MOMENTS,
        "segment_id": BIGINTS,
        "target_id": INTEGERS,
        "snapshot_at": st.none() | MOMENTS,
        "open": st.none() | BIGINTS,
        "write_bytes": st.none() | BIGINTS,
    }
)


COMPLETE_ROWS = ROWS.filter(lambda row: None not in row.values())


@settings(
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rows=st.lists(ROWS, max_size=12)
    | st.lists(COMPLETE_ROWS, max_size=2).map(lambda rows: rows * 250)
)
def test_stored_rows_equal_the_copied_rows(db, rows):
    frame = pl.DataFrame(rows, schema=SCHEMA)

    with transaction.atomic():
        copy_frame(TargetSnapshot, frame)
        stored = Counter(TargetSnapshot.objects.values_list(*SCHEMA))
        transaction.set_rollback(True)

    assert stored == Counter(tuple(row[name] for name in SCHEMA) for row in rows)


def test_missing_columns_are_null():
    moment = datetime(2017, 7, 5, tzinfo=UTC)
    rows = [{"taken_at": moment, "segment_id": 1, "target_id": 2}]

    copy_frame(TargetSnapshot, pl.DataFrame(rows, schema={k: SCHEMA[k] for k in rows[0]}))

    assert TargetSnapshot.objects.values_list(*COUNTERS).get() == (None,) * len(COUNTERS)


def test_the_work_does_not_grow_with_the_patterns_of_nulls():
    row_count = 64
    row = pl.int_range(row_count)
    patterns = pl.select(
        segment_id=row,
        target_id=pl.lit(1, pl.Int32),
        taken_at=pl.lit(datetime(2017, 7, 5, tzinfo=UTC)).cast(UTC_US),
        **{
            name: pl.when(row // 2**bit % 2 == 1).then(row) for bit, name in enumerate(COUNTERS[:6])
        },
    )
    profile = cProfile.Profile()

    profile.runcall(copy_frame, TargetSnapshot, patterns)

    calls = pstats.Stats(profile).stats
    assert TargetSnapshot.objects.count() == row_count
    assert sum(count for (file, *_), (count, *_) in calls.items() if "polars" in file) < 400


@pytest.mark.parametrize("every", [1, 3])
def test_frames_larger_than_one_write_are_stored_completely(every):
    row_count = 250_001
    frame = pl.select(
        segment_id=pl.int_range(row_count),
        target_id=pl.lit(1, pl.Int32),
        taken_at=pl.lit(datetime(2017, 7, 5, tzinfo=UTC)).cast(UTC_US)
        + pl.int_range(row_count) * timedelta(microseconds=1),
        open=pl.when(pl.int_range(row_count) % every == 0).then(pl.int_range(row_count)),
    )

    copy_frame(TargetSnapshot, frame)

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), sum(segment_id), sum(open), max(taken_at) "
            "FROM telemetry_targetsnapshot"
        )
        assert cursor.fetchone() == (
            row_count,
            sum(range(row_count)),
            sum(range(0, row_count, every)),
            datetime(2017, 7, 5, 0, 0, 0, row_count - 1, tzinfo=UTC),
        )


def test_an_empty_frame_stores_nothing():
    copy_frame(TargetSnapshot, pl.DataFrame(schema=SCHEMA))

    assert not TargetSnapshot.objects.exists()


def test_a_refused_frame_is_not_stored_in_part():
    start = datetime(2017, 7, 5, tzinfo=UTC)
    schema = {"source_id": pl.Int32, "start": UTC_US, "end": UTC_US, "segment_id": pl.Int64}
    rows = [
        {"source_id": 1, "start": start, "end": start, "segment_id": 1},
        {"source_id": None, "start": start, "end": start, "segment_id": 2},
    ]

    with pytest.raises(IntegrityError), transaction.atomic():
        copy_frame(Coverage, pl.DataFrame(rows, schema=schema))

    assert not Coverage.objects.exists()


def test_a_query_result_is_read_as_a_frame():
    moment = datetime(2024, 2, 29, 23, 59, 59, 123_456, tzinfo=UTC)
    rows = [
        (1, moment, True, 1 / 3, -1),
        (1, None, False, 1e300, None),
        (2, moment.replace(microsecond=0), None, None, 2**63 - 1),
    ]
    columns = {
        "key": pl.Int64(),
        "at": UTC_US,
        "is_valid": pl.Boolean(),
        "amount": pl.Float64(),
        "count": pl.Int64(),
    }
    values = sql.SQL(", ").join(
        sql.SQL("({}, {}::timestamptz, {}::boolean, {}::float8, {}::bigint)").format(
            *map(sql.Literal, row)
        )
        for row in rows
    )

    frame = read_frame(sql.SQL("VALUES {}").format(values), columns, {})
    empty = read_frame(
        sql.SQL("SELECT * FROM (VALUES {}) v WHERE false").format(values), columns, {}
    )

    assert sorted(frame.rows(), key=str) == sorted(rows, key=str)
    assert frame.schema == empty.schema == pl.Schema(columns)
    assert empty.is_empty()


def test_rows_replace_rows_with_the_same_key():
    start, end = datetime(2017, 7, 5, tzinfo=UTC), datetime(2017, 7, 6, tzinfo=UTC)
    schema = {"id": pl.Int64, "server_id": pl.Int32, "start": UTC_US, "end": UTC_US}
    before = [(1, 5, start, end), (2, 5, start, end)]
    after = [(2, None, start, start), (3, 6, end, end)]
    copy_frame(DirtyImpact, pl.DataFrame(before, schema, orient="row"))

    for _ in range(2):
        replace_frame(DirtyImpact, pl.DataFrame(after, schema, orient="row"), key="id")

    stored = DirtyImpact.objects.order_by("id").values_list(*schema)
    assert list(stored) == [before[0], *after]
