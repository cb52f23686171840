"""Impact by 10 s windows: computed where a server is slow, from its baseline.

It is measured where the server was traced and has a baseline, and estimated elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from django.db import transaction

from ioportal.jobs.models import DirtyEvidence
from ioportal.load import baselines
from ioportal.load.analysis.replay.impact_by_group import PRINCIPAL
from ioportal.load.analysis.waiting import GROUPS, MAX_WAIT, WINDOW
from ioportal.load.impact import impact_estimates, job_groups, principal_windows, replays
from ioportal.site.models import Server
from ioportal.telemetry import coverage, levels, retention
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.coverage import Interval, joined
from ioportal.telemetry.models import (
    AttributedSecond,
    DirtyImpact,
    ImpactWindow,
    Principal,
    ceil_to_window,
    floor_to_window,
)

if TYPE_CHECKING:
    from datetime import datetime

_MIN_STORED_US = 10_000  # smaller impacts are not stored
_TIMES = ("impact_us", "outside_us", "work_us", "all_work_us", "others_us", "others_usual_us")
_LEVELS = (levels.ATTRIBUTED_RPCS, levels.IO_WINDOWS, levels.SERVICE_SNAPSHOTS, levels.IMPACT)


def compute_pending(limit: int = 500) -> int:
    """Claim intervals with changed RPCs or counters and compute their impact; return how many.

    The caller repeats it until it returns 0, behind the lock of flag creation.
    """
    with transaction.atomic():
        claimed = DirtyImpact.objects.claim(limit)
        metadata_servers = Server.objects.filter(kind=Server.Kind.MDS).values_list("pk", flat=True)
        for server in metadata_servers:
            # Work delays RPCs of later windows. A queue is evaluated some time after its end.
            earlier = WINDOW + replays.JUDGED_AFTER
            changed = [
                Interval(floor_to_window(row.start - earlier), ceil_to_window(row.end) + MAX_WAIT)
                for row in claimed
                if row.server_id == server
            ]
            reattributed = [row for row in claimed if row.server_id is None]
            for span in joined([*changed, *_slow_windows(server, reattributed)]):
                for part in retention.retained(_LEVELS, *span):
                    _compute(server, *part)
        return len(claimed)


def _slow_windows(server: int, reattributed: list[DirtyImpact]) -> list[Interval]:
    """Return the slow windows of a server within some intervals.

    A new attribution of the same RPCs does not change the server's speed: only these windows
    change.
    """
    starts: set[datetime] = set()
    for row in reattributed:
        start = floor_to_window(row.start)
        estimated = ImpactWindow.objects.between(start, row.end).filter(is_estimated=True)
        for windows in (estimated, AttributedSecond.objects.between(start, row.end)):
            of_server = windows.filter(server_id=server)
            starts.update(of_server.values_list("start", flat=True).distinct())
    width = levels.IMPACT.width
    return [Interval(start, start + width) for start in sorted(starts)]


def _compute(server: int, start: datetime, end: datetime) -> None:
    """Replace the impact of a server in [start, end), and request evaluation of the jobs in it.

    A group is evaluated with any of its jobs.
    """
    start, end = replays.whole_queues(server, start, end)
    previous = ImpactWindow.objects.between(start, end).filter(server_id=server)
    job_windows = previous.filter(kind=Principal.JOB).values_list("principal_id", flat=True)
    changed = set(job_windows.distinct())
    previous.delete()
    if coverage.is_timed(server, start, end):
        found = replays.of_server(server, start, end, replays.known_until(server))
        changed |= _store(*found.impact, server, is_estimated=False)
        changed |= _store(*found.partly_traced, server, is_estimated=True)
        for span in baselines.spans(start, end):
            usual = baselines.at_time([server], span.start)
            for part in impact_estimates.untraced(server, *span, usual):
                estimate = impact_estimates.Estimate(server, *part).impact
                changed |= _store(*estimate, server, is_estimated=True)
    if changed:
        DirtyEvidence.objects.mark(changed, start)


def _store(
    impacts: pl.DataFrame,
    members: pl.DataFrame,
    server: int,
    *,
    is_estimated: bool,
) -> set[int]:
    """Store the impact in slow windows; return its jobs, and one job of each of its groups.

    Args:
        impacts: columns of `load.analysis.replay.impact_by_group.IMPACTS`.
        members: columns of `MEMBERS`.
        server: the server.
        is_estimated: whether it is from counters.
    """
    impacts = (
        impacts.group_by("start", "kind", "key")
        .agg(pl.sum(*_TIMES))
        .with_columns(pl.col(_TIMES).round().cast(pl.Int64))
        .filter(pl.col("impact_us") + pl.col("outside_us") >= _MIN_STORED_US)
    )
    keyed = impacts.select("kind", "key").unique()
    groups = job_groups.stored(keyed.filter(pl.col("kind") != PRINCIPAL).rows())
    keys = pl.concat([_principals(keyed.filter(kind=PRINCIPAL)), groups])
    rows = impacts.join(keys, on=["kind", "key"]).select(
        "start",
        "principal_id",
        *_TIMES,
        kind="kind_id",
        server_id=pl.lit(server, pl.Int32),
        is_estimated=pl.lit(is_estimated),
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
