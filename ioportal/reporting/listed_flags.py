"""Flags on other pages: the worst flag of each row, and short lists of flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.flags import impact_computation
from ioportal.flags.models import Flag
from ioportal.reporting.flags import (
    about_principals,
    principal,
    summaries,
    with_subjects,
    worst_first,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from django.contrib.auth.models import User

    from ioportal.activity.top_consumers import PrincipalKey
    from ioportal.flags.models import FlagQuerySet
    from ioportal.jobs.models import Job
    from ioportal.reporting.flags import FlagSummary

_LISTED = 10


def mark_jobs(jobs: Iterable[Job], user: User) -> None:
    """Set `worst_flag` of each job to its worst unresolved flag, or None."""
    listed = list(jobs)
    flags = Flag.objects.visible_to(user).unresolved().filter(job__in={job.pk for job in listed})
    worst = {flag.job_id: flag for flag in flags.order_by("severity", "until")}  # the last wins
    for job in listed:
        job.worst_flag = worst.get(job.pk)  # type: ignore[attr-defined]  # for templates


def worst_by_principal(
    principals: Collection[PrincipalKey], user: User
) -> dict[PrincipalKey, Flag]:
    """Return the worst unresolved flag of each principal that has one."""
    if not principals:
        return {}
    flags = Flag.objects.visible_to(user).unresolved().filter(about_principals(principals))
    ordered = flags.order_by("severity", "until")
    return {subject: flag for flag in ordered if (subject := principal(flag))}


def for_job(job: Job, user: User) -> list[FlagSummary]:
    """Return a job's flags, unresolved ones first."""
    flags = with_subjects(Flag.objects.visible_to(user).filter(job=job))
    rows = summaries(flags.order_by("-severity", "-until"), user)
    return sorted(rows, key=lambda row: row.flag.state == Flag.State.RESOLVED)


def for_owner(owner: str, user: User) -> list[FlagSummary]:
    """Return the worst unresolved flags of a user and the user's jobs."""
    return _worst(Flag.objects.visible_to(user).unresolved().filter(owner=owner), user, _LISTED)


def worst_to_triage(user: User, count: int) -> list[FlagSummary]:
    """Return the worst flags that need triage, those with current impact first."""
    return _worst(Flag.objects.visible_to(user).to_triage(), user, count)


def _worst(flags: FlagQuerySet, user: User, count: int) -> list[FlagSummary]:
    impacts = impact_computation.latest()
    return summaries(worst_first(with_subjects(flags), impacts)[:count], user, impacts)
