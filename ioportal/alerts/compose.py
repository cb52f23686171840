"""Writes the mail about some cases of a recipient."""

from __future__ import annotations

from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from textwrap import wrap
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model
from django.template.loader import render_to_string
from django.utils import timezone

from ioportal.flags.models import Case, Flag
from ioportal.reporting import flags
from ioportal.reporting.cases import is_simulated, summaries, with_places
from ioportal.visible_text import visible, visible_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from django.contrib.auth.models import User

    from ioportal.alerts.models import Notification
    from ioportal.reporting.cases import CaseSummary
    from ioportal.site.models import UserAccount

LISTED_JOBS = 10
_NOBODY = 0  # no stored user has this key
_LINE = 76  # characters of a line
_SUBJECT = 120


class Topic:
    """A case as a mail presents it, in plain text: only what its recipient may see."""

    def __init__(self, summary: CaseSummary, reader: User) -> None:
        self.summary = summary
        self._reader = reader

    @property
    def heading(self) -> str:
        """The finding, its place and its severity."""
        case = self.summary.case
        place = f" on {case.filesystem}" if case.filesystem else ""
        return visible(f"{case.title}{place} ({case.get_severity_display()})")

    @property
    def advice(self) -> str:
        """The advice of the worst flag, in lines."""
        advice = self.summary.worst.advice if self.summary.worst else ""
        return "\n".join(wrap(visible_text(advice), _LINE))

    @property
    def facts(self) -> list[str]:
        """A line for each figure."""
        row, case = self.summary, self.summary.case
        times = (timezone.localtime(each) for each in (case.since, case.until))
        lines = [
            f"{row.measure_title}: {row.highest} (threshold {row.threshold})",
            "From {:%Y-%m-%d %H:%M} to {:%Y-%m-%d %H:%M %Z}".format(*times),
        ]
        if case.application:
            lines.append(f"Jobs named {visible(case.application)}")
        if row.figures.jobs > 1:
            total = f", {row.total} in total" if row.total else ""
            lines.append(f"{row.figures.jobs:,} jobs{total}, of which the worst:")
        return lines

    @property
    def worst(self) -> list[str]:
        """A line for each of the flags with the highest values."""
        seen = Flag.objects.visible_to(self._reader).counted().filter(case=self.summary.case)
        rows = flags.with_subjects(seen).order_by("-value", "pk")[:LISTED_JOBS]
        return [
            f"{visible(row.subject.text)}: {row.value}"
            for row in flags.summaries(rows, self._reader)
        ]

    @property
    def link(self) -> str:
        """The address of the case's page."""
        return f"{settings.PORTAL_URL}{self.summary.address}"


def topics(cases: Collection[int], recipient: str) -> list[Topic]:
    """Return cases as their owner may see them, the most severe first."""
    # Whoever has the account has no more rights here: neither groups nor staff status.
    reader = get_user_model()(pk=_NOBODY, username=recipient)
    seen = with_places(Case.objects.visible_to(reader).filter(pk__in=cases))
    rows = summaries(seen.order_by("-severity", "-until", "pk"), reader)
    return [Topic(row, reader) for row in rows if row.worst]


def subject(about: Sequence[Topic]) -> str:
    """Return the subject line: the finding, its place, and how many more."""
    case = about[0].summary.case
    named = f" named {case.application}" if case.application else ""
    place = f" on {case.filesystem}" if case.filesystem else ""
    more = f", and {len(about) - 1} more" if len(about) > 1 else ""
    line = visible(f"{case.title}: your jobs{named}{place}")
    return f"{line[: _SUBJECT - len(more)]}{more}"


def bodies(about: Sequence[Topic], account: UserAccount) -> dict[str, str]:
    """Return the plain text and the HTML of a mail, which say the same."""
    context = {
        "subject": subject(about),
        "name": visible(account.full_name or account.name),
        "account": visible(account.name),
        "topics": about,
        "simulated": any(is_simulated(topic.summary.case) for topic in about),
        "portal": settings.PORTAL_URL,
    }
    return {
        "text": render_to_string("alerts/mail.txt", context),
        "html": render_to_string("alerts/mail.html", context),
    }


def message(notification: Notification) -> EmailMessage:
    """Return the message of a notification; the same one each time."""
    mail = EmailMessage()
    host = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2]
    mail["Subject"] = notification.subject
    mail["From"] = settings.DEFAULT_FROM_EMAIL
    if settings.MAIL_REPLY_TO:
        mail["Reply-To"] = settings.MAIL_REPLY_TO
    mail["To"] = Address(addr_spec=notification.address)
    mail["Date"] = format_datetime(notification.created_at)
    mail["Message-ID"] = f"<{notification.token}@{host}>"
    if notification.follows:
        mail["In-Reply-To"] = mail["References"] = f"<{notification.follows.token}@{host}>"
    mail["List-Id"] = f"ioportal alerts <alerts.{host}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(notification.text)
    if notification.html:
        mail.add_alternative(notification.html, subtype="html")
    return mail
