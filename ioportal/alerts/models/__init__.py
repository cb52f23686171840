"""Tables of mails."""

from ioportal.alerts.models.notification import (
    Notification,
    NotificationCase,
    NotificationQuerySet,
)
from ioportal.alerts.models.policy import CaseDecision, MailPolicy, Silence

__all__ = [
    "CaseDecision",
    "MailPolicy",
    "Notification",
    "NotificationCase",
    "NotificationQuerySet",
    "Silence",
]
