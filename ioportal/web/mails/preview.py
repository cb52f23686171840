"""Drafts of mails and follow-ups, as they would be sent now."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django import forms
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone

from ioportal.alerts import compose, facts, follow_ups, planning
from ioportal.alerts.case_mail_texts import topics
from ioportal.alerts.effects import Mailed, effects
from ioportal.alerts.models import Notification, NotificationCase
from ioportal.alerts.outcomes import Step
from ioportal.core.time_fields import TimeField, local_text
from ioportal.findings.cases.case_texts import is_simulated
from ioportal.findings.models import Case, Flag
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.alerts.compose import Content
    from ioportal.alerts.decide import Decision
    from ioportal.alerts.effects import Effect

_CACHE_S = 60  # the page and its frame show the same
_DIGITS = 18


class Preview:
    """A mail about ``case`` or ``flag`` of the URL; of a case, ``step`` selects a follow-up.

    Raises:
        PermissionDenied: the reader is not staff.
        Http404: there is no such case or flag.
    """

    def __init__(self, user: User, query: QueryDict) -> None:
        if not user.is_staff:
            raise PermissionDenied("Only staff may preview mails.")
        flag = query.get("flag")
        self.flag = get_object_or_404(Flag, pk=_key(flag)) if flag else None
        case = self.flag.case_id if self.flag else _key(query.get("case", ""))
        self.case = get_object_or_404(Case, pk=case)
        self.form = None if self.flag else MailForm(query)
        self._choice = self.form.cleaned_data if self.form and self.form.is_valid() else {}

    @property
    def is_valid(self) -> bool:
        """Whether the URL has a valid choice."""
        return self.form is None or self.form.is_valid()

    @property
    def query(self) -> str:
        """The query of the addresses of this preview."""
        if self.flag:
            return f"flag={self.flag.pk}"
        chosen = {name: value for name, value in self._choice.items() if value}
        times = {name: value.isoformat() for name, value in chosen.items() if name != "step"}
        return urlencode({"case": self.case.pk, **chosen, **times})

    @cached_property
    def follow_up(self) -> FollowUpPreview | None:
        """The selected follow-up; None: the first mail is selected.

        Raises:
            Http404: the case has no owner, or no evidence on good data.
        """
        choice = self._choice
        if not choice.get("step"):
            return None
        step = Step(choice["step"])
        return FollowUpPreview(self.case, self.account, step, choice["sent"], choice["at"])

    @cached_property
    def account(self) -> UserAccount:
        """The account of the owner; an unknown one has no address."""
        owner = self.case.owner
        return UserAccount.objects.filter(name=owner).first() or UserAccount(name=owner)

    @cached_property
    def latest(self) -> Notification | None:
        """The latest mail about the case, which has the figures of its time."""
        return Notification.objects.to_users().filter(cases__case=self.case).order_by("-pk").first()

    @cached_property
    def outlook(self) -> Decision:
        """Whether the mail about the case would be sent now, and why not."""
        return planning.outlook(self.case.pk)

    @cached_property
    def content(self) -> Content:
        """The mail.

        Raises:
            Http404: the case has no owner, or no evidence on good data.
        """
        key = f"mail-preview:{self.query}"
        stored: Content | None = cache.get(key)
        if stored:
            return stored
        content = self.follow_up.content if self.follow_up else self._first_mail()
        cache.set(key, content, _CACHE_S)
        return content

    def _first_mail(self) -> Content:
        about = topics([self.case.pk], self.case.owner, self.flag) if self.case.owner else []
        if not about:
            raise Http404("The case has no owner, or no finding on good data.")
        return compose.about_cases(about, self.account)


def _key(text: str) -> int:
    """Return a key of the URL; 0, which no row has, for anything else."""
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= _DIGITS else 0


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

    Without a mail to its owner, the time of the worst finding is used as the time of the mail.

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
