"""Where the portal's data come from: formats, and the sources that send batches of one."""

from __future__ import annotations

from typing import cast

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models

from ioportal.site.models.infrastructure import Cluster, Filesystem, Server


class Format(models.TextChoices):
    """The formats, by the names the command line uses."""

    RPCTRACE = "rpctrace", "Lustre RPC trace"
    REQ_HISTORY = "req_history", "Lustre history of requests"
    JOB_STATS = "job_stats", "Lustre job_stats"
    MD_STATS = "md_stats", "Lustre md_stats"
    MDS_STATS = "mds_stats", "Lustre statistics of services"
    SACCT = "sacct", "Slurm sacct"
    SQUEUE = "squeue", "Slurm squeue"
    PBS = "pbs", "PBS or Torque accounting"
    ALPS = "alps", "ALPS placement"
    PANDA = "panda", "PanDA jobs"


# What sources of a format speak for; those of all others for a cluster.
_SPEAKS_FOR = {
    Format.RPCTRACE: ("server",),
    Format.REQ_HISTORY: ("server",),
    Format.MDS_STATS: ("server",),
    Format.JOB_STATS: ("server", "filesystem"),
    Format.MD_STATS: ("server", "filesystem"),
}


class Source(models.Model):
    """An agent's feed of one format. What it says of anything else is refused."""

    name = models.SlugField(unique=True, help_text="As in 'mds1-rpctrace'.")
    format = models.CharField(max_length=16, choices=Format)
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
        needed = _SPEAKS_FOR.get(Format(self.format), ("cluster",)) if self.format else ()
        told = {name for name in ("cluster", "filesystem", "server") if getattr(self, name)}
        if needed and (len(told) != 1 or not told <= set(needed)):
            raise ValidationError(
                f"A source of {self.format} speaks for a {' or a '.join(needed)}: name it, and "
                "nothing else."
            )
