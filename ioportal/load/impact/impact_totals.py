"""Sums of stored impact by principal and by group of jobs, and their rows with names."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Q, Sum
from django.db.models.functions import Coalesce

from ioportal.core.times import is_current
from ioportal.jobs.analysis.anonymity import coarse
from ioportal.load.impact import job_groups, queue_links
from ioportal.load.principals import BYS, Name, job_group_names, named
from ioportal.site.contacts import contacts
from ioportal.site.models import Server
from ioportal.telemetry import retention
from ioportal.telemetry.models import (
    ImpactWindow,
    JobGroup,
    Principal,
    ceil_to_window,
    floor_to_window,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime, timedelta

    from django.contrib.auth.models import User

    from ioportal.core.time_ranges import TimeRange
    from ioportal.jobs.models import Job
    from ioportal.load.top_consumers import PrincipalKey
    from ioportal.site.contacts import Contact
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
    """Return impact of at least one second in windows that overlap [start, end), largest first.

    Args:
        start: in the first window.
        end: end of the range.
        kinds: kinds of principals or of `JobGroup`s; none: all.
        principals: principals or groups; none: all.
        servers: metadata servers; none: all.
    """
    windows = ImpactWindow.objects.between(floor_to_window(start), end)
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


# Without common RPCs: all but jobs, which are parts of users.
OUTERMOST = (JobGroup.Kind.USER, *(kind for kind in Principal if kind != Principal.JOB))
_LISTED = 10


@dataclass(frozen=True)
class ImpactRow:
    """The impact of one principal or group of jobs."""

    principal: PrincipalKey
    kind: str
    name: Name
    total: ImpactTotal
    contact: Contact | None = None  # of the user
    queue: str = ""  # address of the page of its worst queue; "": none, or of several servers


def rows_in_range(window: TimeRange, user: User, servers: Collection[int] = ()) -> list[ImpactRow]:
    """Return the users, processes, hosts and other load with the largest impact; for staff."""
    if not user.is_staff:
        return []
    of_range = totals(window.start, window.end, kinds=OUTERMOST, servers=servers)
    return _with_queues(_with_contacts(rows(of_range, user), user), window, user)


def _with_queues(listed: list[ImpactRow], window: TimeRange, user: User) -> list[ImpactRow]:
    """Add the addresses of the worst queues in a range; their pages are for staff."""
    if not user.is_staff or window.end - window.start > queue_links.LONGEST:
        return listed
    known = Server.objects.in_bulk({key for row in listed for key in row.total.servers})
    return [replace(row, queue=_queue(row, known, window)) for row in listed]


def _queue(row: ImpactRow, servers: Mapping[int, Server], window: TimeRange) -> str:
    if row.total.is_estimated or len(row.total.servers) > 1:
        return ""
    [server] = row.total.servers
    group = queue_links.group(row.principal, row.name.user)
    return queue_links.address(servers[server].name, window, group)


def current_rows(user: User, impacts: Mapping[PrincipalKey, ImpactTotal]) -> list[ImpactRow]:
    """Return the users, processes, hosts and other load that slow down others now.

    Args:
        user: a member of staff.
        impacts: as `latest_data.impact` returns it.
    """
    outermost = {key: total for key, total in impacts.items() if key[0] in OUTERMOST}
    return _with_contacts(rows(outermost, user), user)


def _with_contacts(listed: list[ImpactRow], user: User) -> list[ImpactRow]:
    known = contacts((row.name.user for row in listed), user)
    return [replace(row, contact=known.get(row.name.user)) for row in listed]


def rows_of_job(job: Job, run: TimeRange, user: User) -> list[ImpactRow]:
    """Return the impact of a job, and of its groups during its run, if other jobs add to it.

    Others may wait for a job's work after its end: its flags count it, too.
    """
    principals = [(int(Principal.JOB), job.pk), *job_groups.of_job(job.pk)]
    windows = ImpactWindow.objects.filter(
        Q(kind=Principal.JOB) | Q(start__lt=run.end),
        _any_of(principals),
        start__gte=floor_to_window(run.start),
    )
    found = dict(_listed(windows))
    own_s = found[principals[0]].impact_s if principals[0] in found else 0
    larger = {
        key: total for key, total in found.items() if key == principals[0] or total.impact_s > own_s
    }
    return _with_queues(rows(larger, user), run, user)


def rows_of_groups(
    groups: Collection[PrincipalKey], since: datetime | None, until: datetime | None, user: User
) -> list[ImpactRow]:
    """Return the impact of groups of jobs in a period; None: any time."""
    if not groups:
        return []
    always = retention.ALWAYS
    span = since or always.start, until or always.end
    return rows(totals(*span, principals=groups), user)


def rows(
    totals: Mapping[PrincipalKey, ImpactTotal], user: User, listed: int = _LISTED
) -> list[ImpactRow]:
    """Return the first rows of totals whose names `user` may see.

    Args:
        totals: in order.
        user: see `names_of`.
        listed: the maximum number of rows.
    """
    names = names_of(totals, user)
    kinds = {**dict(Principal.choices), **dict(JobGroup.Kind.choices)}
    return [
        ImpactRow(key, kinds[key[0]], names[key], total if user.is_staff else total.rounded)
        for key, total in totals.items()
        if key in names
    ][:listed]


def names_of(keys: Collection[PrincipalKey], user: User) -> dict[PrincipalKey, Name]:
    """Return the names of principals and groups of jobs, as far as `user` may see them."""
    principals = [key for key in keys if key[0] in Principal.values]
    groups = job_groups.by_key(key for kind, key in keys if kind in JobGroup.Kind.values)
    names = job_group_names(groups.select("kind", "key").iter_rows(), user)
    return named(principals, user, BYS[0]) | {
        (kind_id, principal_id): names[kind, text]
        for kind, text, kind_id, principal_id in groups.iter_rows()
        if (kind, text) in names
    }
