"""Filters of log records."""

from __future__ import annotations

import logging

from django.db import InterfaceError, OperationalError


class ShortOutages(logging.Filter):
    """Log requests that failed because of the database in one line, without a traceback.

    During an outage every page that reloads itself fails, always for the same reason.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten records of database errors."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, OperationalError | InterfaceError):
            cause = next(iter(str(error).splitlines()), type(error).__name__)
            record.msg, record.args = "%s: %s", (record.getMessage(), cause)
            record.exc_info = record.exc_text = None
        return True
