"""Rows of the impact of principals and groups of jobs, with their names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ioportal.load import impact_totals, job_groups, queue_links
from ioportal.load.principals import BYS, Name, job_group_name, named
from ioportal.site.contacts import contacts
from ioportal.site.models import Server
from ioportal.telemetry import retention
from ioportal.telemetry.models import JobGroup, Principal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.core.time_ranges import TimeRange
    from ioportal.jobs.models import Job
    from ioportal.load.impact_totals import ImpactTotal
    from ioportal.load.top_consumers import PrincipalKey
    from ioportal.site.contacts import Contact

OUTERMOST = (JobGroup.Kind.USER, Principal.PROCESS, Principal.HOST)  # without common RPCs
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


def in_range(window: TimeRange, user: User, servers: Collection[int] = ()) -> list[ImpactRow]:
    """Return the users, processes and hosts with the largest impact in a range; for staff."""
    if not user.is_staff:
        return []
    totals = impact_totals.totals(window.start, window.end, kinds=OUTERMOST, servers=servers)
    listed = _with_contacts(rows(totals, user), user)
    if window.end - window.start > queue_links.LONGEST:
        return listed
    known = Server.objects.in_bulk({key for row in listed for key in row.total.servers})
    return [replace(row, queue=_queue(row, known, window)) for row in listed]


def _queue(row: ImpactRow, servers: Mapping[int, Server], window: TimeRange) -> str:
    if row.total.is_estimated or len(row.total.servers) > 1:
        return ""
    [server] = row.total.servers
    group = queue_links.group(row.principal, row.name.user)
    return queue_links.address(servers[server].name, window, group)


def current(user: User, impacts: Mapping[PrincipalKey, ImpactTotal]) -> list[ImpactRow]:
    """Return the users, processes and hosts that slow down others now.

    Args:
        user: a member of staff.
        impacts: as `latest_data.impact` returns it.
    """
    outermost = {key: total for key, total in impacts.items() if key[0] in OUTERMOST}
    return _with_contacts(rows(outermost, user), user)


def _with_contacts(listed: list[ImpactRow], user: User) -> list[ImpactRow]:
    known = contacts((row.name.user for row in listed), user)
    return [replace(row, contact=known.get(row.name.user)) for row in listed]


def of_job(job: Job, run: TimeRange, user: User) -> list[ImpactRow]:
    """Return the impact of a job and of its groups during its run."""
    principals = [(int(Principal.JOB), job.pk), *job_groups.of_job(job.pk)]
    return rows(impact_totals.totals(run.start, run.end, principals=principals), user)


def of_groups(
    groups: Collection[PrincipalKey], since: datetime | None, until: datetime | None, user: User
) -> list[ImpactRow]:
    """Return the impact of groups of jobs in a period; None: any time."""
    if not groups:
        return []
    always = retention.ALWAYS
    span = since or always.start, until or always.end
    return rows(impact_totals.totals(*span, principals=groups), user)


def rows(
    totals: Mapping[PrincipalKey, ImpactTotal], user: User, listed: int = _LISTED
) -> list[ImpactRow]:
    """Return the first rows of totals whose names `user` may see: staff, all groups of jobs.

    Args:
        totals: in order.
        user: see `principals.named`.
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
    """Return the names of principals, as far as `user` may see them, and of groups of jobs."""
    principals = [key for key in keys if key[0] in Principal.values]
    groups = job_groups.by_key(key for kind, key in keys if kind in JobGroup.Kind.values)
    return named(principals, user, BYS[0]) | {
        (kind_id, principal_id): job_group_name(kind, text)
        for kind, text, kind_id, principal_id in groups.iter_rows()
    }
