"""A source that is read while there is room, and told of when there is none."""

import errno
import threading

import pytest

from collectors.agent import durable, read_loop
from collectors.agent.delivery.batches import Batch
from collectors.agent.delivery.spool import Spool
from collectors.agent.health import Health
from collectors.agent.read_loop import ReadLoop
from collectors.agent.reader import Reading
from collectors.parsed import Account
from collectors.tables import REJECTS, RPC_WINDOWS


class Counting:
    """A source that has something new whenever it is read."""

    def __init__(self):
        self.reads = 0

    def read(self, place):
        self.reads += 1
        batch = Batch("rpc_windows", RPC_WINDOWS.empty(), Account(), (), REJECTS.empty())
        yield Reading([batch], {"read": place.get("read", 0) + 1})

    def behind_bytes(self):
        return 0

    def close(self):
        pass


class Soon(threading.Event):
    """Says stop at the first pause."""

    def wait(self, _seconds):
        self.set()
        return True


@pytest.fixture
def counting():
    return Counting()


def test_nothing_is_read_while_the_spool_is_full(tmp_path, counting, caplog):
    spool, health = Spool(tmp_path, 1), Health("mds1")
    keeper = ReadLoop(counting, spool, 1, health)
    keeper.step(Soon())
    keeper.step(Soon())

    assert counting.reads == 1
    assert health.troubles["spool"].startswith("full")
    assert "spool_in_trouble" in [record.message for record in caplog.records]

    spool.delivered(spool.oldest())
    keeper.step(Soon())

    assert counting.reads == 2


def test_a_reading_waits_for_a_full_disk(tmp_path, counting, monkeypatch, never):
    spool, health = Spool(tmp_path, 10**6), Health("mds1")
    monkeypatch.setattr(read_loop, "RETRY_S", 0.01)
    write, failures = durable.write, 3

    def full(path, content):
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, content)

    monkeypatch.setattr(durable, "write", full)
    ReadLoop(counting, spool, 1, health).step(never)

    assert (counting.reads, spool.place, spool.depth().batches) == (1, {"read": 1}, 1)
    assert health.troubles == {}


def test_a_batch_that_the_state_does_not_tell_of_was_never_written(tmp_path, counting, never):
    keeper = ReadLoop(counting, Spool(tmp_path, 10**6), 1, Health("mds1"))
    keeper.step(never)
    (tmp_path / "batches" / "000000000002.batch").write_bytes(b"half of it")

    spool = Spool(tmp_path, 10**6)

    assert spool.depth().batches == 1
