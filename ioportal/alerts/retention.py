"""Removes old texts of mails with their delivery logs, and old decisions about cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from ioportal.alerts.models import CaseDecision, DeliveryAttempt, Notification, NotificationImage

if TYPE_CHECKING:
    from datetime import datetime


def remove_old(limit: int) -> int:
    """Remove up to a number of rows of each kind that are older than their retention.

    Safe to run repeatedly and concurrently. Returns how many were removed.
    """
    now = timezone.now()
    removed = 0
    if settings.MAILS_RETENTION is not None:
        removed += _remove_texts(now - settings.MAILS_RETENTION, limit)
    if settings.MAIL_DECISIONS_RETENTION is not None:
        removed += _remove_decisions(now - settings.MAIL_DECISIONS_RETENTION, limit)
    return removed


def _remove_texts(before: datetime, limit: int) -> int:
    """Remove the texts, images and logs of mails; who got a mail about what, and when, remains."""
    old = Notification.objects.filter(finished_at__lt=before).exclude(text="")
    with transaction.atomic():
        first = old.order_by("finished_at").select_for_update()
        mails = list(first.values_list("pk", flat=True)[:limit])
        DeliveryAttempt.objects.filter(notification__in=mails).delete()
        NotificationImage.objects.filter(notification__in=mails).delete()
        return Notification.objects.filter(pk__in=mails).update(text="", html="", response="")


def _remove_decisions(before: datetime, limit: int) -> int:
    """Remove decisions that a later one about the same case replaced."""
    later = CaseDecision.objects.filter(case=OuterRef("case"), pk__gt=OuterRef("pk"))
    old = CaseDecision.objects.filter(Exists(later), at__lt=before).order_by("pk")
    keys = list(old.values_list("pk", flat=True)[:limit])
    return CaseDecision.objects.filter(pk__in=keys).delete()[0]
