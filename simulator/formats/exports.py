"""Statistics of an MDT's clients as ``lctl get_param`` prints them."""

from collections.abc import Iterable, Mapping

from simulator import site
from simulator.formats import md_stats


def mdt(
    target: str,
    read_us: int,
    totals: Mapping[str, Iterable[int]],
    *,
    version: str = site.LUSTRE_VERSION,
    mounted_s: int = 0,
) -> str:
    """Return the dump; `totals` by NID follow MDT_KINDS."""
    lines: list[str] = []
    for nid, counts in totals.items():
        lines += [
            f"mdt.{target}.exports.{nid}.stats=",
            *md_stats.body(read_us, counts, md_stats.IDLE, version, mounted_s),
        ]
    return "\n".join(lines) + "\n"
