"""Writes the mail about some cases of a recipient, and the message of a notification."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from textwrap import fill
from typing import TYPE_CHECKING

from django.conf import settings
from django.template.loader import render_to_string

from ioportal.alerts import answers
from ioportal.core.visible_text import visible
from ioportal.findings.cases.case_texts import is_simulated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ioportal.alerts.case_mail_texts import Topic
    from ioportal.alerts.models import Notification
    from ioportal.site.models import UserAccount


SIMULATED = "[Simulated data"  # at the start of mails about a simulated centre
_SUBJECT = 120
_LINE = 76  # characters
_INDENT = re.compile(r" *(\d+\. )?")
_MAX_IMAGES = 3
_IMAGE_PLACE = "cid:"  # before the name of an image in HTML


@dataclass(frozen=True)
class Content:
    """A mail without its recipient.

    Args:
        subject: a line.
        text: complete by itself.
        html: the same, with images by ``cid:NAME``.
        images: PNG images by name.
    """

    subject: str
    text: str
    html: str
    images: Mapping[str, bytes]


def about_cases(topics: Sequence[Topic], account: UserAccount) -> Content:
    """Return the mail about some cases to their owner."""
    images = {
        f"timeline-{number}": image
        for number, topic in enumerate(topics[:_MAX_IMAGES], 1)
        if (image := topic.image)
    }
    context = {
        "subject": subject(topics),
        "name": visible(account.greeting_name),
        "account": visible(account.name),
        "topics": [
            (topic, name if (name := f"timeline-{number}") in images else "")
            for number, topic in enumerate(topics, 1)
        ],
        "simulated": any(is_simulated(topic.case) for topic in topics),
        "answers": answers.PLACES,
    }
    return rendered("alerts/mail", context, images)


def rendered(
    template: str, context: dict[str, Any], images: Mapping[str, bytes] | None = None
) -> Content:
    """Return the mail of two templates, ``.txt`` and ``.html``, whose context has a subject."""
    signed = context | signature()
    text, html = (render_to_string(f"{template}.{kind}", signed) for kind in ("txt", "html"))
    return Content(context["subject"], _wrapped(text), html, images or {})


def signature() -> dict[str, str]:
    """Return what the end of every mail needs: the portal's address and the centre."""
    return {
        "portal": settings.PORTAL_URL,
        "centre": settings.CENTRE,
        "contact": settings.CENTRE_CONTACT,
    }


def _wrapped(text: str) -> str:
    """Break long lines between words; items of lists stay indented."""
    return "\n".join(
        fill(
            line,
            _LINE,
            subsequent_indent=" " * len(_INDENT.match(line)[0]),  # type: ignore[index]  # matches
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in text.splitlines()
    )


def subject(topics: Sequence[Topic]) -> str:
    """Return the subject line: the finding, its place, and how many more."""
    case = topics[0].case
    named = f" named {case.application}" if case.application else ""
    place = f" on {case.filesystem}" if case.filesystem else ""
    more = f", and {len(topics) - 1} more" if len(topics) > 1 else ""
    line = visible(f"{case.title}: your jobs{named}{place}")
    return f"{line[: _SUBJECT - len(more)]}{more}"


def with_images(html: str, addresses: Mapping[str, str]) -> str:
    """Return the HTML of a mail with other addresses of its images, by name."""
    for name, address in addresses.items():
        html = html.replace(f'"{_IMAGE_PLACE}{name}"', f'"{address}"')
    return html


def message(notification: Notification) -> EmailMessage:
    """Return the message of a notification; the same one each time.

    Raises:
        ValueError: a header would have a control character.
    """
    mail = EmailMessage()
    host = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2]
    mail["Subject"] = _literal(notification.subject)
    mail["From"] = Address(settings.CENTRE, addr_spec=settings.DEFAULT_FROM_EMAIL)
    if settings.MAIL_REPLY_TO:
        mail["Reply-To"] = settings.MAIL_REPLY_TO
    mail["To"] = Address(addr_spec=notification.address)
    mail["Date"] = format_datetime(notification.issued_at)
    mail["Message-ID"] = f"<{notification.token}@{host}>"
    if notification.follows:
        mail["In-Reply-To"] = mail["References"] = f"<{notification.follows.token}@{host}>"
    mail["List-Id"] = f"ioportal alerts <alerts.{host}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(answers.with_key(notification.text, notification))
    if notification.html:
        _add_html(mail, notification, host)
    for name, value in mail.items():
        if not str(value).isprintable():
            raise ValueError(f"The header {name} has a control character.")
    return mail


def _literal(subject: str) -> str:
    """Return a subject that is never decoded: users choose the names in it.

    Assigned to a header, an encoded word (RFC 2047) in a job's name would become the line breaks
    and headers that it encodes.
    """
    return visible(subject).replace("=?", "= ?")


def _add_html(mail: EmailMessage, notification: Notification, host: str) -> None:
    images = dict(notification.images.values_list("name", "png"))
    ids = {name: f"{name}.{notification.token}@{host}" for name in images}
    html = with_images(notification.html, {name: f"cid:{id_}" for name, id_ in ids.items()})
    mail.add_alternative(answers.with_key(html, notification), subtype="html")
    part = mail.get_body(["html"])
    assert part is not None  # noqa: S101  (added above)
    for name, image in images.items():
        part.add_related(
            bytes(image), "image", "png", cid=f"<{ids[name]}>", filename=f"{name}.png",
            disposition="inline",
        )  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """An item of a section.

    Args:
        text: one line.
        details: further lines.
        path: of its page in the portal; "": none.
    """

    text: str
    details: Sequence[str] = ()
    path: str = ""

    @property
    def link(self) -> str:
        """The address of its page; "": none."""
        return f"{settings.PORTAL_URL}{self.path}" if self.path else ""


@dataclass(frozen=True)
class Section:
    """A part of a digest.

    Args:
        title: its heading.
        entries: the first of its items.
        count: of all items.
        none: a sentence instead of entries.
    """

    title: str
    entries: Sequence[Entry]
    count: int
    none: str

    @property
    def more(self) -> int:
        """The number of items that are not listed."""
        return self.count - len(self.entries)


@dataclass(frozen=True)
class Digest:
    """A mail of sections, in plain text.

    Args:
        subject: of the mail.
        introduction: what the digest is about.
        sections: in order.
        is_simulated: whether some of its data is simulated.
    """

    subject: str
    introduction: str
    sections: Sequence[Section] = field(default_factory=tuple)
    is_simulated: bool = False

    def mail(self, name: str) -> Content:
        """Return the mail to a recipient."""
        context = {
            "subject": self.subject,
            "name": visible(name),
            "introduction": self.introduction,
            "sections": self.sections,
            "simulated": self.is_simulated,
        }
        return rendered("alerts/digest", context)
