"""Upgrades of metadata servers that change which requests count as opens."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from django.utils import timezone

from ioportal.jobs.analysis.open_meaning import counts_opens, open_meaning
from ioportal.site.models import Server, ServerVersion

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from ioportal.jobs.analysis.comparison.arms import Arm

_EPOCH = date(1970, 1, 1)
_MOMENT = timedelta(microseconds=1)


def redefinitions() -> list[datetime]:
    """Return the times from which a metadata server counts other requests as opens."""
    versions = ServerVersion.objects.filter(server__kind=Server.Kind.MDS)
    rows = versions.order_by("server", "since").values_list("server", "since", "version")
    times = {
        after[1]
        for _, of_server in groupby(rows, key=lambda row: row[0])
        for before, after in pairwise(of_server)
        if changes_opens(before[2], after[2])
    }
    return sorted(times)


def changes_opens(before: str, after: str) -> bool:
    """Return whether two versions count other requests as opens; unknown versions do not."""
    meanings = {open_meaning(before), open_meaning(after)}
    return None not in meanings and len(meanings) > 1


def redefined(arms: Iterable[Arm], metrics: Iterable[str], times: Iterable[datetime]) -> list[str]:
    """Return the metrics whose meaning differs within or between arms.

    Args:
        arms: with local days from 1970-01-01.
        metrics: names of metrics, or of measures of rules.
        times: the result of `redefinitions`.
    """
    days = [int(day) for arm in arms if arm.size for day in (arm.days.min(), arm.days.max())]
    if not days or not any(
        min(days) <= _day(at - _MOMENT) and max(days) >= _day(at) for at in times
    ):
        return []
    return [name for name in metrics if counts_opens(name)]


def _day(moment: datetime) -> int:
    """Return the number of the local day of a time."""
    return (timezone.localdate(moment) - _EPOCH).days
