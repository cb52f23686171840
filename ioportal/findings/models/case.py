"""Cases and their events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.dispatch import Signal

from ioportal.findings.models.flag import Flag
from ioportal.rules import BY_CODE
from ioportal.rules.rule import Subject
from ioportal.site.models import Filesystem

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

    from ioportal.rules.rule import Rule

case_joined = Signal()  # before `emptied`, a case without flags, is deleted: `case` takes its place


class CaseQuerySet(models.QuerySet["Case"]):
    """Queries of cases."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Cases that `user` may see: for staff all, otherwise those with a visible flag."""
        if user.is_staff:
            return self
        visible = Flag.objects.visible_to(user).counted()
        return self.filter(Exists(visible.filter(case=OuterRef("pk"))))

    def unresolved(self) -> Self:
        """Cases that are not resolved."""
        return self.exclude(state=Case.State.RESOLVED)

    def to_triage(self) -> Self:
        """Cases that need attention: notices do not."""
        return self.filter(TO_TRIAGE)


class Case(models.Model):
    """What staff triage: the flags of a rule on one subject, filesystem and application.

    Flags of jobs belong to the case of the job's owner and application. A case opens once, and
    opens again when its problem recurs. Times without `_at` are times of the data, not of storage.
    """

    class State(models.TextChoices):
        """Triage state."""

        OPEN = "open", "open"
        ACKNOWLEDGED = "acknowledged", "acknowledged"
        MUTED = "muted", "muted"
        RESOLVED = "resolved", "resolved"
        SUPPRESSED = "suppressed", "suppressed"  # no flag on good data

    rule = models.CharField(max_length=64)
    subject_kind = models.CharField(  # of the flags
        max_length=16, choices=[(kind.value, kind.value) for kind in Subject]
    )
    subject = models.CharField(max_length=128, blank=True)  # of the flags; for jobs their owner
    filesystem = models.ForeignKey(Filesystem, models.CASCADE, null=True, related_name="+")
    application = models.CharField(max_length=255, blank=True)  # "": of any name
    owner = models.CharField(max_length=64, blank=True)  # the responsible user, if known

    state = models.CharField(max_length=16, choices=State)
    severity = models.PositiveSmallIntegerField(choices=Flag.Severity)  # the highest of its flags
    since = models.DateTimeField()  # the first of its flags
    until = models.DateTimeField()  # latest data of its flags

    opened_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField()  # by a finding, or by reopening
    resolved_at = models.DateTimeField(null=True)
    # Flags that begin later open the case again; null: every new flag does.
    resolved_until = models.DateTimeField(null=True)
    resolution = models.CharField(max_length=500, blank=True)  # the reason
    resolved_by = models.CharField(max_length=150, blank=True)  # "": automatically
    muted_until = models.DateTimeField(null=True)
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="cases"
    )

    objects = CaseQuerySet.as_manager()

    class Meta:
        ordering = ["-severity", "-until", "-pk"]
        constraints = [
            models.UniqueConstraint(
                name="case_identity",
                fields=["rule", "subject_kind", "subject", "application", "filesystem"],
                nulls_distinct=False,
            ),
            models.CheckConstraint(name="case_spans", condition=Q(until__gte=F("since"))),
            models.CheckConstraint(
                name="case_resolved_has_reason",
                condition=~Q(state="resolved") | ~Q(resolution="") & Q(resolved_at__isnull=False),
            ),
            models.CheckConstraint(
                name="case_muted_has_end",
                condition=~Q(state="muted") | Q(muted_until__isnull=False),
            ),
        ]
        indexes = [
            # The list of cases.
            models.Index(name="case_inbox", fields=["state", "-severity", "-until", "-id"]),
            # Similar past cases; cases of a user.
            models.Index(name="case_rule_recent", fields=["rule", "-until"]),
            models.Index(name="case_owner_recent", fields=["owner", "-until"]),
        ]

    def __str__(self) -> str:
        return " ".join(filter(None, [f"{self.title}:", self.subject, self.application]))

    @property
    def definition(self) -> Rule | None:
        """The rule, or None if it no longer exists."""
        return BY_CODE.get(self.rule)

    @property
    def title(self) -> str:
        """The rule's title."""
        return self.definition.title if self.definition else self.rule


CURRENT = Q(state__in=[Case.State.OPEN, Case.State.ACKNOWLEDGED])
TO_TRIAGE = CURRENT & Q(severity__gt=Flag.Severity.NOTICE)


class CaseEvent(models.Model):
    """An entry in a case's history."""

    class Kind(models.TextChoices):
        """Type of event."""

        OPENED = "opened", "opened"
        SUPPRESSED = "suppressed", "suppressed"
        ESCALATED = "escalated", "escalated"
        ACKNOWLEDGED = "acknowledged", "acknowledged"
        MUTED = "muted", "muted"
        REOPENED = "reopened", "reopened"
        ASSIGNED = "assigned", "assigned"
        COMMENTED = "commented", "commented"
        ANSWERED = "answered", "answered"  # by its owner, to a mail
        FOLLOWED_UP = "followed up", "followed up"  # after a mail
        RESOLVED = "resolved", "resolved"
        MOVED = "moved", "moved"  # flags, from or to another case

    case = models.ForeignKey(Case, models.CASCADE, related_name="events")
    kind = models.CharField(max_length=16, choices=Kind)
    at = models.DateTimeField(auto_now_add=True)
    by = models.CharField(max_length=150, blank=True)  # "": automatically
    text = models.TextField(blank=True, max_length=2_000)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.case_id} {self.kind}"
