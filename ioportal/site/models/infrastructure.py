"""Clusters and their nodes, filesystems and their servers."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import cache, cached_property
from typing import Self
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from ioportal.site.job_id_pattern import validate_job_id_pattern

_MIN_CLEANUP_INTERVAL, _MAX_CLEANUP_INTERVAL = timedelta(seconds=1), timedelta(days=3_650)
_NODE_FORMAT = re.compile(r"[\w.-]*\{number(:0?\d{1,2}d)?\}[\w.-]*", re.ASCII)


def validate_time_zone(name: str) -> None:
    """Refuse a name that is not an IANA time zone."""
    if name not in _time_zones():
        raise ValidationError(f"{name!r} is not a time zone like 'Europe/Berlin' or 'UTC'.")


@cache
def _time_zones() -> set[str]:
    return available_timezones()  # it reads hundreds of files


def validate_node_format(name_format: str) -> None:
    """Refuse a format that does not turn a NID number into a host name."""
    if not _NODE_FORMAT.fullmatch(name_format):
        raise ValidationError(f"{name_format!r}: write it like 'nid{{number:05d}}'.")


class Cluster(models.Model):
    """A compute system with one batch system."""

    class BatchSystem(models.TextChoices):
        """Supported batch systems."""

        SLURM = "slurm", "Slurm"
        PBS = "pbs", "PBS or Torque"
        HTCONDOR = "htcondor", "HTCondor"
        LSF = "lsf", "LSF"
        SGE = "sge", "Grid Engine"

    name = models.SlugField(unique=True)
    time_zone = models.CharField(
        max_length=64,
        validators=[validate_time_zone],
        help_text="The zone of local times in accounting.",
    )
    batch_system = models.CharField(max_length=8, choices=BatchSystem)
    exec_hosts_are_compute_nodes = models.BooleanField(
        default=True,
        help_text="No on a Cray: there PBS lists the MOM node, and ALPS the compute nodes.",
    )
    cores_per_node = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Cores of a node as counted by accounting, if jobs share nodes. Node-hours are "
        "then computed from cores.",
    )
    nid_network = models.CharField(
        max_length=16,
        blank=True,
        help_text="NID rule, part 1: the network of this cluster's nodes, such as 'gni'.",
    )
    nid_node_format = models.CharField(
        max_length=64,
        blank=True,
        validators=[validate_node_format],
        help_text="NID rule, part 2: 'nid{number:05d}' maps 42@gni to node nid00042.",
    )
    simulated = models.BooleanField(
        default=False, help_text="Its data is simulated; pages show a label."
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="cluster_nid_rule_whole",
                condition=models.Q(nid_network="", nid_node_format="")
                | ~models.Q(nid_network="") & ~models.Q(nid_node_format=""),
                violation_error_message="Set both parts of the NID rule, or neither.",
            ),
            # One network is one address space: two clusters cannot own the same NIDs.
            models.UniqueConstraint(
                name="cluster_nid_network",
                fields=["nid_network"],
                condition=~models.Q(nid_network=""),
                violation_error_message="Another cluster has this NID network already.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def zone(self) -> ZoneInfo:
        """The zone of local times in accounting."""
        return ZoneInfo(self.time_zone)

    @cached_property
    def metadata_server_ids(self) -> list[int]:
        """Ids of the metadata servers of its filesystems, cached: every job query needs them."""
        servers = Server.objects.filter(filesystem__clusters=self, kind=Server.Kind.MDS)
        return list(servers.values_list("pk", flat=True))


class Node(models.Model):
    """A compute or login node; accounting records add missing ones."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=255)
    forwards = models.BooleanField(
        default=False,
        help_text="It forwards the I/O of other nodes: a DVS server, a gateway, an NFS server. Job "
        "ids in its requests cannot be verified.",
    )

    class Meta:
        constraints = [models.UniqueConstraint(name="node_identity", fields=["cluster", "name"])]

    def __str__(self) -> str:
        return self.name


class Nid(models.Model):
    """A Lustre network id of a client, registered or found in telemetry; unique in a site."""

    text = models.CharField(max_length=128, unique=True)
    node = models.ForeignKey(Node, models.SET_NULL, null=True, blank=True, related_name="nids")
    # True: the node was set for this NID. False: it follows from the cluster's rule.
    registered = models.BooleanField(default=False, editable=False)

    class Meta:
        verbose_name = "NID"

    def __str__(self) -> str:
        return self.text


