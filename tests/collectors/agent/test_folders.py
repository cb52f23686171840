"""Folders of finished files: each content is read once, under any name."""

import gzip
import os
from dataclasses import replace

import pytest
import zstandard

from collectors.agent.files.folders import FolderReader
from collectors.agent.files.traces import TraceFolderReader
from collectors.agent.reader import SourceMissing
from collectors.batch import alps
from collectors.parsed import SourceUnavailable
from collectors.tables import LAUNCHES
from tests.collectors.agent.traces import trace

FINISHED_S = 60


@pytest.fixture
def folder(tmp_path):
    """Create a file that was finished some minutes ago."""

    def put(name, content, minutes_ago=10):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        moment = path.stat().st_mtime - 60 * minutes_ago
        os.utime(path, (moment, moment))
        return path

    put.pattern = str(tmp_path / "*")
    return put


def read(reader, checkpoint=None):
    """Return the total count of the batches, and the last checkpoint."""
    total, checkpoint = 0, checkpoint or {}
    for reading in reader.read(checkpoint):
        total += sum(int(batch.rows["count"].sum()) for batch in reading.batches)
        checkpoint = reading.checkpoint
    return total, checkpoint


def traces(folder):
    return TraceFolderReader(folder.pattern, FINISHED_S)


def test_plain_and_compressed_files_are_read_once(folder):
    folder("1.log", trace(range(10)), minutes_ago=12)
    folder("2.log.gz", gzip.compress(trace(range(10, 30)).encode()))
    folder("3.log.zst", zstandard.compress(trace(range(30, 35)).encode()))
    folder("4.log", trace(range(35, 40)), minutes_ago=0)  # still written to

    total, checkpoint = read(traces(folder))
    again, _ = read(traces(folder), checkpoint)

    assert (total, again) == (35, 0)


def test_a_file_that_is_compressed_later_is_recognised(folder):
    plain = folder("1.log", trace(range(10)))
    _, checkpoint = read(traces(folder))
    folder("1.log.gz", gzip.compress(plain.read_bytes()))
    plain.unlink()

    assert read(traces(folder), checkpoint)[0] == 0


def test_records_in_two_dumps_count_once_after_a_restart(folder):
    folder("1.log", trace(range(10)))
    _, checkpoint = read(traces(folder))
    folder("2.log", trace(range(5, 20)))

    assert read(traces(folder), checkpoint)[0] == 10


def test_reading_of_a_file_resumes_after_a_crash(folder, fixture_text):
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
    rest = FolderReader(LAUNCHES, folder.pattern, FINISHED_S, parts).read(first.checkpoint)

    assert lines([first]) + lines(rest) == whole
    assert len(lines([first])) == 3


def test_a_damaged_file_does_not_block_others(folder):
    folder("1.log.gz", gzip.compress(trace(range(10)).encode())[:-20], minutes_ago=12)
    folder("2.log", trace(range(10, 15)))
    checkpoint = {}

    def read_all():
        nonlocal checkpoint
        for reading in traces(folder).read({}):
            checkpoint = reading.checkpoint

    with pytest.raises(SourceUnavailable, match=r"1\.log\.gz"):
        read_all()
    [finished] = checkpoint["files"]

    assert "2.log" in finished


def test_a_missing_folder_is_reported(tmp_path):
    reader = TraceFolderReader(f"{tmp_path}/missing/*.log", FINISHED_S)

    with pytest.raises(SourceMissing, match="missing: no such folder"):
        read(reader)
