"""Scopes: populations without times, as query strings of filters.

The scope of a mitigation, or of a change point, is a set of jobs whenever they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Exists
from django.http import QueryDict

from ioportal.jobs.job_filters import TIME, split_values
from ioportal.jobs.models import Job
from ioportal.jobs.populations.selections import BATCH_JOBS, kind_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from django.db.models import QuerySet

    from ioportal.jobs.populations.selections import JobKind

MAX_LENGTH = 2_000
_PART_OF_NAME = "name"  # the filter whose value is a part of a name
_OF_SITE = {"cluster", "unit"}  # filters that select no users
# Filters whose values are names; two populations have no job in common if they differ.
_EXACT = {
    *("user", "project", "queue", "cluster", "state", "q", "node"),
    *("pandaid", "jeditaskid", "batchid", "jobstatus", "computingsite", "produsername"),
}
_WHOLE = {"cluster", "produsername", "state"}  # of these, a value may contain separators


def scope_of(query: str) -> str:
    """Return the filters of a query without times, in a stable order."""
    parameters = QueryDict(query)
    kind = kind_in(parameters)
    unit = [] if kind is BATCH_JOBS else [("unit", [kind.name])]
    filters = [
        (name, values)
        for name in kind.filter_set.base_filters
        if name not in TIME and (values := [v for v in parameters.getlist(name) if v])
    ]
    return urlencode([*unit, *filters], doseq=True)


def checked_scope(query: str) -> str:
    """Return the scope of a query from outside.

    Raises:
        ValidationError: a filter is unknown or invalid.
    """
    parameters = QueryDict(query)
    kind = kind_in(parameters)
    known = {"unit", *kind.filter_set.base_filters}
    if unknown := [name for name in parameters if name not in known]:
        raise ValidationError(f"{unknown[0][:64]!r} is not a filter of {kind.plural}.")
    if errors := kind.filter_set(parameters).form.errors:
        name, messages = next(iter(errors.items()))
        raise ValidationError(f"{name}: {' '.join(map(str, messages))}")
    return scope_of(query)


def within(scope: str, start: datetime, end: datetime) -> str:
    """Return the query of a scope's jobs in a period."""
    period = urlencode({"start": start.isoformat(), "end": end.isoformat()})
    return "&".join(filter(None, [scope, period]))


def is_site_wide(scope: str) -> bool:
    """Return whether a scope has all jobs, or all of a cluster."""
    return QueryDict(scope).keys() <= _OF_SITE


def may_overlap(first: str, second: str) -> bool:
    """Return whether two scopes may have jobs in common, by their names alone.

    They have none if a filter of both has different names, or if neither of two parts of a job
    name contains the other. Batch jobs and PanDA jobs only share filters of the same name.
    """
    one, other = QueryDict(first), QueryDict(second)
    for name in one.keys() & other.keys() & _EXACT:
        if not _values(one, name) & _values(other, name):
            return False
    parts = [scope.get(_PART_OF_NAME, "").lower() for scope in (one, other)]
    return parts[0] in parts[1] or parts[1] in parts[0]


def _values(scope: QueryDict, name: str) -> set[str]:
    values = scope.getlist(name)
    if name in _WHOLE:
        return set(values)
    return {part for value in values for part in split_values(value)}


def matching(job: Job, scopes: Collection[str]) -> set[str]:
    """Return those scopes that a job belongs to, or a PanDA job inside it; one query at most."""

    def jobs(kind: JobKind) -> QuerySet[Any]:
        column = "pk" if kind is BATCH_JOBS else "batch_job"
        return kind.model.objects.filter(**{column: job.pk})

    return _with_jobs(scopes, jobs, Job.objects.filter(pk=job.pk))


def with_jobs_visible_to(user: User, scopes: Collection[str]) -> set[str]:
    """Return those scopes that have a job that a user may see; one query at most."""
    return _with_jobs(scopes, lambda kind: kind.visible_to(user), User.objects.filter(pk=user.pk))


def _with_jobs(
    scopes: Collection[str], jobs: Callable[[JobKind], QuerySet[Any]], row: QuerySet[Any]
) -> set[str]:
    """Return the scopes with any of some jobs, and the scope of all jobs; `row` is any one row."""
    conditions = {}
    for number, scope in enumerate(restricted := [each for each in scopes if each]):
        query = QueryDict(scope)
        kind = kind_in(query)
        conditions[f"scope_{number}"] = Exists(kind.filter_set(query, queryset=jobs(kind)).qs)
    matches: set[str] = {scope for scope in scopes if not scope}
    if conditions:
        [values] = row.annotate(**conditions).values_list(*conditions)
        matches |= {scope for scope, is_match in zip(restricted, values, strict=True) if is_match}
    return matches
