"""Summaries of strace -c: calls and errors by system call.

Source: docs/formats.md, "strace"; strace(1), -c and -U.
"""

import re

from collectors.experiments.strace_records import CALL_CHARACTERS

_HEADER = "% time"
_COLUMNS = ("calls", "errors", "syscall")
_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)
_NAME = re.compile(rf"[a-z_][a-z0-9_]{{0,{CALL_CHARACTERS - 1}}}", re.ASCII)


class Summary:
    """The summary tables of a log, continued over its parts.

    Their seconds are processor time unless strace ran with -w: no durations of calls.
    """

    def __init__(self) -> None:
        self._columns: list[str] = []  # of the current table; none: outside of one
        self._last_line = 0

    def read(self, line: int, text: str) -> list[tuple[str, str, int]] | None:
        """Read the next line.

        Args:
            line: its number; a table has consecutive lines.
            text: without its newline.

        Returns:
            Call, error and count of the succeeded and of the failed calls; nothing for a header or
            a total. None: the line does not belong to a table.
        """
        if text.startswith(_HEADER):
            self._columns, self._last_line = text.replace(_HEADER, "time").split(), line
            return []
        if not self._columns or line != self._last_line + 1:
            self._columns = []
            return None
        self._last_line = line
        rows = [] if text.startswith("---") else self._row(text.split())
        if rows is None:
            self._columns = []
        return rows

    def _row(self, fields: list[str]) -> list[tuple[str, str, int]] | None:
        if len(fields) == len(self._columns) - 1 and "errors" in self._columns:
            fields.insert(self._columns.index("errors"), "0")
        row = dict(zip(self._columns, fields, strict=False))
        calls, errors, name = (row.get(column, "") for column in _COLUMNS)
        if len(fields) != len(self._columns) or not (
            _NUMBER.fullmatch(calls) and _NAME.fullmatch(name)
        ):
            return None
        if name == "total":
            self._columns = []
            return []
        failed = min(int(errors), int(calls)) if _NUMBER.fullmatch(errors) else 0
        counts = (("", int(calls) - failed), ("?", failed))
        return [(name, error, count) for error, count in counts if count]
