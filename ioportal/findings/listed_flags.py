"""Flags on other pages: the worst flag of each row, and the flags of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.findings.episodes import principal
from ioportal.findings.flags import about_principals, summaries, with_subjects
from ioportal.findings.models import Flag

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from django.contrib.auth.models import User

    from ioportal.findings.flags import FlagSummary
    from ioportal.findings.models import FlagQuerySet
    from ioportal.jobs.models import Job
    from ioportal.load.top_consumers import PrincipalKey


def mark_jobs(jobs: Iterable[Job], user: User) -> None:
    """Set `worst_flag` of each job to its worst unresolved flag, or None."""
    listed = list(jobs)
    flags = _unresolved(user).filter(job__in={job.pk for job in listed})
    worst = {flag.job_id: flag for flag in flags}  # the last wins
    for job in listed:
        job.worst_flag = worst.get(job.pk)  # type: ignore[attr-defined]  # for templates


def worst_by_principal(
    principals: Collection[PrincipalKey], user: User
) -> dict[PrincipalKey, Flag]:
    """Return the worst unresolved flag of each principal that has one."""
    if not principals:
        return {}
    flags = _unresolved(user).filter(about_principals(principals))
    return {subject: flag for flag in flags if (subject := principal(flag))}


def _unresolved(user: User) -> FlagQuerySet:
    """Return the visible flags of unresolved cases, worst last."""
    flags = Flag.objects.visible_to(user).unresolved().select_related("case")
    return flags.order_by("severity", "until")


def for_job(job: Job, user: User) -> list[FlagSummary]:
    """Return a job's flags, current ones first."""
    flags = with_subjects(Flag.objects.visible_to(user).filter(job=job))
    rows = summaries(flags.order_by("-severity", "-until"), user)
    return sorted(rows, key=lambda row: row.flag.ended_at is not None)
