"""Totals of the arms of a comparison: the typical job may change one way and the total another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ioportal.changes.arm_details import arm_jobs
from ioportal.changes.comparison_sentences import TIMES
from ioportal.core.formatting import UNKNOWN, human, lowered, percent, significant, with_unit
from ioportal.core.units import Unit
from ioportal.findings.models import Flag
from ioportal.jobs.populations.selections import BATCH_JOBS
from ioportal.load.models import Incident

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.changes.arm_details import ArmDetails
    from ioportal.jobs.populations.selections import Selection

_TITLES = {  # of the sums in `Mix.totals`
    "read_bytes": ("Bytes read", Unit.BYTES),
    "write_bytes": ("Bytes written", Unit.BYTES),
    "metadata_operations": ("Metadata operations", Unit.COUNT),
    "node_hours": ("Node-hours", None),
}


@dataclass(frozen=True)
class Total:
    """A total of each arm.

    Args:
        name: in exports.
        title: on pages.
        unit: None: a number without unit.
        values: of each arm; None: unknown.
        known: number of jobs with a known value in each arm; None: not a sum over jobs.
        days: length of each arm, if these differ: then totals per day are compared.
        is_contrast: whether the arms are different jobs, instead of one population over time.
    """

    name: str
    title: str
    unit: Unit | None
    values: tuple[float | None, ...]
    known: tuple[int, ...] | None = None
    days: tuple[float, ...] | None = None
    is_contrast: bool = False

    @property
    def per_day(self) -> tuple[float | None, ...] | None:
        """The values per day of each arm; None: the arms are equally long."""
        if self.days is None:
            return None
        pairs = zip(self.values, self.days, strict=True)
        return tuple(None if value is None else value / days for value, days in pairs)

    def change(self, number: int) -> str:
        """Return the change from the first arm to another one, such as "fell 15 %"."""
        values = self.per_day or self.values
        before, after = values[0], values[number]
        if before is None or after is None:
            return UNKNOWN
        if before == after:
            return "equal" if self.is_contrast else "unchanged"
        rise, fall = ("higher", "lower") if self.is_contrast else ("rose", "fell")
        verb = rise if after > before else fall
        if not before or not after:
            return verb
        ratio = after / before
        factor = max(ratio, 1 / ratio)
        size = f"{percent(abs(ratio - 1))} %"
        if factor >= TIMES:
            size = f"{significant(factor)}\N{MULTIPLICATION SIGN}"
        return f"{size} {verb}" if self.is_contrast else f"{verb} {size}"

    def in_words(self, number: int) -> str:
        """Return the change to an arm with both values."""
        rates, unit = self.per_day, self.unit or Unit.COUNT
        write = with_unit
        if unit is Unit.COUNT:
            unit, write = (Unit.RATIO if rates else unit), human
        before, after = (write((rates or self.values)[each], unit) for each in (0, number))
        title = f"{lowered(self.title)}{' per day' if rates else ''}"
        return f"{title} {self.change(number)} ({before} to {after})"


def arm_totals(
    arms: Sequence[Selection],
    jobs: Sequence[int],
    periods: Sequence[tuple[datetime | None, datetime | None]],
    details: ArmDetails,
    user: User,
    *,
    days: tuple[float, ...] | None,
    is_contrast: bool,
) -> list[Total]:
    """Return the totals of arms: jobs and their activity, cases and incidents.

    Args:
        arms: the arms.
        jobs: the number of jobs of each.
        periods: start and end of each; None: unbounded.
        details: of the same arms.
        user: sees cases of visible flags; staff see incidents.
        days: length of each arm, if these differ.
        is_contrast: whether the arms are different jobs.
    """
    kind = arms[0].kind
    totals = [Total("jobs", kind.plural.capitalize(), None, tuple(jobs))]
    for name, (title, unit) in _TITLES.items():
        sums = tuple(mix.totals[name] for mix in details.mixes)
        totals.append(
            Total(name, title, unit, sums, tuple(mix.known[name] for mix in details.mixes))
        )
    if kind is BATCH_JOBS:
        cases = tuple(_cases(arm_jobs(arm), user) for arm in arms)
        totals.append(Total("cases", "Cases with flags on these jobs", None, cases))
    if user.is_staff and all(start and end for start, end in periods):
        incidents = tuple(
            Incident.objects.filter(start__lt=end, end__gt=start).count() for start, end in periods
        )
        totals.append(Total("incidents", "Saved incidents of the site", None, incidents))
    return [
        replace(
            total,
            # A single incident of an hour is no rate of 24 a day.
            days=None if total.name == "incidents" and days and min(days) < 1 else days,
            is_contrast=is_contrast,
        )
        for total in totals
    ]


def _cases(jobs: Any, user: User) -> int:
    flags = Flag.objects.visible_to(user).counted().filter(job__in=jobs.order_by().values("pk"))
    return int(flags.order_by().values("case").distinct().count())


def sentence(totals: Sequence[Total], number: int, *, provisional: bool) -> str:
    """Return the changes of the known totals from the first arm to another one.

    Args:
        totals: the totals.
        number: of the other arm.
        provisional: whether statistics of jobs are pending.
    """
    changes = [
        total.in_words(number)
        for total in totals
        if total.values[0] is not None and total.values[number] is not None
    ]
    return f"{'Provisional total' if provisional else 'Total'}: {', '.join(changes)}."
