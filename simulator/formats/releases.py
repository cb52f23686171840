"""Differences between releases of Lustre."""

_FIRST_WITHOUT_FAILED_OPENS = (2, 14)
_FIRST_TIMED = (2, 14)  # operations are counted in microseconds


def counts_failed_opens(version: str) -> bool:
    """Return whether `open` counts failed opens, too."""
    return _number(version) < _FIRST_WITHOUT_FAILED_OPENS


def is_timed(version: str) -> bool:
    """Return whether counters contain the time of operations."""
    return _number(version) >= _FIRST_TIMED


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
