"""The mail about a case or a flag as it would be written now, for staff."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import get_object_or_404

from ioportal.alerts import compose, planning
from ioportal.alerts.topics import topics
from ioportal.flags.models import Case, Flag
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.alerts.compose import Content
    from ioportal.alerts.decide import Decision

_CACHE_S = 60  # the page and its frame show the same
_DIGITS = 18


class Preview:
    """A mail about ``case`` or ``flag`` of the URL.

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

    @property
    def query(self) -> str:
        """The query of the addresses of this preview."""
        return f"flag={self.flag.pk}" if self.flag else f"case={self.case.pk}"

    @cached_property
    def account(self) -> UserAccount:
        """The account of the owner; an unknown one has no address."""
        owner = self.case.owner
        return UserAccount.objects.filter(name=owner).first() or UserAccount(name=owner)

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
        about = topics([self.case.pk], self.case.owner, self.flag) if self.case.owner else []
        if not about:
            raise Http404("The case has no owner, or no finding on good data.")
        content = compose.about_cases(about, self.account)
        cache.set(key, content, _CACHE_S)
        return content


def _key(text: str) -> int:
    """Return a key of the URL; 0, which no row has, for anything else."""
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= _DIGITS else 0
