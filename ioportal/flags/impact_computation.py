"""Impact by 10 s windows: computed where a server is slow, from its baseline."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl
from django.db import transaction
from django.db.models import Sum

from ioportal.activity import baselines, job_groups, principal_windows
from ioportal.analysis.impact import GROUPS, MAX_WAIT, SlownessCriteria, by_window
from ioportal.analysis.rules.evidence import PEAK_SPAN
from ioportal.flags import latest_data
from ioportal.jobs.models import DirtyEvidence
from ioportal.site.models import Server
from ioportal.telemetry import buckets, levels, retention
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.coverage import Interval, joined
from ioportal.telemetry.models import (
    DirtyImpact,
    ImpactWindow,
    Principal,
    ceil_to_window,
    floor_to_window,
)

if TYPE_CHECKING:
    from datetime import datetime

_PRINCIPAL = "principal"  # the kind of a single job, process or host
_MIN_STORED_US = 10_000  # smaller impacts are not stored
_MIN_REPORTED_US = 1_000_000  # within five minutes; smaller impacts are not reported
_TIMES = ("impact_us", "work_us", "all_work_us", "others_us", "others_usual_us")
_READ_SPAN = timedelta(hours=1)
# Every window in which RPCs took this many times as long as usual.
_SLOW = SlownessCriteria(enter=1.5, leave=1.5, max_pause=timedelta(0), min_duration=timedelta(0))


def compute_pending(limit: int = 500) -> int:
    """Claim intervals with changed RPCs and compute the impact in them; return how many.

    The caller repeats it until it returns 0, behind the lock of flag creation.
    """
    with transaction.atomic():
        claimed = DirtyImpact.objects.claim(limit)
        metadata_servers = Server.objects.filter(kind=Server.Kind.MDS).values_list("pk", flat=True)
        for server in metadata_servers:
            changed = [  # work delays RPCs of later windows
                Interval(floor_to_window(row.start), ceil_to_window(row.end) + MAX_WAIT)
                for row in claimed
                if row.server_id == server
            ]
            reattributed = [row for row in claimed if row.server_id is None]
            for span in joined([*changed, *_slow_windows(server, reattributed)]):
                for part in retention.retained((levels.ATTRIBUTED_RPCS, levels.IMPACT), *span):
                    _compute(server, *part)
        return len(claimed)


def _slow_windows(server: int, reattributed: list[DirtyImpact]) -> list[Interval]:
    """Return the computed slow windows of a server within some intervals.

    A new attribution of the same RPCs does not change the server's speed: only these windows
    change.
    """
    starts: set[datetime] = set()
    for row in reattributed:
        windows = ImpactWindow.objects.between(floor_to_window(row.start), row.end)
        starts.update(windows.filter(server_id=server).values_list("start", flat=True).distinct())
    width = levels.IMPACT.width
    return [Interval(start, start + width) for start in sorted(starts)]


def _compute(server: int, start: datetime, end: datetime) -> None:
    """Replace the impact of a server in [start, end), and request evaluation of the jobs in it.

    A group is evaluated with any of its jobs.
    """
    first = start
    previous = ImpactWindow.objects.between(start, end).filter(server_id=server)
    job_windows = previous.filter(kind=Principal.JOB).values_list("principal_id", flat=True)
    changed = set(job_windows.distinct())
    previous.delete()
    while start < end:
        # The baseline of that time, not one that includes an old log loaded with it.
        until = min(buckets.floor(start, _READ_SPAN) + _READ_SPAN, end)
        usual = baselines.at_time([server], start)
        for slow in baselines.slowdowns([server], start, until, usual, _SLOW):
            # The beginning of a continued interval is read for its work only.
            begin = slow.start - MAX_WAIT if slow.start == start else slow.start
            windows = principal_windows.windows([server], begin, slow.end)
            changed |= _store(windows, usual, slow.start)
        start = until
    if changed:
        DirtyEvidence.objects.mark(changed, first)


def _store(windows: pl.DataFrame, usual: pl.DataFrame, since: datetime) -> set[int]:
    """Store the impact in some windows; return its jobs, and one job of each of its groups."""
    members = principal_windows.members(windows)
    impacts = (
        by_window(windows, usual, members, since)
        .group_by("start", "server", "kind", "key")
        .agg(pl.sum(*_TIMES))
        .with_columns(pl.col(_TIMES).round().cast(pl.Int64))
        .filter(pl.col("impact_us") >= _MIN_STORED_US)
    )
    keyed = impacts.select("kind", "key").unique()
    groups = job_groups.stored(keyed.filter(pl.col("kind") != _PRINCIPAL).rows())
    keys = pl.concat([_principals(keyed.filter(kind=_PRINCIPAL)), groups])
    rows = impacts.join(keys, on=["kind", "key"]).select(
        "start",
        "principal_id",
        *_TIMES,
        kind="kind_id",
        server_id=pl.col("server").cast(pl.Int32),
    )
    copy_frame(ImpactWindow, rows)
    of_groups = members.unpivot(
        index="principal", on=list(GROUPS), variable_name="kind", value_name="key"
    ).join(groups, on=["kind", "key"], how="semi")
    examples = of_groups.group_by("kind", "key").agg(pl.max("principal"))["principal"].unique()
    jobs = rows.filter(kind=Principal.JOB.value)["principal_id"]
    return {*jobs, *(principal_windows.principal_key(name)[1] for name in examples)}


def _principals(keyed: pl.DataFrame) -> pl.DataFrame:
    """Return rows of principals with the columns that `job_groups.stored` returns for groups."""
    parts = pl.col("key").str.split_exact(":", 1)
    return keyed.with_columns(
        kind_id=parts.struct[0].cast(pl.Int16), principal_id=parts.struct[1].cast(pl.Int64)
    )


def latest() -> dict[tuple[int, int], float]:
    """Return the impact in seconds of each principal in the latest five minutes of the traces.

    Keys are kind and key of a principal or a `JobGroup`. Impacts below one second are omitted.
    """
    until = max(latest_data.traced_until().values(), default=None)
    if until is None:
        return {}
    windows = ImpactWindow.objects.filter(start__gte=floor_to_window(until) - PEAK_SPAN)
    rows = windows.values_list("kind", "principal_id").annotate(us=Sum("impact_us"))
    return {(kind, key): us / 1e6 for kind, key, us in rows.filter(us__gte=_MIN_REPORTED_US)}
