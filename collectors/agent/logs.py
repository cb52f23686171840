"""Log lines for machines: one JSON object each, with a constant event and its fields."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any


class Log:
    """Writes events of one module."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def info(self, event: str, **fields: Any) -> None:
        """Say what is going on."""
        self._logger.info(event, extra={"fields": fields})

    def warning(self, event: str, **fields: Any) -> None:
        """Say that something is not as it should be, and will mend itself."""
        self._logger.warning(event, extra={"fields": fields})

    def error(self, event: str, **fields: Any) -> None:
        """Say that somebody has to look."""
        self._logger.error(event, extra={"fields": fields})

    def fault(self, event: str, error: Exception, **fields: Any) -> None:
        """Say the same, with the traceback."""
        self._logger.error(event, extra={"fields": fields}, exc_info=error)


def of(name: str) -> Log:
    """Return the log of a module."""
    return Log(name)


def to_stderr() -> None:
    """Send all log lines to standard error, where the journal finds them."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for chatty in ("httpx", "httpcore"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


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
