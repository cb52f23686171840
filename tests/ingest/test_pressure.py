"""A database whose disk is nearly full accepts no more data."""

import os
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from ioportal.ingest.models import Segment
from ioportal.telemetry import storage
from tests.logs import rpc


@pytest.fixture
def full_disk(settings, tmp_path):
    """More space is required than any disk has."""
    settings.DATABASE_FOLDERS = [str(tmp_path)]
    settings.DATABASE_FREE_BYTES = 2**60


def test_ingest_is_refused_on_a_full_disk_and_works_once_there_is_room(
    site, full_disk, logs, ingest, settings
):
    trace = logs("t", rpc("12:00:00", "1@gni"))

    with pytest.raises(CommandError, match=r"disk has [\d,]+ MB free; ingest stops below") as error:
        ingest("rpctrace", trace, server="mds1")
    assert "repeat the command" in str(error.value)
    assert not Segment.objects.exists()

    settings.DATABASE_FREE_BYTES = 1
    assert ingest("rpctrace", trace, server="mds1")["accepted"] == 1


def test_the_fullest_of_several_disks_counts(settings, tmp_path):
    settings.DATABASE_FOLDERS = [str(tmp_path), "/proc"]  # nothing is free there

    assert storage.free_bytes() == 0


def test_the_data_folder_of_a_database_on_this_host_is_found(queries, settings):
    settings.DATABASE_FOLDERS = []
    [(folder,)] = queries("SHOW data_directory")
    is_here = os.environ["DATABASE_URL"].partition("host=")[2].startswith(("/", "%2F"))

    free = storage.free_bytes()

    assert (free is not None) == (is_here and Path(folder).exists())
