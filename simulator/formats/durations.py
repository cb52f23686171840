"""Durations as Slurm prints them."""

from simulator.clock import DAY_S, HOUR_S, MINUTE_S


def days_and_time(seconds: int) -> str:
    """Return ``1-02:03:04``, without the days where there are none."""
    days, rest = divmod(seconds, DAY_S)
    hour, minute, second = rest // HOUR_S, rest // MINUTE_S % 60, rest % 60
    return (f"{days}-" if days else "") + f"{hour:02d}:{minute:02d}:{second:02d}"
