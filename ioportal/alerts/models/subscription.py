"""Mails that users ask for about their own jobs."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models


class Subscription(models.Model):
    """Which mails a user wants about their own jobs."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="subscription", editable=False
    )
    job_reports = models.BooleanField("Report of each job that ends", default=False)
    min_node_hours = models.FloatField(
        "Only for jobs of at least (node-hours)", default=10, validators=[MinValueValidator(0)]
    )
    daily_cap = models.PositiveSmallIntegerField(
        "Reports in 24 hours, at most",
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(50)],
    )
    weekly_summary = models.BooleanField("Summary of my jobs each Monday", default=False)
    changed_at = models.DateTimeField(auto_now=True)  # jobs that ended before get no report

    def __str__(self) -> str:
        return f"mails that {self.user} asked for"
