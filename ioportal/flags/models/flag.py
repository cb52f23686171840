"""Flags and their events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from ioportal.analysis.rules import BY_CODE
from ioportal.analysis.rules.rule import Severity, Subject
from ioportal.jobs.models import Job
from ioportal.site.models import Cluster, Filesystem

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

    from ioportal.analysis.rules.rule import Rule


class FlagQuerySet(models.QuerySet["Flag"]):
    """Queries of flags."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Flags that `user` may see: for staff all, otherwise the user's and those on visible jobs.

        Only staff see findings on data of insufficient quality.
        """
        if user.is_staff:
            return self
        good = self.filter(suppression_reasons=[])
        if not user.is_authenticated:
            return good.none()
        own = Q(subject_kind=Subject.USER, subject=user.get_username())
        return good.filter(Q(job__in=Job.objects.visible_to(user)) | own)

    def unresolved(self) -> Self:
        """Flags that are not resolved."""
        return self.exclude(state=Flag.State.RESOLVED)

    def of_rule(self, rule: str, kind: str, filesystem: int | None) -> Self:
        """Flags of a rule: at most one unresolved flag for each subject."""
        return self.of_kind(kind, filesystem).filter(rule=rule)

    def of_kind(self, kind: str, filesystem: int | None) -> Self:
        """Flags of a kind of subject; hosts are flagged for each filesystem separately."""
        of_kind = self.filter(subject_kind=kind)
        return of_kind.filter(filesystem=filesystem) if kind == Subject.HOST else of_kind

    def to_triage(self) -> Self:
        """Flags that need attention."""
        return self.filter(state__in=[Flag.State.OPEN, Flag.State.ACKNOWLEDGED])


class Flag(models.Model):
    """A rule's finding about a subject. A subject has at most one unresolved flag of a rule.

    Hosts are the exception: one for each filesystem that they load. Times without `_at` are times
    of the data, not of storage.
    """

    class State(models.TextChoices):
        """Triage state."""

        OPEN = "open", "open"
        ACKNOWLEDGED = "acknowledged", "acknowledged"
        MUTED = "muted", "muted"
        RESOLVED = "resolved", "resolved"
        SUPPRESSED = "suppressed", "suppressed"  # data quality below good

    class Severity(models.IntegerChoices):
        """Labels of `analysis.rules.rule.Severity`."""

        NOTICE = Severity.NOTICE.value, "notice"
        WARNING = Severity.WARNING.value, "warning"
        ABUSE = Severity.ABUSE.value, "abuse"

    rule = models.CharField(max_length=64)
    rule_version = models.PositiveSmallIntegerField()
    subject_kind = models.CharField(
        max_length=16, choices=[(kind.value, kind.value) for kind in Subject]
    )
    subject = models.CharField(max_length=128)  # a key, or a user's name
    job = models.ForeignKey(Job, models.CASCADE, null=True, related_name="flags")
    owner = models.CharField(max_length=64, blank=True)  # the responsible user, if known
    cluster = models.ForeignKey(Cluster, models.CASCADE, null=True, related_name="+")
    filesystem = models.ForeignKey(Filesystem, models.CASCADE, null=True, related_name="+")

    state = models.CharField(max_length=16, choices=State)
    severity = models.PositiveSmallIntegerField(choices=Severity)
    since = models.DateTimeField()  # latest data at the first finding
    until = models.DateTimeField()  # latest data at the last finding
    value = models.FloatField()  # of the rule's measure, the highest so far
    numbers = models.JSONField()  # all numbers of the highest finding
    thresholds = models.JSONField()  # used in the evaluation
    scope = models.CharField(max_length=200)  # the part of the site that sets them
    advice = models.TextField()  # with numbers filled in
    suppression_reasons = models.JSONField(default=list)  # sentences

    opened_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    resolved_at = models.DateTimeField(null=True)
    resolution = models.CharField(max_length=500, blank=True)  # the reason
    resolved_by = models.CharField(max_length=150, blank=True)  # "": automatically
    expired = models.BooleanField(default=False)  # resolved for lack of new data
    muted_until = models.DateTimeField(null=True)
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="flags"
    )

    objects = FlagQuerySet.as_manager()

    class Meta:
        ordering = ["-severity", "-until", "-pk"]
        constraints = [
            models.UniqueConstraint(
                name="flag_one_unresolved",
                fields=["rule", "subject_kind", "subject"],
                condition=~Q(state="resolved") & ~Q(subject_kind="host"),
            ),
            models.UniqueConstraint(
                name="flag_one_unresolved_of_host",
                fields=["rule", "subject", "filesystem"],
                condition=~Q(state="resolved") & Q(subject_kind="host"),
            ),
            models.CheckConstraint(name="flag_spans", condition=Q(until__gte=F("since"))),
            models.CheckConstraint(
                name="flag_resolved_has_reason",
                condition=~Q(state="resolved") | ~Q(resolution="") & Q(resolved_at__isnull=False),
            ),
            models.CheckConstraint(
                name="flag_muted_has_end",
                condition=~Q(state="muted") | Q(muted_until__isnull=False),
            ),
        ]
        indexes = [
            # The list of flags.
            models.Index(
                name="flag_inbox",
                fields=["state", "-severity", "-until", "-id"],
            ),
            # Similar past flags; flags of a user.
            models.Index(name="flag_rule_recent", fields=["rule", "-until"]),
            models.Index(name="flag_owner_recent", fields=["owner", "-until"]),
        ]

    def __str__(self) -> str:
        return f"{self.title}: {self.subject_kind} {self.subject}"

    @property
    def initial_state(self) -> str:
        """The initial state: suppressed if the data quality is below good."""
        return self.State.SUPPRESSED if self.suppression_reasons else self.State.OPEN

    @property
    def definition(self) -> Rule | None:
        """The rule, or None if it no longer exists."""
        return BY_CODE.get(self.rule)

    @property
    def title(self) -> str:
        """The rule's title."""
        return self.definition.title if self.definition else self.rule

    @property
    def measure(self) -> str:
        """The name of the rule's main number."""
        return self.definition.measure if self.definition else ""

    @property
    def threshold(self) -> float | None:
        """The threshold of the measure."""
        threshold: float | None = self.thresholds.get(self.measure)
        return threshold


class FlagEvent(models.Model):
    """An entry in a flag's history."""

    class Kind(models.TextChoices):
        """Type of event."""

        OPENED = "opened", "opened"
        SUPPRESSED = "suppressed", "suppressed"
        GREW = "grew", "grew"
        ESCALATED = "escalated", "escalated"
        ACKNOWLEDGED = "acknowledged", "acknowledged"
        MUTED = "muted", "muted"
        REOPENED = "reopened", "reopened"
        ASSIGNED = "assigned", "assigned"
        COMMENTED = "commented", "commented"
        RESOLVED = "resolved", "resolved"

    flag = models.ForeignKey(Flag, models.CASCADE, related_name="events")
    kind = models.CharField(max_length=16, choices=Kind)
    at = models.DateTimeField(auto_now_add=True)
    by = models.CharField(max_length=150, blank=True)  # "": the evaluation
    text = models.TextField(blank=True, max_length=2_000)
    value = models.FloatField(null=True)  # of the measure at that time

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.flag_id} {self.kind}"
