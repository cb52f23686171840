"""Writes notifications to channels about cases that opened or became more severe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from ioportal.alerts import channel_messages, decide, facts, planning
from ioportal.alerts.models import Channel, Notification, NotificationCase
from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.findings.models import Case, CaseEvent, Flag

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_EVENTS = (CaseEvent.Kind.OPENED, CaseEvent.Kind.REOPENED, CaseEvent.Kind.ESCALATED)


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
        return _write(channels, now or timezone.now()) if channels else 0


def _write(channels: list[Channel], now: datetime) -> int:
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
    messages = {row.case.pk: (row, each) for row, each in channel_messages.about_cases(about)}
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
    policy = facts.current_policy()
    silences = facts.silences(now)
    fit = [
        each.case
        for each in planning.candidates(now)
        if not decide.channel_objection(each, silences, policy, now)
    ]
    events = CaseEvent.objects.filter(case__in=fit, kind__in=_EVENTS).order_by()
    return dict(events.values_list("case").annotate(Max("at")))


def _key(channel: Channel, case: Case, severity: int) -> str:
    return f"channel:{channel.pk}:case:{case.pk}:{severity}"
