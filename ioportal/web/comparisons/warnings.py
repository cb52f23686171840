"""Warnings of a comparison: what may explain a difference other than the arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from ioportal.reporting import formatting
from ioportal.reporting.comparison_sentences import cautions
from ioportal.studies.site_load import nodes_in_use

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.web.comparisons.page import ComparisonPage

_MANY_UNKNOWN = 0.1  # share of the jobs of an arm
_UNEQUAL_LOAD = 1.25
_UNEQUAL_LENGTH = 1.5


def warnings(page: ComparisonPage) -> list[str]:
    """Return the warnings of a comparison with results, without other mitigations."""
    checks = (_shared, _cautions, _lengths, _load, _pending, _gaps, _upgrades)
    return [warning for check in checks for warning in check(page)]


def mitigations(page: ComparisonPage) -> Iterator[str]:
    """Yield warnings about the mitigations that may explain a difference."""
    for neighbour in page.other_mitigations:
        yield (
            f"{page.another_mitigation}: {neighbour.event.text} ({neighbour.day}). "
            "The difference may include its effect."
        )


def _shared(page: ComparisonPage) -> Iterator[str]:
    for (first, second), count in page.details.shared.items():
        names = page.names[first], page.names[second]
        yield (
            f"{count:,} {page.kind.plural if count > 1 else page.kind.singular} "
            f"in both {names[0]} and {names[1]}: the arms are not independent."
        )


def _cautions(page: ComparisonPage) -> Iterator[str]:
    names = [*page.names, *(f"the control of {name}" for name in page.names)]
    shown = names if page.has_control else page.names
    metrics = {metric.name: metric for metric, _ in page.compared}
    yield from cautions(page.result, shown, metrics, page.strata)


def _lengths(page: ComparisonPage) -> Iterator[str]:
    days = [summary.days for _, summary in page.arm_summaries if summary.days]
    if days and max(days) > _UNEQUAL_LENGTH * min(days):
        texts = [f"{arm.name}: {summary.days}" for arm, summary in page.arm_summaries]
        yield f"The arms have jobs on different numbers of days ({'; '.join(texts)})."


def _load(page: ComparisonPage) -> Iterator[str]:
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


def _pending(page: ComparisonPage) -> Iterator[str]:
    for (arm, summary), pending in zip(page.arm_summaries, page.pending_of_arms, strict=True):
        if pending:
            share = formatting.percent(min(pending / summary.jobs, 1.0)) if summary.jobs else "100"
            yield (
                f"Statistics or flags of {share} % of the jobs of {arm.name} are pending: "
                "all figures are provisional until they are computed."
            )


def _gaps(page: ComparisonPage) -> Iterator[str]:
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


def _upgrades(page: ComparisonPage) -> Iterator[str]:
    for at, text in page.upgrades:
        yield (
            f"Server upgrade on {timezone.localtime(at):%-d %b %Y %H:%M}: {text}. The meaning of "
            "counters may differ before and after it."
        )
