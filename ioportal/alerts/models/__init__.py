"""Tables of mails."""

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

__all__ = [
    "Answer",
    "BouncedAddress",
    "CaseDecision",
    "Channel",
    "MailPolicy",
    "Notification",
    "NotificationCase",
    "NotificationImage",
    "NotificationQuerySet",
    "Silence",
]
