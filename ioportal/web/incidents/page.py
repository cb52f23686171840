"""The incident pages: saved incidents and reports, one incident, and the analysis of a range."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.core.exceptions import ValidationError
from django.shortcuts import get_object_or_404
from django.urls import reverse

from ioportal.load.analysis.waiting import MIN_BASELINE_WINDOWS
from ioportal.load.impact import request_times
from ioportal.load.models import Incident, Report
from ioportal.site.models import Filesystem, Server
from ioportal.web.common.tables import Table
from ioportal.web.incidents import impact_analysis, tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.load.step_charts import StepsChart
    from ioportal.web.incidents.impact_analysis import ImpactAnalysis
    from ioportal.web.incidents.tables import SlowInterval

_LISTED = 25
_AROUND = timedelta(days=14)  # before and after an incident


class IncidentListPage:
    """Saved incidents, suggestions and reports."""

    def __init__(self, user: User, query: QueryDict) -> None:
        """Read the number of the page from the query."""
        self._user = user
        self.saved = Table(
            "Saved incidents",
            tables.saved_incidents(user),
            Incident.objects.select_related("server__filesystem"),
            nothing="No saved incidents.",
            query=query,
            per_page=_LISTED,
        )

    @property
    def suggestions(self) -> list[SlowInterval]:
        """Slow intervals that staff may save."""
        return impact_analysis.suggestions() if self._user.is_staff else []

    @property
    def reports(self) -> Table[Report]:
        """Reports, each with its incidents: for staff those without any, for users their own."""
        visible = Report.objects.visible_to(self._user).select_related("filesystem", "reporter")
        reports = list((visible.without_incident() if self._user.is_staff else visible)[:_LISTED])
        around: list[Incident] = []
        if reports:
            times = [report.at for report in reports]
            incidents = Incident.objects.select_related("server").filter(
                start__lte=max(times) + Report.EARLY, end__gt=min(times) - Report.LATE
            )
            around = list(incidents)
        of_report = {
            report.pk: [incident for incident in around if report.belongs_to(incident)]
            for report in reports
        }
        return tables.listed_reports(reports, of_report, is_staff=self._user.is_staff)

    @property
    def simulated(self) -> bool:
        """Whether some filesystem is simulated."""
        return Filesystem.objects.filter(simulated=True).exists()


class _AnalysisPage:
    """Common parts of the pages that show an impact analysis."""

    min_windows = MIN_BASELINE_WINDOWS

    def __init__(self, user: User) -> None:
        self._user = user

    def _reports(self, filesystem: int, start: datetime, end: datetime) -> Table[Report]:
        reports = Report.objects.visible_to(self._user).about(filesystem, start, end)
        rows = list(reports.select_related("reporter", "filesystem"))
        return tables.reports(rows, is_staff=self._user.is_staff)


class IncidentPage(_AnalysisPage):
    """A saved incident with its impact analysis and reports."""

    def __init__(self, incident: Incident, user: User) -> None:
        super().__init__(user)
        self.incident = incident
        self.filesystem = incident.server.filesystem

    @cached_property
    def analysis(self) -> ImpactAnalysis:
        """The impact analysis of its range."""
        return impact_analysis.for_incident(self.incident, self._user)

    @property
    def comparisons(self) -> list[tuple[str, str]]:
        """Labels and URLs of comparisons of jobs, with the incident as a separate arm."""
        start, end = self.incident.start, self.incident.end
        before, during, after = (
            urlencode({"start": first.isoformat(), "end": last.isoformat()})
            for first, last in ((start - _AROUND, start), (start, end), (end, end + _AROUND))
        )
        return [
            (label, f"{reverse('compare')}?{urlencode({'arm': arms}, doseq=True)}")
            for label, arms in (
                (f"{_AROUND.days} days before and incident", (before, during)),
                (f"incident and {_AROUND.days} days after", (during, after)),
            )
        ]

    @cached_property
    def reports(self) -> Table[Report]:
        """The visible reports around its time."""
        return self._reports(self.filesystem.pk, self.incident.start, self.incident.end)

    @property
    def simulated(self) -> bool:
        """Whether its filesystem is simulated."""
        return self.filesystem.simulated

    @property
    def about(self) -> dict[str, Any]:
        """The JSON export's members next to its rows."""
        columns = tables.saved_incidents(self._user)
        return {
            **{column.name: column.exact(self.incident) for column in columns},
            **({"notes": self.incident.notes} if self._user.is_staff else {}),
            "simulated": self.simulated,
            **self.analysis.about,
            "reports": [
                {
                    "at": report.at,
                    "description": report.description,
                    "reporter": report.reporter.get_username(),
                }
                for report in self.reports.rows
            ],
        }


class ImpactPage(_AnalysisPage):
    """The impact analysis of a filesystem's metadata servers in a range."""

    def __init__(self, user: User, query: QueryDict, filesystem: str) -> None:
        """`filesystem` is a name; "": the first filesystem."""
        super().__init__(user)
        self.filesystems = list(Filesystem.objects.order_by("name"))
        self.filesystem = (
            get_object_or_404(Filesystem, name=filesystem)
            if filesystem
            else next(iter(self.filesystems), None)
        )
        self.errors: list[str] = []
        self.window = impact_analysis.default_range(self.filesystem) if self.filesystem else None
        if self.window:
            try:
                self.window = impact_analysis.selected_range(query, self.window)
            except ValidationError as error:
                self.errors = error.messages

    @cached_property
    def analysis(self) -> ImpactAnalysis | None:
        """The analysis; None: the filesystem has no traces."""
        if self.filesystem is None or self.window is None:
            return None
        return impact_analysis.for_filesystem(self.filesystem, self.window, self._user)

    @cached_property
    def reports(self) -> Table[Report] | None:
        """The reports around this time."""
        if self.filesystem is None or self.window is None:
            return None
        return self._reports(self.filesystem.pk, self.window.start, self.window.end)

    @cached_property
    def charts(self) -> dict[str, StepsChart]:
        """Request times of each metadata server with data, by its name."""
        if self.filesystem is None or self.window is None:
            return {}
        servers = Server.objects.filter(filesystem=self.filesystem, kind=Server.Kind.MDS)
        charts = {
            server.name: request_times.chart(server, self.window, self._user)
            for server in servers.order_by("name")
        }
        return {name: chart for name, chart in charts.items() if not chart.is_empty}

    @property
    def simulated(self) -> bool:
        """Whether the analysed filesystem is simulated."""
        return bool(self.window and self.filesystem and self.filesystem.simulated)

    @property
    def about(self) -> dict[str, Any]:
        """The JSON export's members next to its rows."""
        if self.filesystem is None or self.analysis is None:
            return {}
        filesystem = {"filesystem": self.filesystem.name, "simulated": self.filesystem.simulated}
        return {**filesystem, **self.analysis.about}

    @property
    def export(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """The columns and rows of the exports."""
        if self.analysis is None:
            return [column.name for column in tables.PRINCIPALS], []
        return self.analysis.table.export
