"""Ratios of two values, after / before, as text."""

from math import isclose

_TIMES = "\N{MULTIPLICATION SIGN}"


def measured(ratio: float) -> str:
    """Return a measured ratio in words, such as 'fell' and how many times; or that it stayed."""
    return _text(ratio, "fell", "rose", "did not change")


def expected(ratio: float) -> str:
    """Return an expected ratio in words, such as 'falls' and how many times; or that it stays."""
    return _text(ratio, "falls", "rises", "does not change")


def _text(ratio: float, less: str, more: str, same: str) -> str:
    if ratio <= 0:
        raise ValueError(f"A ratio must be positive, got {ratio}.")
    if isclose(ratio, 1):
        return same
    return f"{less} {1 / ratio:.3g}{_TIMES}" if ratio < 1 else f"{more} {ratio:.3g}{_TIMES}"
