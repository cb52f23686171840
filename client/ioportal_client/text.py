"""Values as text for a terminal. Names come from users: every character becomes visible."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UNKNOWN = "unknown"
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_STEP = 1000
_MINUTE_S, _HOUR_S = 60, 3_600
_FORMATS = ((1, ".3g"), (10, ",.2f"), (100, ",.1f"))  # of numbers below a bound
_WIDEST = 40  # characters of a cell


def visible(text: str) -> str:
    r"""Return a text in one line; a terminal's escape character becomes ``\x1b``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def visible_lines(text: str) -> str:
    """Return a text of several lines with the codes of `visible`."""
    return "\n".join(visible(line) for line in text.split("\n"))


def number(value: float | None) -> str:
    """Return a whole number with all digits, any other with about three."""
    if value is None:
        return UNKNOWN
    if isinstance(value, int) or not value:
        return f"{value:,.0f}"
    return format(value, next((form for bound, form in _FORMATS if abs(value) < bound), ",.0f"))


def size(value: float | None) -> str:
    """Return bytes in kB, MB, GB (powers of 1000)."""
    if value is None:
        return UNKNOWN
    rank = 0
    while abs(value) >= _STEP and rank < len(_PREFIXES) - 1:
        value, rank = value / _STEP, rank + 1
    return f"{number(value)} {_PREFIXES[rank]}B"


def percent(share: float | None) -> str:
    """Return a share in per cent."""
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    """Return a length of time: 45 s, 10 min 5 s, 2 h 30 min."""
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    large, small, units = whole // _HOUR_S, whole % _HOUR_S // _MINUTE_S, ("h", "min")
    if whole < _HOUR_S:
        large, small, units = whole // _MINUTE_S, whole % _MINUTE_S, ("min", "s")
    return f"{large} {units[0]}" + (f" {small} {units[1]}" if small else "")


def moment(text: str | None) -> datetime | None:
    """Return a time of an answer; without a zone it is in UTC."""
    if text is None:
        return None
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)


def utc(text: str | None) -> str:
    """Return a time of an answer in UTC."""
    time = moment(text)
    return f"{time:%Y-%m-%d %H:%M:%S} UTC" if time else UNKNOWN


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> list[str]:
    """Return the lines of a table; its first `left` columns are aligned left, the others right."""
    cells = [[_cut(visible(cell)) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _cut(cell: str) -> str:
    return cell if len(cell) <= _WIDEST else f"{cell[: _WIDEST - 3]}..."
