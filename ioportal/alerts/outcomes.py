"""What became of a problem after a mail, and what happens then: pure, without Django."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime, timedelta

    from ioportal.jobs.analysis.comparison.results import MetricComparison

_ENOUGH = 3  # calm jobs
_IMPROVED = 0.5  # of the median before


class Outcome(StrEnum):
    """What became of a problem."""

    UNKNOWN = "unknown"  # too few jobs or days
    IMPROVED = "improved"
    PARTLY = "partly improved"
    UNCHANGED = "unchanged"
    RECURRED = "recurred"  # too few jobs or days, but the finding has come again


_PERSISTENT = {Outcome.UNCHANGED, Outcome.RECURRED}


class Step(StrEnum):
    """What happens after a mail."""

    NONE = ""
    THANKS = "thanks"
    GREEN_LIGHT = "green light"  # thanks, and the request of the mail no longer applies
    REMINDER = "reminder"
    ESCALATION = "escalation"  # staff should contact the user


def is_clear(compared: MetricComparison | None) -> bool:
    """Return whether a comparison of jobs before and after a change has a result."""
    effect = compared.effects[0] if compared else None
    return bool(effect and not (effect.refusal or effect.is_possible or effect.is_open))


def outcome(compared: MetricComparison | None, recurrences: int) -> Outcome:
    """Return what became of a problem.

    Args:
        compared: the measure of jobs before and after a change; None: not compared.
        recurrences: findings since the change.
    """
    if compared is None or not is_clear(compared):
        return Outcome.RECURRED if recurrences else Outcome.UNKNOWN
    before, after = (arm.median or 0.0 for arm in compared.arms)
    if not compared.effects[0].is_change or after >= before:
        return Outcome.UNCHANGED
    return Outcome.IMPROVED if after <= _IMPROVED * before else Outcome.PARTLY


def is_lifted(
    found: Outcome, calm_jobs: int, calm_since: datetime, now: datetime, after: timedelta
) -> bool:
    """Return whether the request of a mail no longer applies.

    Args:
        found: what became of the problem.
        calm_jobs: the number of jobs without a finding since `calm_since`.
        calm_since: when the change was complete, or the latest finding since then.
        now: the current time.
        after: minimum time without findings.
    """
    return found is Outcome.IMPROVED and calm_jobs >= _ENOUGH and now >= calm_since + after


def next_step(
    outcomes: Collection[Outcome],
    last: Step,
    last_at: datetime,
    now: datetime,
    *,
    after: timedelta,
    is_disputed: bool,
    are_lifted: bool = False,
) -> Step:
    """Return what happens now after a mail.

    Args:
        outcomes: of its cases.
        last: the step before.
        last_at: when it was taken; without one, when the mail was sent.
        now: the current time.
        after: time that a user has for changes, and between thanks and the green light.
        is_disputed: whether the user answered that the mail is wrong: staff decide then.
        are_lifted: whether the requests about all improved cases no longer apply.
    """
    known = {each for each in outcomes if each is not Outcome.UNKNOWN}
    if is_disputed or not known or last in {Step.GREEN_LIGHT, Step.ESCALATION}:
        return Step.NONE
    if known == {Outcome.IMPROVED}:
        if last is not Step.THANKS:
            return Step.THANKS
        return Step.GREEN_LIGHT if are_lifted and now >= last_at + after else Step.NONE
    if last is Step.THANKS or known.isdisjoint(_PERSISTENT) or now < last_at + after:
        return Step.NONE
    return Step.ESCALATION if last is Step.REMINDER else Step.REMINDER
