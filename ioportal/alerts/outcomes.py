"""What became of a problem after a mail, and what happens then: pure, without Django."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime, timedelta

_ENOUGH = 3  # jobs since the mail
_IMPROVED = 0.5  # of the value before


class Outcome(StrEnum):
    """What became of a problem."""

    UNKNOWN = "unknown"  # too few jobs since then
    IMPROVED = "improved"
    PARTLY = "partly improved"
    UNCHANGED = "unchanged"


class Step(StrEnum):
    """What happens after a mail."""

    NONE = ""
    THANKS = "thanks"
    REMINDER = "reminder"
    ESCALATION = "escalation"  # staff should contact the user


def outcome(before: float | None, after: float | None, jobs_after: int) -> Outcome:
    """Return what became of a problem.

    Args:
        before: median of a measure of the jobs before the mail; None: unknown.
        after: median of the jobs since the mail; None: unknown.
        jobs_after: the number of these jobs.
    """
    if before is None or after is None or jobs_after < _ENOUGH:
        return Outcome.UNKNOWN
    if after <= _IMPROVED * before:
        return Outcome.IMPROVED
    return Outcome.PARTLY if after < before else Outcome.UNCHANGED


def next_step(
    outcomes: Collection[Outcome],
    last: Step,
    last_at: datetime,
    now: datetime,
    *,
    after: timedelta,
    is_disputed: bool,
) -> Step:
    """Return what happens now after a mail.

    Args:
        outcomes: of its cases.
        last: the step before.
        last_at: when it was taken; without one, when the mail was sent.
        now: the current time.
        after: time that a user has for changes.
        is_disputed: whether the user answered that the mail is wrong: staff decide then.
    """
    known = {each for each in outcomes if each is not Outcome.UNKNOWN}
    if is_disputed or not known or last in {Step.THANKS, Step.ESCALATION}:
        return Step.NONE
    if known == {Outcome.IMPROVED}:
        return Step.THANKS
    if Outcome.UNCHANGED not in known or now < last_at + after:
        return Step.NONE
    return Step.ESCALATION if last is Step.REMINDER else Step.REMINDER
