"""The page of one job."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone

from ioportal.changes import mitigation_marks
from ioportal.core.time_fields import local_text
from ioportal.core.time_ranges import TimeRange
from ioportal.core.units import Unit
from ioportal.findings.flags import flag_texts
from ioportal.findings.flags.flag_history import job_marks
from ioportal.ingest import data_quality
from ioportal.jobs import job_facts, panda_jobs, rpc_reports
from ioportal.jobs.job_facts import Comparison
from ioportal.jobs.models import Job, JobStatistics, Launch
from ioportal.load.impact import impact_totals
from ioportal.load.job_series import JobSeries
from ioportal.load.step_charts import BY_NAME, KINDS, Timeline
from ioportal.site.contacts import contact
from ioportal.telemetry.models import Method
from ioportal.web.common.requests import changed_query
from ioportal.web.common.tables import Column, Table
from ioportal.web.panda.page import COLUMNS as PANDA_COLUMNS
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from ioportal.findings.flags.flag_texts import FlagSummary
    from ioportal.ingest.data_quality import LateAccounting
    from ioportal.jobs.analysis.rpc_report import RpcReport, RpcRow
    from ioportal.jobs.models import WorkloadJob
    from ioportal.jobs.panda_jobs import PandaSummary
    from ioportal.load.impact.impact_totals import ImpactRow
    from ioportal.site.contacts import Contact
    from ioportal.web.common.requests import UserRequest

_STARTUP = 0.1  # of the run, as in the metric `startup_share`
_LISTED_RECORDS = 5
_LISTED_TRACES = 6
_LISTED_NAMESAKES = 20
_LISTED_PANDA_JOBS = 10
_LISTED_TASKS = 5
_METHODS = {
    Method.JOB_ID: "by job id, not verified",
    Method.JOB_ID_ALONE: "by job id alone, which others may have sent: not verified",
    Method.JOB_ID_UID: "by job id, verified by user id",
    Method.JOB_ID_NODE: "by job id, verified by node",
    Method.NODE: "by node, allocated to this job alone",
    Method.NODE_PROCESS: "by process name and node, allocated to this job alone",
    Method.CONTRADICTED_ID: "by node, allocated to this job alone; the id is not the job's",
}
_TIMES = {"service": "Service time, µs", "queue": "Queue time, µs"}
_KINDS: tuple[Column[Any], ...] = (
    Column("kind", "Kind", itemgetter(0)),
    Column("operations", "Operations", itemgetter(1), ""),
    Column("mean_us", "Mean time", itemgetter(2), "", form=show.microseconds),
)


class JobPage:
    """A job, its statistics and its activity in the time range of the URL."""

    def __init__(self, request: UserRequest, pk: int) -> None:
        self._request = request
        visible = Job.objects.visible_to(request.user).select_related("cluster", "statistics")
        self.job: Job = get_object_or_404(visible, pk=pk)
        self.statistics: JobStatistics | None = job_facts.statistics_of(self.job)
        self.run = job_facts.run(self.job)
        self.now = timezone.now().replace(microsecond=0)
        self.window: TimeRange | None = None
        self.range_errors: list[str] = []
        if self.run:
            self.window, self.range_errors = TimeRange.or_default(request.GET, self.run.with_margin)

    @property
    def facts(self) -> dict[str, Any]:
        """The job as one JSON object."""
        return job_facts.facts(self.job, self.statistics, self.panda)

    @property
    def hosts(self) -> str:
        """Folded node names."""
        return job_facts.hosts(self.job)

    @cached_property
    def launches(self) -> list[Launch]:
        """Application starts inside the job."""
        return list(self.job.launches.order_by("started_at", "name"))

    @property
    def launch_table(self) -> Table[Launch]:
        """The launches, with links to their RPC reports."""
        columns: tuple[Column[Launch], ...] = (
            Column("name", "Launch"),
            Column("started_at", "Started"),
            Column("ended_at", "Ended"),
            Column("node_count", "Nodes", unit="", hint="nodes"),
            Column("exit_status", "Exit", unit=""),
            Column("command", "Command", css="wrap"),
            Column("rpcs", "RPCs", lambda _: "RPC report", link=self._launch_url),
        )
        return Table("Launches", columns, self.launches)

    def _launch_url(self, launch: Launch) -> str:
        return f"{changed_query(self._request.GET, launch=launch.name)}#rpcs"

    @cached_property
    def namesakes(self) -> list[Job]:
        """Other jobs of the same batch id: ids repeat, tasks of an array share one."""
        visible = Job.objects.visible_to(self._request.user)
        same_id = visible.filter(cluster=self.job.cluster_id, batch_id=self.job.batch_id)
        latest_first = same_id.exclude(pk=self.job.pk).order_by("-submitted_at", "-pk")
        return list(latest_first[:_LISTED_NAMESAKES])

    @cached_property
    def contact(self) -> Contact | None:
        """How to reach the owner."""
        return contact(self.job.owner, self._request.user)

    @cached_property
    def records(self) -> list[Any]:
        """Accounting records of the job; for staff, as they name log files."""
        records = self.job.records.select_related("segment").order_by("-pk")
        return list(records[:_LISTED_RECORDS]) if self._request.user.is_staff else []

    @cached_property
    def late_accounting(self) -> LateAccounting | None:
        """Data that arrived before the accounting."""
        return data_quality.late_accounting(self.job)

    @cached_property
    def flags(self) -> list[FlagSummary]:
        """Flags of the job."""
        return flag_texts.for_job(self.job, self._request.user)

    @cached_property
    def impacts(self) -> list[ImpactRow]:
        """Impact of the job and of its groups during its run; of a running job until now."""
        if not self.run:
            return []
        run = self.run if self.job.ended_at else replace(self.run, end=self.now)
        return impact_totals.rows_of_job(self.job, run, self._request.user)

    @property
    def impact_about(self) -> str:
        """The jobs and the time of `impacts`."""
        until = "" if self.job.ended_at else f" until {local_text(self.now)}"
        return f"The job, and its groups of jobs if they add to it, during its run{until}"

    @cached_property
    def is_stale(self) -> bool:
        """Whether recomputation of the statistics is pending."""
        return job_facts.has_pending_statistics(self.job)

    @cached_property
    def figure_groups(self) -> dict[str, list[job_facts.Figure]]:
        """Metrics by subject."""
        return job_facts.groups(self.statistics) if self.statistics else {}

    @property
    def operations_by_kind(self) -> Table[Any]:
        """Metadata operations by kind."""
        rows = job_facts.by_kind(self.statistics) if self.statistics else []
        return Table("Operations by kind", _KINDS, rows)

    @cached_property
    def panda(self) -> PandaSummary | None:
        """Totals of the PanDA jobs inside."""
        return panda_jobs.panda_summary(self.job)

    @cached_property
    def panda_jobs(self) -> Table[WorkloadJob]:
        """The first PanDA jobs inside."""
        rows = panda_jobs.jobs_inside(self.job)[:_LISTED_PANDA_JOBS]
        return Table("PanDA jobs", [c for c in PANDA_COLUMNS if c.name != "batch_job"], rows)

    @property
    def panda_tasks(self) -> list[tuple[int | None, int]]:
        """The first PanDA tasks and their numbers of jobs."""
        return self.panda.tasks[:_LISTED_TASKS] if self.panda else []

    @property
    def more_tasks(self) -> int:
        """The number of PanDA tasks that are not listed."""
        return max(len(self.panda.tasks) - _LISTED_TASKS, 0) if self.panda else 0

    @cached_property
    def comparison(self) -> Comparison | None:
        """Ranks among similar jobs."""
        if self.statistics is None:
            return None
        return Comparison(self.job, self.statistics, self._request.user)

    @cached_property
    def startup(self) -> TimeRange | None:
        """The start-up phase of the run."""
        if self.run is None:
            return None
        return TimeRange(
            self.run.start, self.run.start + (self.run.end - self.run.start) * _STARTUP
        )

    @cached_property
    def timelines(self) -> list[Timeline]:
        """Charts of the range."""
        marks = [
            *job_marks((row.flag for row in self.flags), self.job.ended_at),
            *mitigation_marks.for_job(self.job, self._range, self._request.user),
        ]
        return [Timeline(kind, self._series, self._range, marks) for kind in KINDS]

    def timeline(self, name: str) -> Timeline | None:
        """Return one chart by name, without marks of flags and mitigations; None: unknown."""
        kind = BY_NAME.get(name)
        return Timeline(kind, self._series, self._range) if kind else None

    @cached_property
    def traces(self) -> list[tuple[TimeRange, str]]:
        """Traced intervals of the run, with labels."""
        run = self.run or self._range
        return [(trace, trace.label_within(run)) for trace in self._series.traces(run)]

    @property
    def first_traces(self) -> list[tuple[TimeRange, str]]:
        """Traces that are always visible."""
        return self.traces[:_LISTED_TRACES]

    @property
    def more_traces(self) -> list[tuple[TimeRange, str]]:
        """The remaining traces."""
        return self.traces[_LISTED_TRACES:]

    @cached_property
    def launch(self) -> Launch | None:
        """The launch that the URL selects."""
        name = self._request.GET.get("launch", "").strip()
        launch = next((launch for launch in self.launches if launch.name == name), None)
        if name and launch is None:
            raise Http404(f"Job {self.job} has no launch of this name.")
        return launch

    @cached_property
    def rpc_report(self) -> RpcReport | None:
        """RPCs of the job or launch, in the selected range or the whole run."""
        if self.launch:
            return rpc_reports.for_launch(self.launch, *self._selected_range)
        return rpc_reports.for_job(self.job, *self._selected_range)

    @property
    def rpc_table(self) -> Table[RpcRow]:
        """The rows of the RPC report, and their total."""
        report = self.rpc_report
        rows = [*report.rows, replace(report.overall, opcode="All")] if report else []
        columns: tuple[Column[RpcRow], ...] = (
            Column("opcode", "Opcode"),
            Column("count", "Count", unit=Unit.RPCS),
            Column("share", "Share", lambda row: row.count / (rows[-1].count or 1), Unit.SHARE),
            Column("per_second", "Rate", unit="RPCs/s", form=show.rate),
            *(
                Column(at, at, f"{name}__{at}_us", "", form=show.round_us, group=title)
                for name, title in _TIMES.items()
                for at in ("min", "mean", "max")
            ),
        )
        total = rows[-1:]
        return Table(
            "RPCs by opcode",
            columns,
            rows,
            row_css=lambda row: "overall" if row in total else "",
        )

    @cached_property
    def attribution_methods(self) -> list[tuple[int, str]]:
        """RPCs of the report by attribution method."""
        if self.launch:
            return []
        methods = rpc_reports.attribution_methods(self.job, *self._selected_range)
        return [(rpcs, _METHODS[method]) for method, rpcs in methods]

    @cached_property
    def _series(self) -> JobSeries:
        return JobSeries(self.job, self._range)

    @property
    def has_selected_range(self) -> bool:
        """Whether the URL selects a part of the run."""
        return self.window is not None and (self.window.is_selected or bool(self.window.last))

    @property
    def _range(self) -> TimeRange:
        if self.window is None:
            raise Http404("The job has not run.")
        return self.window

    @property
    def _selected_range(self) -> tuple[Any, Any]:
        window = self.window
        return (window.start, window.end) if window and self.has_selected_range else (None, None)
