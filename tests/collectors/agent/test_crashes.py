"""Crashes at every step from a log to the portal."""

import os
from pathlib import Path

import httpx
import pytest

from collectors.agent.delivery.shipper import Shipper
from collectors.agent.delivery.spool import Spool
from collectors.agent.files.tail import LogTail
from collectors.agent.files.traces import TraceReader
from collectors.agent.health import Health
from collectors.agent.read_loop import ReadLoop
from tests.collectors.agent.traces import trace

MANY_BYTES = 10**9


class Killed(BaseException):
    """An exception that no error handler catches, equivalent to SIGKILL."""


class Killer:
    """Kills before or after the n-th step with an effect outside the process."""

    STEPS = ((os, "fsync"), (Path, "replace"), (Path, "unlink"), (httpx.Client, "post"))

    def __init__(self, monkeypatch):
        self.steps_left = None  # None: no kill
        for owner, name in self.STEPS:
            monkeypatch.setattr(owner, name, self.guarded(getattr(owner, name)))

    def guarded(self, step):
        def guard(*args, **kwargs):
            self.tick()
            result = step(*args, **kwargs)
            self.tick()
            return result

        return guard

    def tick(self):
        if self.steps_left is not None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise Killed


class Process:
    """One process, whose only memory is the disk."""

    def __init__(self, folder, portal, token, never):
        health, spool = Health("mds1"), Spool(folder / "state", MANY_BYTES)
        reader = TraceReader(LogTail(str(folder / "rpctrace.log"), settled_s=0))
        self.never = never
        self.loop = ReadLoop(reader, spool, 1, health)
        self.client = httpx.Client(base_url=portal.url, trust_env=False)
        self.shipper = Shipper(spool, self.client, token, health, "an instance")
        self.spool = spool

    def run(self):
        self.loop.step(self.never)
        while self.spool.oldest():
            self.shipper.step()


@pytest.mark.long
def test_crashes_neither_lose_nor_repeat_records(tmp_path, agent, portal, monkeypatch, never):
    log, written = tmp_path / "rpctrace.log", 0
    killer = Killer(monkeypatch)

    def write():
        nonlocal written
        with log.open("a") as growing:
            growing.write(trace(range(max(0, written - 5), written + 10)))
        written += 10

    for steps in range(200):
        write()
        killer.steps_left = steps
        try:
            process = Process(tmp_path, portal, tmp_path / "token", never)
            process.run()
            write()
            process.run()
            break
        except Killed:
            killer.steps_left = None
    killer.steps_left = None
    Process(tmp_path, portal, tmp_path / "token", never).run()

    assert 30 < steps < 199
    assert portal.account("accepted") == written
    assert portal.table()["count"].sum() == written
    assert len(portal.deliveries) > len(portal.batches)  # a response was lost
