"""Models of telemetry: windows and counters over time, coverage, pending work and failures.

Samples have no foreign keys to jobs, which may be deleted.
"""

from ioportal.telemetry.models.counters import (
    HostWindow,
    IoTenMinutes,
    IoTotal,
    IoWindow,
    JobDelta,
    JobSnapshot,
    ServiceSnapshot,
    TargetDelta,
    TargetSnapshot,
)
from ioportal.telemetry.models.coverage import (
    BaselinePeriod,
    Coverage,
    RetentionLog,
)
from ioportal.telemetry.models.failures import (
    StageFailure,
    StageFailureManager,
)
from ioportal.telemetry.models.pending import (
    DirtyImpact,
    DirtyIo,
    DirtyRpcs,
    Pending,
    PendingQuerySet,
)
from ioportal.telemetry.models.rpcs import (
    AttributedRpc,
    AttributedSecond,
    ImpactWindow,
    JobGroup,
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
)
from ioportal.telemetry.models.windows import (
    LARGEST_BIGINT,
    Method,
    Principal,
    WindowQuerySet,
    ceil_to_window,
    floor_to_window,
)

__all__ = [
    "LARGEST_BIGINT",
    "AttributedRpc",
    "AttributedSecond",
    "BaselinePeriod",
    "Coverage",
    "DirtyImpact",
    "DirtyIo",
    "DirtyRpcs",
    "HostWindow",
    "ImpactWindow",
    "IoTenMinutes",
    "IoTotal",
    "IoWindow",
    "JobDelta",
    "JobGroup",
    "JobSnapshot",
    "LoadMinute",
    "LoadTenMinutes",
    "LoadWindow",
    "Method",
    "Pending",
    "PendingQuerySet",
    "Principal",
    "RequestWindow",
    "RetentionLog",
    "RpcMinute",
    "RpcSecond",
    "RpcTenMinutes",
    "RpcTotal",
    "RpcTotalMinute",
    "RpcTotalTenMinutes",
    "RpcWindow",
    "ServiceSnapshot",
    "StageFailure",
    "StageFailureManager",
    "TargetDelta",
    "TargetSnapshot",
    "WindowQuerySet",
    "ceil_to_window",
    "floor_to_window",
]
