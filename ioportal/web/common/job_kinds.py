"""What pages about many jobs count, batch jobs or PanDA jobs, as their addresses say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import reverse

from ioportal.studies.populations import BATCH_JOBS, PANDA_JOBS, UNITS

if TYPE_CHECKING:
    from django.http import QueryDict

    from ioportal.studies.populations import Counted

TITLES = {BATCH_JOBS.name: "batch jobs", PANDA_JOBS.name: PANDA_JOBS.plural}
_LISTS = {BATCH_JOBS.name: "job_list", PANDA_JOBS.name: "panda_list"}


def counted_in(query: QueryDict) -> Counted:
    """Return what an address counts; nonsense means batch jobs."""
    return UNITS.get(query.get("unit", ""), BATCH_JOBS)


def misunderstood(query: QueryDict) -> str:
    """Return what is wrong with the unit that an address asks for; "": nothing."""
    asked = query.get("unit", "")
    return "" if asked in {"", *UNITS} else f"{asked[:64]!r} is none of {', '.join(UNITS)}."


def with_unit(counted: Counted, filters: str) -> str:
    """Return filters as the address of a page that can count either."""
    unit = "" if counted is BATCH_JOBS else f"unit={counted.name}"
    return "&".join(filter(None, [unit, filters]))


def list_url(counted: Counted, filters: str) -> str:
    """Return where what filters choose is listed."""
    return f"{reverse(_LISTS[counted.name])}?{filters}"
