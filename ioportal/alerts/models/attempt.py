"""The delivery log."""

from __future__ import annotations

from django.db import models

from ioportal.alerts.models.notification import Notification


class DeliveryAttempt(models.Model):
    """An attempt to send a notification, and how it ended."""

    notification = models.ForeignKey(Notification, models.CASCADE, related_name="delivery_log")
    at = models.DateTimeField(auto_now_add=True)  # its end
    outcome = models.CharField(  # of the notification after the attempt
        max_length=16, choices=Notification.State
    )
    response = models.CharField(max_length=500, blank=True)  # of the mail server

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"notification {self.notification_id}: {self.outcome}, {self.response}"
