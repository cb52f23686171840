"""md_stats of an MDT of Lustre 2.8 or 2.15 as ``lctl get_param`` prints them."""

from collections.abc import Iterable, Iterator

from simulator import site
from simulator.activity import MDT_KINDS
from simulator.clock import MICROSECONDS
from simulator.formats import usecs
from simulator.formats.releases import is_timed

IDLE = (1.0,) * len(MDT_KINDS)  # slowdowns on an idle server


def mdt(
    target: str,
    read_us: int,
    totals: Iterable[int],
    *,
    version: str = site.LUSTRE_VERSION,
    mounted_s: int = 0,
    slowdowns: Iterable[float] = IDLE,
) -> str:
    """Return the dump; `totals` and `slowdowns` of their times follow MDT_KINDS.

    Counters without operations are omitted.
    """
    lines = body(read_us, totals, slowdowns, version, mounted_s)
    return "\n".join([f"mdt.{target}.md_stats=", *lines]) + "\n"


def body(
    read_us: int,
    totals: Iterable[int],
    slowdowns: Iterable[float],
    version: str,
    since_s: int,
) -> Iterator[str]:
    """Return the lines below the parameter's name; `since_s` is the start of counting."""
    counted = [
        (kind, total, slowdown)
        for kind, total, slowdown in zip(MDT_KINDS, totals, slowdowns, strict=True)
        if total
    ]
    return _timed(read_us, since_s, counted) if is_timed(version) else _plain(read_us, counted)


def _plain(read_us: int, counted: Iterable[tuple[str, int, float]]) -> Iterator[str]:
    second, microsecond = divmod(read_us, MICROSECONDS)
    yield f"{'snapshot_time':<25} {second}.{microsecond} secs.usecs"  # not padded: Lustre 2.8
    for kind, total, _ in counted:
        yield f"{kind:<25} {total} samples [reqs]"


def _timed(
    read_us: int, mounted_s: int, counted: Iterable[tuple[str, int, float]]
) -> Iterator[str]:
    elapsed_us = read_us - mounted_s * MICROSECONDS
    for name, moment_us in (
        ("snapshot_time", read_us),
        ("start_time", mounted_s * MICROSECONDS),
        ("elapsed_time", elapsed_us),
    ):
        second, microsecond = divmod(moment_us, MICROSECONDS)
        yield f"{name:<25} {second}.{microsecond:06d}000 secs.nsecs"
    for kind, total, slowdown in counted:
        took = usecs.times(kind, total, slowdown)
        yield (
            f"{kind:<25} {total} samples [usecs] "
            f"{took.minimum} {took.maximum} {took.total} {took.squares}"
        )
