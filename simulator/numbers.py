"""Numbers that a machine gives out as time goes by: batch ids, apids, PanDA ids."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from simulator.jobs import Ints


def growing(moments: Ints, anchors: Mapping[int, int], per_s: float, pins: Ints) -> Ints:
    """Return a number for each moment, all different and growing with time.

    Args:
        moments: shape (n,), ascending.
        anchors: known numbers by moment; one at least.
        per_s: how fast numbers grow before the first anchor and after the last.
        pins: which of the moments are anchors, and have exactly their numbers.

    Raises:
        ValueError: more moments than numbers between two anchors.
    """
    known = np.array(sorted(anchors.items()), dtype=np.int64)
    (first, first_number), (last, last_number) = known[0], known[-1]
    inside = np.interp(moments, known[:, 0], known[:, 1])
    before = first_number - (first - moments) * per_s
    after = last_number + (moments - last) * per_s
    wanted = np.where(moments < first, before, np.where(moments > last, after, inside))
    numbers = _spread_out(np.rint(wanted).astype(np.int64))
    for pin in pins.tolist():
        numbers[pin] = anchors[int(moments[pin])]
    parts = list(pairwise([0, *np.sort(pins).tolist(), len(moments)]))
    for begin, end in parts:
        # Numbers that ran ahead of the next anchor step back, each before the one after it.
        part = slice(begin, min(end + 1, len(moments)))
        numbers[part] = -_spread_out(-numbers[part][::-1])[::-1]
    for begin, end in parts:
        numbers[begin:end] = _spread_out(numbers[begin:end])
    kept = all(numbers[pin] == anchors[int(moments[pin])] for pin in pins.tolist())
    if not kept or (np.diff(numbers) < 1).any():
        raise ValueError("too few numbers between two that are known")
    return numbers


def _spread_out(numbers: Ints) -> Ints:
    """Raise numbers as little as needed for each to exceed the one before."""
    step = np.arange(len(numbers))
    spread: Ints = np.maximum.accumulate(numbers - step) + step
    return spread
