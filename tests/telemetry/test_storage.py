"""What a day of records takes on disk, worked out by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.levels import LEVELS
from ioportal.telemetry.storage import Stored, _Chunk

DAY = timedelta(days=1)
FIRST = datetime(2017, 7, 3, tzinfo=UTC)
NINE_YEARS = 9 * 365


def stored(*first_days):
    """A level with chunks of one day, each of 1,000 bytes and 10 rows."""
    chunks = [
        _Chunk(
            FIRST + day * DAY,
            FIRST + (day + 1) * DAY,
            is_compressed=False,
            table_bytes=600,
            index_bytes=400,
            total_bytes=1_000,
            rows=10,
        )
        for day in first_days
    ]
    return Stored(LEVELS[0], chunks, Interval(FIRST, chunks[-1].end))


@pytest.mark.parametrize(
    "first_days",
    [
        pytest.param([0, 1, 2, 3], id="without a pause"),
        pytest.param([0, NINE_YEARS], id="a pause after the first chunk"),
        pytest.param([0, 1, 2, NINE_YEARS], id="a pause after some chunks"),
        pytest.param([0, NINE_YEARS, NINE_YEARS + 1], id="a pause before the newest chunks"),
    ],
)
def test_a_pause_between_records_does_not_change_what_a_day_takes(first_days):
    level = stored(*first_days)

    assert (level.bytes_per_day, level.rows_per_day) == (1_000, 10)
