"""Health of a source: updated by its threads, read for the status."""

import time
from dataclasses import dataclass, field
from datetime import datetime

from collectors.agent import logs

MISSING_AFTER_S = 300.0  # a missing file is a problem after this time
ERROR_AFTER_S = 20.0  # longer than a portal restart
REPEAT_S = 300.0

_LOG = logs.Log(__name__)


@dataclass
class Health:
    """State of a source, and counts since the agent started."""

    name: str
    read_at: datetime | None = None  # last time the source was read to its end
    delivered_at: datetime | None = None
    behind_bytes: int = 0  # unread, at the last check
    lines: int = 0
    rejected: int = 0
    rows: int = 0
    delivered: int = 0  # batches
    problems: dict[str, str] = field(default_factory=dict)  # reason by component
    _waiting_since: dict[str, float] = field(default_factory=dict)
    _error_due: dict[str, float] = field(default_factory=dict)  # when to log an error

    def failing(self, component: str, reason: str) -> None:
        """Record a problem; log a warning at first, and errors while it lasts."""
        self.problems[component] = reason
        now = time.monotonic()
        if component not in self._error_due:
            self._error_due[component] = now + ERROR_AFTER_S
            _LOG.warning(f"{component}_failing", source=self.name, reason=reason)
        elif now >= self._error_due[component]:
            self._error_due[component] = now + REPEAT_S
            _LOG.error(f"{component}_failing", source=self.name, reason=reason)

    def waiting(self, component: str, reason: str) -> None:
        """Record that something does not exist yet; a problem after `MISSING_AFTER_S`."""
        now = time.monotonic()
        if component not in self._waiting_since:
            self._waiting_since[component] = now
            _LOG.info(f"{component}_waiting", source=self.name, reason=reason)
        if now - self._waiting_since[component] >= MISSING_AFTER_S:
            self.failing(component, reason)

    def working(self, component: str) -> None:
        """Clear a wait or problem, if any."""
        self._waiting_since.pop(component, None)
        if self.problems.pop(component, None) is not None:
            self._error_due.pop(component)
            _LOG.info(f"{component}_recovered", source=self.name)
