"""The overview page: every section in one range."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.http import QueryDict

from ioportal.changes import mitigation_marks
from ioportal.findings import slow_servers
from ioportal.load.impact import impact_totals
from ioportal.load.principals import BYS
from ioportal.web.overview import query
from ioportal.web.overview.metrics import SECTIONS
from ioportal.web.overview.query import OverviewQuery

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.findings.slow_servers import ObservedServer
    from ioportal.load.impact.impact_totals import ImpactRow
    from ioportal.web.overview.section import Section


class OverviewPage:
    """The sections of the range in the address, or of the latest data where it is invalid."""

    groupings = BYS
    refresh_s = query.REFRESH_S

    def __init__(self, user: User, parameters: QueryDict) -> None:
        self._user = user
        self.errors: list[str] = []
        try:
            self.query = OverviewQuery.from_query(parameters)
        except ValidationError as error:
            self.errors = error.messages
            self.query = OverviewQuery.from_query(QueryDict())
        self.window = self.query.window

    @property
    def sections(self) -> list[Section]:
        """The sections, in order."""
        marks = mitigation_marks.for_servers(self.window, self._user)
        return [section(self.query, self._user, marks) for section in SECTIONS.values()]

    @property
    def observed(self) -> list[ObservedServer]:
        """The slow servers under observation."""
        return slow_servers.current(self._user)

    @cached_property
    def impacts(self) -> list[ImpactRow]:
        """Users, processes and hosts with the largest impact in the range; for staff."""
        return impact_totals.rows_in_range(self.window, self._user)

    @cached_property
    def latest_data(self) -> datetime | None:
        """The end of the latest observed interval."""
        return query.latest_data()

    @property
    def is_empty(self) -> bool:
        """Whether there is no data at all."""
        return self.latest_data is None

    @property
    def is_old(self) -> bool:
        """Whether the range ends at old data for lack of current data."""
        return not self.query.is_live and not self.window.is_selected

    @property
    def is_registered(self) -> bool:
        """Whether any metadata server or target is registered."""
        return query.is_registered()

    @property
    def simulated(self) -> bool:
        """Whether some of the data is simulated."""
        return not self.is_empty and query.is_simulated()
