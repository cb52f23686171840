"""Structured log: one JSON object per line, with a constant event name and fields."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any


class Log:
    """The log of a module."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def info(self, event: str, **fields: Any) -> None:
        """Log a normal event."""
        self._logger.info(event, extra={"fields": fields})

    def warning(self, event: str, **fields: Any) -> None:
        """Log a problem that may resolve itself."""
        self._logger.warning(event, extra={"fields": fields})

    def error(self, event: str, **fields: Any) -> None:
        """Log a problem that an admin must resolve."""
        self._logger.error(event, extra={"fields": fields})

    def fault(self, event: str, error: Exception, **fields: Any) -> None:
        """Log a bug, with its traceback."""
        self._logger.error(event, extra={"fields": fields}, exc_info=error)


def to_stderr() -> None:
    """Send all log lines to standard error, for the systemd journal."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
