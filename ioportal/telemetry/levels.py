"""Levels: the tables over time, their source levels and their retention."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings

from ioportal.telemetry.models import (
    AttributedRpc,
    AttributedSecond,
    HostWindow,
    ImpactWindow,
    IoTenMinutes,
    IoTotal,
    IoWindow,
    JobDelta,
    JobSnapshot,
    LoadMinute,
    LoadTenMinutes,
    LoadWindow,
    RequestWindow,
    RpcMinute,
    RpcSecond,
    RpcTenMinutes,
    RpcTotal,
    RpcTotalMinute,
    RpcTotalTenMinutes,
    RpcWindow,
    ServiceSnapshot,
    TargetDelta,
    TargetSnapshot,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import Model


_TEN_SECONDS = timedelta(seconds=10)
_MINUTE, _TEN_MINUTES = timedelta(minutes=1), timedelta(minutes=10)


@dataclass(frozen=True)
class Level:
    """One table of rows over time.

    A level is retained at least as long as its source level (`made_of`), whatever its setting:
    pages fall back from dropped levels to coarser ones.
    """

    model: type[Model]
    about: str
    setting: str
    time: str = "start"  # the column that determines the chunk
    made_of: Level | None = None
    width: timedelta = timedelta(0)  # of its buckets; 0: intervals of varying length
    by: str = "job_id"  # compressed rows are grouped by this column
    then_by: tuple[str, ...] = ()  # and sorted by these columns before time

    @property
    def table(self) -> str:
        """Name of the table."""
        return self.model._meta.db_table  # noqa: SLF001  (documented meta API)

    @property
    def is_raw(self) -> bool:
        """Whether its rows are input, which cannot be derived again."""
        return self.made_of is None

    @property
    def is_roll_up(self) -> bool:
        """Whether its source level is derived."""
        return self.made_of is not None and not self.made_of.is_raw

    @property
    def retention(self) -> timedelta | None:
        """Retention of its rows; None: forever."""
        retention: timedelta | None = getattr(settings, self.setting)
        if self.made_of is None or retention is None:
            return retention
        finer = self.made_of.retention
        return None if finer is None else max(retention, finer)


RPC_WINDOWS: Final = Level(
    RpcWindow,
    "RPCs by 10 s and NID, raw",
    "RAW_RETENTION",
    width=_TEN_SECONDS,
    by="server_id",
)
ATTRIBUTED_RPCS: Final = Level(
    AttributedRpc,
    "RPCs by 10 s and principal",
    "WINDOWS_RETENTION",
    made_of=RPC_WINDOWS,
    width=_TEN_SECONDS,
)
RPC_SECONDS: Final = Level(
    RpcSecond,
    "RPCs by second and sender in slow episodes, raw",
    "RAW_RETENTION",
    by="server_id",
)
ATTRIBUTED_SECONDS: Final = Level(
    AttributedSecond,
    "RPCs by second and principal in slow episodes",
    "WINDOWS_RETENTION",
    made_of=RPC_SECONDS,
    by="server_id",
)
RPC_MINUTES: Final = Level(
    RpcMinute,
    "RPCs by minute and principal",
    "MINUTES_RETENTION",
    made_of=ATTRIBUTED_RPCS,
    width=_MINUTE,
)
RPC_TEN_MINUTES: Final = Level(
    RpcTenMinutes,
    "RPCs by ten minutes and principal",
    "TEN_MINUTES_RETENTION",
    made_of=RPC_MINUTES,
    width=_TEN_MINUTES,
)
LOAD_WINDOWS: Final = Level(
    LoadWindow,
    "RPCs by 10 s and principal, without opcodes",
    "WINDOWS_RETENTION",
    made_of=ATTRIBUTED_RPCS,
    width=_TEN_SECONDS,
)
LOAD_MINUTES: Final = Level(
    LoadMinute, "the same by minute", "MINUTES_RETENTION", made_of=LOAD_WINDOWS, width=_MINUTE
)
LOAD_TEN_MINUTES: Final = Level(
    LoadTenMinutes,
    "the same by ten minutes",
    "TEN_MINUTES_RETENTION",
    made_of=LOAD_MINUTES,
    width=_TEN_MINUTES,
)
RPC_TOTALS: Final = Level(
    RpcTotal,
    "RPCs by 10 s, all principals",
    "TOTALS_RETENTION",
    made_of=ATTRIBUTED_RPCS,
    width=_TEN_SECONDS,
    by="server_id",
)
RPC_TOTAL_MINUTES: Final = Level(
    RpcTotalMinute,
    "the same by minute",
    "TOTALS_RETENTION",
    made_of=RPC_TOTALS,
    width=_MINUTE,
    by="server_id",
)
RPC_TOTAL_TEN_MINUTES: Final = Level(
    RpcTotalTenMinutes,
    "the same by ten minutes",
    "TEN_MINUTES_RETENTION",
    made_of=RPC_TOTAL_MINUTES,
    width=_TEN_MINUTES,
    by="server_id",
)
IMPACT: Final = Level(
    ImpactWindow,
    "impact by 10 s and principal",
    "TEN_MINUTES_RETENTION",
    made_of=ATTRIBUTED_RPCS,
    width=_TEN_SECONDS,
    by="principal_id",
)
JOB_SNAPSHOTS: Final = Level(
    JobSnapshot, "counters by job id, raw", "RAW_RETENTION", "taken_at", by="target_id"
)
JOB_DELTAS: Final = Level(
    JobDelta, "differences by job id, from agents", "RAW_RETENTION", "end", by="target_id"
)
# Few rows per read, retained as long as the I/O windows compared with them.
TARGET_SNAPSHOTS: Final = Level(
    TargetSnapshot,
    "counters of whole MDTs, raw",
    "POLLS_RETENTION",
    "taken_at",
    by="target_id",
)
TARGET_DELTAS: Final = Level(
    TargetDelta,
    "differences of whole MDTs, from agents",
    "POLLS_RETENTION",
    "end",
    by="target_id",
)
SERVICE_SNAPSHOTS: Final = Level(
    ServiceSnapshot,
    "statistics of services, raw",
    "POLLS_RETENTION",
    "taken_at",
    by="server_id",
)
HOST_WINDOWS: Final = Level(
    HostWindow,
    "operations by poll and host outside jobs",
    "POLLS_RETENTION",
    "end",
    by="target_id",
    then_by=("nid_id",),
)
REQUEST_WINDOWS: Final = Level(
    RequestWindow, "request histories by 10 s and NID", "RAW_RETENTION", by="server_id"
)
# Grouped by target: a job has few polls in a chunk, and groups by job took twice the space.
IO_WINDOWS: Final = Level(
    IoWindow,
    "operations by poll and principal",
    "POLLS_RETENTION",
    made_of=JOB_SNAPSHOTS,
    by="target_id",
    then_by=("job_id",),
)
IO_TEN_MINUTES: Final = Level(
    IoTenMinutes,
    "sums of the polls that start in ten minutes",
    "TEN_MINUTES_RETENTION",
    "bucket",
    made_of=IO_WINDOWS,
    width=_TEN_MINUTES,
    by="target_id",
    then_by=("job_id",),
)
IO_TOTALS: Final = Level(
    IoTotal,
    "metadata operations by poll, all principals",
    "TOTALS_RETENTION",
    made_of=IO_WINDOWS,
    by="target_id",
)

# Source levels first, because they are dropped first.
LEVELS: Final = (
    RPC_WINDOWS,
    ATTRIBUTED_RPCS,
    RPC_SECONDS,
    ATTRIBUTED_SECONDS,
    RPC_MINUTES,
    RPC_TEN_MINUTES,
    LOAD_WINDOWS,
    LOAD_MINUTES,
    LOAD_TEN_MINUTES,
    RPC_TOTALS,
    RPC_TOTAL_MINUTES,
    RPC_TOTAL_TEN_MINUTES,
    IMPACT,
    JOB_SNAPSHOTS,
    JOB_DELTAS,
    IO_WINDOWS,
    IO_TEN_MINUTES,
    IO_TOTALS,
    TARGET_SNAPSHOTS,
    TARGET_DELTAS,
    HOST_WINDOWS,
    SERVICE_SNAPSHOTS,
    REQUEST_WINDOWS,
)

RPC_LEVELS: Final = (ATTRIBUTED_RPCS, RPC_MINUTES, RPC_TEN_MINUTES)
LOAD_LEVELS: Final = (LOAD_WINDOWS, LOAD_MINUTES, LOAD_TEN_MINUTES)
RPC_TOTAL_LEVELS: Final = (RPC_TOTALS, RPC_TOTAL_MINUTES, RPC_TOTAL_TEN_MINUTES)
IO_LEVELS: Final = (IO_WINDOWS, IO_TEN_MINUTES)


def coarsest(hierarchy: Sequence[Level], width: timedelta) -> Level:
    """Return the coarsest of the levels, finest first, whose buckets fill bins of a width."""
    fitting = (level for level in reversed(hierarchy) if level.width and not width % level.width)
    return next(fitting, hierarchy[0])
