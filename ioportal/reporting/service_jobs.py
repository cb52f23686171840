"""The PanDA jobs behind a case of a service account: whose work its batch jobs ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Count

from ioportal.analysis.rules.rule import Subject
from ioportal.flags.models import Flag
from ioportal.jobs.models import Job, WorkloadJob
from ioportal.site.models import UserAccount
from ioportal.visible_text import visible

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from ioportal.flags.models import Case
    from ioportal.jobs.models import JobQuerySet, WorkloadJobQuerySet

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
    links = WorkloadJob.jobs.through.objects.filter(job__in=_jobs(case, reader))
    inside = WorkloadJob.objects.filter(pk__in=links.values("workloadjob"))
    totals = inside.aggregate(
        jobs=Count("pk"), **{field: Count(field, distinct=True) for field in _FIELDS}
    )
    if not totals["jobs"]:
        return []
    frequent = (
        f"{title}: {_most_frequent(inside, field, totals[field])}"
        for field, title in _FIELDS.items()
        if totals[field]
    )
    return [f"PanDA jobs in these jobs: {totals['jobs']:,}", *frequent]


def _jobs(case: Case, reader: User) -> JobQuerySet:
    """Return the flagged jobs of a case; of a group of jobs, those of the owner at its time."""
    jobs = Job.objects.visible_to(reader)
    if case.subject_kind == Subject.JOB:
        flags = Flag.objects.visible_to(reader).counted().filter(case=case)
        return jobs.filter(pk__in=flags.values("job"))
    return jobs.filter(owner=case.owner).overlapping(case.since, case.until)


def _most_frequent(inside: WorkloadJobQuerySet, field: str, count: int) -> str:
    groups = inside.exclude(**{f"{field}__isnull": True}).values_list(field)
    first = groups.annotate(jobs=Count("pk")).order_by("-jobs", field)[:LISTED]
    names = [f"{visible(str(name)) or 'unknown'} ({jobs:,})" for name, jobs in first]
    if count > LISTED:
        names.append(f"{count - LISTED:,} more")
    return ", ".join(names)
