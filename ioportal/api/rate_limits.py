"""Limits on the requests of a client, in the memory of each web process."""

from dataclasses import dataclass, field
from math import ceil
from threading import Lock
from time import monotonic

_MINUTE_S = 60.0
_MOST_KEYS = 10_000


@dataclass(frozen=True)
class Rate:
    """The requests of one client: how many are left, and when all are allowed again."""

    limit: int
    remaining: int
    reset_s: float
    retry_after_s: float = 0.0  # 0: the request is allowed

    @property
    def headers(self) -> dict[str, str]:
        """The usual headers of responses."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(ceil(self.reset_s)),
        }


@dataclass
class RateLimiter:
    """A limit on the requests of each client: `limit` per minute, and `limit` in a burst.

    It stops a script that repeats a request endlessly. It counts in the memory of each web process:
    a limit in the database would cost each request a write.
    """

    limit: int
    _free_at: dict[str, float] = field(default_factory=dict)  # when all requests are allowed again
    _lock: Lock = field(default_factory=Lock)

    def count(self, client: str) -> Rate:
        """Count a request of a client, unless the limit is reached."""
        interval_s = _MINUTE_S / self.limit
        with self._lock:
            now = monotonic()
            free_at = max(self._free_at.get(client, now), now)
            wait_s = free_at + interval_s - now - _MINUTE_S
            if wait_s > 0:
                return Rate(self.limit, 0, free_at - now, wait_s)
            if len(self._free_at) >= _MOST_KEYS:
                self._free_at = {key: at for key, at in self._free_at.items() if at > now}
            self._free_at[client] = free_at + interval_s
            reset_s = free_at + interval_s - now
            return Rate(self.limit, int((_MINUTE_S - reset_s) / interval_s), reset_s)
