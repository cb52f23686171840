"""Batch jobs or PanDA jobs: the parameter ``unit`` of pages about many jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import reverse

from ioportal.jobs.populations.selections import BATCH_JOBS, JOB_KINDS, PANDA_JOBS

if TYPE_CHECKING:
    from django.http import QueryDict

    from ioportal.jobs.populations.selections import JobKind

TITLES = {BATCH_JOBS.name: "batch jobs", PANDA_JOBS.name: PANDA_JOBS.plural}
_LISTS = {BATCH_JOBS.name: "job_list", PANDA_JOBS.name: "panda_list"}


def unit_error(query: QueryDict) -> str:
    """Return an error message for an invalid unit; "" if it is valid."""
    unit = query.get("unit", "")
    return (
        "" if unit in {"", *JOB_KINDS} else f"{unit[:64]!r} is not one of {', '.join(JOB_KINDS)}."
    )


def with_unit(kind: JobKind, filters: str) -> str:
    """Return a query for a page with a choice of unit."""
    unit = "" if kind is BATCH_JOBS else f"unit={kind.name}"
    return "&".join(filter(None, [unit, filters]))


def list_url(kind: JobKind, filters: str) -> str:
    """Return the URL of the list of selected jobs."""
    return f"{reverse(_LISTS[kind.name])}?{filters}"
