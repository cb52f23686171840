"""Logs that grow, are rotated, truncated and removed, and agents that restart."""

import os
import shutil

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.agent.files import open_file, tail, traces
from collectors.agent.files.open_file import OpenFile
from collectors.agent.files.tail import LogTail
from collectors.agent.files.traces import TraceReader
from collectors.lustre import rpc_trace
from tests.collectors.agent.traces import FIRST_SECOND, TRACE, trace
from tests.properties import examples


class Site:
    """A log and its reader; each change advances the file times by a second."""

    def __init__(self, folder):
        self.log = folder / "rpctrace.log"
        self.written = 0
        self.checkpoint = {}
        self.read = 0
        self.clock = 1_700_000_000
        self.reader = self.new_reader()
        self.append()
        self.poll()  # earlier rotated files are not read

    def new_reader(self):
        return TraceReader(LogTail(str(self.log), settled_s=0))

    def touch(self, path):
        self.clock += 1
        os.utime(path, (self.clock, self.clock))

    def append(self, lines=10, *, cut=0):
        text = trace(range(self.written, self.written + lines))
        with self.log.open("a") as log:
            log.write(text[: len(text) - cut])
        self.touch(self.log)
        if cut:
            self.poll()  # with an incomplete last line
            with self.log.open("a") as log:
                log.write(text[-cut:])
            self.touch(self.log)
        self.written += lines

    def append_slowly(self):
        self.append(cut=100)

    def shift(self):
        names = sorted(self.log.parent.glob("rpctrace.log.*"), key=lambda p: -int(p.suffix[1:]))
        for path in names:
            path.rename(path.with_suffix(f".{int(path.suffix[1:]) + 1}"))

    def rotate(self):
        self.shift()
        self.log.rename(self.log.with_name("rpctrace.log.1"))
        self.append(3)

    def copy_and_truncate(self):
        self.shift()
        copy = self.log.with_name("rpctrace.log.1")
        shutil.copy(self.log, copy)
        self.touch(copy)
        os.truncate(self.log, 0)
        self.touch(self.log)
        self.append(3)

    def poll(self):
        for reading in self.reader.read(self.checkpoint):
            self.commit(reading)

    def poll_and_crash(self):
        """Lose the last reading."""
        readings = self.reader.read(self.checkpoint)
        next(readings, None)
        readings.close()
        self.restart()

    def restart(self):
        self.reader.close()
        self.reader = self.new_reader()

    def commit(self, reading):
        self.checkpoint = reading.checkpoint
        self.read += sum(int(batch.rows["count"].sum()) for batch in reading.batches)


ACTIONS = (
    Site.append,
    Site.append_slowly,
    Site.rotate,
    Site.copy_and_truncate,
    Site.poll,
    Site.poll_and_crash,
    Site.restart,
)


@pytest.mark.long
@settings(max_examples=examples(40))
@given(actions=st.lists(st.sampled_from(ACTIONS), max_size=12))
def test_every_line_is_read_once(tmp_path_factory, actions):
    site = Site(tmp_path_factory.mktemp("site"))
    for action in actions:
        action(site)
    site.poll()

    assert site.read == site.written
    site.reader.close()


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    site.reader.close()


def test_a_log_removed_before_its_end_was_read_is_logged(site, caplog):
    site.poll()
    site.log.unlink()
    site.append(5)
    site.restart()
    site.poll()

    assert site.read == 15
    assert "log_lost" in [record.message for record in caplog.records]


@pytest.mark.parametrize(
    "name", ["rpctrace.log.{}", "rpctrace.log-2026112{}", "rpctrace.log-2026112{}T081957Z"]
)
def test_a_log_rotated_twice_between_two_polls_is_read_completely(site, name):
    for n in (1, 2):
        site.append()
        site.log.rename(site.log.with_name(name.format(n)))
    site.append()
    site.poll()

    assert site.read == site.written == 40


def test_a_file_that_vanishes_before_it_is_opened_is_skipped(site, monkeypatch):
    site.append()
    site.rotate()
    site.append()
    site.restart()
    vanishing = site.log.with_name("rpctrace.log.9")
    shutil.copy(site.log, vanishing)
    os.utime(vanishing, (0, 0))  # the first to be opened

    def open_late(path, pattern):
        vanishing.unlink(missing_ok=True)
        return OpenFile(path, pattern)

    monkeypatch.setattr(tail, "OpenFile", open_late)
    site.poll()

    assert site.read == site.written == 33


@pytest.fixture
def clock(monkeypatch):
    """Set the agent's time, in seconds after the first record."""

    def set_to(after_s):
        monkeypatch.setattr("time.time", lambda: FIRST_SECOND + after_s)

    return set_to


def test_each_window_of_a_growing_trace_is_read_once_and_whole(site, clock):
    keys = []
    for second in range(1, 33):
        site.append(1000)
        clock(second)
        for reading in site.reader.read(site.checkpoint):
            site.commit(reading)
            rows = pl.concat([batch.rows for batch in reading.batches])
            keys += rows.select("start", "nid", "opcode").rows()
    assert site.read == 30_000
    assert len(keys) == len(set(keys)) == 3 * 7  # windows of each NID

    clock(41)
    site.poll()
    assert site.read == site.written


def test_a_long_backlog_is_read_in_bounded_steps(site, monkeypatch):
    monkeypatch.setattr(open_file, "CHUNK_BYTES", 3_000)
    monkeypatch.setattr(rpc_trace, "PART_CHUNKS", 1)
    site.append(1000)  # 100 chunks of the same window
    readings = list(site.reader.read(site.checkpoint))
    for reading in readings:
        site.commit(reading)

    assert len(readings) > 1000 / 11 / traces.PARTS_JOINED
    assert site.read == site.written


def test_a_record_of_next_year_does_not_delay_others(site, clock):
    clock(1)
    site.append(1000)
    site.poll()
    assert site.read == 10
    with site.log.open("a") as log:
        log.write(TRACE.format(second=FIRST_SECOND + 31_536_000, micro=0, xid=1, nid=1))
    site.poll()
    assert site.read == site.written + 1


def test_a_line_longer_than_a_chunk_is_one_line(site):
    site.log.write_bytes(b"x" * 5_000_000 + b"\n" + trace([77]).encode())
    [reading] = site.reader.read({})

    assert reading.batches[0].account.lines == 2
    assert reading.batches[0].account.accepted == 1
    assert reading.checkpoint["file"]["offset"] == site.log.stat().st_size


def test_a_byte_order_mark_is_dropped_and_utf_16_refused(tmp_path):
    path = tmp_path / "accounting"
    path.write_text("\ufeffone\n\ufefftwo\n")
    file = OpenFile(path, str(path))
    assert [chunk.text for chunk in file.chunks()] == [b"one\ntwo\n"]
    assert file.unread_bytes == 0
    file.close()

    path.write_text("one\n", encoding="utf-16")
    file = OpenFile(path, str(path))
    with pytest.raises(OSError, match="have it written as UTF-8"):
        list(file.chunks())
    file.close()
