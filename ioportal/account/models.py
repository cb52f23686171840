"""The record of removed users."""

from __future__ import annotations

from django.db import models


class Removal(models.Model):
    """The removal of a user: under which pseudonym the accounting of the jobs remains."""

    pseudonym = models.CharField(max_length=64, unique=True)
    removed_at = models.DateTimeField(auto_now_add=True)
    reason = models.CharField(max_length=200, blank=True)
    rows = models.JSONField()  # changed or deleted rows by table

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.pseudonym} on {self.removed_at:%Y-%m-%d}"
