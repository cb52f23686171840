"""Tables of mails."""

from ioportal.alerts.models.attempt import DeliveryAttempt
from ioportal.alerts.models.bounced_address import BouncedAddress
from ioportal.alerts.models.channel import Channel
from ioportal.alerts.models.notification import (
    Answer,
    Notification,
    NotificationCase,
    NotificationImage,
    NotificationQuerySet,
)
from ioportal.alerts.models.policy import CaseDecision, MailPolicy, Silence
from ioportal.alerts.models.subscription import Subscription

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
