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
from ioportal.telemetry.models import TableSize
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


@pytest.mark.django_db
def test_the_growth_of_tables_without_chunks_is_of_the_last_week():
    today = FIRST.date() + 10 * DAY
    TableSize.objects.create(table="jobs_job", day=today - 9 * DAY, bytes=1)  # too old
    storage.note_sizes(today - 2 * DAY)
    TableSize.objects.filter(table="jobs_job").update(bytes=0)
    storage.note_sizes(today)

    tables = {table.table: table for table in storage.other_tables(today)}

    jobs = tables["jobs_job"]
    assert jobs.bytes > 0
    assert jobs.bytes_per_day == jobs.bytes / 2
    assert jobs.growth.after(30) == 16 * jobs.bytes
    assert not {level.table for level in LEVELS} & tables.keys()
    assert storage.other_tables(today + 20 * DAY)[0].bytes_per_day is None


@pytest.mark.django_db
def test_sizes_are_noted_once_a_day_and_kept_for_a_week():
    today = FIRST.date()
    for day in (today - 8 * DAY, today - 7 * DAY, today, today):
        storage.note_sizes(day)

    days = TableSize.objects.filter(table="jobs_job").order_by("day").values_list("day", flat=True)

    assert list(days) == [today - 7 * DAY, today]
