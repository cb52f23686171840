"""Who makes others wait, by 10 s: reckoned where a server is slow, from what is usual there."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl
from django.db import transaction
from django.db.models import Sum

from ioportal.activity import baselines, impact
from ioportal.analysis.impact import Leaving, by_window
from ioportal.analysis.rules.evidence import WITHIN
from ioportal.flags import evidence
from ioportal.jobs.models import StaleEvidence
from ioportal.site.models import Server
from ioportal.telemetry import levels, retention, rollups
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.coverage import Interval, joined
from ioportal.telemetry.models import (
    ImpactWindow,
    Principal,
    TouchedImpact,
    ceil_to_window,
    floor_to_window,
)

if TYPE_CHECKING:
    from datetime import datetime

_LEAST_US = 10_000  # others' waiting that is worth a row,
_WORTH_A_WORD_US = 1_000_000  # and within five minutes, one that is worth a word
_TIMES = ("impact_us", "service_us", "work_us", "others_us", "others_usual_us")
_AT_ONCE = timedelta(hours=1)  # of windows that are read
# Any window in which RPCs took this many times as long as usual.
_SLOW = Leaving(leaves=1.5, returns=1.5, pause=timedelta(0), shortest=timedelta(0))


def reckon_pending(limit: int = 500) -> int:
    """Claim intervals in which RPCs changed and reckon who made others wait; return how many.

    The caller goes on until it is 0. Only one at a time may call it: see `judging`.
    """
    with transaction.atomic():
        claimed = TouchedImpact.objects.claim(limit)
        metadata_servers = Server.objects.filter(kind=Server.Kind.MDS).values_list("pk", flat=True)
        for server in metadata_servers:
            touched = [
                Interval(floor_to_window(row.start), ceil_to_window(row.end))
                for row in claimed
                if row.server_id == server
            ]
            charged_anew = [row for row in claimed if row.server_id is None]
            for span in joined([*touched, *_slow_windows(server, charged_anew)]):
                for part in retention.retained((levels.ATTRIBUTED_RPCS, levels.IMPACT), *span):
                    _reckon(server, *part)
        return len(claimed)


def _slow_windows(server: int, touched: list[TouchedImpact]) -> list[Interval]:
    """Return when a server was slow in some intervals, as far as it was reckoned.

    Where others are charged with the same RPCs, it is as slow as before: only these windows change.
    """
    found: set[datetime] = set()
    for row in touched:
        windows = ImpactWindow.objects.between(floor_to_window(row.start), row.end)
        found.update(windows.filter(server_id=server).values_list("start", flat=True).distinct())
    width = levels.IMPACT.width
    return [Interval(start, start + width) for start in sorted(found)]


def _reckon(server: int, start: datetime, end: datetime) -> None:
    """Reckon the windows of [start, end) of a server, and have those judged whose they are."""
    first = start
    before = ImpactWindow.objects.between(start, end).filter(server_id=server)
    of_jobs = before.filter(kind=Principal.JOB).values_list("who", flat=True)
    changed = set(of_jobs.distinct())
    before.delete()
    while start < end:
        # What was usual by then: not what an old log says that was loaded with it.
        until = min(rollups.floor(start, _AT_ONCE) + _AT_ONCE, end)
        usual = baselines.usual([server], start)
        for slow in baselines.slowdowns([server], start, until, usual, _SLOW):
            changed |= _store(impact.windows([server], slow.start, slow.end), usual)
        start = until
    if changed:
        StaleEvidence.objects.ask_for(changed, first)


def _store(windows: pl.DataFrame, usual: pl.DataFrame) -> set[int]:
    """Store what principals cost others; return the jobs among them."""
    parts = pl.col("principal").str.split_exact(":", 1)
    rows = (
        by_window(windows, usual)
        .group_by("start", "server", "principal")
        .agg(pl.sum("impact_us", "service_us_sum", "work_us", "others_us", "others_usual_us"))
        .rename({"service_us_sum": "service_us"})
        .with_columns(pl.col(_TIMES).round().cast(pl.Int64))
        .filter(pl.col("impact_us") >= _LEAST_US)
        .with_columns(
            kind=parts.struct[0].cast(pl.Int16),
            who=parts.struct[1].cast(pl.Int64),
            server_id=pl.col("server").cast(pl.Int32),
        )
        .select("start", "server_id", "kind", "who", *_TIMES)
    )
    copy_frame(ImpactWindow, rows)
    return set(rows.filter(kind=Principal.JOB.value)["who"].to_list())


def now() -> dict[tuple[int, int], float]:
    """Return who made others wait in the newest five minutes of the traces, and for how many s.

    Kind and key of each principal: who cost others less than a second together is left out.
    """
    newest = max(evidence.traced_until().values(), default=None)
    if newest is None:
        return {}
    windows = ImpactWindow.objects.filter(start__gte=floor_to_window(newest) - WITHIN)
    rows = windows.values_list("kind", "who").annotate(us=Sum("impact_us"))
    return {(kind, who): us / 1e6 for kind, who, us in rows.filter(us__gte=_WORTH_A_WORD_US)}
