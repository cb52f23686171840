"""Who owns jobs: what accounting calls a user, and how to reach whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class UserAccountQuerySet(models.QuerySet["UserAccount"]):
    """Questions about accounts of users."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Accounts `user` may see: staff see all, others their own."""
        return self if user.is_staff else self.filter(name=user.get_username())


class UserAccount(models.Model):
    """An account on the clusters: a person's, or a service's that a team runs."""

    name = models.CharField(max_length=64, unique=True, help_text="As accounting names it.")
    full_name = models.CharField(max_length=128, blank=True)
    email = models.EmailField(blank=True, help_text="Of the person, or of the team.")
    projects = ArrayField(
        models.CharField(max_length=128), default=list, blank=True, help_text="With commas between."
    )
    team = models.CharField(
        max_length=128,
        blank=True,
        help_text="Of a service account: who runs it. A person's own account has none.",
    )

    objects = UserAccountQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_service(self) -> bool:
        """Whether a team runs it, not one person."""
        return bool(self.team)
