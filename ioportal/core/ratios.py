"""Ratios of two values, after / before, as text."""

from math import isclose

_TIMES = "\N{MULTIPLICATION SIGN}"


def measured(ratio: float) -> str:
    """Return a measured ratio in words, such as 'fell' and how many times; or that it stayed."""
    return _text(ratio, "fell", "rose", "did not change")


def expected(ratio: float, *, plural: bool = False) -> str:
    """Return an expected ratio in words, such as 'falls' and how many times; or that it stays."""
    less, more = (direction(is_fall=is_fall, plural=plural) for is_fall in (True, False))
    return _text(ratio, less, more, f"do{'' if plural else 'es'} not change")


def direction(*, is_fall: bool, plural: bool = False) -> str:
    """Return the direction of an expected change as a verb, 'falls' or 'rises'."""
    return f"{'fall' if is_fall else 'rise'}{'' if plural else 's'}"


def _text(ratio: float, less: str, more: str, same: str) -> str:
    if ratio <= 0:
        raise ValueError(f"A ratio must be positive, got {ratio}.")
    if isclose(ratio, 1):
        return same
    return f"{less} {1 / ratio:.3g}{_TIMES}" if ratio < 1 else f"{more} {ratio:.3g}{_TIMES}"
