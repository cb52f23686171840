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
    """Refuse an unknown format."""
    if name not in BY_NAME:
        raise ValidationError(f"{name!r} is not a format: use one of {', '.join(BY_NAME)}.")


class Source(models.Model):
    """An agent's feed of one format; records outside its scope are refused."""

    name = models.SlugField(unique=True, help_text="As in 'mds1-rpctrace'.")
    format = models.CharField(max_length=16, validators=[validate_format])
    cluster = models.ForeignKey(
        Cluster, models.CASCADE, null=True, blank=True, help_text="For accounting."
    )
    filesystem = models.ForeignKey(
        Filesystem,
        models.CASCADE,
        null=True,
        blank=True,
        help_text="For targets of several servers of one filesystem.",
    )
    server = models.ForeignKey(
        Server, models.CASCADE, null=True, blank=True, help_text="The agent's host."
    )
    poll_interval_s = models.PositiveIntegerField(
        "poll interval (s)",
        default=60,
        validators=[MinValueValidator(1)],
        help_text="The expected time between two batches.",
    )

    # The state of the agent at its last batch.
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
                name="source_single_scope",
                condition=models.Q(
                    cluster__isnull=False, filesystem__isnull=True, server__isnull=True
                )
                | models.Q(cluster__isnull=True, filesystem__isnull=False, server__isnull=True)
                | models.Q(cluster__isnull=True, filesystem__isnull=True, server__isnull=False),
                violation_error_message="Select one cluster, filesystem or server.",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def scope_filesystem(self) -> Filesystem | None:
        """The filesystem of the scope; None for a cluster."""
        return self.server.filesystem if self.server else self.filesystem

    @property
    def scope(self) -> Cluster | Filesystem | Server:
        """The cluster, filesystem or server of its records."""
        return cast("Cluster | Filesystem | Server", self.cluster or self.filesystem or self.server)

    def clean(self) -> None:
        """Refuse a scope that the format does not have."""
        if self.format not in BY_NAME:  # refused by the field's validator
            return
        scopes = BY_NAME[self.format].scopes
        selected = {name for name in get_args(Scope) if getattr(self, name)}
        if len(selected) != 1 or not selected <= set(scopes):
            raise ValidationError(
                f"The scope of a {self.format} source is a {' or a '.join(scopes)}. Select only "
                "that."
            )
