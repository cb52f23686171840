"""Principals, methods of attribution, and the 10 s grid of windows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Self

from django.db import models

if TYPE_CHECKING:
    from datetime import datetime


LARGEST_BIGINT = 2**63 - 1
_WINDOW_S = 10


def floor_to_window(moment: datetime) -> datetime:
    """Return the start of the RPC window that contains a time."""
    return moment.replace(second=moment.second // _WINDOW_S * _WINDOW_S, microsecond=0)


def ceil_to_window(moment: datetime) -> datetime:
    """Return the end of the RPC window that ends at a time or contains it."""
    return floor_to_window(moment + timedelta(seconds=_WINDOW_S, microseconds=-1))


class Principal(models.IntegerChoices):
    """The kind of principal of an operation, or the reason why it has none."""

    JOB = 1, "job"
    PROCESS = 2, "process"
    HOST = 3, "host"
    PENDING = 4, "pending"
    AMBIGUOUS = 5, "ambiguous"
    UNATTRIBUTED = 6, "unattributed"
    CONTRADICTED = 7, "contradicted"
    # In replays and estimates only: what a job's id claims, and others may have sent.
    CLAIMED = 8, "claimed by job id"


class Method(models.IntegerChoices):
    """The method by which an operation was attributed to a job."""

    JOB_ID = 1, "job id in the source, not verified"
    NODE = 2, "only job on the node"
    NODE_PROCESS = 3, "only job on the node of the process"
    CONTRADICTED_ID = 4, "only job on the node, which contradicts the job id"
    JOB_ID_UID = 5, "job id in the source, verified by user id"
    JOB_ID_NODE = 6, "job id in the source, verified by node"
    JOB_ID_ALONE = 7, "job id in the source, which others may have sent"
    NONE = 0, "no job"


class WindowQuerySet(models.QuerySet[models.Model]):
    """Questions about windows."""

    def between(self, start: datetime, end: datetime) -> Self:
        """Windows that start in [start, end)."""
        return self.filter(start__gte=start, start__lt=end)

    def for_job(self, job_id: int) -> Self:
        """Windows attributed to a job."""
        return self.filter(kind=Principal.JOB, job_id=job_id)
