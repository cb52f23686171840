"""Answers of recipients through links in their mails, without a log-in.

A link has the notification's token and an expiry time, signed. Stored mails have a placeholder
instead, so that readers of the archive cannot answer for the recipient.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.db import transaction
from django.utils import timezone

from ioportal.alerts.models import Answer, Notification
from ioportal.findings.models import Case, CaseEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ioportal.alerts.models import NotificationQuerySet
    from ioportal.findings.models import CaseQuerySet

_VALID = timedelta(days=60)
_MAX_ANSWERS = 20  # to a mail
_SIGNER = Signer(salt="ioportal.alerts.answers")
_PLACE = "YOUR-KEY"
FIXED = f"{Answer.Kind.FIXED.label}."  # at the start of the entry in a case's history
PLACES: Mapping[str, str] = {
    kind.value: f"{settings.PORTAL_URL}/answers/{_PLACE}/{kind.value}/" for kind in Answer.Kind
}


def with_key(body: str, notification: Notification) -> str:
    """Return the body of a mail with links that its recipient can answer with."""
    key = key_of(notification)
    for place in PLACES.values():
        body = body.replace(place, place.replace(_PLACE, key))
    return body


def without_links(body: str, address: str) -> str:
    """Return the body of a mail for other readers: its links to answers lead to an address."""
    for place in PLACES.values():
        body = body.replace(place, address)
    return body


def key_of(notification: Notification) -> str:
    """Return the key of a notification for links."""
    expires = notification.issued_at + _VALID
    return _SIGNER.sign(f"{notification.token.hex}:{int(expires.timestamp())}")


def notification_of(key: str) -> Notification | None:
    """Return the notification of a key.

    None: it is invalid or expired, nothing was sent, or its recipient was removed.
    """
    try:
        token, expires = _SIGNER.unsign(key).split(":")
    except BadSignature:
        return None
    if timezone.now() > datetime.fromtimestamp(int(expires), UTC):
        return None
    return _sent_to_users().filter(token=UUID(token)).exclude(address="").first()


def open_cases(notification: Notification) -> CaseQuerySet:
    """Return the cases of a mail that still belong to its recipient."""
    return Case.objects.filter(
        notifications__notification=notification, owner=notification.recipient
    )


def record(notification: Notification, kind: str, comment: str) -> bool:
    """Store an answer, and add it to the history of each open case; return whether it was accepted.

    The same answer again changes nothing; too many are refused.
    """
    with transaction.atomic():
        earlier = Notification.objects.select_for_update().get(pk=notification.pk).answers
        latest = earlier.order_by("-pk").first()
        if latest and (latest.kind, latest.comment) == (kind, comment):
            return True
        if earlier.count() >= _MAX_ANSWERS:
            return False
        Answer.objects.create(notification=notification, kind=kind, comment=comment)
        CaseEvent.objects.bulk_create(
            _event(case, notification.recipient, kind, comment)
            for case in open_cases(notification).values_list("pk", flat=True)
        )
        return True


def record_for_case(case: Case, kind: str, comment: str) -> bool:
    """Store an answer of a case's owner who is logged in; return whether it was accepted.

    It is in the case's history only. If there was a mail about the case, its follow-ups regard it.
    """
    with transaction.atomic():
        Case.objects.select_for_update().get(pk=case.pk)
        earlier = case.events.filter(kind=CaseEvent.Kind.ANSWERED, by=case.owner).order_by("-pk")
        event = _event(case.pk, case.owner, kind, comment)
        latest = earlier.first()
        if latest and latest.text == event.text:
            return True
        if earlier.count() >= _MAX_ANSWERS:
            return False
        event.save()
        mails = _sent_to_users().filter(cases__case=case, recipient=case.owner)
        if mail := mails.order_by("-pk").first():
            Answer.objects.create(notification=mail, kind=kind, comment=comment)
        return True


def _event(case: int, by: str, kind: str, comment: str) -> CaseEvent:
    text = f"{Answer.Kind(kind).label}. {comment}".strip()
    return CaseEvent(case_id=case, kind=CaseEvent.Kind.ANSWERED, by=by, text=text)


def _sent_to_users() -> NotificationQuerySet:
    sent = (Notification.State.SENT, Notification.State.UNCERTAIN)
    return Notification.objects.all().to_users().filter(state__in=sent)
