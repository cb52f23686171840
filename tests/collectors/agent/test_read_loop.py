"""Reading while the spool has room, and problems while it is full."""

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
    """A source with new data at every read."""

    def __init__(self):
        self.reads = 0

    def read(self, checkpoint):
        self.reads += 1
        batch = Batch("rpc_windows", RPC_WINDOWS.empty(), Account(), (), REJECTS.empty())
        yield Reading([batch], {"read": checkpoint.get("read", 0) + 1})

    def behind_bytes(self):
        return 0

    def close(self):
        pass


class Soon(threading.Event):
    """A stop event that is set at the first pause."""

    def wait(self, _seconds):
        self.set()
        return True


@pytest.fixture
def counting():
    return Counting()


def test_nothing_is_read_while_the_spool_is_full(tmp_path, counting, caplog):
    spool, health = Spool(tmp_path, 1), Health("mds1")
    loop = ReadLoop(counting, spool, 1, health)
    loop.step(Soon())
    loop.step(Soon())

    assert counting.reads == 1
    assert health.problems["spool"].startswith("full")
    assert "spool_failing" in [record.message for record in caplog.records]

    spool.delivered(spool.oldest())
    loop.step(Soon())

    assert counting.reads == 2


def test_a_commit_is_retried_while_the_disk_is_full(tmp_path, counting, monkeypatch, never):
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

    assert (counting.reads, spool.checkpoint, spool.depth().batches) == (1, {"read": 1}, 1)
    assert health.problems == {}


def test_an_uncommitted_batch_file_is_discarded(tmp_path, counting, never):
    loop = ReadLoop(counting, Spool(tmp_path, 10**6), 1, Health("mds1"))
    loop.step(never)
    (tmp_path / "batches" / "000000000002.batch").write_bytes(b"half of it")

    spool = Spool(tmp_path, 10**6)

    assert spool.depth().batches == 1
