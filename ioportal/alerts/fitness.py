"""Whether a mail or a message to a channel may still be sent.

It is checked when staff release it, and just before each attempt.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from django.utils import timezone

from ioportal.alerts import decide, facts
from ioportal.alerts.models import BouncedAddress, Notification
from ioportal.findings.models import Case, CaseEvent
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from ioportal.alerts.decide import Candidate, Policy
    from ioportal.alerts.models import Channel

_GONE = "The case that it is about no longer exists."
_Kind = Notification.Kind
_TRIAGE = (CaseEvent.Kind.ACKNOWLEDGED, CaseEvent.Kind.MUTED, CaseEvent.Kind.RESOLVED)
_TO_ACCOUNTS = (_Kind.CASES, _Kind.FOLLOW_UP, _Kind.REPORT)


def address_now(mail: Notification) -> str:
    """Return the address that a mail goes to: the present one of its recipient's account."""
    if mail.channel_id or mail.kind not in _TO_ACCOUNTS:
        return mail.address
    addresses = UserAccount.objects.filter(name=mail.recipient).values_list("email", flat=True)
    return addresses.first() or ""


def objection(mail: Notification) -> str:
    """Return why a notification must not be sent any more; "": it may be."""
    if mail.channel:
        return _of_message(mail, mail.channel)
    address = address_now(mail)
    if not address:
        return f"{mail.recipient} has no mail address."
    if at := BouncedAddress.objects.times([address]).get(address.lower()):
        return decide.bounced(address, at, facts.current_policy())
    if mail.kind == _Kind.CASES:
        return next(filter(None, _objections(mail)), "")
    if mail.kind == _Kind.FOLLOW_UP:
        return _of_follow_up(mail)
    return ""


def _of_follow_up(mail: Notification) -> str:
    """Return the objection to a follow-up: to all cases of its mail, or the mail's absence."""
    objections = _objections(mail.follows, is_followed_up=True) if mail.follows else [_GONE]
    return "" if "" in objections else objections[0]


def _of_message(message: Notification, channel: Channel) -> str:
    """Return the objection to a message to a channel; a test message, without a key, has none."""
    if not message.key:
        return ""
    if not channel.enabled:
        return "The channel is disabled."
    now = timezone.now()
    about = facts.candidates(Case.objects.filter(notifications__notification=message))
    return decide.channel_objection(about[0], facts.silences(now), now) if about else _GONE


def _objections(mail: Notification, *, is_followed_up: bool = False) -> list[str]:
    """Return the objection to each case of a mail; "": none."""
    values = dict(mail.cases.values_list("case", "value"))
    now, policy = timezone.now(), facts.current_policy()
    objection_to = (
        _to_requested(mail, policy, now)
        if mail.requested_by
        else partial(decide.objection, silences=facts.silences(now), policy=policy, now=now)
    )

    def of(candidate: Candidate) -> str:
        if candidate.recipient != mail.recipient:
            return f"The case now belongs to {candidate.recipient or 'an unknown owner'}."
        if is_followed_up:
            return objection_to(as_followed_up(candidate))
        quoted = values[candidate.case]
        smaller = candidate.has_findings and candidate.value < quoted
        outdated = "A finding that it quotes no longer applies." if smaller else ""
        return objection_to(candidate) or outdated

    return [of(each) for each in facts.candidates(Case.objects.filter(pk__in=values))] or [_GONE]


def _to_requested(mail: Notification, policy: Policy, now: datetime) -> Callable[[Candidate], str]:
    """Return a function that returns the objection to a case of a mail that staff asked for."""
    asked_at = mail.created_at
    events = CaseEvent.objects.filter(
        case__notifications__notification=mail, kind__in=_TRIAGE, at__gt=asked_at
    )
    changed = set(events.values_list("case", flat=True))
    silences = facts.silences(now, created_after=asked_at)
    policies = (facts.policy_at(asked_at), policy)
    return lambda candidate: decide.objection_since(
        candidate, silences, policies, now, has_changed=candidate.case in changed
    )


def as_followed_up(candidate: Candidate) -> Candidate:
    """Return a case for a follow-up, which is also about problems that are over."""
    return replace(candidate, state="ended") if candidate.state == "expired" else candidate
