"""The PanDA jobs behind a case of a service account: whose work its batch jobs ran."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from django.db.models import Count

from ioportal.core.visible_text import visible
from ioportal.findings.models import Flag
from ioportal.jobs.models import Job, WorkloadJob
from ioportal.rules.rule import Subject
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import User

    from ioportal.findings.models import Case
    from ioportal.jobs.models import JobQuerySet

LISTED: Final = 10
_FIELDS: Final = {
    "task_id": "PanDA tasks",
    "user": "Users or production groups",
    "site": "Computing sites",
}


def lines(case: Case, reader: User) -> list[str]:
    """Return the PanDA tasks, users and computing sites with most PanDA jobs, a line for each.

    Nothing if the owner of the case is a person, or if `reader` sees no PanDA jobs.
    """
    if not UserAccount.objects.filter(name=case.owner).exclude(team="").exists():
        return []
    # The keys, because nested conditions on visible flags and jobs take seconds for large cases.
    keys = list(_jobs(case, reader).values_list("pk", flat=True))
    links = WorkloadJob.jobs.through.objects.filter(job__in=keys)
    inside = WorkloadJob.objects.filter(pk__in=links.values("workloadjob"))
    groups = list(inside.values_list(*_FIELDS).annotate(Count("pk")).order_by())
    total = sum(jobs for *_, jobs in groups)
    if not total:
        return []
    counts = [
        (title, _counts((group[place], group[-1]) for group in groups))
        for place, title in enumerate(_FIELDS.values())
    ]
    frequent = (f"{title}: {_most_frequent(names)}" for title, names in counts if names)
    return [f"PanDA jobs in these jobs: {total:,}", *frequent]


def _jobs(case: Case, reader: User) -> JobQuerySet:
    """Return the flagged jobs of a case; of a group of jobs, the owner's jobs at its time."""
    jobs = Job.objects.visible_to(reader)
    if case.subject_kind == Subject.JOB:
        flags = Flag.objects.visible_to(reader).counted().filter(case=case)
        return jobs.filter(pk__in=flags.values("job"))
    return jobs.filter(owner=case.owner).overlapping(case.since, case.until)


def _counts(jobs_by_value: Iterable[tuple[object, int]]) -> Counter[str]:
    """Return the number of jobs by name; unknown values are left out."""
    counts: Counter[str] = Counter()
    for value, jobs in jobs_by_value:
        if value is not None:
            counts[str(value)] += jobs
    return counts


def _most_frequent(counts: Counter[str]) -> str:
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:LISTED]
    names = [f"{visible(name) or 'unknown'} ({jobs:,})" for name, jobs in first]
    if len(counts) > LISTED:
        names.append(f"{len(counts) - LISTED:,} more")
    return ", ".join(names)
