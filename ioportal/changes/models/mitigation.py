"""The log of mitigations: changes made at the site to help jobs or servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from ioportal.changes.analysis.expectations import FALL, RISE, ExpectedRatio
from ioportal.metrics import ANY_BY_NAME

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AnonymousUser, User

_DIRECTIONS: dict[str, ExpectedRatio] = {"less": FALL, "more": RISE}
_COMPLETE = Coalesce("completed_at", "started_at")


class MitigationQuerySet(models.QuerySet["Mitigation"]):
    """Queries of mitigations."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Mitigations `user` may see: staff see all, others public ones."""
        return self if user.is_staff else self.filter(is_public=True)

    def changing_within(self, start: datetime, end: datetime) -> Self:
        """Mitigations that began, were completed or were reverted in [start, end), in order."""
        moments = ("started_at", "completed_at", "reverted_at")
        within = [Q(**{f"{name}__gte": start, f"{name}__lt": end}) for name in moments]
        return self.filter(within[0] | within[1] | within[2]).order_by("started_at", "pk")


class Mitigation(models.Model):
    """A change made at the site at one time, or rolled out in [started_at, completed_at).

    Its scope is a population: the jobs that it concerns, at any time. Users see public
    mitigations. Staff see, log and change all.
    """

    class Kind(models.TextChoices):
        CONCURRENCY = "concurrency", "number of concurrent jobs"
        STRIPING = "striping", "striping"
        SOFTWARE = "software", "software location"
        ENVIRONMENT = "environment", "environment clean-up"
        PLACEMENT = "placement", "file placement or RAM disk"
        CODE = "code", "code fix"
        SCHEDULING = "scheduling", "scheduling"
        SERVER = "server", "server change"
        OTHER = "other", "other"

    class Source(models.TextChoices):
        HAND = "hand", "by hand"
        CASE = "case", "from a case"
        ANSWER = "answer", "from a user's answer"
        CHANGE_POINT = "change-point", "from a change point"

    class Fix(models.TextChoices):
        REPORTED = "reported", "reported"
        ACCEPTED = "accepted", "accepted"
        RELEASED = "released", "released"
        REJECTED = "rejected", "rejected"

    class Direction(models.TextChoices):
        LESS = "less", "falls"
        MORE = "more", "rises"

    title = models.CharField(max_length=120)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    made_by = models.CharField("made by", max_length=100, blank=True)  # people or a team
    started_at = models.DateTimeField("start")
    completed_at = models.DateTimeField("end of roll-out", null=True, blank=True)  # null: none
    reverted_at = models.DateTimeField("reverted", null=True, blank=True)  # null: active
    scope = models.CharField(max_length=2_000, blank=True)  # as Population.query, without times
    metric = models.CharField("expected metric", max_length=40, blank=True)  # name in METRICS
    factor = models.FloatField(null=True, blank=True)  # expected: value after / value before
    # Expected without a factor.
    direction = models.CharField(max_length=4, choices=Direction.choices, blank=True)
    links = models.TextField(blank=True)  # one URL per line
    notes = models.TextField(blank=True)
    cost = models.CharField(max_length=200, blank=True)  # in words
    fix = models.CharField("upstream fix", max_length=16, choices=Fix.choices, blank=True)
    fix_url = models.URLField("link of the fix", max_length=500, blank=True)
    source = models.CharField(max_length=16, choices=Source.choices, default=Source.HAND)
    # Without a foreign key: a mitigation outlives its case.
    case_key = models.BigIntegerField(null=True, blank=True)
    # Names a mitigation for good, so that logging it again changes nothing.
    key = models.CharField(max_length=100, null=True, unique=True, editable=False)  # noqa: DJ001  (unique)
    is_public = models.BooleanField("visible to all users", default=False)
    simulated = models.BooleanField(default=False, editable=False)

    objects = MitigationQuerySet.as_manager()

    class Meta:
        ordering = ["-started_at", "-pk"]
        constraints = [
            models.CheckConstraint(name="mitigation_has_title", condition=~Q(title="")),
            models.CheckConstraint(
                name="mitigation_completed_after_start",
                condition=Q(completed_at=None) | Q(completed_at__gt=F("started_at")),
                violation_error_message="The roll-out must end after the start.",
            ),
            models.CheckConstraint(
                name="mitigation_reverted_after_completion",
                condition=Q(reverted_at=None) | Q(reverted_at__gt=_COMPLETE),
                violation_error_message="It can only be reverted after the roll-out.",
            ),
            models.CheckConstraint(
                name="mitigation_factor_of_metric",
                condition=Q(factor=None) | (Q(factor__gt=0) & ~Q(metric="")),
                violation_error_message="A factor is positive and needs a metric.",
            ),
            models.CheckConstraint(
                name="mitigation_direction_without_factor",
                condition=Q(direction="") | (Q(factor=None) & ~Q(metric="")),
                violation_error_message="A direction needs a metric, and has no factor.",
            ),
        ]
        indexes = [
            # The list, and marks of charts: those around a time.
            models.Index(name="mitigation_recent", fields=["-started_at", "-id"]),
            # The page of a case: those logged from it.
            models.Index(
                name="mitigation_case", fields=["case_key"], condition=Q(case_key__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def complete_at(self) -> datetime:
        """The time from which it applies everywhere."""
        return self.completed_at or self.started_at

    @property
    def expected(self) -> ExpectedRatio | None:
        """The expected ratio of the medians of its metric; None: unknown."""
        if self.factor is not None:
            return ExpectedRatio(self.factor, self.factor)
        return _DIRECTIONS.get(self.direction)

    @property
    def expectation(self) -> str:
        """The expected effect in words: metric, and how many times it falls or rises."""
        if not (metric := ANY_BY_NAME.get(self.metric)):
            return ""
        if not self.expected:
            return metric.title
        return f"{metric.title} {self.expected.in_words(plural=metric.is_plural)}"

    @property
    def link_list(self) -> list[str]:
        """Its links."""
        return self.links.split()


class MitigationEvent(models.Model):
    """An entry of a mitigation's history: it was logged, or some of its facts were changed."""

    mitigation = models.ForeignKey(Mitigation, models.CASCADE, related_name="events")
    at = models.DateTimeField(auto_now_add=True)
    by = models.CharField(max_length=150)  # a user name, which outlives its account
    text = models.TextField()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.mitigation}: {self.text}"


class DismissedChange(models.Model):
    """A change point that staff dismissed; it is not proposed again for these jobs."""

    scope = models.CharField(max_length=2_000, blank=True)  # query string of the jobs
    day = models.DateField()
    by = models.CharField(max_length=150)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            # Also serves the trends page: the dismissed days of some jobs.
            models.UniqueConstraint(name="dismissed_change", fields=["scope", "day"])
        ]

    def __str__(self) -> str:
        return f"{self.scope or 'all jobs'}, {self.day}"
