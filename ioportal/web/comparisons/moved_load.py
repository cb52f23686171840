"""The load of filesystems and NFS servers in the periods of the arms: did load move elsewhere?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioportal.activity.filesystem_load import loads
from ioportal.reporting import formatting
from ioportal.studies.cache import cached, statistics_version

if TYPE_CHECKING:
    from ioportal.web.comparisons.page import ComparisonPage

_FEWEST = 2  # periods


@dataclass(frozen=True)
class Place:
    """Metadata operations per second of all clients of a filesystem or an NFS server.

    Args:
        name: of the filesystem or server.
        kind: "filesystem" or "NFS server".
        rates: in the period of each arm; None: not observed.
    """

    name: str
    kind: str
    rates: tuple[float | None, ...]

    @property
    def ratios(self) -> list[str]:
        """The rate of each arm but the first, relative to the first."""
        first, *others = self.rates
        return [
            formatting.significant(rate / first) if first and rate is not None else ""
            for rate in others
        ]


def places(page: ComparisonPage) -> list[Place]:
    """Return the places with load in any period; empty unless staff compare periods."""
    periods = [(arm.start, arm.end) for arm in page.arms if arm.start and arm.end]
    is_complete = len(periods) == len(page.arms) and len(set(periods)) >= _FEWEST
    if not (page.user.is_staff and is_complete):
        return []
    by_period = cached(
        "moved-load",
        periods,
        lambda: [
            {(load.name, load.kind): load.rate for load in in_period}
            for in_period in loads(periods)
        ],
        statistics_version,
    )
    known = sorted({key for rates in by_period for key in rates})
    return [Place(*key, tuple(rates.get(key) for rates in by_period)) for key in known]
