"""Mail addresses that do not work."""

from __future__ import annotations

from django.db import models


class BouncedAddress(models.Model):
    """A mail address from which a mail bounced; no mail is written until staff delete the row."""

    address = models.EmailField(unique=True)  # in lower case
    bounced_at = models.DateTimeField(auto_now_add=True)
    reason = models.CharField(max_length=500)

    class Meta:
        ordering = ["-bounced_at"]
        verbose_name_plural = "bounced addresses"

    def __str__(self) -> str:
        return self.address
