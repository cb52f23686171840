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
    GREEN_LIGHT = "green light"  # thanks, and the request of the mail no longer applies
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


def is_lifted(
    found: Outcome, calm_jobs: int, calm_since: datetime, now: datetime, after: timedelta
) -> bool:
    """Return whether the request of a mail no longer applies.

    Args:
        found: what became of the problem.
        calm_jobs: the number of jobs without a finding since `calm_since`.
        calm_since: when the mail was sent, or the latest finding since then.
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
        after: time that a user has for changes.
        is_disputed: whether the user answered that the mail is wrong: staff decide then.
        are_lifted: whether the requests about all improved cases no longer apply.
    """
    known = {each for each in outcomes if each is not Outcome.UNKNOWN}
    if is_disputed or not known or last in {Step.GREEN_LIGHT, Step.ESCALATION}:
        return Step.NONE
    if known == {Outcome.IMPROVED}:
        if are_lifted:
            return Step.GREEN_LIGHT
        return Step.NONE if last is Step.THANKS else Step.THANKS
    if last is Step.THANKS or Outcome.UNCHANGED not in known or now < last_at + after:
        return Step.NONE
    return Step.ESCALATION if last is Step.REMINDER else Step.REMINDER
