"""Reads one source for ever, keeping what was read."""

import time
from contextlib import closing
from datetime import UTC, datetime
from threading import Event

from collectors.agent.delivery.spool import Spool
from collectors.agent.health import Health
from collectors.agent.reader import NotThereYet, Reader, Reading
from collectors.parsed import SourceUnavailable

RETRY_S = 1.0


class ReadLoop:
    """Reads a source at its beat and keeps the readings.

    While there is no room, nothing is read: a log waits on its disk, and counters go on counting,
    so that nothing is lost by it; what is polled is polled less often.
    """

    def __init__(self, reader: Reader, spool: Spool, every_s: float, health: Health) -> None:
        self._reader = reader
        self._spool = spool
        self._every_s = every_s
        self._health = health

    def step(self, stop: Event) -> float:
        """Read what there is; return how many seconds it is to the next beat."""
        try:
            self._read(stop)
        except NotThereYet as error:
            self._health.waiting("reading", str(error))
        except (SourceUnavailable, OSError) as error:
            self._health.trouble("reading", str(error))
        return self._every_s - time.time() % self._every_s  # all agents look at the same times

    def close(self) -> None:
        """Let go of the source."""
        self._reader.close()

    def _read(self, stop: Event) -> None:
        if not self._has_room(stop):
            return
        with closing(self._reader.read(self._spool.place)) as readings:
            for reading in readings:
                self._keep(reading, stop)
                self._health.behind_bytes = self._reader.behind_bytes()
                if not self._has_room(stop):
                    return
        self._health.read_at = datetime.now(UTC)
        self._health.well("reading")

    def _keep(self, reading: Reading, stop: Event) -> None:
        """Commit, however long the disk takes to have room, unless told to stop before."""
        while not self._is_kept(reading):
            if stop.wait(RETRY_S):
                return
        for batch in reading.batches:
            self._health.lines += batch.account.lines
            self._health.rejected += batch.account.rejected
            self._health.rows += batch.rows.height

    def _is_kept(self, reading: Reading) -> bool:
        try:
            self._spool.commit(reading.batches, reading.place)
        except OSError as error:
            self._health.trouble("disk", str(error))
            return False
        self._health.well("disk")
        return True

    def _has_room(self, stop: Event) -> bool:
        """Wait until there is room in the spool; False: told to stop before."""
        while not self._spool.has_room():
            self._health.trouble("spool", "full: nothing is read until batches are delivered")
            if stop.wait(RETRY_S):
                return False
        self._health.well("spool")
        return not stop.is_set()
