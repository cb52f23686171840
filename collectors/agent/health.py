"""What is known of a source, for its admin: written by its threads, read by anybody."""

import time
from dataclasses import dataclass, field
from datetime import datetime

from collectors.agent import logs

WAITED_S = 300.0  # a file that does not exist after so long is missing
LASTING_S = 20.0  # as long as a portal may take to start again
SAID_AGAIN_S = 300.0

_LOG = logs.of(__name__)


@dataclass
class Health:
    """What became of a source since the agent started."""

    name: str
    read_at: datetime | None = None  # when all that there was had been read
    delivered_at: datetime | None = None
    behind_bytes: int = 0  # not read when it was last looked at
    lines: int = 0
    rejected: int = 0
    rows: int = 0
    delivered: int = 0  # batches
    troubles: dict[str, str] = field(default_factory=dict)  # by what is in trouble, the reason
    _waiting_since: dict[str, float] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)  # when that is to be logged as an error

    def trouble(self, what: str, reason: str) -> None:
        """Note a trouble; log a warning when it begins, and an error where it lasts."""
        self.troubles[what] = reason
        now = time.monotonic()
        if what not in self._due:
            self._due[what] = now + LASTING_S
            _LOG.warning(f"{what}_in_trouble", source=self.name, reason=reason)
        elif now >= self._due[what]:
            self._due[what] = now + SAID_AGAIN_S
            _LOG.error(f"{what}_in_trouble", source=self.name, reason=reason)

    def waiting(self, what: str, reason: str) -> None:
        """Note that something is not there yet; it is a trouble if it stays away."""
        now = time.monotonic()
        if what not in self._waiting_since:
            self._waiting_since[what] = now
            _LOG.info(f"{what}_waiting", source=self.name, reason=reason)
        if now - self._waiting_since[what] >= WAITED_S:
            self.trouble(what, reason)

    def well(self, what: str) -> None:
        """Note that a wait or a trouble is over, if there was one."""
        self._waiting_since.pop(what, None)
        if self.troubles.pop(what, None) is not None:
            self._due.pop(what)
            _LOG.info(f"{what}_well", source=self.name)
