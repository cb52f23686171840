"""Mail addresses that do not work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


class BouncedAddressQuerySet(models.QuerySet["BouncedAddress"]):
    """Queries of bounced addresses."""

    def times(self, addresses: Iterable[str]) -> dict[str, datetime]:
        """Return when mails to addresses bounced, by address in lower case."""
        wanted = {address.lower() for address in addresses}
        return dict(self.filter(address__in=wanted).values_list("address", "bounced_at"))


class BouncedAddress(models.Model):
    """A mail address from which a mail bounced; no mail is written until staff delete the row."""

    address = models.EmailField(unique=True)  # in lower case
    bounced_at = models.DateTimeField(auto_now_add=True)
    reason = models.CharField(max_length=500)

    objects = BouncedAddressQuerySet.as_manager()

    class Meta:
        ordering = ["-bounced_at"]
        verbose_name_plural = "bounced addresses"

    def __str__(self) -> str:
        return self.address
