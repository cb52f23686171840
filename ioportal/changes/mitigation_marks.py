"""Marks of mitigations on charts over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import reverse

from ioportal.changes.models import Mitigation
from ioportal.core.charts.time_axis import Mark, Meaning
from ioportal.jobs.populations import scopes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from django.contrib.auth.models import User

    from ioportal.core.time_ranges import TimeRange
    from ioportal.jobs.models import Job


def for_job(job: Job, window: TimeRange, user: User) -> list[Mark]:
    """Return the marks of the mitigations in a range whose scope has a job."""
    mitigations = _within(window, user)
    matches = scopes.matching(job, {each.scope for each in mitigations}) if mitigations else set()
    return list(_marks(each for each in mitigations if each.scope in matches))


def for_populations(queries: Collection[str], window: TimeRange, user: User) -> list[Mark]:
    """Return the marks of the mitigations in a range whose scope may have jobs of populations.

    For users, these are jobs that they may see.
    """
    mitigations = [
        each
        for each in _within(window, user)
        if any(scopes.may_overlap(each.scope, query) for query in queries)
    ]
    if mitigations and not user.is_staff:
        seen = scopes.with_jobs_visible_to(user, {each.scope for each in mitigations})
        mitigations = [each for each in mitigations if each.scope in seen]
    return list(_marks(mitigations))


def for_servers(window: TimeRange, user: User) -> list[Mark]:
    """Return the marks of the mitigations in a range that concern all jobs, or a cluster's."""
    return list(_marks(each for each in _within(window, user) if scopes.is_site_wide(each.scope)))


def _within(window: TimeRange, user: User) -> list[Mitigation]:
    return list(Mitigation.objects.visible_to(user).changing_within(window.start, window.end))


def _marks(mitigations: Iterable[Mitigation]) -> Iterator[Mark]:
    for mitigation in mitigations:
        url = reverse("mitigation", args=[mitigation.pk])
        for moment, suffix in (
            (mitigation.started_at, ""),
            (mitigation.completed_at, ": complete"),
            (mitigation.reverted_at, ": reverted"),
        ):
            if moment:
                yield Mark(moment, f"{mitigation.title}{suffix}", Meaning.MITIGATION, url)
