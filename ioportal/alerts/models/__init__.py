"""Tables of mails."""

from ioportal.alerts.models.channel import Channel
from ioportal.alerts.models.notification import (
    Answer,
    DeliveryAttempt,
    Notification,
    NotificationCase,
    NotificationImage,
    NotificationQuerySet,
)
from ioportal.alerts.models.policy import (
    BouncedAddress,
    CaseDecision,
    MailPolicy,
    Silence,
    Subscription,
)

__all__ = [
    "Answer",
    "BouncedAddress",
    "CaseDecision",
    "Channel",
    "DeliveryAttempt",
    "MailPolicy",
    "Notification",
    "NotificationCase",
    "NotificationImage",
    "NotificationQuerySet",
    "Silence",
    "Subscription",
]
