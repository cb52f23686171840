"""Follow-ups of the mail about a case as they would be written at a time, for staff."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django import forms
from django.http import Http404
from django.utils import timezone

from ioportal.alerts import compose, facts, follow_ups
from ioportal.alerts.effects import Mailed, effects
from ioportal.alerts.models import Notification, NotificationCase
from ioportal.alerts.outcomes import Step
from ioportal.alerts.topics import topics
from ioportal.core.time_fields import TimeField, local_text
from ioportal.findings.case_texts import is_simulated

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.alerts.compose import Content
    from ioportal.alerts.effects import Effect
    from ioportal.findings.models import Case
    from ioportal.site.models import UserAccount

_STEPS = (Step.THANKS, Step.GREEN_LIGHT, Step.REMINDER)
_SENT = (Notification.State.SENT, Notification.State.UNCERTAIN)


class MailForm(forms.Form):
    """The shown mail about a case: the first mail, or a follow-up at some time."""

    step = forms.ChoiceField(
        label="Mail",
        required=False,
        choices=[("", "first mail"), *((step.value, step.value) for step in _STEPS)],
    )
    sent = TimeField(label="First mail sent", required=False)
    at = TimeField(label="Follow-up written", required=False)

    def clean(self) -> dict[str, Any]:
        """Refuse a follow-up before its mail."""
        values: dict[str, Any] = super().clean() or {}
        sent, at = values.get("sent"), values.get("at")
        if sent and at and at <= sent:
            self.add_error("at", "This is not later than the first mail.")
        return values


class FollowUpPreview:
    """A follow-up of the mail about a case.

    Without a mail to its owner, the time of the worst finding is taken for that of the mail.

    Args:
        case: the case.
        account: of its owner.
        step: the follow-up.
        sent: when the first mail was sent; None: when it really was.
        at: when the follow-up is written; None: now, or when the mail is no longer watched.

    Raises:
        Http404: the case has no owner, or no evidence on good data.
    """

    def __init__(
        self,
        case: Case,
        account: UserAccount,
        step: Step,
        sent: datetime | None,
        at: datetime | None,
    ) -> None:
        self._account = account
        self._step = step
        self._policy = facts.current_policy()
        about = topics([case.pk], case.owner) if case.owner else []
        if not about:
            raise Http404("The case has no owner, or no finding on good data.")
        [self._topic] = about
        self._mail = self._sent_mail(case)
        self.sent_at = sent or (
            follow_ups.sent_at(self._mail.notification) if self._mail else self._topic.found_at
        )
        self.written_at = at or min(timezone.now(), self.sent_at + follow_ups.WATCHED)

    def _sent_mail(self, case: Case) -> NotificationCase | None:
        """Return the last mail about the case to its owner."""
        mails = NotificationCase.objects.filter(
            case=case,
            notification__kind=Notification.Kind.CASES,
            notification__recipient=case.owner,
            notification__state__in=_SENT,
        )
        return mails.select_related("notification").order_by("-pk").first()

    @cached_property
    def _effect(self) -> Effect:
        [effect] = effects([Mailed(self._topic.case, self.sent_at)], self.written_at)
        return effect

    @property
    def is_due(self) -> bool:
        """Whether it would be written, a green light some time after thanks."""
        due = follow_ups.due_step(
            [self._effect],
            self._policy,
            self.written_at,
            last=Step.THANKS if self._step is Step.GREEN_LIGHT else Step.NONE,
            last_at=self.sent_at,
            is_disputed=False,
        )
        return due is self._step

    @property
    def reason(self) -> str:
        """Why it would be written, or would not be."""
        if self.is_due:
            return f"It would be written: {follow_ups.STEPS[self._step]}"
        effect = self._effect
        return (
            f"It would not be written, and its wording is a sample. Since the mail: "
            f"{effect.outcome}, and {effect.calm_jobs:,} jobs like the flagged ones without a "
            f"finding since {local_text(effect.calm_since)}."
        )

    @property
    def content(self) -> Content:
        """The follow-up."""
        mail = self._mail.notification if self._mail else None
        request = (self._mail and self._mail.request) or self._topic.request
        return follow_ups.content(
            self._step,
            [(self._effect, request)],
            self._account,
            self._policy,
            self.written_at,
            subject=mail.subject if mail else compose.subject([self._topic]),
            answer=mail.answers.first() if mail else None,
            is_simulated=is_simulated(self._topic.case),
            is_sample=not self.is_due,
        )
