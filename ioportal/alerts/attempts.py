"""Ends attempts to send notifications, and logs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from ioportal.alerts.models import DeliveryAttempt, Notification
from ioportal.core.visible_text import visible_text

if TYPE_CHECKING:
    from ioportal.alerts.models import NotificationQuerySet

_RESPONSE = 500  # characters


def end(notifications: NotificationQuerySet, *, state: str, response: str, **changes: Any) -> None:
    """Change the state of notifications after an attempt, and log it in the same transaction.

    Args:
        notifications: in the state of the attempt.
        state: the new one.
        response: of the server.
        changes: of other columns.
    """
    response = visible_text(response)[:_RESPONSE]
    with transaction.atomic():
        keys = list(notifications.select_for_update().values_list("pk", flat=True))
        rows = Notification.objects.filter(pk__in=keys)
        rows.update(state=state, response=response, **changes)
        DeliveryAttempt.objects.bulk_create(
            DeliveryAttempt(notification_id=key, outcome=state, response=response) for key in keys
        )
