"""How much room data will take at the present rate."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Growth:
    """The size of a table and how it changes; days and bytes.

    Args:
        now: what it takes.
        per_day: what a day of records takes; None: not known.
        kept: how many days rows are kept; None: forever.
        chunk: days that go at once.
    """

    now: float
    per_day: float | None
    kept: float | None
    chunk: float

    @property
    def full(self) -> float | None:
        """What it takes once as much is dropped as comes; None: it never is, or is not known."""
        if self.per_day is None or self.kept is None:
            return None
        return self.per_day * (self.kept + self.chunk)

    def after(self, days: float) -> float | None:
        """Return what it will take after some days; None: not known.

        Until what is there now begins to go, it grows; from then on it takes its full size.
        """
        if self.per_day is None:
            return None
        if self.full is None:
            return self.now + days * self.per_day
        if self.kept is not None and days >= self.kept + self.chunk:
            return self.full
        return min(self.now + days * self.per_day, max(self.now, self.full))
