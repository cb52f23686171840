"""An agent that dies at each of its steps on the way from a log to the portal."""

import os
from pathlib import Path

import httpx

from collectors.agent.delivery.shipper import Shipper
from collectors.agent.delivery.spool import Spool
from collectors.agent.files.tail import LogTail
from collectors.agent.files.traces import TraceReader
from collectors.agent.health import Health
from collectors.agent.read_loop import ReadLoop
from tests.collectors.agent.traces import trace

MANY_BYTES = 10**9


class Killed(BaseException):
    """What no handler of errors catches: as good as a SIGKILL."""


class Fate:
    """Kills at the n-th step that leaves a trace outside the process; before it, or after."""

    STEPS = ((os, "fsync"), (Path, "replace"), (Path, "unlink"), (httpx.Client, "post"))

    def __init__(self, monkeypatch):
        self.steps_left = None  # None: it lives
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


class Life:
    """One process: what it knows, it has from the disk."""

    def __init__(self, folder, portal, token, never):
        health, spool = Health("mds1"), Spool(folder / "state", MANY_BYTES)
        reader = TraceReader(LogTail(str(folder / "rpctrace.log"), settled_s=0))
        self.never = never
        self.keeper = ReadLoop(reader, spool, 1, health)
        self.client = httpx.Client(base_url=portal.url, trust_env=False)
        self.shipper = Shipper(spool, self.client, token, health)
        self.spool = spool

    def go_on(self):
        self.keeper.step(self.never)
        while self.spool.oldest():
            self.shipper.step()


def test_it_neither_loses_nor_doubles_wherever_it_dies(tmp_path, agent, portal, monkeypatch, never):
    log, written = tmp_path / "rpctrace.log", 0
    fate = Fate(monkeypatch)

    def write():
        nonlocal written
        with log.open("a") as growing:
            growing.write(trace(range(max(0, written - 5), written + 10)))
        written += 10

    for steps in range(200):
        write()
        fate.steps_left = steps
        try:
            life = Life(tmp_path, portal, tmp_path / "token", never)
            life.go_on()
            write()
            life.go_on()
            break
        except Killed:
            fate.steps_left = None
    fate.steps_left = None
    Life(tmp_path, portal, tmp_path / "token", never).go_on()

    assert 30 < steps < 199
    assert portal.account("accepted") == written
    assert portal.table()["count"].sum() == written
    assert len(portal.deliveries) > len(portal.batches)  # an answer was lost on its way
