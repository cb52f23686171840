"""The jobs that a page is about, as its URL's filters choose them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.urls import reverse

from ioportal.studies.populations import BATCH_JOBS, UNITS
from ioportal.web.common import job_kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.studies.populations import Counted


class ChosenJobs:
    """The jobs that `user` may see and the URL's query asks for.

    `only` narrows them further: a filter's parameter and its exact value. They are batch jobs,
    unless `counted` says otherwise.
    """

    # What the form of filters has no fields for, and carries on.
    carried_on: tuple[str, ...] = ("state", "quality")
    counts_either = ""  # the name of a page that counts batch jobs or PanDA jobs, as it is asked
    # What stays, beside the filters that fit, where another unit is counted.
    kept_by_units: tuple[str, ...] = ()

    def __init__(
        self,
        user: User,
        query: QueryDict,
        only: dict[str, str] | None = None,
        counted: Counted = BATCH_JOBS,
    ) -> None:
        self.user = user
        self.query = query
        self.counted = counted
        self._only = only or {}
        filters = counted.filter_set.base_filters
        facts = {filters[name].field_name: value for name, value in self._only.items()}
        self.filter = counted.filter_set(query, queryset=counted.visible_to(user).filter(**facts))

    @property
    def is_valid(self) -> bool:
        """Whether every filter was understood."""
        return bool(self.filter.is_valid())

    @cached_property
    def filtered(self) -> Any:
        """The jobs, in no order; none where a filter was not understood."""
        return self.filter.qs

    @property
    def simulated(self) -> bool:
        """Whether some of the jobs are made up."""
        return bool(self.filtered.filter(cluster__simulated=True).exists())

    @property
    def hidden_filters(self) -> list[tuple[str, list[str]]]:
        """What the form of filters carries on."""
        return [
            (name, self.query.getlist(name)) for name in self.carried_on if self.query.get(name)
        ]

    @property
    def active_filters(self) -> list[tuple[str, str]]:
        """The filters that the URL sets: their labels and values."""
        return [
            (self.filter.form.fields[name].label, ", ".join(values))
            for name, values in self._given(self.filter.filters)
        ]

    def filters_query(self, *besides: str, **changes: str) -> str:
        """Return the filters, the parameters `besides` and changes, for another page's address."""
        given = dict(self._given([*self.filter.filters, *besides]))
        return urlencode({**given, **self._only, **changes}, doseq=True)

    def unit_query(self, *besides: str, **changes: str) -> str:
        """Return what `filters_query` does, and what is counted."""
        return job_kinds.with_unit(self.counted, self.filters_query(*besides, **changes))

    @property
    def list_url(self) -> str:
        """Where the jobs are listed."""
        return job_kinds.list_url(self.counted, self.filters_query())

    @property
    def units(self) -> Iterator[tuple[str, str, bool]]:
        """Yield what may be counted: its name, where (by the filters that fit), whether it is."""
        for counted in UNITS.values():
            fitting = [
                name for name in self.filter.filters if name in counted.filter_set.base_filters
            ]
            given = urlencode(dict(self._given([*fitting, *self.kept_by_units])), doseq=True)
            address = (
                f"{reverse(self.counts_either)}?{job_kinds.with_unit(counted, given)}"
                if self.counts_either
                else job_kinds.list_url(counted, given)
            )
            yield job_kinds.TITLES[counted.name], address, counted is self.counted

    def _given(self, names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        for name in names:
            if values := [value for value in self.query.getlist(name) if value]:
                yield name, values
