"""The load of filesystems and NFS servers in several periods: did load move elsewhere?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.text import capfirst

from ioportal.core import formatting, ratios
from ioportal.jobs.cache import cached, statistics_version
from ioportal.load.filesystem_load import loads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ioportal.load.filesystem_load import Period

_RISE = 1.25  # ratio of rates from which a rise is stated
_LEAST_RISE = 0.05  # of the highest rate of all places; smaller rises are not stated


@dataclass(frozen=True)
class Place:
    """Metadata operations per second of a filesystem (by job id) or an NFS server (all clients).

    Args:
        name: of the filesystem or server.
        kind: "filesystem" or "NFS server".
        rates: in each period; None: not observed.
    """

    name: str
    kind: str
    rates: tuple[float | None, ...]

    @property
    def ratios(self) -> list[str]:
        """The rate of each period but the first, relative to the first."""
        first, *others = self.rates
        return [
            formatting.significant(rate / first) if first and rate is not None else ""
            for rate in others
        ]


def places(periods: Sequence[Period]) -> list[Place]:
    """Return the places with load in any of two or more periods; for staff."""
    by_period = cached(
        "moved-load",
        list(periods),
        lambda: [
            {(load.name, load.kind): load.rate for load in in_period}
            for in_period in loads(periods)
        ],
        statistics_version,
    )
    known = sorted({key for rates in by_period for key in rates})
    return [Place(*key, tuple(rates.get(key) for rates in by_period)) for key in known]


def rises(known: Sequence[Place], number: int) -> Iterator[str]:
    """Yield a sentence for each place whose load rose from the first period to another one.

    Args:
        known: the places.
        number: of the other period.
    """
    highest = max((rate or 0.0 for place in known for rate in place.rates), default=0.0)
    for place in known:
        before, after = place.rates[0], place.rates[number]
        if not before or not after:
            continue
        if after >= _RISE * before and after - before >= _LEAST_RISE * highest:
            rates = " to ".join(map(formatting.significant, (before, after)))
            yield (
                f"{capfirst(place.kind)} {place.name}: metadata operations "
                f"{ratios.measured(after / before)} ({rates} per second)."
            )
