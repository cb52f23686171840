"""Pending work of the stages: dirty intervals of roll-ups and impact."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

_OLDEST_PART = 4  # one in so many claimed rows is among the oldest


class PendingQuerySet(models.QuerySet[Any]):
    """Pending work of a stage."""

    def next(self, limit: int) -> list[Any]:
        """Return up to `limit` rows to process next, in the order of their insertion.

        Most of them concern the latest data, so that loading old data does not delay live data. A
        fixed share were inserted first, so that live data cannot starve the others.
        """
        of_oldest = limit // _OLDEST_PART
        order = (*self.model.derived_later, f"-{self.model.ends}", "-pk")
        newest = list(self.order_by(*order)[: limit - of_oldest])
        has_more = len(newest) == limit - of_oldest
        oldest = self.order_by("pk")[:of_oldest] if has_more else ()
        rows = {row.pk: row for row in (*oldest, *newest)}
        return [rows[key] for key in sorted(rows)]

    def claim(self, limit: int) -> list[Any]:
        """Delete and return the rows to process next; a rollback restores them."""
        rows = self.next(limit)
        if rows:
            self.filter(pk__in=[row.pk for row in rows]).delete()
        return rows


class Pending(models.Model):
    """A row of pending work; the stage that claims it deletes it."""

    ends: ClassVar = "end"  # name of the field with the end of its data
    # Name of the field that is true where rows are only derived again, if there is one.
    derived_later: ClassVar[tuple[str, ...]] = ()

    created_at = models.DateTimeField(
        db_default=Now()
    )  # by the database, because SQL statements insert rows

    objects = PendingQuerySet.as_manager()

    class Meta:
        abstract = True


class _Dirty(Pending):
    """An interval in which a roll-up is outdated."""

    start = models.DateTimeField()
    end = models.DateTimeField()

    class Meta:
        abstract = True
        indexes = (models.Index(fields=["-end", "-id"], name="%(class)s_latest"),)


class DirtyRpcs(_Dirty):
    """Attributed RPCs changed: of a server, or of some principals on any server."""

    class Level(models.IntegerChoices):
        """The roll-up to compute again."""

        TEN_SECONDS = 0, "by 10 s"
        MINUTE = 1, "by minute"
        TEN_MINUTES = 2, "by ten minutes"

    level = models.SmallIntegerField(choices=Level)
    server_id = models.IntegerField(null=True)
    job_ids = ArrayField(models.BigIntegerField(), default=list)
    nid_ids = ArrayField(models.IntegerField(), default=list)
    source_job_ids = ArrayField(models.IntegerField(), default=list)

    def __str__(self) -> str:
        return f"{self.start} to {self.end} {self.get_level_display()}"


class DirtyImpact(_Dirty):
    """RPCs by 10 s or counters changed on a server, or on any: impact may change."""

    server_id = models.IntegerField(null=True)

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"


class DirtyIo(_Dirty):
    """I/O windows changed: of a target in an interval, or of some source job ids."""

    filesystem_id = models.IntegerField(null=True)
    target_id = models.IntegerField(null=True)
    source_job_ids = ArrayField(models.IntegerField(), default=list)  # without a target: all times

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"
