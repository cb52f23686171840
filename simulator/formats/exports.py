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
    bodies: dict[tuple[int, ...], str] = {}  # the nodes of a large job have equal counters
    lines: list[str] = []
    for nid, counts in totals.items():
        key = tuple(counts)
        if key not in bodies:
            bodies[key] = "\n".join(md_stats.body(read_us, key, md_stats.IDLE, version, mounted_s))
        lines += [f"mdt.{target}.exports.{nid}.stats=", bodies[key]]
    return "\n".join(lines) + "\n"
