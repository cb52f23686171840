"""Numbers that a machine assigns over time: batch ids, apids, PanDA ids."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from simulator.batch.jobs import Ints


def growing(moments: Ints, anchors: Mapping[int, int], per_s: float, pins: Ints) -> Ints:
    """Return a number for each moment, all different and increasing.

    Args:
        moments: shape (n,), ascending.
        anchors: given numbers by moment; at least one.
        per_s: increase per second before the first anchor and after the last.
        pins: indices of moments that are anchors, and have exactly their numbers.

    Raises:
        ValueError: more moments than numbers between two anchors.
    """
    points = np.array(sorted(anchors.items()), dtype=np.int64)
    (first, first_number), (last, last_number) = points[0], points[-1]
    inside = np.interp(moments, points[:, 0], points[:, 1])
    before = first_number - (first - moments) * per_s
    after = last_number + (moments - last) * per_s
    estimates = np.where(moments < first, before, np.where(moments > last, after, inside))
    numbers = _spread_out(np.rint(estimates).astype(np.int64))
    for pin in pins.tolist():
        numbers[pin] = anchors[int(moments[pin])]
    parts = list(pairwise([0, *np.sort(pins).tolist(), len(moments)]))
    for begin, end in parts:
        # Numbers beyond the next anchor step back, each below its successor.
        part = slice(begin, min(end + 1, len(moments)))
        numbers[part] = -_spread_out(-numbers[part][::-1])[::-1]
    for begin, end in parts:
        numbers[begin:end] = _spread_out(numbers[begin:end])
    is_exact = all(numbers[pin] == anchors[int(moments[pin])] for pin in pins.tolist())
    if not is_exact or (np.diff(numbers) < 1).any():
        raise ValueError("too few numbers between two given numbers")
    return numbers


def _spread_out(numbers: Ints) -> Ints:
    """Raise numbers by the minimum that makes each exceed the one before."""
    step = np.arange(len(numbers))
    spread: Ints = np.maximum.accumulate(numbers - step) + step
    return spread
