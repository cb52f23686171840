"""Flags: findings that people triage."""

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
    """Questions about flags."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Flags `user` may see: staff see all, others those of jobs that they see, and their own.

        What is withheld, or would be but for its triage, is for those who keep the data only.
        """
        if user.is_staff:
            return self
        told = self.filter(why_withheld=[])
        if not user.is_authenticated:
            return told.none()
        own = Q(subject_kind=Subject.USER, subject=user.get_username())
        return told.filter(Q(job__in=Job.objects.visible_to(user)) | own)

    def unresolved(self) -> Self:
        """Those whose finding still holds, as far as is known."""
        return self.exclude(state=Flag.State.RESOLVED)

    def of_same(self, rule: str, kind: str, filesystem: int | None) -> Self:
        """Those of findings that are told apart by their subject alone."""
        return self.about(kind, filesystem).filter(rule=rule)

    def about(self, kind: str, filesystem: int | None) -> Self:
        """Those about a kind of subjects; about hosts, by what they send to a filesystem."""
        of_kind = self.filter(subject_kind=kind)
        return of_kind.filter(filesystem=filesystem) if kind == Subject.HOST else of_kind

    def to_triage(self) -> Self:
        """Those that somebody should look at."""
        return self.filter(state__in=[Flag.State.OPEN, Flag.State.ACKNOWLEDGED])


class Flag(models.Model):
    """What a rule found of a subject; while it is not resolved, there is no second one.

    Of a host there may be one for each filesystem, since it is judged by what it sends to each.
    Times without `_at` are of the data: when it happened, not when it was stored.
    """

    class State(models.TextChoices):
        """How far its triage is."""

        OPEN = "open", "open"
        ACKNOWLEDGED = "acknowledged", "acknowledged"
        MUTED = "muted", "muted"
        RESOLVED = "resolved", "resolved"
        WITHHELD = "withheld", "withheld"  # the data are not good enough to blame somebody

    class Severity(models.IntegerChoices):
        """The words of `analysis.rules.rule.Severity`."""

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
    owner = models.CharField(max_length=64, blank=True)  # whose doing it is, where that is known
    cluster = models.ForeignKey(Cluster, models.CASCADE, null=True, related_name="+")
    filesystem = models.ForeignKey(Filesystem, models.CASCADE, null=True, related_name="+")

    state = models.CharField(max_length=16, choices=State)
    severity = models.PositiveSmallIntegerField(choices=Severity)
    since = models.DateTimeField()  # the newest data when it was found first
    until = models.DateTimeField()  # likewise when it was found last
    value = models.FloatField()  # of the rule's measure, the highest yet
    numbers = models.JSONField()  # those of that moment
    limits = models.JSONField()  # that it was judged by
    scope = models.CharField(max_length=200)  # whose limits these are
    advice = models.TextField()  # with its numbers filled in
    why_withheld = models.JSONField(default=list)  # sentences

    opened_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    resolved_at = models.DateTimeField(null=True)
    why_resolved = models.CharField(max_length=500, blank=True)
    resolved_by = models.CharField(max_length=150, blank=True)  # "": nobody, it resolved itself
    rests = models.BooleanField(default=False)  # it resolved itself, for nothing new came of it
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
                condition=~Q(state="resolved") | ~Q(why_resolved="") & Q(resolved_at__isnull=False),
            ),
            models.CheckConstraint(
                name="flag_muted_has_end",
                condition=~Q(state="muted") | Q(muted_until__isnull=False),
            ),
        ]
        indexes = [
            # The inbox.
            models.Index(
                name="flag_inbox",
                fields=["state", "-severity", "-until", "-id"],
            ),
            # Similar ones in the past; those of a user.
            models.Index(name="flag_rule_recent", fields=["rule", "-until"]),
            models.Index(name="flag_owner_recent", fields=["owner", "-until"]),
        ]

    def __str__(self) -> str:
        return f"{self.title}: {self.subject_kind} {self.subject}"

    @property
    def state_of_opened(self) -> str:
        """What it is once it opens: withheld, if its data are not good enough to blame somebody."""
        return self.State.WITHHELD if self.why_withheld else self.State.OPEN

    @property
    def judged_by(self) -> Rule | None:
        """Its rule, if there still is one of this code."""
        return BY_CODE.get(self.rule)

    @property
    def title(self) -> str:
        """What was found, in few words."""
        return self.judged_by.title if self.judged_by else self.rule

    @property
    def measure(self) -> str:
        """The number that is held against its limit."""
        return self.judged_by.measure if self.judged_by else ""

    @property
    def limit(self) -> float | None:
        """What its measure was held against."""
        limit: float | None = self.limits.get(self.measure)
        return limit


class FlagEvent(models.Model):
    """Something that happened to a flag; these are its history."""

    class What(models.TextChoices):
        """What happened."""

        OPENED = "opened", "opened"
        WITHHELD = "withheld", "withheld"
        GREW = "grew", "grew"
        ESCALATED = "escalated", "escalated"
        ACKNOWLEDGED = "acknowledged", "acknowledged"
        MUTED = "muted", "muted"
        REOPENED = "reopened", "reopened"
        ASSIGNED = "assigned", "assigned"
        COMMENTED = "commented", "commented"
        RESOLVED = "resolved", "resolved"

    flag = models.ForeignKey(Flag, models.CASCADE, related_name="events")
    what = models.CharField(max_length=16, choices=What)
    at = models.DateTimeField(auto_now_add=True)
    by = models.CharField(max_length=150, blank=True)  # "": nobody, the rule
    words = models.TextField(blank=True, max_length=2_000)
    value = models.FloatField(null=True)  # of the measure then

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.flag_id} {self.what}"
