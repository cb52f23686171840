"""The overview's query: its range, its grouping of jobs, and its servers and targets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ioportal.core.time_ranges import TimeRange
from ioportal.core.times import RECENT
from ioportal.load.principals import BYS
from ioportal.load.series import last_observed
from ioportal.site.models import Filesystem, Server, Target
from ioportal.telemetry import buckets, coverage
from ioportal.telemetry.models import Coverage

if TYPE_CHECKING:
    from django.http import QueryDict

DEFAULT_RANGE = "1h"
REFRESH_S = 10
_STEP = timedelta(seconds=10)


@dataclass(frozen=True)
class OverviewQuery:
    """The range of an overview, and the grouping of its jobs."""

    window: TimeRange
    by: str
    is_live: bool  # the range ends now

    @classmethod
    def from_query(cls, query: QueryDict) -> OverviewQuery:
        """Read ``start`` and ``end``, or ``last``, and ``by``.

        Without current data, a recent range ends at the latest data.

        Raises:
            ValidationError: a time is malformed, or the range is empty.
        """
        by = query.get("by", "")
        by = by if by in BYS else BYS[0]
        last = query.get("last", "")
        last = last if last in RECENT else DEFAULT_RANGE
        now = buckets.ceil(datetime.now(UTC), _STEP)
        latest = latest_data()
        is_live = latest is None or latest > now - RECENT[last]
        end = now if is_live or latest is None else buckets.ceil(latest, _STEP)
        recent = TimeRange(end - RECENT[last], end, last=last)
        window = TimeRange.from_query(query, recent)
        return cls(window, by, is_live=is_live and not window.is_selected)


def latest_data() -> datetime | None:
    """Return the end of the latest observed interval of any metadata server or target."""
    ends = [
        *coverage.last_observed(Coverage.Source.RPC_TRACE, coverage.contiguous(servers())).values(),
        *last_observed(Coverage.Source.JOB_STATS, targets()).values(),
    ]
    return max(ends, default=None)


def servers() -> dict[int, str]:
    """Return the names of the metadata servers, by key."""
    return dict(Server.objects.filter(kind=Server.Kind.MDS).values_list("pk", "name"))


def targets() -> list[Target]:
    """Return the metadata targets."""
    return list(Target.objects.filter(kind=Target.Kind.MDT))


def is_registered() -> bool:
    """Return whether any metadata server or target is registered."""
    return bool(servers() or targets())


def is_simulated() -> bool:
    """Return whether some filesystem is simulated."""
    return Filesystem.objects.filter(simulated=True).exists()
