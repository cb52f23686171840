"""Messages to channels about a case, as staff see it. Names from outside can forge nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone

from ioportal.alerts.models import Channel, Notification
from ioportal.core.visible_text import visible
from ioportal.findings.case_texts import facts, is_simulated, summaries, with_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from uuid import UUID

    from ioportal.findings.case_texts import CaseSummary
    from ioportal.findings.models import CaseQuerySet

_VERSION = 1  # of the JSON of webhooks (docs/api.md)
_SUBJECT = 150
_VALUE = 200  # characters of a value in a chat


@dataclass(frozen=True)
class Message:
    """A message before it has the form of a channel.

    Args:
        event: its type, for programs.
        title: the finding and its subject.
        link: address of the page with the evidence.
        lines: labels and values for people; values may contain any characters.
        content: for programs.
    """

    event: str
    title: str
    link: str
    lines: Iterable[tuple[str, str]] = ()
    content: dict[str, Any] = field(default_factory=dict)

    def to(self, channel: Channel, now: datetime) -> Notification:
        """Return an unsaved notification in the form of a channel."""
        token = uuid4()
        is_mail = channel.kind == Channel.Kind.TICKET
        return Notification(
            kind=Notification.Kind.CHANNEL,
            channel=channel,
            token=token,
            recipient=channel.name,
            address=channel.address if is_mail else "",
            subject=visible(self.title)[:_SUBJECT],
            text=_FORMS[Channel.Kind(channel.kind)](self, token, now),
            state=Notification.State.WAITING,
            next_attempt_at=now,
        )


def about_cases(cases: CaseQuerySet) -> Iterator[tuple[CaseSummary, Message]]:
    """Yield cases and the messages about them."""
    reader = get_user_model()(is_staff=True)
    for summary in summaries(with_places(cases), reader):
        link = f"{settings.PORTAL_URL}{summary.address}"
        about = {"case": {"url": link, **facts(summary, reader)}}
        message = Message("case", _title(summary), link, list(_lines(summary)), about)
        yield summary, message


def write_test(channel: Channel) -> Notification:
    """Write a notification that is about no case."""
    message = Message("test", f"Test of the channel {channel.name}", settings.PORTAL_URL)
    notification = message.to(channel, timezone.now())
    notification.reason = "Test of the channel."
    notification.save()
    return notification


def _title(summary: CaseSummary) -> str:
    case = summary.case
    place = f" on {case.filesystem}" if case.filesystem else ""
    simulated = "Simulated data: " if is_simulated(case) else ""
    return f"{simulated}{case.title}{place}: {summary.subject.text}"


def _lines(summary: CaseSummary) -> Iterator[tuple[str, str]]:
    case = summary.case
    yield "Severity", case.get_severity_display()
    if case.application:
        yield "Jobs named", case.application
    if summary.worst:
        yield summary.measure_title, f"{summary.highest} (threshold {summary.threshold})"
    yield "Flags", f"{summary.figures.flags:,} on {summary.figures.jobs:,} jobs"
    times = (timezone.localtime(each) for each in (case.since, case.until))
    yield "Data", "{:%Y-%m-%d %H:%M} to {:%Y-%m-%d %H:%M %Z}".format(*times)


def _json(message: Message, token: UUID, now: datetime) -> str:
    envelope = {"version": _VERSION, "id": token, "at": now, "event": message.event}
    return json.dumps(envelope | message.content, cls=DjangoJSONEncoder)


def _chat(message: Message, _token: UUID, _now: datetime) -> str:
    lines = [f"{label}: {_code(value)}" for label, value in message.lines]
    return "\n".join([_code(message.title), *lines, message.link])


def _code(value: str) -> str:
    """Return a value as code, in which chats look for neither mentions nor links nor formats."""
    text = visible(value)[:_VALUE].replace("`", "'")
    return f"`{escape(text, quote=False)}`"


def _ticket(message: Message, _token: UUID, _now: datetime) -> str:
    lines = [f"{label}: {visible(value)}" for label, value in message.lines]
    return "\n".join([visible(message.title), "", *lines, "", message.link, ""])


_FORMS = {
    Channel.Kind.WEBHOOK: _json,
    Channel.Kind.CHAT: _chat,
    Channel.Kind.TICKET: _ticket,
}