class Filesystem(models.Model):
    """A Lustre filesystem, or the exports of NFS servers."""

    name = models.SlugField(unique=True)
    clusters = models.ManyToManyField(
        Cluster, related_name="filesystems", help_text="Clusters that mount it."
    )
    job_id_pattern = models.CharField(
        max_length=255,
        validators=[validate_job_id_pattern],
        default=r"(?P<batch_id>[0-9]+)(\[(?P<array_index>[0-9]+)\])?(\..*)?",
        help_text="A regular expression that matches the whole job id of a batch job. Groups: "
        "batch_id, array_index, launch (an ALPS apid), uid, host. Other ids are process names.",
    )
    simulated = models.BooleanField(
        default=False, help_text="Its data is simulated; pages show a label."
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Server(models.Model):
    """An MDS or OSS host, or an NFS server."""

    class Kind(models.TextChoices):
        """Metadata or object storage of Lustre, or NFS."""

        MDS = "mds", "MDS"
        OSS = "oss", "OSS"
        NFS = "nfs", "NFS server"

    filesystem = models.ForeignKey(Filesystem, models.CASCADE, related_name="servers")
    name = models.CharField(max_length=255, unique=True)
    kind = models.CharField(max_length=3, choices=Kind, default=Kind.MDS)
    capacity_per_s = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Metadata requests per second that an MDS can serve, by mdtest. Rules compare "
        "loads with it; if it is unknown, with 5,000.",
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ServerVersion(models.Model):
    """The Lustre version of a server from a time on; the meaning of `open` depends on it."""

    server = models.ForeignKey(Server, models.CASCADE, related_name="versions")
    version = models.CharField(max_length=32)
    since = models.DateTimeField()

    class Meta:
        ordering = ["server", "since"]
        constraints = [models.UniqueConstraint(name="server_version", fields=["server", "since"])]

    def __str__(self) -> str:
        return self.version


class TargetQuerySet(models.QuerySet["Target"]):
    """Questions about targets."""

    def mdts_of(self, server: Server) -> Self:
        """MDTs of a server, and MDTs of its filesystem that are registered on no server."""
        on_server = models.Q(server=server)
        if server.kind == Server.Kind.MDS:
            on_server |= models.Q(server=None, filesystem=server.filesystem_id)
        return self.filter(on_server, kind=Target.Kind.MDT)


class Target(models.Model):
    """An MDT or OST."""

    class Kind(models.TextChoices):
        """Metadata or object storage."""

        MDT = "mdt", "MDT"
        OST = "ost", "OST"

    filesystem = models.ForeignKey(Filesystem, models.CASCADE, related_name="targets")
    server = models.ForeignKey(
        Server, models.SET_NULL, null=True, blank=True, related_name="targets"
    )
    name = models.CharField(max_length=64, unique=True, help_text="For example 'atlas2-MDT0000'.")
    kind = models.CharField(max_length=3, choices=Kind)
    job_cleanup_interval = models.DurationField(
        default=timedelta(minutes=10),
        validators=[
            MinValueValidator(_MIN_CLEANUP_INTERVAL),
            MaxValueValidator(_MAX_CLEANUP_INTERVAL),
        ],
        help_text="The Lustre parameter of this name, in seconds: counters of jobs that were idle "
        "for longer are dropped. Polls at most this far apart miss nothing.",
    )

    objects = TargetQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def poll_gap(self) -> timedelta:
        """The longest time between two polls of its counters that leaves no gap."""
        return max(settings.POLL_GAP, self.job_cleanup_interval)


class Service(models.Model):
    """A thread family of a server, by thread-name base: 'mdt', 'mdt_rdpg', 'll_ost_io'."""

    name = models.CharField(max_length=32, unique=True)

    def __str__(self) -> str:
        return self.name


class Counter(models.Model):
    """A counter of services, by its Lustre name: 'req_waittime', 'mds_getattr'."""

    name = models.CharField(max_length=64, unique=True)

    def __str__(self) -> str:
        return self.name


class SourceJobId(models.Model):
    """A job id in telemetry, and its parts by the filesystem's pattern."""

    filesystem = models.ForeignKey(Filesystem, models.CASCADE)
    text = models.CharField(max_length=255)
    batch_id = models.CharField(max_length=64, blank=True)  # "": a process name
    array_index = models.CharField(max_length=64, blank=True)
    launch = models.CharField(max_length=64, blank=True)
    uid = models.BigIntegerField(null=True)  # of the process, by its kernel; null: not in the id
    host = models.CharField(max_length=64, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="source_job_id_identity", fields=["filesystem", "text"])
        ]
        indexes = [
            # Late binding: source ids of a job that just arrived.
            models.Index(name="source_job_id_batch", fields=["batch_id"]),
            models.Index(name="source_job_id_launch", fields=["launch"]),
        ]

    def __str__(self) -> str:
        return self.text
