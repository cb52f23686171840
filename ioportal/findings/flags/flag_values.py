"""The numbers of a flag: title, unit, and text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collectors.tables import METADATA_OPERATIONS
from ioportal.core import formatting
from ioportal.metrics import BY_NAME

if TYPE_CHECKING:
    from ioportal.core.units import Unit
    from ioportal.findings.models import Flag
    from ioportal.rules.rule import Rule

_WORK_SHARE = "impact_share"
# Numbers that are neither thresholds nor metrics.
_TITLES = {
    "capacity_per_s": "Capacity in this rule (registered, or assumed)",
    "counted_enqueues": "Lock enqueues up to the latest counter read",
    "impact_is_estimated": "Impact is estimated",
    "impact_s": "Impact: extra wait of others",
    "impact_share": "Share of the server's work within these five minutes",
    "largest_job_operations": "Metadata operations of the largest job",
    "startup_opens": "Opens during start-up",
    "unattributed_rpcs": "Unattributed RPCs",
    "usual_operations": "Usual metadata operations per node",
    "usual_read_bytes": "Usual bytes read",
    **{f"count_{kind}": f"Operations of kind {kind}" for kind in METADATA_OPERATIONS},
}


def title_of(flag: Flag, number: str) -> str:
    """Return the title of a number."""
    rule = flag.definition
    if rule and number in rule.thresholds:
        return rule.thresholds[number].title
    if number in BY_NAME:
        return BY_NAME[number].title
    return _TITLES.get(number) or number.replace("_", " ").capitalize()


def unit_of(flag: Flag, number: str) -> Unit | None:
    """Return the unit of a number; None if unknown."""
    return unit_by(flag.definition, number)


def unit_by(rule: Rule | None, number: str) -> Unit | None:
    """Return the unit of a number of a rule; None if unknown."""
    if rule and (number in rule.thresholds or number in rule.units):
        return rule.unit(number)
    return BY_NAME[number].unit if number in BY_NAME else None


def in_words(flag: Flag, number: str, value: float | None) -> str:
    """Return a number or threshold with its unit."""
    unit = unit_of(flag, number)
    if unit is None:
        return formatting.UNKNOWN if value is None else formatting.significant(value)
    if number == _WORK_SHARE and value is not None:
        return f"{formatting.work_share(value)} %"
    return formatting.with_unit(value, unit)


def threshold_in_words(flag: Flag, number: str) -> str:
    """Return the threshold of a number with its unit."""
    threshold, unit = flag.thresholds.get(number), unit_of(flag, number)
    if threshold is None or unit is None:
        return in_words(flag, number, threshold)
    return formatting.threshold(threshold, unit)


def measured(flag: Flag) -> str:
    """Return the measure of a flag with its threshold."""
    value = in_words(flag, flag.measure, flag.value)
    return f"{value} (threshold {threshold_in_words(flag, flag.measure)})"
