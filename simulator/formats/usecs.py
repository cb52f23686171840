"""Operation times that servers from Lustre 2.14 on store with each counter."""

from dataclasses import dataclass
from math import sqrt

# Mean of each operation in microseconds, similar to the requests that carry them.
_MEAN_US = {
    "open": 44,
    "close": 23,
    "mknod": 61,
    "unlink": 141,
    "mkdir": 152,
    "rmdir": 139,
    "rename": 160,
    "getattr": 31,
    "setattr": 118,
    "getxattr": 22,
    "statfs": 19,
    "sync": 1_020,
}
_OTHER_MEAN_US = 130
_SHORTEST, _LONGEST = 0.4, 210.0  # as multiples of the mean; few samples have a smaller range
_SQUARES = 3.1  # mean of the squares / square of the mean


@dataclass(frozen=True)
class Usecs:
    """Minimum, maximum, sum and sum of squares of the times of some operations."""

    minimum: int
    maximum: int
    total: int
    squares: int


def times(kind: str, samples: int, slowdown: float = 1.0) -> Usecs:
    """Return the times of `samples` operations; the range grows with their number."""
    mean = _MEAN_US.get(kind, _OTHER_MEAN_US) * slowdown
    if samples <= 1:
        only = round(mean) * samples
        return Usecs(only, only, only, only**2)
    return Usecs(
        int(mean * _SHORTEST),
        int(mean * min(_LONGEST, sqrt(samples))),
        round(samples * mean),
        int(samples * mean**2 * _SQUARES),
    )
