"""The list of cases: filters, tabs by state, and pages, as the URL selects them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import django_filters as filters
from django.contrib.auth import get_user_model
from django.core.paginator import Paginator
from django.db.models import Count, Exists, OuterRef, Q

from ioportal.findings import latest_data
from ioportal.findings.cases.case_texts import (
    columns,
    current_impacts,
    fact,
    is_simulated,
    summaries,
    with_places,
    worst_first,
)
from ioportal.findings.models import CURRENT, TO_TRIAGE, Case, Flag
from ioportal.jobs.job_filters import ValuesFilter, split_values
from ioportal.load.principals import host_subjects
from ioportal.rules import RULES
from ioportal.rules.rule import Subject
from ioportal.site.models import Cluster, Filesystem
from ioportal.web.common.pagination import COUNTED, Concatenated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from django.core.paginator import Page
    from django.db.models import QuerySet
    from django.http import QueryDict

    from ioportal.findings.cases.case_texts import CaseSummary
    from ioportal.findings.models import CaseQuerySet
    from ioportal.load.impact.impact_totals import ImpactTotal

PER_PAGE = 40
ME, UNASSIGNED = "me", "none"  # values of the assignee filter
NOTICES, ALL = "notices", "all"  # tabs
_State = Case.State
_ROWS_AT_ONCE = 2_000
_MAX_COUNT = 99  # in the navigation


def staff() -> QuerySet[User]:
    """Return the users who may be assigned a case."""
    return get_user_model().objects.filter(is_staff=True, is_active=True).order_by("username")


def to_triage() -> str:
    """Return the number of cases that need triage: "99+" if there are more, "" for none."""
    count = Case.objects.to_triage().order_by()[: _MAX_COUNT + 1].count()
    return f"{_MAX_COUNT}+" if count > _MAX_COUNT else f"{count or ''}"


def _assignees() -> list[tuple[str, str]]:
    names = staff().values_list("username", flat=True)
    return [(ME, "me"), (UNASSIGNED, "unassigned"), *((name, name) for name in names)]


class CaseFilter(filters.FilterSet):  # type: ignore[misc]  # django-filter is untyped
    """Cases by finding, subject, place and assignee; their state is a tab."""

    q = filters.CharFilter(method="search", label="Job, name, user or process")
    severity = filters.ChoiceFilter(
        choices=list(reversed(Flag.Severity.choices)), label="Severity", empty_label="all"
    )
    rule = filters.ChoiceFilter(
        choices=[(rule.code, rule.title) for rule in RULES], label="Rule", empty_label="all"
    )
    user = ValuesFilter("owner", label="User")
    cluster = filters.ModelChoiceFilter(
        queryset=Cluster.objects.all(),
        to_field_name="name",
        method="in_cluster",
        label="Cluster",
        empty_label="all",
    )
    filesystem = filters.ModelChoiceFilter(
        queryset=Filesystem.objects.order_by("name"),
        to_field_name="name",
        label="Filesystem",
        empty_label="all",
    )
    assignee = filters.ChoiceFilter(
        choices=_assignees, method="assigned_to", label="Assignee", empty_label="all"
    )

    class Meta:
        model = Case
        fields: tuple[str, ...] = ()

    def __init__(self, query: QueryDict, user: User) -> None:
        super().__init__(query, queryset=Case.objects.visible_to(user))
        self._user = user
        if not user.is_staff:
            del self.filters["assignee"]

    def search(self, cases: CaseQuerySet, _name: str, value: str) -> CaseQuerySet:
        """Keep cases by job id, process, host, part of a job's name, or part of the user's name."""
        hosts = Q(subject_kind=Subject.HOST, subject__in=host_subjects(split_values(value)))
        jobs = Q(job__batch_id__in=split_values(value)) | Q(job__name__icontains=value)
        return cases.filter(self._has_flag(jobs) | Q(owner__icontains=value) | hosts)

    def in_cluster(self, cases: CaseQuerySet, _name: str, value: Cluster) -> CaseQuerySet:
        """Keep cases with a flag of a cluster."""
        return cases.filter(self._has_flag(Q(cluster=value)))

    def _has_flag(self, condition: Q) -> Exists:
        flags = Flag.objects.visible_to(self._user).filter(condition)
        return Exists(flags.filter(case=OuterRef("pk")))

    def assigned_to(self, cases: CaseQuerySet, _name: str, value: str) -> CaseQuerySet:
        """Keep cases of an assignee."""
        if value == UNASSIGNED:
            return cases.filter(assignee=None)
        if value == ME:
            return cases.filter(assignee=self._user)
        return cases.filter(assignee__username=value)


@dataclass(frozen=True)
class Tab:
    """A choice of states, with its number of cases."""

    title: str
    count: int
    url: str
    is_selected: bool


class Inbox:
    """The cases that the URL selects, worst first."""

    def __init__(self, user: User, query: QueryDict) -> None:
        self._user = user
        self._query = query
        self.filter = CaseFilter(query, user)
        self.state = query.get("state", "")

    @property
    def errors(self) -> dict[str, list[str]]:
        """Errors of the query, by parameter."""
        if self.state in self._tabs:
            return dict(self.filter.errors)
        return {**self.filter.errors, "state": [f"{self.state[:64]!r} is not a state."]}

    @cached_property
    def _tabs(self) -> dict[str, tuple[str, Q]]:
        """The tabs: their titles and conditions. Notices need no triage."""
        visible = [s for s in _State if self._user.is_staff or s != _State.SUPPRESSED]
        current = {"": ("Current", CURRENT)}
        if self._user.is_staff:
            current = {"": ("To triage", TO_TRIAGE), NOTICES: ("Notices", CURRENT & ~TO_TRIAGE)}
        return {
            **current,
            **{state: (state.label.capitalize(), Q(state=state)) for state in visible},
            ALL: ("All", Q(state__in=visible)),
        }

    @cached_property
    def _filtered(self) -> CaseQuerySet:
        """The cases in all states; none if the query has errors."""
        cases: CaseQuerySet = self.filter.queryset.none() if self.errors else self.filter.qs
        return cases

    @cached_property
    def _counts(self) -> dict[str, int]:
        """The number of cases of each tab."""
        counts = {f"tab_{name}": Count("pk", filter=tab) for name, (_, tab) in self._tabs.items()}
        rows = self._filtered.order_by().aggregate(**counts)
        return {name: rows[f"tab_{name}"] for name in self._tabs}

    @property
    def tabs(self) -> Iterator[Tab]:
        """All tabs."""
        for name, (title, _) in self._tabs.items():
            yield Tab(title, self._counts[name], self.url(state=name), name == self.state)

    @cached_property
    def _impacts(self) -> dict[int, ImpactTotal]:
        """Current impact by case."""
        return current_impacts(self._user, latest_data.impact())

    @property
    def _ordered(self) -> CaseQuerySet:
        _, selected = self._tabs.get(self.state, self._tabs[""])
        return worst_first(with_places(self._filtered.filter(selected)), self._impacts)

    @cached_property
    def page(self) -> Page[Case]:
        """The page in the URL; an invalid number means the first or last one."""
        total = self._counts.get(self.state, 0)
        cases: Any = Concatenated([self._ordered], min(total, COUNTED))
        return Paginator(cases, PER_PAGE).get_page(self._query.get("page"))

    @cached_property
    def rows(self) -> list[CaseSummary]:
        """The cases of the page."""
        return summaries(self.page.object_list, self._user, self._impacts)

    @property
    def is_simulated(self) -> bool:
        """Whether some cases of the page are about simulated data."""
        return any(is_simulated(row.case) for row in self.rows)

    @property
    def active_filters(self) -> list[tuple[str, str]]:
        """Labels and values of the filters in the URL."""
        return [
            (self.filter.form.fields[name].label, ", ".join(values))
            for name in self.filter.filters
            if (values := [value for value in self._query.getlist(name) if value])
        ]

    @property
    def is_empty(self) -> bool:
        """Whether there are no cases in any state."""
        return not self.active_filters and not self._counts[ALL]

    def url(self, **changes: str) -> str:
        """Return the URL of the first page with some parameters changed."""
        unchanged = {k: v for k, v in self._query.lists() if k not in {"page", "format", *changes}}
        given = {**unchanged, **{name: [value] for name, value in changes.items()}}
        parts = {name: [value for value in values if value] for name, values in given.items()}
        return "?" + urlencode(parts, doseq=True)

    def export_rows(self) -> Iterator[list[Any]]:
        """Yield the values of `columns` for each case."""
        names = columns(self._user)
        cases = self._ordered[:COUNTED].iterator(_ROWS_AT_ONCE)
        while batch := list(islice(cases, PER_PAGE)):
            for row in summaries(batch, self._user):
                yield [fact(row, name) for name in names]
