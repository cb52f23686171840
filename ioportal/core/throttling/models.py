"""Counted attempts, shared by all web processes."""

from __future__ import annotations

from django.db import models


class Record(models.Model):
    """Attempts under one key, or a recent log-in of a user from a network."""

    key = models.CharField(max_length=64, primary_key=True)  # a keyed digest
    expires_at = models.DateTimeField()

    class Meta:
        indexes = [
            # Purge of the oldest.
            models.Index(name="record_expired", fields=["expires_at"])
        ]

    def __str__(self) -> str:
        return self.key
