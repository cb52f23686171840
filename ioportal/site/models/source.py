"""Sources: the feeds of agents."""

from __future__ import annotations

from typing import cast, get_args

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models

from collectors.format import Scope
from collectors.formats import BY_NAME
from ioportal.site.models.infrastructure import Cluster, Filesystem, Server


def validate_format(name: str) -> None:
    """Refuse a name that is not a format's."""
    if name not in BY_NAME:
        raise ValidationError(f"{name!r} is not a format: use one of {', '.join(BY_NAME)}.")


class Source(models.Model):
    """An agent's feed of one format. What it says of anything else is refused."""

    name = models.SlugField(unique=True, help_text="As in 'mds1-rpctrace'.")
    format = models.CharField(max_length=16, validators=[validate_format])
    cluster = models.ForeignKey(
        Cluster, models.CASCADE, null=True, blank=True, help_text="Whose accounting it sends."
    )
    filesystem = models.ForeignKey(
        Filesystem,
        models.CASCADE,
        null=True,
        blank=True,
        help_text="What all its targets are of, where they are of several servers.",
    )
    server = models.ForeignKey(
        Server, models.CASCADE, null=True, blank=True, help_text="The host that it runs on."
    )
    poll_interval_s = models.PositiveIntegerField(
        "poll interval (s)",
        default=60,
        validators=[MinValueValidator(1)],
        help_text="How often a batch is to be expected.",
    )

    # What it last said of itself.
    last_batch_at = models.DateTimeField("last batch", null=True, editable=False)
    spool_batches = models.BigIntegerField(null=True, editable=False)  # not delivered yet
    spool_bytes = models.BigIntegerField(null=True, editable=False)
    spool_oldest_at = models.DateTimeField(null=True, editable=False)
    clock_offset_s = models.FloatField(null=True, editable=False)  # its clock less the portal's
    agent_version = models.CharField(max_length=64, blank=True, editable=False)
    agent_host = models.CharField(max_length=255, blank=True, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="source_speaks_for_one_thing",
                condition=models.Q(
                    cluster__isnull=False, filesystem__isnull=True, server__isnull=True
                )
                | models.Q(cluster__isnull=True, filesystem__isnull=False, server__isnull=True)
                | models.Q(cluster__isnull=True, filesystem__isnull=True, server__isnull=False),
                violation_error_message="A source speaks for one cluster, filesystem or server.",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def of_filesystem(self) -> Filesystem | None:
        """The filesystem that it speaks for, or that its server is of."""
        return self.server.filesystem if self.server else self.filesystem

    @property
    def speaks_for(self) -> Cluster | Filesystem | Server:
        """The one thing that its records may be about."""
        return cast("Cluster | Filesystem | Server", self.cluster or self.filesystem or self.server)

    def clean(self) -> None:
        """Refuse a source that speaks for nothing that its format is about."""
        if self.format not in BY_NAME:  # refused by the field's validator
            return
        scopes = BY_NAME[self.format].scopes
        given = {name for name in get_args(Scope) if getattr(self, name)}
        if len(given) != 1 or not given <= set(scopes):
            raise ValidationError(
                f"A source of {self.format} speaks for a {' or a '.join(scopes)}: name it, and "
                "nothing else."
            )
