"""User accounts: owners of jobs and their contacts; projects and their contacts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from ioportal.site.job_id_pattern import LARGEST_UID

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class UserAccountQuerySet(models.QuerySet["UserAccount"]):
    """Queries of user accounts."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Accounts `user` may see: staff see all, others their own."""
        return self if user.is_staff else self.filter(name=user.get_username())

    def to_look_up(self) -> Self:
        """Accounts whose address a command may set: none is registered."""
        return self.filter(Q(email="") | Q(next_lookup_at__isnull=False))


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

    # When the address, which a command returned, is looked up again (`site.address_command`).
    # Null: the address is registered, or was never looked up.
    next_lookup_at = models.DateTimeField(null=True, editable=False)

    objects = UserAccountQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_service(self) -> bool:
        """Whether this is a service account."""
        return bool(self.team)

    @property
    def greeting_name(self) -> str:
        """The name in a greeting: of a service account, the team behind it."""
        return self.team or self.full_name or self.name


class ProjectQuerySet(models.QuerySet["Project"]):
    """Queries of projects."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Projects whose contact `user` may see: staff see all, others their groups' projects."""
        if user.is_staff:
            return self
        return self.filter(name__in=[group.name for group in user.groups.all()])


class Project(models.Model):
    """A project of jobs and its contact: a user of the clusters, or a mail address."""

    name = models.CharField(max_length=128, unique=True, help_text="The project in accounting.")
    contact = models.CharField(max_length=128, blank=True, help_text="Name of the contact.")
    email = models.EmailField(
        blank=True, help_text="Address of the contact. Empty: the account's address."
    )
    account = models.ForeignKey(
        UserAccount,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="The contact's account, if there is one.",
    )

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="project_has_contact",
                condition=~Q(email="") | Q(account__isnull=False),
                violation_error_message="A project needs the mail address of its contact, or the "
                "account.",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def contact_name(self) -> str:
        """The name of the contact; "": unknown."""
        if self.contact or not self.account:
            return self.contact
        return self.account.full_name or self.account.name

    @property
    def address(self) -> str:
        """The mail address of the contact; "": unknown."""
        return self.email or (self.account.email if self.account else "")
