"""Jobs selected by the filters of a URL."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.urls import reverse

from ioportal.core.time_ranges import OpenRange
from ioportal.core.times import ALL
from ioportal.jobs.job_filters import TIME
from ioportal.jobs.populations.selections import BATCH_JOBS, JOB_KINDS, pending_statistics
from ioportal.web.common import job_kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.jobs.populations.selections import JobKind


class SelectedJobs:
    """Jobs that match the filters of a query and that `user` may see.

    `only` restricts them further, by a filter's parameter and its exact value. `kind` selects
    PanDA jobs instead of batch jobs.
    """

    hidden_parameters: tuple[str, ...] = ("state", "quality")  # hidden fields of the filter form
    unit_page = ""  # URL name of the page if it has a choice of unit
    unit_parameters: tuple[str, ...] = ()  # preserved by the links to the other unit

    def __init__(
        self,
        user: User,
        query: QueryDict,
        only: dict[str, str] | None = None,
        kind: JobKind = BATCH_JOBS,
    ) -> None:
        self.user = user
        self.query = query
        self.job_kind = kind
        self._only = only or {}
        filters = kind.filter_set.base_filters
        facts = {filters[name].field_name: value for name, value in self._only.items()}
        self.filter = kind.filter_set(query, queryset=kind.visible_to(user).filter(**facts))

    @property
    def is_valid(self) -> bool:
        """Whether every filter is valid."""
        return bool(self.filter.is_valid())

    @cached_property
    def filtered(self) -> Any:
        """The jobs, unordered; none if a filter is invalid."""
        return self.filter.qs

    @property
    def simulated(self) -> bool:
        """Whether any of the jobs is simulated."""
        return bool(self.filtered.filter(cluster__simulated=True).exists())

    @cached_property
    def pending_statistics(self) -> int:
        """The number of jobs whose statistics are pending."""
        return pending_statistics(self.job_kind, self.filtered)

    @property
    def hidden_filters(self) -> list[tuple[str, list[str]]]:
        """Hidden fields of the filter form."""
        return [
            (name, self.query.getlist(name))
            for name in (*TIME, *self.hidden_parameters)
            if self.query.get(name)
        ]

    @property
    def active_filters(self) -> list[tuple[str, str]]:
        """Labels and values of the filters in the URL."""
        return [
            (self.filter.form.fields[name].label, ", ".join(values))
            for name, values in self._given(self.filter.filters)
            if (name, values) != ("last", [ALL])
        ]

    @property
    def active_fields(self) -> int:
        """The number of filters in the URL that the filter form shows: all but times."""
        return sum(name not in TIME for name, _ in self._given(self.filter.filters))

    @property
    def period(self) -> OpenRange:
        """The time of the runs; unbounded if it is invalid."""
        values = self.filter.form.cleaned_data if self.is_valid else {}
        start, end = values.get("start"), values.get("end")
        is_selected = self.query.get("start") or self.query.get("end")
        last = "" if is_selected else values.get("last") or ALL
        return OpenRange(start, end, last)

    @property
    def period_errors(self) -> list[str]:
        """Errors of the parameters of `period`."""
        return [
            f"{self.filter.form.fields[name].label} {self.query.get(name, '')[:64]!r}: {error}"
            for name in TIME
            for error in self.filter.errors.get(name, ())
        ]

    def filters_query(self, *more: str, **changes: str) -> str:
        """Return the query of another page: filters, `more` parameters, and changes."""
        given = dict(self._given([*self.filter.filters, *more]))
        return urlencode({**given, **self._only, **changes}, doseq=True)

    def unit_query(self, *more: str, **changes: str) -> str:
        """Return `filters_query` with the unit."""
        return job_kinds.with_unit(self.job_kind, self.filters_query(*more, **changes))

    @property
    def list_url(self) -> str:
        """The URL of the job list."""
        return job_kinds.list_url(self.job_kind, self.filters_query())

    @property
    def units(self) -> Iterator[tuple[str, str, bool]]:
        """Yield the units: title, URL with the filters that both have, whether it is current."""
        for kind in JOB_KINDS.values():
            fitting = [name for name in self.filter.filters if name in kind.filter_set.base_filters]
            given = urlencode(dict(self._given([*fitting, *self.unit_parameters])), doseq=True)
            address = (
                f"{reverse(self.unit_page)}?{job_kinds.with_unit(kind, given)}"
                if self.unit_page
                else job_kinds.list_url(kind, given)
            )
            yield job_kinds.TITLES[kind.name], address, kind is self.job_kind

    def _given(self, names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        for name in names:
            if values := [value for value in self.query.getlist(name) if value]:
                yield name, values
