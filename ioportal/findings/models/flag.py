"""Flags and their events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from ioportal.jobs.models import Job
from ioportal.rules import BY_CODE
from ioportal.rules.rule import Severity, Subject
from ioportal.site.models import Cluster, Filesystem

if TYPE_CHECKING:
    from datetime import timedelta

    from django.contrib.auth.models import AnonymousUser, User

    from ioportal.rules.rule import Rule


class FlagQuerySet(models.QuerySet["Flag"]):
    """Queries of flags."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Flags that `user` may see: for staff all, otherwise the user's and those on visible jobs.

        The user's flags include those on the user's processes. Members of a project see the
        flags of the project and of its campaigns. Only staff see findings on data of insufficient
        quality.
        """
        if user.is_staff:
            return self
        if not user.is_authenticated:
            return self.none()
        of_user = (Subject.USER, Subject.APPLICATION, Subject.HOST)
        own = Q(subject_kind__in=of_user, owner=user.get_username())
        of_jobs = Q(job__in=Job.objects.visible_to(user))
        for project in user.groups.all():  # prefetched with the jobs
            own |= Q(subject_kind=Subject.PROJECT, subject=project.name)
            own |= Q(subject_kind=Subject.CAMPAIGN, subject__startswith=f"{project.name}:")
        return self.good().filter(of_jobs | own)

    def good(self) -> Self:
        """Flags on good data; all others are suppressed."""
        return self.filter(suppression_reasons=[])

    def current(self) -> Self:
        """Flags whose finding applies."""
        return self.filter(ended_at=None)

    def unresolved(self) -> Self:
        """Current flags of unresolved cases."""
        return self.current().exclude(case__state="resolved")

    def counted(self) -> Self:
        """Evidence of a case: flags on good data, without findings on jobs that no longer apply."""
        return self.good().exclude(subject_kind=Subject.JOB, ended_at__isnull=False)

    def without_history(self, delay: timedelta) -> Self:
        """Leave out findings later than `delay` after its data, if its case has other flags.

        It was loaded later, and says nothing about the present.
        """
        is_live = Q(opened_at__lte=F("until") + delay)
        others = Flag.objects.counted().filter(is_live, case=OuterRef("case"))
        return self.filter(is_live | ~Exists(others))

    def of_rule(self, rule: str, kind: str, filesystem: int | None) -> Self:
        """Flags of a rule: at most one current flag for each subject."""
        return self.of_kind(kind, filesystem).filter(rule=rule)

    def of_kind(self, kind: str, filesystem: int | None) -> Self:
        """Flags of a kind of subject; hosts are flagged for each filesystem separately."""
        of_kind = self.filter(subject_kind=kind)
        return of_kind.filter(filesystem=filesystem) if kind == Subject.HOST else of_kind


class Flag(models.Model):
    """A rule's finding about a subject. A subject has at most one current flag of a rule.

    Hosts are the exception: one for each filesystem that they load. Times without `_at` are times
    of the data, not of storage.
    """

    class Severity(models.IntegerChoices):
        """Labels of `rules.rule.Severity`."""

        NOTICE = Severity.NOTICE.value, "notice"
        WARNING = Severity.WARNING.value, "warning"
        ABUSE = Severity.ABUSE.value, "abuse"

    case = models.ForeignKey("findings.Case", models.CASCADE, related_name="flags")
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

    severity = models.PositiveSmallIntegerField(choices=Severity)
    since = models.DateTimeField()  # when the measure reached its threshold, if known
    until = models.DateTimeField()  # latest data at the last finding
    value = models.FloatField()  # of the rule's measure, the highest so far
    numbers = models.JSONField()  # of the highest finding; others of an ended job: latest
    thresholds = models.JSONField()  # used in the evaluation
    scope = models.CharField(max_length=200)  # the part of the site that sets them
    advice = models.TextField()  # with numbers filled in
    suppression_reasons = models.JSONField(default=list)  # sentences

    opened_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    ended_at = models.DateTimeField(null=True)  # null: the finding applies
    ending = models.CharField(max_length=200, blank=True)  # the reason

    objects = FlagQuerySet.as_manager()

    class Meta:
        ordering = ["-severity", "-until", "-pk"]
        constraints = [
            models.UniqueConstraint(
                name="flag_one_current",
                fields=["rule", "subject_kind", "subject"],
                condition=Q(ended_at=None) & ~Q(subject_kind="host"),
            ),
            models.UniqueConstraint(
                name="flag_one_current_of_host",
                fields=["rule", "subject", "filesystem"],
                condition=Q(ended_at=None, subject_kind="host"),
            ),
            models.CheckConstraint(name="flag_spans", condition=Q(until__gte=F("since"))),
            models.CheckConstraint(
                name="flag_end_has_reason",
                condition=Q(ended_at=None, ending="") | Q(ended_at__isnull=False) & ~Q(ending=""),
            ),
        ]
        indexes = [
            # Flags of a rule whose thresholds changed; jobs by rule.
            models.Index(name="flag_rule_recent", fields=["rule", "-until"]),
        ]

    def __str__(self) -> str:
        return f"{self.title}: {self.subject_kind} {self.subject}"

    @property
    def is_suppressed(self) -> bool:
        """Whether the data quality is below good."""
        return bool(self.suppression_reasons)

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

    def end(self, reason: str) -> FlagEvent:
        """Set the end of the finding; return the event."""
        self.ended_at = self.changed_at = timezone.now()
        self.ending = reason
        return FlagEvent(flag=self, kind=FlagEvent.Kind.ENDED, text=reason, value=self.value)


class FlagEvent(models.Model):
    """An entry in a flag's history, by the evaluation."""

    class Kind(models.TextChoices):
        """Type of event."""

        OPENED = "opened", "opened"
        SUPPRESSED = "suppressed", "suppressed"
        GREW = "grew", "grew"
        ESCALATED = "escalated", "escalated"
        ENDED = "ended", "ended"

    flag = models.ForeignKey(Flag, models.CASCADE, related_name="events")
    kind = models.CharField(max_length=16, choices=Kind)
    at = models.DateTimeField(auto_now_add=True)
    text = models.TextField(blank=True)
    value = models.FloatField(null=True)  # of the measure at that time

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.flag_id} {self.kind}"
