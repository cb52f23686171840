"""The mail about a case or a flag as it would be written now, and follow-ups, for staff."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import get_object_or_404

from ioportal.alerts import compose, planning
from ioportal.alerts.models import Notification
from ioportal.alerts.outcomes import Step
from ioportal.alerts.topics import topics
from ioportal.findings.models import Case, Flag
from ioportal.site.models import UserAccount
from ioportal.web.mails.follow_up_preview import FollowUpPreview, MailForm

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.alerts.compose import Content
    from ioportal.alerts.decide import Decision

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
