"""RPCs: raw windows, attributed windows, roll-ups, totals and impact.

These tables are hypertables without unique keys, created by SQL in `migrations/`: a raw row belongs
to its segment, and each segment is loaded once.
"""

from __future__ import annotations

from django.db import models

from ioportal.telemetry.models.windows import Method, Principal, WindowQuerySet


class _RpcTimes(models.Model):
    """Counts and times of a group of RPCs; times in microseconds, over the timed RPCs."""

    count = models.BigIntegerField()
    timed = models.BigIntegerField()
    service_us_sum = models.BigIntegerField()
    service_us_min = models.BigIntegerField()  # 0 if timed is 0, like the three below
    service_us_max = models.BigIntegerField()
    queue_us_min = models.BigIntegerField()
    queue_us_max = models.BigIntegerField()
    total_us_sum = models.BigIntegerField()

    class Meta:
        abstract = True


class RpcWindow(_RpcTimes):
    """Raw and immutable: 10 s x server x NID x job id x service x opcode of one segment."""

    pk = models.CompositePrimaryKey("segment_id", "start", "nid_id", "opcode")  # for Django only
    start = models.DateTimeField()
    segment_id = models.BigIntegerField()
    server_id = models.IntegerField()
    nid_id = models.IntegerField()
    source_job_id = models.IntegerField()  # 0: request without a job id
    service_id = models.IntegerField()
    opcode = models.SmallIntegerField()
    first = models.DateTimeField()
    last = models.DateTimeField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class RpcSecond(models.Model):
    """Raw and immutable: RPCs by second of arrival x window x sender, in slow episodes only.

    A sender is a job id or, without one, a NID. Both are 0 for senders with few requests.
    """

    pk = models.CompositePrimaryKey("segment_id", "start", "second", "opcode")  # for Django only
    start = models.DateTimeField()  # of the `RpcWindow`
    second = models.DateTimeField()
    segment_id = models.BigIntegerField()
    server_id = models.IntegerField()
    nid_id = models.IntegerField()
    source_job_id = models.IntegerField()
    service_id = models.IntegerField()
    opcode = models.SmallIntegerField()
    count = models.BigIntegerField()
    total_us_sum = models.BigIntegerField()
    service_us_sum = models.BigIntegerField()
    nids = models.BigIntegerField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class AttributedSecond(models.Model):
    """Derived from `RpcSecond`: RPCs by second of arrival x window x principal.

    `principal_id` is a job, a source job id, the key of a user's processes
    (`process_names.key_of_uid`) or a NID, depending on the kind; 0 for other kinds.
    """

    pk = models.CompositePrimaryKey("start", "second", "server_id", "opcode")  # for Django only
    start = models.DateTimeField()
    second = models.DateTimeField()
    server_id = models.IntegerField()
    service_id = models.IntegerField()
    opcode = models.SmallIntegerField()
    kind = models.SmallIntegerField(choices=Principal)
    principal_id = models.BigIntegerField()
    # Parts of a sender's requests, by the shares of its principals in the window.
    requests = models.FloatField()
    total_us = models.FloatField()
    service_us = models.FloatField()
    clients = models.FloatField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class _PrincipalRow(models.Model):
    """Values of one principal on a server in the interval that starts at `start`.

    `nid_id` is 0 for jobs, whose nodes are folded, and for principals attributed by job id. Rows of
    contradicted job ids have the job id and the NID, also if their node's job is the principal.
    """

    pk = models.CompositePrimaryKey("start", "server_id", "kind", "job_id")  # for Django only
    start = models.DateTimeField()
    server_id = models.IntegerField()
    kind = models.SmallIntegerField(choices=Principal)
    job_id = models.BigIntegerField()
    source_job_id = models.IntegerField()
    nid_id = models.IntegerField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        abstract = True


class _AttributedTimes(_PrincipalRow, _RpcTimes):
    """RPCs of one principal by service and opcode."""

    service_id = models.IntegerField()
    opcode = models.SmallIntegerField()

    class Meta:
        abstract = True


