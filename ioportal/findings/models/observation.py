"""Metadata servers as their latest complete windows show them, before any accusation."""

from django.db import models

from ioportal.site.models import Server


class Observation(models.Model):
    """The latest evaluation of a metadata server: whether it is slow, and who does the work.

    It accuses nobody: who does most of the work in the last seconds of a queue is often not its
    cause.
    """

    server = models.OneToOneField(Server, models.CASCADE, primary_key=True, related_name="+")
    until = models.DateTimeField()  # end of the latest complete window
    is_estimated = models.BooleanField()  # from counters, because the server was not traced
    since = models.DateTimeField(null=True)  # start of the slow interval; null: not slow
    times = models.FloatField(null=True)  # time of requests / usual, in its worst window
    # Principals or groups with much of the work: kind, key and share, largest first.
    shares = models.JSONField(default=list)
    is_known = models.BooleanField(default=True)  # false: nobody's work is known

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="observation_slow_has_times",
                condition=models.Q(since=None, times=None)
                | models.Q(since__isnull=False, times__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.server} until {self.until}"
