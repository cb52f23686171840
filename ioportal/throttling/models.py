"""Used-up attempts, in the database: all web processes count together."""

from __future__ import annotations

from django.db import models


class Record(models.Model):
    """Attempts under one key, or a user's known network; meaningless once it has expired."""

    key = models.CharField(max_length=64, primary_key=True)  # a keyed digest, without user names
    expires_at = models.DateTimeField()

    class Meta:
        indexes = [
            # The oldest are removed first.
            models.Index(name="record_expired", fields=["expires_at"])
        ]

    def __str__(self) -> str:
        return self.key
