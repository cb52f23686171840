"""Faults of servers and of their readers, on demand."""

import re
from dataclasses import dataclass
from enum import Enum

from simulator import site, story
from simulator.clock import DAY_S, HOUR_S, MINUTE_S, local, moment


class Kind(Enum):
    """Kinds of faults; the value is the name on the command line."""

    GAP = "gap"  # no counters are read
    LOST = "lost"  # one server's counters are not read
    RESET = "reset"  # a target is remounted: its counters start at zero
    CLOCK = "clock"  # a server's clock is wrong
    UPGRADE = "upgrade"  # a server changes to another version of Lustre


@dataclass(frozen=True)
class Fault:
    """A fault in ``[start, end)``.

    Args:
        kind: kind of fault.
        start: epoch second.
        end: epoch second; a reset or an upgrade has no length.
        server: affected host; "": all hosts.
        offset_s: clock offset, positive if ahead.
        version: Lustre version after an upgrade.
    """

    kind: Kind
    start: int
    end: int
    server: str = ""
    offset_s: int = 0
    version: str = ""

    def hits(self, server: str) -> bool:
        """Return whether it affects a server."""
        return self.server in {"", server}


OF_THE_STORY = (
    Fault(Kind.GAP, local(2017, 3, 4, "02:00:00"), local(2017, 3, 5, "23:00:00")),
    Fault(Kind.GAP, local(2017, 7, 7, "08:20:00"), local(2017, 7, 7, "09:00:00")),
    Fault(
        Kind.RESET, local(2017, 7, 7, "14:47:30"), local(2017, 7, 7, "14:47:30"), server=site.MDS
    ),
    Fault(Kind.LOST, local(2017, 1, 10), local(2017, 1, 13), server="atlas2-oss2"),
    Fault(
        Kind.CLOCK,
        local(2017, 3, 21, "06:00:00"),
        local(2017, 3, 22, "18:00:00"),
        server=site.MDS,
        offset_s=97,
    ),
    Fault(Kind.UPGRADE, story.UPGRADED, story.UPGRADED, server=site.MDS, version="2.15.3"),
)

_ASKED = re.compile(
    r"(?P<kind>gap|lost|reset|clock|upgrade)"
    r"(?::(?P<server>[\w-]+))?"
    r"@(?P<start>[^/,]+)"
    r"(?:/(?P<length>\d+)(?P<unit>[smhd]))?"
    r"(?:,(?P<value>\S+))?"
)
_UNITS_S = {"s": 1, "m": MINUTE_S, "h": HOUR_S, "d": DAY_S}


def parse(text: str) -> Fault:
    """Parse a fault of the command line.

    ``gap@2017-02-03T08:00/2h``, ``lost:atlas2-oss1@2017-02-03/1d``,
    ``reset:atlas2-mds1@2017-02-03T08:00``, ``clock:atlas2-mds1@2017-02-03T08:00/6h,-90``,
    ``upgrade:atlas2-mds1@2017-02-03T08:00,2.15.3``; times are local without an offset.

    Raises:
        ValueError: not a fault.
    """
    match = _ASKED.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a fault: KIND[:SERVER]@TIME[/LENGTH][,VALUE]")
    kind, start = Kind(match["kind"]), moment(match["start"])
    length_s = int(match["length"] or 0) * _UNITS_S[match["unit"] or "s"]
    return Fault(
        kind,
        start,
        start + length_s,
        server=match["server"] or "",
        offset_s=int(match["value"] or 0) if kind is Kind.CLOCK else 0,
        version=match["value"] or "" if kind is Kind.UPGRADE else "",
    )


@dataclass(frozen=True)
class Faults:
    """All faults of a run."""

    every: tuple[Fault, ...] = ()

    def matching(self, kind: Kind, server: str) -> list[Fault]:
        """Return the faults of a kind that affect a server, in order of time."""
        matches = [fault for fault in self.every if fault.kind is kind and fault.hits(server)]
        return sorted(matches, key=lambda fault: fault.start)

    def unread(self, server: str) -> list[tuple[int, int]]:
        """Return the intervals without reads of a server's counters."""
        return [
            (fault.start, fault.end)
            for fault in [*self.matching(Kind.GAP, server), *self.matching(Kind.LOST, server)]
        ]

    def mounts(self, server: str) -> list[int]:
        """Return the remount times of a server's targets."""
        remounts = [*self.matching(Kind.RESET, server), *self.matching(Kind.UPGRADE, server)]
        return sorted(fault.start for fault in remounts)

    def clock_offset_s(self, server: str, at: int) -> int:
        """Return a server's clock offset at a given time."""
        return sum(
            fault.offset_s
            for fault in self.matching(Kind.CLOCK, server)
            if fault.start <= at < fault.end
        )

    def version_at(self, server: str, at: int) -> str:
        """Return a server's Lustre version at a given time."""
        upgrades = [fault for fault in self.matching(Kind.UPGRADE, server) if fault.start <= at]
        return upgrades[-1].version if upgrades else site.LUSTRE_VERSION
