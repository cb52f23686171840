"""Statistics of an MDS's services as ``lctl get_param 'mds.MDS.*.stats'`` prints them."""

from collections.abc import Iterable
from dataclasses import dataclass

from simulator.clock import MICROSECONDS

_SQUARES = 3.1  # mean of the squares / square of the mean


@dataclass(frozen=True)
class Counter:
    """A counter since the service started."""

    name: str
    unit: str
    samples: int
    minimum: int
    maximum: int
    total: int


def service(name: str, read_us: int, started_s: int, counters: Iterable[Counter]) -> str:
    """Return the statistics of one service; counters without samples are omitted."""
    lines = [f"mds.MDS.{name}.stats="]
    for label, moment_us in (
        ("snapshot_time", read_us),
        ("start_time", started_s * MICROSECONDS),
        ("elapsed_time", read_us - started_s * MICROSECONDS),
    ):
        second, microsecond = divmod(moment_us, MICROSECONDS)
        lines.append(f"{label:<25} {second}.{microsecond:06d}000 secs.nsecs")
    lines += [_line(counter) for counter in counters if counter.samples]
    return "\n".join(lines) + "\n"


def _line(counter: Counter) -> str:
    squares = int(counter.total**2 / counter.samples * _SQUARES)
    return (
        f"{counter.name:<25} {counter.samples} samples [{counter.unit}] "
        f"{counter.minimum} {counter.maximum} {counter.total} {squares}"
    )