class RequestWindow(models.Model):
    """Raw and immutable: requests in a server's history, by 10 s x NID x service x opcode.

    A history contains an unknown part of all requests, so it is never added to traces.
    """

    pk = models.CompositePrimaryKey("segment_id", "start", "nid_id", "opcode")  # for Django only
    start = models.DateTimeField()
    segment_id = models.BigIntegerField()
    server_id = models.IntegerField()
    nid_id = models.IntegerField()
    service_id = models.IntegerField()
    opcode = models.SmallIntegerField()
    count = models.BigIntegerField()
    first = models.DateTimeField()
    last = models.DateTimeField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class AttributedRpc(_AttributedTimes):
    """Derived from raw windows: 10 s x server x service x opcode of one principal."""

    method = models.SmallIntegerField(choices=Method)
    segment_id = models.BigIntegerField()  # for reconciliation of each segment

    class Meta:
        managed = False


class RpcMinute(_AttributedTimes):
    """Rolled up from `AttributedRpc` by minute, over segments and methods."""

    class Meta:
        managed = False


class RpcTenMinutes(_AttributedTimes):
    """Rolled up from `RpcMinute`."""

    class Meta:
        managed = False


class _Load(_PrincipalRow):
    """All RPCs of one principal on a server, for overviews."""

    count = models.BigIntegerField()
    timed = models.BigIntegerField()
    service_us_sum = models.BigIntegerField()
    total_us_sum = models.BigIntegerField()

    class Meta:
        abstract = True


class LoadWindow(_Load):
    """Added up from `AttributedRpc` by 10 s."""

    class Meta:
        managed = False


class LoadMinute(_Load):
    """Rolled up from `LoadWindow`."""

    class Meta:
        managed = False


class LoadTenMinutes(_Load):
    """Rolled up from `LoadMinute`."""

    class Meta:
        managed = False


class _Total(_RpcTimes):
    """RPCs of all principals by service and opcode, in the interval that starts at `start`."""

    pk = models.CompositePrimaryKey("start", "server_id", "service_id", "opcode")  # for Django only
    start = models.DateTimeField()
    server_id = models.IntegerField()
    service_id = models.IntegerField()
    opcode = models.SmallIntegerField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        abstract = True


class RpcTotal(_Total):
    """Added up from `AttributedRpc` by 10 s."""

    class Meta:
        managed = False


class RpcTotalMinute(_Total):
    """Rolled up from `RpcTotal`."""

    class Meta:
        managed = False


class RpcTotalTenMinutes(_Total):
    """Rolled up from `RpcTotalMinute`."""

    class Meta:
        managed = False


class JobGroup(models.Model):
    """A group of jobs with rows in `ImpactWindow`."""

    class Kind(models.IntegerChoices):
        """The kind of group; its numbers differ from the numbers of `Principal`."""

        USER = 11, "user"
        PROJECT = 12, "project"
        APPLICATION = 13, "application"  # user and application name
        CAMPAIGN = 14, "campaign"  # project and application name

    kind = models.SmallIntegerField(choices=Kind)
    text = models.CharField(max_length=128)  # as in `ioportal.load.impact.job_groups`

    class Meta:
        constraints = [models.UniqueConstraint(name="job_group", fields=["kind", "text"])]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.text}"


class ImpactWindow(models.Model):
    """Derived: the impact of a principal or a group of jobs on other users, by 10 s x server.

    `principal_id` is a job, a source job id, a NID or a `JobGroup`, depending on the kind; 0 for
    other kinds. An impact below 0.01 s, together with `outside_us`, has no row.
    """

    pk = models.CompositePrimaryKey("start", "server_id", "kind", "principal_id")  # for Django only
    start = models.DateTimeField()
    server_id = models.IntegerField()
    kind = models.SmallIntegerField()  # `Principal` or `JobGroup.Kind`
    principal_id = models.BigIntegerField()
    impact_us = models.BigIntegerField()
    # The extra wait of pings and of requests outside jobs; null: part of the impact.
    outside_us = models.BigIntegerField(null=True)
    work_us = models.BigIntegerField()  # of the principal, while the window's RPCs waited
    all_work_us = models.BigIntegerField()
    others_us = models.BigIntegerField()  # total time of other users' RPCs, with the queue
    others_usual_us = models.BigIntegerField()  # the usual total time of these RPCs
    is_estimated = models.BooleanField(
        default=False
    )  # from counters, because the server was not traced

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False
