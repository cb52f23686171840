"""Flags beside what they are about, on pages about something else: the worst of each."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ioportal.flags import history, impact_windows
from ioportal.flags.models import Flag
from ioportal.web.flags.history_chart import flag_mark
from ioportal.web.flags.inbox import about, principal_of, shown, with_subjects, worst_first

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.activity.top_consumers import Who
    from ioportal.charts.time_axis import Mark
    from ioportal.flags.models import FlagQuerySet
    from ioportal.jobs.models import Job
    from ioportal.web.flags.inbox import Shown

_SHOWN = 10


def mark(jobs: Iterable[Job], user: User) -> None:
    """Hang on each job the worst of its flags that are not resolved: `worst_flag`."""
    listed = list(jobs)
    current = Flag.objects.visible_to(user).unresolved().filter(job__in={job.pk for job in listed})
    worst = {flag.job_id: flag for flag in current.order_by("severity", "until")}  # the last one
    for job in listed:
        job.worst_flag = worst.get(job.pk)  # type: ignore[attr-defined]  # for templates


def of_principals(whose: Collection[Who], user: User) -> dict[Who, Flag]:
    """Return the worst flag that is not resolved of each principal that has one."""
    if not whose:
        return {}
    current = Flag.objects.visible_to(user).unresolved().filter(about(whose))
    ordered = current.order_by("severity", "until")
    return {who: flag for flag in ordered if (who := principal_of(flag))}


def of_job(job: Job, user: User) -> list[Shown]:
    """Return a job's flags, those that are not resolved first."""
    flags = with_subjects(Flag.objects.visible_to(user).filter(job=job))
    found = shown(flags.order_by("-severity", "-until"), user)
    return sorted(found, key=lambda one: one.flag.state == Flag.State.RESOLVED)


def marks(flags: Iterable[Shown], ended_at: datetime | None) -> list[Mark]:
    """Return when the measures of a job's flags first reached their thresholds, for timelines."""
    by_place: dict[datetime, list[tuple[datetime, str]]] = defaultdict(list)
    for one in flags:
        at, words = _mark(one.flag)
        by_place[min(at, ended_at or at)].append((at, words))
    return [
        flag_mark(max(at for at, _ in there), _words([words for _, words in there]), ended_at)
        for there in by_place.values()
    ]


def _words(titles: list[str]) -> str:
    return titles[0] if len(titles) == 1 else f"{len(titles)} flags"


def _mark(flag: Flag) -> tuple[datetime, str]:
    """Return when a flag's mark is; its words say so if that is not its threshold."""
    measured = history.for_flag(flag)
    if measured is None or measured.number != flag.measure:
        return flag.since, f"{flag.title} (whole run)"
    reached = measured.first_reached(flag.thresholds[measured.number])
    return (reached, flag.title) if reached else (flag.since, f"{flag.title} (found here)")


def of_owner(owner: str, user: User) -> list[Shown]:
    """Return the worst flags of somebody and their jobs that are not resolved."""
    return _worst(Flag.objects.visible_to(user).unresolved().filter(owner=owner), user, _SHOWN)


def worst_to_triage(user: User, count: int) -> list[Shown]:
    """Return the worst flags that somebody should look at: those who harm others now first."""
    return _worst(Flag.objects.visible_to(user).to_triage(), user, count)


def _worst(flags: FlagQuerySet, user: User, count: int) -> list[Shown]:
    harming = impact_windows.latest()
    return shown(worst_first(with_subjects(flags), harming)[:count], user, harming)
