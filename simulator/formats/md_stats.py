"""md_stats of a Lustre 2.8 MDT as ``lctl get_param`` prints them."""

from collections.abc import Iterable

from simulator.activity import MDT_KINDS


def mdt(target: str, read_us: int, totals: Iterable[int]) -> str:
    """Return the dump; `totals` are those of MDT_KINDS, and a counter never hit is left out."""
    second, microsecond = divmod(read_us, 1_000_000)
    lines = [
        f"mdt.{target}.md_stats=",
        f"{'snapshot_time':<25} {second}.{microsecond} secs.usecs",  # not padded: Lustre 2.8
    ]
    lines += [
        f"{kind:<25} {total} samples [reqs]"
        for kind, total in zip(MDT_KINDS, totals, strict=True)
        if total
    ]
    return "\n".join(lines) + "\n"
