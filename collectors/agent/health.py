"""What is known of a source, for its admin: written by its threads, read by anybody."""

import time
from dataclasses import dataclass, field
from datetime import datetime

from collectors.agent import logs

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
    _said: dict[str, float] = field(default_factory=dict)  # when that was last logged

    def trouble(self, what: str, reason: str) -> None:
        """Note a trouble; log it when it begins, and now and then."""
        self.troubles[what] = reason
        if time.monotonic() - self._said.get(what, float("-inf")) > SAID_AGAIN_S:
            self._said[what] = time.monotonic()
            _LOG.error(f"{what}_in_trouble", source=self.name, reason=reason)

    def well(self, what: str) -> None:
        """Note that a trouble is over, if there was one."""
        if self.troubles.pop(what, None) is not None:
            self._said.pop(what, None)
            _LOG.info(f"{what}_well", source=self.name)
