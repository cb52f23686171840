"""Reads one source for ever, keeping what was read."""

import time
from contextlib import closing
from datetime import UTC, datetime
from threading import Event

from collectors.agent import logs
from collectors.agent.health import Health
from collectors.agent.readers import Reader, Reading
from collectors.agent.spool import Spool
from collectors.parsed import SourceUnavailable

RETRY_S = 5.0
SAID_AGAIN_S = 300.0

_LOG = logs.of(__name__)


class Keeper:
    """Reads a source at its beat and keeps the readings.

    While there is no room, nothing is read: a log waits on its disk, counters go on counting, so that
    nothing is lost by it; what is polled is polled less often.
    """

    def __init__(
        self, name: str, reader: Reader, spool: Spool, every_s: float, health: Health
    ) -> None:
        self._name = name
        self._reader = reader
        self._spool = spool
        self._every_s = every_s
        self._health = health
        self._said: dict[str, float] = {}  # what is in trouble, and when that was last logged

    def step(self, stop: Event) -> float:
        """Read what there is; return how many seconds it is to the next beat."""
        try:
            self._read(stop)
        except (SourceUnavailable, OSError) as error:
            self._trouble("reading", str(error))
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
                if not self._has_room(stop):
                    return
        self._health.read_at = datetime.now(UTC)
        self._health.behind_bytes = self._reader.behind_bytes()
        self._well("reading")

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
            self._trouble("disk", str(error))
            return False
        self._well("disk")
        return True

    def _has_room(self, stop: Event) -> bool:
        """Wait until there is room in the spool; False: told to stop before."""
        while not self._spool.has_room():
            self._trouble("spool", "full: nothing is read until batches are delivered")
            if stop.wait(RETRY_S):
                return False
        self._well("spool")
        return not stop.is_set()

    def _trouble(self, what: str, reason: str) -> None:
        """Note a trouble; log it when it begins, and now and then."""
        self._health.troubles[what] = reason
        if time.monotonic() - self._said.get(what, float("-inf")) > SAID_AGAIN_S:
            self._said[what] = time.monotonic()
            _LOG.error(f"{what}_in_trouble", source=self._name, reason=reason)

    def _well(self, what: str) -> None:
        if self._health.troubles.pop(what, None):
            self._said.pop(what, None)
            _LOG.info(f"{what}_well", source=self._name)
