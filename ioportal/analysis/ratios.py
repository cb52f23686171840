"""Ratios of two values as text."""

from math import isclose

_TIMES = "\N{MULTIPLICATION SIGN}"


def in_words(ratio: float) -> str:
    """Return after / before as text: 'fell' or 'rose' and how many times, or 'no change'.

    Raises:
        ValueError: the ratio is not positive.
    """
    if ratio <= 0:
        raise ValueError(f"A ratio must be positive, got {ratio}.")
    if isclose(ratio, 1):
        return "no change"
    return f"fell {1 / ratio:.3g}{_TIMES}" if ratio < 1 else f"rose {ratio:.3g}{_TIMES}"
