"""Warnings of a comparison: what may explain a difference other than the arms."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np
from django.utils import timezone

from ioportal.changes.analysis.change_points import change_points
from ioportal.changes.change_points import FEWEST_JOBS, MAIN_METRICS
from ioportal.changes.comparison_sentences import cautions
from ioportal.core import formatting
from ioportal.core.formatting import with_unit
from ioportal.jobs.site_load import nodes_in_use
from ioportal.load.models import Incident

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.web.comparisons.compared_arms import ComparedArms

_MANY_UNKNOWN = 0.1  # share of the jobs of an arm
_UNEQUAL_LOAD = 1.25
_UNEQUAL_LENGTH = 1.5
_EPOCH = date(1970, 1, 1)  # of day numbers
_MOST_OF_ARM = 0.5  # an incident that is longer is the arm
_NAMED = 3  # incidents of an arm


def warnings(page: ComparedArms) -> list[str]:
    """Return the warnings of a comparison with results, without other mitigations."""
    checks = (_shared, _cautions, _shifts, _incidents, _lengths, _load, _pending, _gaps, _upgrades)
    return [warning for check in checks for warning in check(page)]


def mitigations(page: ComparedArms) -> Iterator[str]:
    """Yield warnings about the mitigations that may explain a difference."""
    for neighbour in page.other_mitigations:
        yield (
            f"{page.another_mitigation}: {neighbour.event.text} ({neighbour.day}). "
            "The difference may include its effect."
        )


def _shared(page: ComparedArms) -> Iterator[str]:
    for (first, second), count in page.details.shared.items():
        names = page.names[first], page.names[second]
        yield (
            f"{count:,} {page.kind.plural if count > 1 else page.kind.singular} "
            f"in both {names[0]} and {names[1]}: the arms are not independent."
        )


def _cautions(page: ComparedArms) -> Iterator[str]:
    names = [*page.names, *(f"the control of {name}" for name in page.names)]
    shown = names if page.has_control else page.names
    metrics = {metric.name: metric for metric, _ in page.compared}
    yield from cautions(page.result, shown, metrics, page.strata)


def _shifts(page: ComparedArms) -> Iterator[str]:
    """Find the largest change point inside each arm: its days are not alike."""
    names = MAIN_METRICS[page.kind.name]
    for arm in page.arms:
        shifts = [
            (point, int(days[point.position]), metric)
            for metric, row in page.compared
            if metric.name in names and (daily := row.arms[arm.number].daily)
            for is_large in [daily.jobs >= FEWEST_JOBS]
            for days in [daily.days[is_large].astype(np.int64)]
            for point in change_points(days, daily.medians[is_large])
        ]
        if shifts:
            point, day, metric = max(shifts, key=lambda each: abs(math.log(each[0].ratio)))
            before, after = (with_unit(each, metric.unit) for each in (point.before, point.after))
            yield (
                f"{metric.title} shifted within {arm.name} on {_EPOCH + timedelta(day):%-d %b %Y} "
                f"(daily medians: {before} to {after}). Compare the time before and after this "
                "day as two arms."
            )


def _incidents(page: ComparedArms) -> Iterator[str]:
    """Find saved incidents that are a part of an arm, for staff."""
    if not page.user.is_staff:
        return
    arms = [(arm, arm.start, arm.end) for arm in page.arms if arm.start and arm.end]
    if not arms:
        return
    first, last = min(start for _, start, _ in arms), max(end for _, _, end in arms)
    incidents = list(Incident.objects.filter(start__gte=first, end__lte=last))
    for arm, start, end in arms:
        parts = [
            each
            for each in incidents
            if start <= each.start
            and each.end <= end
            and each.end - each.start < (end - start) * _MOST_OF_ARM
        ]
        if parts:
            times = [f"{timezone.localtime(each.start):%-d %b %Y %H:%M}" for each in parts[:_NAMED]]
            more = f" and {len(parts) - _NAMED:,} more" if len(parts) > _NAMED else ""
            yield (
                f"Saved incidents within {arm.name}: {', '.join(times)}{more}. The page of an "
                "incident compares it as an arm of its own."
            )


def _lengths(page: ComparedArms) -> Iterator[str]:
    days = [summary.days for _, summary in page.arm_summaries if summary.days]
    if days and max(days) > _UNEQUAL_LENGTH * min(days):
        texts = [f"{arm.name}: {summary.days}" for arm, summary in page.arm_summaries]
        yield f"The arms have jobs on different numbers of days ({'; '.join(texts)})."


def _load(page: ComparedArms) -> Iterator[str]:
    """Compare the use of the whole site in different periods."""
    periods = {(arm.start, arm.end): arm for arm in page.arms if arm.start and arm.end}
    if len(periods) < 2:  # noqa: PLR2004  (a pair)
        return
    loads = {
        arm.name: nodes
        for (start, end), arm in periods.items()
        if start and end and (nodes := nodes_in_use(page.user, start, end))
    }
    if loads and max(loads.values()) > _UNEQUAL_LOAD * min(loads.values()):
        texts = [f"{name}: {nodes:,.0f}" for name, nodes in loads.items()]
        yield f"Unequal load of the site: mean nodes in use by all jobs ({'; '.join(texts)})."


def _pending(page: ComparedArms) -> Iterator[str]:
    for (arm, summary), pending in zip(page.arm_summaries, page.pending_of_arms, strict=True):
        if pending:
            share = formatting.percent(min(pending / summary.jobs, 1.0)) if summary.jobs else "100"
            yield (
                f"Statistics of {share} % of the jobs of {arm.name} are pending: "
                "all figures are provisional until they are computed."
            )


def _gaps(page: ComparedArms) -> Iterator[str]:
    """Compare unknown values with all jobs; pending ones may still become known."""
    for metric, row in page.compared:
        if metric.name not in {"metadata_operations", "read_bytes"}:
            continue
        for arm, figures, pending in zip(page.arms, row.arms, page.pending_of_arms, strict=True):
            total = figures.jobs + figures.unknown
            if total and (unknown := figures.unknown - pending) > _MANY_UNKNOWN * total:
                share = formatting.percent(unknown / total, 0)
                yield (
                    f"{metric.title}: unknown for {share} % of the jobs of {arm.name}. "
                    "Counters were not observed."
                )


def _upgrades(page: ComparedArms) -> Iterator[str]:
    for at, text in page.upgrades:
        yield (
            f"Server upgrade on {timezone.localtime(at):%-d %b %Y %H:%M}: {text}. The meaning of "
            "counters may differ before and after it."
        )
