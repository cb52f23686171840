"""User accounts: owners of jobs and their contacts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from ioportal.site.job_id_pattern import LARGEST_UID

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class UserAccountQuerySet(models.QuerySet["UserAccount"]):
    """Queries of user accounts."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Accounts `user` may see: staff see all, others their own."""
        return self if user.is_staff else self.filter(name=user.get_username())


class UserAccount(models.Model):
    """An account on the clusters, of a person or of a service that a team runs."""

    name = models.CharField(max_length=64, unique=True, help_text="The user name in accounting.")
    full_name = models.CharField(max_length=128, blank=True)
    email = models.EmailField(blank=True, help_text="Address of the person or the team.")
    projects = ArrayField(
        models.CharField(max_length=128), default=list, blank=True, help_text="Separated by commas."
    )
    uid = models.BigIntegerField(
        null=True,
        blank=True,
        unique=True,
        validators=[MinValueValidator(0), MaxValueValidator(LARGEST_UID)],
        help_text="The numeric user id on the clusters. Job ids with a uid (jobid_name=%j:%u) are "
        "compared with it.",
    )
    team = models.CharField(
        max_length=128,
        blank=True,
        help_text="The team that runs a service account. Empty for a person.",
    )

    objects = UserAccountQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_service(self) -> bool:
        """Whether this is a service account."""
        return bool(self.team)
