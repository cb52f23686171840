"""Folders of finished files: each text is read once, whatever it is called."""

import gzip
import os
from dataclasses import replace

import pytest
import zstandard

from collectors.agent.files.folders import FolderReader
from collectors.agent.files.traces import TraceFolderReader
from collectors.agent.reader import NotThereYet
from collectors.batch import alps
from collectors.parsed import SourceUnavailable
from collectors.tables import LAUNCHES
from tests.collectors.agent.traces import trace

FINISHED_S = 60


@pytest.fixture
def folder(tmp_path):
    """Put a file there that was finished so many minutes ago."""

    def put(name, content, minutes_ago=10):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        moment = path.stat().st_mtime - 60 * minutes_ago
        os.utime(path, (moment, moment))
        return path

    put.pattern = str(tmp_path / "*")
    return put


def read(reader, place=None):
    """Return what the batches add up to, and the last place."""
    total, place = 0, place or {}
    for reading in reader.read(place):
        total += sum(int(batch.rows["count"].sum()) for batch in reading.batches)
        place = reading.place
    return total, place


def traces(folder):
    return TraceFolderReader(folder.pattern, FINISHED_S)


def test_plain_and_compressed_files_are_read_once(folder):
    folder("1.log", trace(range(10)), minutes_ago=12)
    folder("2.log.gz", gzip.compress(trace(range(10, 30)).encode()))
    folder("3.log.zst", zstandard.compress(trace(range(30, 35)).encode()))
    folder("4.log", trace(range(35, 40)), minutes_ago=0)  # still written to

    total, place = read(traces(folder))
    again, _ = read(traces(folder), place)

    assert (total, again) == (35, 0)


def test_a_file_that_is_compressed_later_is_known_again(folder):
    plain = folder("1.log", trace(range(10)))
    _, place = read(traces(folder))
    folder("1.log.gz", gzip.compress(plain.read_bytes()))
    plain.unlink()

    assert read(traces(folder), place)[0] == 0


def test_records_that_two_dumps_share_count_once_even_for_a_new_reader(folder):
    folder("1.log", trace(range(10)))
    _, place = read(traces(folder))
    folder("2.log", trace(range(5, 20)))

    assert read(traces(folder), place)[0] == 10


def test_a_file_is_read_on_where_the_agent_died(folder, fixture_text):
    text = fixture_text("alps", "messages.txt") * 4
    folder("messages", text)

    def parts(source):
        for parsed in alps.parse(source):
            for rows in parsed.table.iter_slices(3):
                yield replace(parsed, table=rows)

    def lines(readings):
        return [line for r in readings for b in r.batches for line in b.rows["line"].to_list()]

    whole = lines(FolderReader(LAUNCHES, folder.pattern, FINISHED_S, parts).read({}))
    readings = FolderReader(LAUNCHES, folder.pattern, FINISHED_S, parts).read({})
    first = next(readings)
    rest = FolderReader(LAUNCHES, folder.pattern, FINISHED_S, parts).read(first.place)

    assert lines([first]) + lines(rest) == whole
    assert len(lines([first])) == 3


def test_a_damaged_file_does_not_keep_the_others(folder):
    folder("1.log.gz", gzip.compress(trace(range(10)).encode())[:-20], minutes_ago=12)
    folder("2.log", trace(range(10, 15)))
    place = {}

    def read_all():
        nonlocal place
        for reading in traces(folder).read({}):
            place = reading.place

    with pytest.raises(SourceUnavailable, match=r"1\.log\.gz"):
        read_all()
    [finished] = place["files"]

    assert "2.log" in finished


def test_a_folder_that_does_not_exist_is_waited_for(tmp_path):
    reader = TraceFolderReader(f"{tmp_path}/missing/*.log", FINISHED_S)

    with pytest.raises(NotThereYet, match="missing: no such folder"):
        read(reader)
