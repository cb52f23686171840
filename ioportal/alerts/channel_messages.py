"""Writes notifications to channels about cases that opened or became more severe.

They show cases as staff see them. Names from outside can forge nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from ioportal.alerts import decide, facts, planning
from ioportal.alerts.models import Channel, Notification, NotificationCase
from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.core.visible_text import visible
from ioportal.findings.cases import case_texts
from ioportal.findings.cases.case_texts import is_simulated, summaries, with_places
from ioportal.findings.models import Case, CaseEvent, Flag

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from uuid import UUID

    from ioportal.findings.cases.case_texts import CaseSummary
    from ioportal.findings.models import CaseQuerySet

_EVENTS = (CaseEvent.Kind.OPENED, CaseEvent.Kind.REOPENED, CaseEvent.Kind.ESCALATED)
_VERSION = 1  # of the JSON of webhooks (docs/api.md)
_SUBJECT = 150
_VALUE = 200  # characters of a value in a chat


class _Written:
    """Earlier notifications of channels about some cases."""

    def __init__(self, cases: Iterable[int]) -> None:
        self._first: dict[tuple[int, int], int] = {}
        self._keys: set[str] = set()
        rows = NotificationCase.objects.filter(case__in=cases, notification__channel__isnull=False)
        names = ("channel", "pk", "key", "state")
        for case, channel, pk, key, state in rows.order_by("notification").values_list(
            "case", *(f"notification__{name}" for name in names)
        ):
            if state != Notification.State.DISCARDED:
                self._first.setdefault((channel, case), pk)
            self._keys.add(key)

    def first(self, channel: Channel, case: Case) -> int | None:
        """Return the first notification, which later ones follow."""
        return self._first.get((channel.pk, case.pk))

    def has(self, channel: Channel, case: Case) -> bool:
        """Return whether there is one about the severity of a case, or about a higher one."""
        higher = (each for each in Flag.Severity if each >= case.severity)
        return any(_key(channel, case, each) in self._keys for each in higher)


def plan(now: datetime | None = None) -> int:
    """Write the notifications that are due; return how many.

    A channel gets one about each severity of a case. Safe to run concurrently, and to repeat.
    """
    with transaction.atomic():
        hold(Lock.ALERTS)
        channels = list(Channel.objects.filter(enabled=True))
        return _write_due(channels, now or timezone.now()) if channels else 0


def _write_due(channels: list[Channel], now: datetime) -> int:
    changed_at = _changed_at(now)
    written = _Written(changed_at)
    cases = list(Case.objects.filter(pk__in=changed_at))
    due = [
        (channel, case)
        for channel in channels
        for case in cases
        if channel.accepts(case, changed_at[case.pk]) and not written.has(channel, case)
    ]
    about = Case.objects.filter(pk__in={case.pk for _, case in due})
    messages = {row.case.pk: (row, each) for row, each in about_cases(about)}
    for channel, case in due:
        summary, message = messages[case.pk]
        notification = message.to(channel, now)
        notification.key = _key(channel, case, case.severity)
        notification.follows_id = written.first(channel, case)
        notification.reason = f"The case is new or more severe: {case.get_severity_display()}."
        notification.save()
        NotificationCase.objects.create(
            notification=notification,
            case=case,
            value=summary.worst.value if summary.worst else 0.0,
            rule_version=summary.worst.rule_version if summary.worst else 0,
        )
    return len(due)


def _changed_at(now: datetime) -> dict[int, datetime]:
    """Return when the cases that channels may be notified of opened or became more severe."""
    silences = facts.silences(now)
    fit = [
        each.case
        for each in planning.candidates(now)
        if not decide.channel_objection(each, silences, now)
    ]
    events = CaseEvent.objects.filter(case__in=fit, kind__in=_EVENTS).order_by()
    return dict(events.values_list("case").annotate(Max("at")))


def _key(channel: Channel, case: Case, severity: int) -> str:
    return f"channel:{channel.pk}:case:{case.pk}:{severity}"


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
        about = {"case": {"url": link, **case_texts.facts(summary, reader)}}
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
