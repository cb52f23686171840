"""The report of a job for its owner, shared by mails, terminals and the API."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.urls import reverse
from django.utils import timezone

from ioportal.core import formatting
from ioportal.core.time_ranges import TimeRange
from ioportal.core.units import Unit
from ioportal.core.visible_text import visible, visible_text
from ioportal.findings.flags import flag_texts
from ioportal.jobs import job_facts, similar_jobs
from ioportal.jobs.expressions import node_hours
from ioportal.jobs.models import DirtyStatistics
from ioportal.load.impact import impact_totals
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

    from ioportal.findings.flags.flag_texts import FlagSummary
    from ioportal.jobs.job_facts import Figure
    from ioportal.jobs.models import JobQuerySet
    from ioportal.jobs.similar_jobs import Standing
    from ioportal.load.impact.impact_totals import ImpactTotal

WIDTH = 78  # characters of a line, except addresses
_LABEL = 19
_JOB = Principal.JOB.label


def reportable(jobs: JobQuerySet) -> QuerySet[Any]:
    """Keep jobs that have ended and whose statistics are complete; add what `JobReport` needs."""
    pending = DirtyStatistics.objects.filter(job_id=OuterRef("pk"))
    ended = jobs.filter(ended_at__isnull=False, started_at__isnull=False, statistics__isnull=False)
    rows = ended.exclude(Exists(pending)).select_related("cluster", "statistics")
    return rows.annotate(node_hours=node_hours(None, None))


@dataclass(frozen=True)
class JobReport:
    """What a job did to the filesystems, in plain text and for programs.

    Args:
        job: one of `reportable`.
        reader: the user whose permissions limit the report.
    """

    job: Any
    reader: User

    @cached_property
    def _flags(self) -> list[FlagSummary]:
        rows = flag_texts.for_job(self.job, self.reader)
        return [row for row in rows if row.flag.ended_at is None and not row.flag.is_suppressed]

    @cached_property
    def _impact(self) -> ImpactTotal | None:
        if self.job.ended_at <= self.job.started_at:
            return None
        run = TimeRange(self.job.started_at, self.job.ended_at)
        rows = impact_totals.rows_of_job(self.job, run, self.reader)
        return next((row.total for row in rows if row.kind == _JOB), None)

    @cached_property
    def _standings(self) -> list[Standing]:
        return similar_jobs.standings(self.job, self.job.statistics, self.reader)

    @cached_property
    def _figures(self) -> dict[str, Figure]:
        groups = job_facts.groups(self.job.statistics).values()
        return {figure.metric.name: figure for group in groups for figure in group}

    @property
    def _operations_per_node_hour(self) -> float | None:
        operations, hours = self.job.statistics.metadata_operations, self.job.node_hours
        return operations / hours if operations is not None and hours else None

    @property
    def link(self) -> str:
        """The address of the job's page."""
        return f"{settings.PORTAL_URL}{reverse('job', args=[self.job.pk])}"

    @property
    def title(self) -> str:
        """Job, cluster and name in one line."""
        name = f": {self.job.name}" if self.job.name else ""
        return visible(f"Job {self.job.display_id} on {self.job.cluster}{name}")

    @property
    def facts(self) -> dict[str, Any]:
        """The report as one JSON object; times are in UTC."""
        return {
            **job_facts.facts(self.job, self.job.statistics, None),
            "node_hours": self.job.node_hours,
            "metadata_operations_per_node_hour": self._operations_per_node_hour,
            "impact_s": self._impact and self._impact.impact_s,
            "impact_is_estimated": self._impact and self._impact.is_estimated,
            "similar_jobs": [
                {
                    "metric": each.metric.name,
                    "value": each.value,
                    "median": each.usual and each.usual.median,
                    "rank": each.rank,
                    "jobs": each.similar_jobs,
                }
                for each in self._standings
            ],
            "flags": [
                {
                    "title": row.flag.title,
                    "severity": row.flag.get_severity_display(),
                    "value": row.flag.value,
                    "threshold": row.flag.threshold,
                    "advice": row.flag.advice,
                    "url": f"{settings.PORTAL_URL}{row.address}",
                }
                for row in self._flags
            ],
            "url": self.link,
        }

    @property
    def text(self) -> str:
        """The report in lines of at most `WIDTH` characters."""
        lines = wrap(self.title, WIDTH)
        if self.job.cluster.simulated:
            lines.append("Simulated data.")
        for section in (self._run(), self._activity(), self._quality()):
            lines += ["", *(line for label, text in section for line in _row(label, text))]
        for row in self._flags:
            lines += ["", *self._finding(row)]
        return "\n".join([*lines, "", self.link])

    def _run(self) -> Iterator[tuple[str, str]]:
        job = self.job
        start, end = (timezone.localtime(moment) for moment in (job.started_at, job.ended_at))
        took = formatting.duration(round((job.ended_at - job.started_at).total_seconds()))
        project = f", project {job.project}" if job.project else ""
        yield "User", f"{job.owner}{project}"
        yield "Run", f"{start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S %Z}"
        yield "", f"{took}, {job.get_state_display()}"
        hours = formatting.significant(job.node_hours) if job.node_hours is not None else "unknown"
        yield "Nodes", f"{job.node_count:,} ({hours} node-hours)"

    def _activity(self) -> Iterator[tuple[str, str]]:
        for name in ("metadata_operations", "peak_metadata_rate", "read_bytes", "write_bytes"):
            figure = self._figures[name]
            note = f" {figure.note}" if figure.note else ""
            yield figure.metric.title, f"{_known(figure.value, figure.metric.unit)}{note}"
            if name == "metadata_operations" and (per_hour := self._operations_per_node_hour):
                yield "", f"{_known(per_hour, Unit.COUNT)} per node-hour"
            yield from self._among_similar_jobs(name)
        if self._impact:
            waiting = formatting.total_waiting(self._impact.impact_s)
            yield "Impact", f"extra wait of other users {waiting} ({self._impact.source})"

    def _among_similar_jobs(self, name: str) -> Iterator[tuple[str, str]]:
        for each in self._standings:
            if each.metric.name == name and each.usual and each.rank is not None:
                median = _known(each.usual.median, each.metric.unit)
                below = f"{100 * each.rank:.0f} % of {each.similar_jobs:,} similar jobs have less"
                yield "", f"{below} (median {median})"

    def _quality(self) -> Iterator[tuple[str, str]]:
        statistics = self.job.statistics
        yield "Data quality", f"{statistics.get_quality_display()} (counters)"
        for reason in (*statistics.quality_reasons, *statistics.bytes_reasons):
            yield "", reason

    def _finding(self, row: FlagSummary) -> Iterator[str]:
        severity = row.flag.get_severity_display()
        yield from wrap(f"{row.flag.title} ({severity})", WIDTH)
        yield from wrap(f"  {row.value}, threshold {row.threshold}", WIDTH)
        for paragraph in visible_text(row.flag.advice).splitlines():
            yield from wrap(paragraph, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _known(value: float | None, unit: Unit) -> str:
    return "unknown" if value is None else formatting.with_unit(value, unit)


def _row(label: str, text: str) -> list[str]:
    """Return a label and a text next to it, in lines."""
    indent = " " * (_LABEL + 2)
    first = f"{label:{_LABEL}}  "
    return wrap(visible(text), WIDTH, initial_indent=first, subsequent_indent=indent)
