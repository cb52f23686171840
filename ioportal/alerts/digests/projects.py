"""The weekly digest for contacts of projects: what members of the project may see."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, time, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.contrib.postgres.aggregates import BoolOr
from django.db.models import Count, F, Q, Sum, Window
from django.db.models.functions import RowNumber
from django.urls import reverse

from ioportal.alerts.compose import Digest, Entry, Section
from ioportal.core import formatting
from ioportal.core.units import Unit
from ioportal.core.visible_text import visible
from ioportal.findings.flags.flag_values import in_words, title_of
from ioportal.findings.models import Flag
from ioportal.jobs.expressions import node_hours
from ioportal.jobs.models import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import date, tzinfo

    from django.db.models import Aggregate

    from ioportal.findings.models import FlagQuerySet
    from ioportal.jobs.models import JobQuerySet

_WEEK: Final = timedelta(days=7)
_LISTED_JOBS = 5
_LISTED_CASES = 10
_OPERATIONS = "statistics__metadata_operations"
# Figures over the jobs that ended in a week.
_FIGURES: dict[str, Callable[[Q], Aggregate]] = {
    "jobs": lambda week: Count("pk", filter=week),
    "good": lambda week: Count("pk", filter=week & Q(quality="good")),
    "hours": lambda week: Sum(node_hours(None, None), filter=week),
    "operations": lambda week: Sum(_OPERATIONS, filter=week),
    "read": lambda week: Sum("statistics__read_bytes", filter=week),
    "written": lambda week: Sum("statistics__write_bytes", filter=week),
}
_TITLES: dict[str, tuple[str, Callable[[float], str]]] = {
    "jobs": ("Jobs", partial(formatting.human, unit=Unit.JOBS)),
    "good": ("Jobs with good data", partial(formatting.human, unit=Unit.JOBS)),
    "hours": ("Node-hours", formatting.significant),
    "operations": ("Metadata operations", partial(formatting.human, unit=Unit.COUNT)),
    "read": ("Read", formatting.decimal_bytes),
    "written": ("Written", formatting.decimal_bytes),
}


class Weeks:
    """The seven days before a day, and the seven before them."""

    def __init__(self, today: date, zone: tzinfo) -> None:
        self.end, self.start, self.before = (
            datetime.combine(today - weeks * _WEEK, time(), zone) for weeks in range(3)
        )

    @property
    def text(self) -> str:
        """The first and the last day of the week."""
        return f"{self.start:%Y-%m-%d} to {self.end - timedelta(days=1):%Y-%m-%d}"


def digests(projects: Collection[str], today: date, zone: tzinfo) -> dict[str, Digest]:
    """Return the digest of each project with jobs or cases in the two weeks before a day."""
    weeks = Weeks(today, zone)
    # As `visible_to` a member: no jobs without an owner, and no flags on insufficient data.
    jobs = Job.objects.filter(project__in=projects).exclude(owner="")
    figures = _figures(jobs, weeks)
    heaviest = _heaviest(jobs, weeks)
    flags = Flag.objects.counted().filter(
        job__in=jobs, until__gte=weeks.before, until__lt=weeks.end
    )
    cases = _cases(flags, weeks)
    earlier = _numbers_of_cases(flags.filter(until__lt=weeks.start))
    return {
        project: Digest(
            f"Weekly digest of project {visible(project)}: {weeks.text}",
            f"This is the metadata load of project {visible(project)} from {weeks.text}, compared "
            "with the week before. Totals are of jobs that ended in the week.",
            (
                _totals(project, figures.get(project)),
                Section(
                    "Heaviest jobs",
                    heaviest[project],
                    len(heaviest[project]),
                    "No metadata operations are known.",
                ),
                Section(
                    f"Cases (the week before: {earlier.get(project, 0):,})",
                    cases[project][:_LISTED_CASES],
                    len(cases[project]),
                    "No problems were found.",
                ),
            ),
            bool(figures.get(project, {}).get("simulated")),
        )
        for project in sorted(figures.keys() | cases.keys())
    }


def _figures(jobs: JobQuerySet, weeks: Weeks) -> dict[str, dict[str, Any]]:
    """Return figures of both weeks by project; `before_` marks figures of the week before."""
    this = Q(ended_at__gte=weeks.start)
    rows = jobs.filter(ended_at__gte=weeks.before, ended_at__lt=weeks.end).order_by()
    figures = rows.values("project").annotate(
        simulated=BoolOr("cluster__simulated"),
        **{name: figure(this) for name, figure in _FIGURES.items()},
        **{f"before_{name}": figure(~this) for name, figure in _FIGURES.items()},
    )
    return {row["project"]: {**row} for row in figures}


def _totals(project: str, row: Mapping[str, Any] | None) -> Section:
    entries = []
    if row is not None:
        lines = [
            _compared(title, write, row[name], row[f"before_{name}"])
            for name, (title, write) in _TITLES.items()
        ]
        entries = [Entry("All jobs", lines, reverse("project", args=[project]))]
    return Section("Totals", entries, len(entries), "No jobs ended.")


def _compared(
    title: str, write: Callable[[float], str], value: float | None, before: float | None
) -> str:
    this, last = ("unknown" if each is None else write(each) for each in (value, before))
    change = f", {value / before - 1:+.0%}" if value is not None and before else ""
    return f"{title}: {this} (the week before: {last}{change})"


def _heaviest(jobs: JobQuerySet, weeks: Weeks) -> dict[str, list[Entry]]:
    place = Window(RowNumber(), partition_by="project", order_by=[F(_OPERATIONS).desc(), "pk"])
    ended = jobs.filter(
        ended_at__gte=weeks.start, ended_at__lt=weeks.end, **{f"{_OPERATIONS}__gt": 0}
    )
    listed = ended.annotate(place=place).filter(place__lte=_LISTED_JOBS)
    by_project = defaultdict(list)
    for job in listed.select_related("statistics").order_by("project", "place"):
        operations = formatting.with_unit(job.statistics.metadata_operations, Unit.COUNT)
        by_project[job.project].append(
            Entry(
                f"Job {visible(job.display_id)} of {visible(job.owner)}: {operations}",
                [f"Named {visible(job.name)}"] if job.name else (),
                reverse("job", args=[job.pk]),
            )
        )
    return by_project


def _cases(flags: FlagQuerySet, weeks: Weeks) -> dict[str, list[Entry]]:
    """Return the cases of the week by project, the most severe first, with their worst flag."""
    recent = flags.filter(until__gte=weeks.start)
    numbers = {
        (project, case): count
        for project, case, count in recent.order_by()
        .values_list("job__project", "case")
        .annotate(Count("job", distinct=True))
    }
    worst = recent.select_related("job", "case", "filesystem").order_by(
        "job__project", "case_id", "-value", "pk"
    )
    by_project = defaultdict(list)
    for flag in sorted(
        worst.distinct("job__project", "case_id"), key=lambda flag: (-flag.severity, flag.case_id)
    ):
        by_project[_job(flag).project].append(
            _case(flag, numbers[_job(flag).project, flag.case_id])
        )
    return by_project


def _case(flag: Flag, jobs: int) -> Entry:
    job = _job(flag)
    named = f" named {flag.case.application}" if flag.case.application else ""
    place = f" on {flag.filesystem}" if flag.filesystem else ""
    heading = f"{flag.title}: jobs{named} of {job.owner}{place} ({flag.get_severity_display()})"
    measure = flag.measure
    value, threshold = (in_words(flag, measure, each) for each in (flag.value, flag.threshold))
    return Entry(
        visible(heading),
        [
            f"Jobs: {jobs:,}, the worst: job {visible(job.display_id)}",
            f"{title_of(flag, measure)}: {value} (threshold {threshold})",
        ],
        reverse("case", args=[flag.case_id]),
    )


def _job(flag: Flag) -> Job:
    assert flag.job is not None  # noqa: S101  (selected)
    return flag.job


def _numbers_of_cases(flags: FlagQuerySet) -> dict[str, int]:
    rows = flags.order_by().values_list("job__project")
    return dict(rows.annotate(Count("case", distinct=True)))
