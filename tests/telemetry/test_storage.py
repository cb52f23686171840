"""Storage: bytes per day, free disk space, and refusal of data on a full disk."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from ioportal.ingest.models import Segment
from ioportal.telemetry import storage
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.levels import LEVELS
from ioportal.telemetry.storage import Stored, _Chunk
from tests.logs import rpc

DAY = timedelta(days=1)
FIRST = datetime(2017, 7, 3, tzinfo=UTC)
NINE_YEARS = 9 * 365


def stored(*first_days):
    """Return a level with chunks of one day, each of 1,000 bytes and 10 rows."""
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
        pytest.param([0, 1, 2, 3], id="without a gap"),
        pytest.param([0, NINE_YEARS], id="a gap after the first chunk"),
        pytest.param([0, 1, 2, NINE_YEARS], id="a gap after several chunks"),
        pytest.param([0, NINE_YEARS, NINE_YEARS + 1], id="a gap before the last chunks"),
    ],
)
def test_gaps_between_chunks_do_not_change_the_bytes_per_day(first_days):
    level = stored(*first_days)

    assert (level.bytes_per_day, level.rows_per_day) == (1_000, 10)


def test_ingest_is_refused_while_the_disk_is_full(site, full_disk, logs, ingest, settings):
    trace = logs("t", rpc("12:00:00", "1@gni"))

    with pytest.raises(CommandError, match=r"disk has [\d,]+ MB free; nothing new is .*try again"):
        ingest("rpctrace", trace, server="mds1")
    assert not Segment.objects.exists()

    settings.DATABASE_FREE_BYTES = 1
    assert ingest("rpctrace", trace, server="mds1")["accepted"] == 1


def test_the_least_free_space_of_several_disks_counts(settings, tmp_path):
    settings.DATABASE_FOLDERS = [str(tmp_path), "/proc"]  # /proc has no free space

    assert storage.free_bytes() == 0


def test_the_data_folder_of_a_local_database_is_detected(queries, settings):
    settings.DATABASE_FOLDERS = []
    [(folder,)] = queries("SHOW data_directory")
    is_here = os.environ["DATABASE_URL"].partition("host=")[2].startswith(("/", "%2F"))

    free = storage.free_bytes()

    assert (free is not None) == (is_here and Path(folder).exists())
