"""The pages of mitigations: the list, and one mitigation with its periods before and after."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone

from ioportal.changes import mitigation_effects
from ioportal.changes.arm_details import arm_jobs
from ioportal.changes.models import Mitigation
from ioportal.jobs.populations import scopes
from ioportal.jobs.populations.selections import (
    BATCH_JOBS,
    kind_in,
    pending_statistics,
    population_text,
)
from ioportal.web.common import job_kinds
from ioportal.web.common.tables import Column, Table, included, to
from ioportal.web.comparisons.page import ComparisonPage
from ioportal.web.mitigations.forms import ListFilterForm

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.utils.safestring import SafeString

    from ioportal.changes.mitigation_effects import MeasuredEffect
    from ioportal.web.common.parts import Part

PER_PAGE = 50
_MEASURED = 50  # latest mitigations of the catalogue


def _state(mitigation: Mitigation) -> SafeString:
    return included("mitigations/_state.html", mitigation=mitigation)


_COLUMNS: tuple[Column[Mitigation], ...] = (
    Column("id", ""),
    Column("title", "Title", link=to("mitigation", "pk"), css="wrap"),
    Column("kind", "Kind", cell="get_kind_display", css="wrap"),
    Column("made_by", ""),
    Column("started_at", "Start"),
    Column("completed_at", ""),
    Column("reverted_at", ""),
    Column("scope", "Jobs", cell=lambda mitigation: population_text(mitigation.scope), css="wrap"),
    *(
        Column[Mitigation](name, "")
        for name in (
            *("metric", "factor", "direction", "links", "notes", "cost", "fix", "fix_url"),
            *("source", "is_public", "simulated"),
        )
    ),
    Column("", "Expected", "expectation", css="wrap"),
    Column("", "State", _state),
)


def _agreement(measured: MeasuredEffect) -> str | None:
    agreement = measured.finding.agreement if measured.finding else None
    return agreement and agreement.name.lower().replace("_", " ")


_EFFECT: tuple[Column[MeasuredEffect], ...] = (
    Column("before", "", "periods__before"),
    Column("after", "", "periods__after"),
    Column("remarks", ""),
    Column("jobs", "", lambda measured: list(measured.jobs)),
    *(
        Column[Any](name, "", f"effect__{name}")
        for name in ("verdict", "scale", "estimate", "low", "high", "p")
    ),
    Column("all_jobs", "", lambda measured: list(measured.all_jobs)),
    Column("agreement", "", _agreement),
    Column("conclusions", ""),
)


class MitigationList:
    """The mitigations that a user may see, filtered by a query."""

    def __init__(self, user: User, query: QueryDict) -> None:
        self._user = user
        self._query = query
        self.form = ListFilterForm(user, query)
        self.is_filtered = any(query.get(name) for name in self.form.fields)

    @property
    def errors(self) -> dict[str, list[str]]:
        """Errors of the filters."""
        return {name: list(map(str, errors)) for name, errors in self.form.errors.items()}

    @cached_property
    def rows(self) -> list[Mitigation]:
        """The mitigations, latest first; none if a filter is invalid."""
        if not self.form.is_valid():
            return []
        values = self.form.cleaned_data
        visible = Mitigation.objects.visible_to(self._user)
        if values["kind"]:
            visible = visible.filter(kind=values["kind"])
        if values["start"]:
            visible = visible.filter(started_at__gte=values["start"])
        if values["end"]:
            visible = visible.filter(started_at__lt=values["end"])
        latest_first = visible.order_by("-started_at", "-pk")
        return [each for each in latest_first if scopes.may_overlap(each.scope, values["jobs"])]

    @cached_property
    def table(self) -> Table[Mitigation]:
        """The mitigations in columns."""
        return Table("Mitigations", _COLUMNS, self.rows, query=self._query, per_page=PER_PAGE)

    @property
    def simulated(self) -> bool:
        """Whether a mitigation on the page is simulated."""
        return any(each.simulated for each in self.table.page)


class MitigationPage:
    """One mitigation as far as a user may see its jobs."""

    def __init__(self, mitigation: Mitigation, user: User) -> None:
        self.mitigation = mitigation
        self._user = user

    @property
    def scope_text(self) -> str:
        """The jobs that it concerns."""
        return population_text(self.mitigation.scope)

    @property
    def jobs_url(self) -> str:
        """The list of its jobs."""
        return job_kinds.list_url(kind_in(QueryDict(self.mitigation.scope)), self.mitigation.scope)

    @property
    def trends_url(self) -> str:
        """The trends of its jobs around it."""
        metric = {"metric": self.mitigation.metric} if self.mitigation.metric else {}
        around = {"start": "", "end": ""}
        if self.measured.periods.spans:
            before, after = self.measured.periods.spans
            local = timezone.localtime
            around = {"start": local(before[0]).isoformat(), "end": local(after[1]).isoformat()}
        options = urlencode({**metric, **around, "step": "day"})
        return f"{reverse('trends')}?{'&'.join(filter(None, [self.mitigation.scope, options]))}"

    @cached_property
    def pending_statistics(self) -> int:
        """The number of jobs of its periods whose statistics are pending."""
        periods = self.measured.periods
        arms = [
            mitigation_effects.selection(query, self._user)
            for query in (periods.before, periods.after)
            if query
        ]
        return sum(pending_statistics(arm.kind, arm_jobs(arm), flags=False) for arm in arms)

    @cached_property
    def measured(self) -> MeasuredEffect:
        """The periods to compare, and the effect on the expected metric."""
        [measured] = mitigation_effects.measure([self.mitigation], self._user)
        return measured

    @cached_property
    def chart(self) -> Part[Any] | None:
        """The daily medians of the expected metric around it; None: it was not measured."""
        if not self.measured.figures:
            return None
        query = QueryDict(self.measured.chart_query)
        return ComparisonPage(self._user, query).part("days")

    @property
    def facts(self) -> dict[str, Any]:
        """The mitigation as one JSON object."""
        return {
            **Table("", _COLUMNS, [self.mitigation]).facts[0],
            **Table("", _EFFECT, [self.measured]).facts[0],
            "pending_statistics": self.pending_statistics,
        }


class Catalogue:
    """Mitigations of each kind with their measured effects, as far as a user may see both."""

    def __init__(self, user: User) -> None:
        self._user = user

    @cached_property
    def effects(self) -> list[MeasuredEffect]:
        """The effects of the latest mitigations, by kind."""
        visible = Mitigation.objects.visible_to(self._user)
        latest = sorted(visible.order_by("-started_at", "-pk")[:_MEASURED], key=_order_of_kind)
        return mitigation_effects.measure(latest, self._user)

    @property
    def measured(self) -> list[MeasuredEffect]:
        """Those with a conclusion."""
        return [each for each in self.effects if each.is_measured]

    @property
    def unmeasured(self) -> list[MeasuredEffect]:
        """Those without: nothing is known about their effect."""
        return [each for each in self.effects if not each.is_measured]

    @cached_property
    def pending_statistics(self) -> int:
        """The number of visible jobs whose statistics are pending: any may belong to an effect."""
        return pending_statistics(BATCH_JOBS, BATCH_JOBS.visible_to(self._user), flags=False)

    @property
    def simulated(self) -> bool:
        """Whether any of the mitigations is simulated."""
        return any(each.mitigation.simulated for each in self.effects)

    @property
    def table(self) -> Table[MeasuredEffect]:
        """All mitigations with their effects, for exports."""
        own = ("id", "title", "kind", "started_at", "metric", "factor", "direction", "cost")
        columns = (*(Column[Any](name, "", f"mitigation__{name}") for name in own), *_EFFECT)
        return Table("What worked", columns, self.effects)


def _order_of_kind(mitigation: Mitigation) -> int:
    return Mitigation.Kind.values.index(mitigation.kind)
