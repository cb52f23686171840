"""Forecast of table sizes at the present rate."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Growth:
    """Size and growth of a table.

    Args:
        now: present size in bytes.
        per_day: bytes of a day of records; None: unknown.
        retention: days until rows expire; None: never.
        chunk: days of rows that are dropped together.
    """

    now: float
    per_day: float | None
    retention: float | None
    chunk: float

    @property
    def full(self) -> float | None:
        """Steady size, when drops equal growth; None: unlimited or unknown."""
        if self.per_day is None or self.retention is None:
            return None
        return self.per_day * (self.retention + self.chunk)

    def after(self, days: float) -> float | None:
        """Return the size after some days; None: unknown.

        The table grows until the present rows are dropped. From then on it has its full size.
        """
        if self.per_day is None:
            return None
        if self.full is None:
            return self.now + days * self.per_day
        if self.retention is not None and days >= self.retention + self.chunk:
            return self.full
        return min(self.now + days * self.per_day, max(self.now, self.full))
