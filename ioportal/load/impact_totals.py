"""Sums of stored impact by principal and by group of jobs."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Q, Sum
from django.db.models.functions import Coalesce

from ioportal.core.times import is_current
from ioportal.jobs.analysis.populations import coarse
from ioportal.telemetry.models import ImpactWindow, ceil_to_window

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime, timedelta

    from ioportal.load.top_consumers import PrincipalKey
    from ioportal.telemetry.models import WindowQuerySet

_MIN_LISTED_US = 1_000_000  # smaller sums are not listed


class ImpactTotal(NamedTuple):
    """The impact of a principal or a group of jobs over some time."""

    impact_s: float  # extra wait of others
    share: float  # of the servers' work in windows with impact
    is_estimated: bool  # most of it
    until: datetime | None = None  # end of the data, of the latest impact
    servers: tuple[int, ...] = ()  # of the windows

    @classmethod
    def joined(cls, parts: Collection[ImpactTotal]) -> ImpactTotal:
        """Return the sum of the impact of several principals."""
        impact_s = sum(part.impact_s for part in parts)
        estimated_s = sum(part.impact_s for part in parts if part.is_estimated)
        share = sum(part.share for part in parts)
        until = min((part.until for part in parts if part.until), default=None)
        return cls(impact_s, min(share, 1), estimated_s > impact_s / 2, until)

    @property
    def rounded(self) -> ImpactTotal:
        """The total as its subject may see it: what a single other user waited is not exact."""
        return self._replace(impact_s=coarse(self.impact_s), share=coarse(self.share))

    @property
    def is_current(self) -> bool:
        """Whether the latest impact is of now."""
        return self.until is not None and is_current(self.until)

    @property
    def source(self) -> str:
        """How it was computed."""
        return "estimated" if self.is_estimated else "measured"


def totals(
    start: datetime,
    end: datetime,
    *,
    kinds: Collection[int] = (),
    principals: Collection[PrincipalKey] = (),
    servers: Collection[int] = (),
) -> dict[PrincipalKey, ImpactTotal]:
    """Return impact of at least one second in windows that start in [start, end), largest first.

    Args:
        start: start of the first window.
        end: end of the range.
        kinds: kinds of principals or of `JobGroup`s; none: all.
        principals: principals or groups; none: all.
        servers: metadata servers; none: all.
    """
    windows = ImpactWindow.objects.between(start, end)
    if kinds:
        windows = windows.filter(kind__in=kinds)
    if servers:
        windows = windows.filter(server_id__in=servers)
    if principals:
        windows = windows.filter(_any_of(principals))
    return dict(_listed(windows))


def before(ends: Mapping[int, datetime], span: timedelta) -> Q:
    """Return the condition of the windows in a span before the end of each server's data."""
    condition = Q(pk__in=[])
    for server, end in ends.items():
        until = ceil_to_window(end)
        condition |= Q(server_id=server, start__gte=until - span, start__lt=until)
    return condition


def latest(ends: Mapping[int, datetime], span: timedelta) -> dict[PrincipalKey, ImpactTotal]:
    """Return impact of at least one second in the latest data of each server, largest first.

    Args:
        ends: up to when each metadata server is evaluated.
        span: the time before these ends.
    """
    windows = ImpactWindow.objects.filter(before(ends, span))
    return {
        key: total._replace(until=min(ends[server] for server in total.servers))
        for key, total in _listed(windows)
    }


def _listed(windows: WindowQuerySet) -> Iterator[tuple[PrincipalKey, ImpactTotal]]:
    """Yield principals with their totals."""
    sums = windows.values_list("kind", "principal_id").annotate(
        us=Sum("impact_us"),
        estimated_us=Coalesce(Sum("impact_us", filter=Q(is_estimated=True)), 0),
        work_us=Sum("work_us"),
        all_work_us=Sum("all_work_us"),
        servers=ArrayAgg("server_id", distinct=True),
    )
    rows = sums.filter(us__gte=_MIN_LISTED_US).order_by("-us", "kind", "principal_id")
    for kind, key, us, estimated_us, work_us, all_work_us, servers in rows:
        share = work_us / all_work_us if all_work_us else 0
        yield (
            (kind, key),
            ImpactTotal(us / 1e6, share, estimated_us > us / 2, servers=tuple(servers)),
        )


def _any_of(principals: Collection[PrincipalKey]) -> Q:
    by_kind: dict[int, list[int]] = defaultdict(list)
    for kind, key in principals:
        by_kind[kind].append(key)
    condition = Q()
    for kind, keys in by_kind.items():
        condition |= Q(kind=kind, principal_id__in=keys)
    return condition
