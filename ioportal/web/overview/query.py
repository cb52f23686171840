"""What an address of the overview asks for, and what there is to be watched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ioportal.reporting.principals import BYS
from ioportal.reporting.ranges import TimeRange
from ioportal.reporting.series import last_observed
from ioportal.site.models import Filesystem, Server, Target
from ioportal.telemetry import coverage, rollups
from ioportal.telemetry.models import Coverage

if TYPE_CHECKING:
    from django.http import QueryDict

LASTS = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
DEFAULT_LAST = "1h"
REFRESH_S = 10
_STEP = timedelta(seconds=10)


@dataclass(frozen=True)
class Asked:
    """What the address asks for: how long, up to when, how jobs are told apart."""

    window: TimeRange
    last: str  # "": a range of its own
    by: str
    is_live: bool  # it ends now

    @classmethod
    def of(cls, query: QueryDict) -> Asked:
        """Read ``start`` and ``end``, or ``last``, and ``by``.

        Without newer data, the last hour is the one up to the newest: an empty page tells nothing.

        Raises:
            ValidationError: one of the times is none, or the range is empty.
        """
        by = query.get("by", "")
        by = by if by in BYS else BYS[0]
        last = query.get("last", "")
        last = last if last in LASTS else DEFAULT_LAST
        now = rollups.ceil(datetime.now(UTC), _STEP)
        newest = newest_data()
        is_live = newest is None or newest > now - LASTS[last]
        end = now if is_live or newest is None else rollups.ceil(newest, _STEP)
        window = TimeRange.from_query(query, TimeRange(end - LASTS[last], end))
        if window.asked:
            return cls(window, "", by, is_live=False)
        return cls(window, last, by, is_live=is_live)


def newest_data() -> datetime | None:
    """Return when any metadata server or target was observed last."""
    lasts = [
        *coverage.last_observed(Coverage.Source.RPC_TRACE, coverage.contiguous(servers())).values(),
        *last_observed(Coverage.Source.JOB_STATS, targets()).values(),
    ]
    return max(lasts, default=None)


def servers() -> dict[int, str]:
    """Return the names of the metadata servers, by key."""
    return dict(Server.objects.filter(kind=Server.Kind.MDS).values_list("pk", "name"))


def targets() -> list[Target]:
    """Return the metadata targets."""
    return list(Target.objects.filter(kind=Target.Kind.MDT))


def is_registered() -> bool:
    """Tell whether there is anything to watch."""
    return bool(servers() or targets())


def is_simulated() -> bool:
    """Tell whether some of it is made up."""
    return Filesystem.objects.filter(simulated=True).exists()
