"""Tables of mails."""

from ioportal.alerts.models.notification import (
    Answer,
    Notification,
    NotificationCase,
    NotificationImage,
    NotificationQuerySet,
)
from ioportal.alerts.models.policy import CaseDecision, MailPolicy, Silence

__all__ = [
    "Answer",
    "CaseDecision",
    "MailPolicy",
    "Notification",
    "NotificationCase",
    "NotificationImage",
    "NotificationQuerySet",
    "Silence",
]
