"""The loop that reads one source and commits the readings."""

import time
from contextlib import closing
from datetime import UTC, datetime
from threading import Event

from collectors.agent.delivery.spool import Spool
from collectors.agent.health import Health
from collectors.agent.reader import Reader, Reading, SourceMissing
from collectors.parsed import SourceUnavailable

RETRY_S = 1.0


class ReadLoop:
    """Reads a source at its interval and commits the readings to the spool.

    While the spool is full, nothing is read and nothing is lost: logs stay on their disk, and
    counters continue to count at a longer poll interval.
    """

    def __init__(self, reader: Reader, spool: Spool, every_s: float, health: Health) -> None:
        self._reader = reader
        self._spool = spool
        self._every_s = every_s
        self._health = health

    def step(self, stop: Event) -> float:
        """Read all new data; return the seconds until the next read."""
        try:
            self._read(stop)
        except SourceMissing as error:
            self._health.waiting("reading", str(error))
        except (SourceUnavailable, OSError) as error:
            self._health.failing("reading", str(error))
        return self._every_s - time.time() % self._every_s  # all agents read at the same times

    def close(self) -> None:
        """Close the source."""
        self._reader.close()

    def _read(self, stop: Event) -> None:
        if not self._has_room(stop):
            return
        with closing(self._reader.read(self._spool.checkpoint)) as readings:
            for reading in readings:
                self._commit(reading, stop)
                self._health.behind_bytes = self._reader.behind_bytes()
                if not self._has_room(stop):
                    return
        self._health.read_at = datetime.now(UTC)
        self._health.working("reading")

    def _commit(self, reading: Reading, stop: Event) -> None:
        """Commit, and retry while the disk is full, until `stop`."""
        while not self._try_commit(reading):
            if stop.wait(RETRY_S):
                return
        for batch in reading.batches:
            self._health.lines += batch.account.lines
            self._health.rejected += batch.account.rejected
            self._health.rows += batch.rows.height

    def _try_commit(self, reading: Reading) -> bool:
        try:
            self._spool.commit(reading.batches, reading.checkpoint)
        except OSError as error:
            self._health.failing("disk", str(error))
            return False
        self._health.working("disk")
        return True

    def _has_room(self, stop: Event) -> bool:
        """Wait until the spool has room; return False on `stop`."""
        while not self._spool.has_room():
            self._health.failing("spool", "full: reading is paused until batches are delivered")
            if stop.wait(RETRY_S):
                return False
        self._health.working("spool")
        return not stop.is_set()
