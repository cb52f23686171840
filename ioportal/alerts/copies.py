"""Copies for admins of the mails about cases that were sent without their approval."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from ioportal.alerts import answers
from ioportal.alerts.models import MailPolicy, Notification, NotificationImage
from ioportal.core.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

_RECENT: Final = timedelta(days=1)
_OVERLAP: Final = timedelta(minutes=5)  # sent before the latest policy, and not copied yet
_SUBJECT = 200  # characters in the database


def write() -> int:
    """Write a copy for each address of the policy, once for each mail; return how many.

    Mails that were sent before the policy was set are not copied.
    """
    policy = MailPolicy.objects.first()
    if policy is None or not policy.copies_to:
        return 0
    now = timezone.now()
    sent = Notification.objects.filter(
        kind=Notification.Kind.CASES,
        state=Notification.State.SENT,
        released_by="",
        finished_at__gt=max(policy.set_at - _OVERLAP, now - _RECENT),
    )
    wanted = {
        f"copy:{token}:{address}": (pk, address)
        for pk, token in sent.values_list("pk", "token")
        for address in policy.copies_to
    }
    written = Notification.objects.filter(key__in=list(wanted)).values_list("key", flat=True)
    due = {key: wanted[key] for key in wanted.keys() - set(written)}
    if due:
        _write(due)
    return len(due)


@transaction.atomic
def _write(due: Mapping[str, tuple[int, str]]) -> None:
    """Write copies with their images.

    Args:
        due: the key of each mail, and the address of its copy, by the copy's key. Another worker
            that writes the same ones waits, and changes nothing.
    """
    keys = {pk for pk, _ in due.values()}
    mails = Notification.objects.prefetch_related("images").in_bulk(keys)
    Notification.objects.bulk_create(
        [_copy(key, mails[pk], address) for key, (pk, address) in sorted(due.items())],
        ignore_conflicts=True,
    )
    copies = Notification.objects.filter(key__in=list(due))
    NotificationImage.objects.bulk_create(
        [
            NotificationImage(notification=copy, name=image.name, png=image.png)
            for copy in copies
            for image in mails[due[copy.key][0]].images.all()
        ],
        ignore_conflicts=True,
    )


def _copy(key: str, mail: Notification, address: str) -> Notification:
    page = f"{settings.PORTAL_URL}{reverse('mail', args=[mail.pk])}"
    return Notification(
        kind=Notification.Kind.COPY,
        key=key,
        address=address,
        filesystem_id=mail.filesystem_id,
        subject=f"Copy of a mail to {visible(mail.recipient)}: {mail.subject}"[:_SUBJECT],
        text=answers.without_links(mail.text, page),
        html=answers.without_links(mail.html, page),
        reason=f"The policy asks for a copy of mail {mail.pk}.",
        state=Notification.State.WAITING,
        next_attempt_at=timezone.now(),
    )
