"""Writes follow-ups of mails: thanks, the green light, and reminders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings

from ioportal.alerts import answers, compose
from ioportal.alerts.compared_jobs import day_of
from ioportal.alerts.outcomes import Outcome, Step
from ioportal.core.formatting import rough_duration
from ioportal.core.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from ioportal.alerts.compose import Content
    from ioportal.alerts.effects import Effect
    from ioportal.alerts.models import Answer
    from ioportal.site.models import UserAccount

_SUBJECT = 200  # characters in the database
_SAMPLE = "Sample: "
_STATES = {  # the worst first
    Outcome.UNCHANGED: "They have not improved since then.",
    Outcome.RECURRED: "The same was found again since then.",
    Outcome.PARTLY: "They have improved since then, but by less than half.",
    Outcome.UNKNOWN: "Whether they have improved since then is unclear.",
    Outcome.IMPROVED: "They have improved since then.",
}


@dataclass(frozen=True)
class FollowedCase:
    """A case that a mail was about, as a follow-up presents it.

    Args:
        effect: what changed since the mail.
        request: what the mail asked for; "": not stored.
        is_lifted: whether the request no longer applies.
    """

    effect: Effect
    request: str
    is_lifted: bool

    @property
    def title(self) -> str:
        """The finding."""
        return visible(self.effect.mailed.case.title)

    @property
    def causes(self) -> list[str]:
        """What happened between the jobs before and after, in the order of time."""
        return [visible(each.text) for each in self.effect.compared.causes]

    @property
    def link(self) -> str:
        """The address of the case's page."""
        return f"{settings.PORTAL_URL}/cases/{self.effect.mailed.case.pk}/"

    @property
    def safe_number(self) -> str:
        """How many of its jobs ran in parallel without a finding, and since when."""
        calm = self.effect.calm
        return (
            f"Safe up to {calm.at_once:,} of these jobs in parallel, the highest number seen since "
            f"{day_of(calm.since)}: {calm.jobs:,} jobs ran without such a finding. "
            "If you run more, please increase the number step by step."
        )


@dataclass(frozen=True)
class FollowedMail:
    """A mail about cases, as a follow-up presents it.

    Args:
        subject: of the mail.
        sent_at: when it was sent.
        is_simulated: whether it was about simulated data.
        answer: the latest answer to it.
        calm_time: time without findings after which its request no longer applies.
        is_sample: whether it would not be written: a sample of its wording.
    """

    subject: str
    sent_at: datetime
    is_simulated: bool
    answer: Answer | None
    calm_time: timedelta
    is_sample: bool = False


def content(
    step: Step, mail: FollowedMail, about: Sequence[FollowedCase], account: UserAccount
) -> Content:
    """Return the follow-up of a mail: thanks, the green light or a reminder."""
    sent_on, name = day_of(mail.sent_at), visible(account.name)
    context = {
        "subject": f"{_SAMPLE if mail.is_sample else ''}Re: {mail.subject}"[:_SUBJECT],
        "name": visible(account.greeting_name),
        "opening": _opening(step, sent_on, name, about),
        "is_sample": mail.is_sample,
        "is_reminder": step is Step.REMINDER,
        "is_green_light": step is Step.GREEN_LIGHT,
        "answer": _in_words(mail.answer) if mail.answer else "",
        "cases": about,
        "calm_time": rough_duration(mail.calm_time.total_seconds()),
        "simulated": mail.is_simulated,
        "answers": answers.PLACES,
    }
    return compose.rendered("alerts/follow_up", context)


def _opening(step: Step, sent_on: str, account: str, about: Sequence[FollowedCase]) -> str:
    """Return the first sentences of a follow-up, which claim no more than its cases show."""
    outcomes = {each.effect.outcome for each in about}
    if step is not Step.REMINDER and outcomes - {Outcome.UNKNOWN} == {Outcome.IMPROVED}:
        return f"Thank you: your jobs have improved since our mail of {sent_on}."
    state = next(text for outcome, text in _STATES.items() if outcome in outcomes)
    return f"We wrote to you on {sent_on} about jobs of your account {account}. {state}"


def _in_words(answer: Answer) -> str:
    comment = f" {visible(answer.comment)}" if answer.comment else ""
    return f"{day_of(answer.at)}: {answer.get_kind_display()}.{comment}"
