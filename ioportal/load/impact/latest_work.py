"""Who does most of the work of metadata servers that are slow in their latest windows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from ioportal.load import baselines
from ioportal.load.analysis.replay.spared_waiting import MIN_WORK
from ioportal.load.analysis.slowness import SlownessCriteria
from ioportal.load.impact import demand, job_groups, principal_windows
from ioportal.load.impact.impact_estimates import Estimate
from ioportal.rules.rule import GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from ioportal.load.analysis.waiting import Slowdown
    from ioportal.load.top_consumers import PrincipalKey

_NOW = timedelta(seconds=30)  # before the end of the latest complete window: slow in it
# Work in this time. A shorter one would show who works while a queue drains.
_LATEST = timedelta(minutes=1)
MIN_SHARE = MIN_WORK  # of it: with less of a queue, nobody caused it
_LOOK_BACK = timedelta(minutes=5)  # for the start of a slow interval
_SLOW = SlownessCriteria(min_duration=timedelta(0))
_EXPLAINED = 0.5  # of a group's work, by parts of it that are named


class Share(NamedTuple):
    """The share of a principal, or of a group of jobs, in the latest work of a server."""

    principal: PrincipalKey
    share: float


class LatestWork(NamedTuple):
    """The latest work of a server that is slow."""

    since: datetime  # start of the slow interval, at most five minutes ago
    times: float  # time of requests / usual, in the worst window of the interval
    shares: list[Share]  # of at least `MIN_SHARE`, largest first
    is_known: bool  # whether the work of any principal is known


def traced(ends: Mapping[int, datetime], usual: pl.DataFrame) -> dict[int, LatestWork]:
    """Return the latest work of the slow ones of some traced servers.

    Args:
        ends: the end of the latest complete window of each server; all are near each other.
        usual: the baselines of the servers: columns of `load.analysis.waiting.BASELINES`.
    """
    if not ends:
        return {}
    first, last = min(ends.values()), max(ends.values())
    slow = {
        each.server: each
        for each in baselines.slowdowns(list(ends), first - _LOOK_BACK, last, usual, _SLOW)
        if _is_now(each, ends[each.server])
    }
    if not slow:
        return {}
    windows = principal_windows.windows(list(slow), first - _LATEST, last)
    return {
        server: _work(each, windows.filter(_is_latest(each, ends[server]), server=server), usual)
        for server, each in slow.items()
    }


def estimated(server_id: int, end: datetime) -> LatestWork | None:
    """Return the latest work of a server by its counters; None: it is not slow, or unknown.

    Args:
        server_id: a metadata server.
        end: the end of the latest window that all of its counters cover.
    """
    estimate = Estimate(server_id, end - _LOOK_BACK, end)
    slow = [each for each in estimate.slowdowns(_SLOW) if _is_now(each, end)]
    if not slow:
        return None
    windows = estimate.slow_windows.filter(_is_latest(slow[0], end))
    return _work(slow[0], windows, estimate.baseline)


def _is_now(slow: Slowdown, end: datetime) -> bool:
    return slow.start < end and slow.end > end - _NOW


def _is_latest(slow: Slowdown, end: datetime) -> pl.Expr:
    """Return whether a window of a slow interval is one of the latest."""
    return pl.col("start").is_between(max(slow.start, end - _LATEST), end, closed="left")


def _work(slow: Slowdown, windows: pl.DataFrame, usual: pl.DataFrame) -> LatestWork:
    """Return who did the work of some windows of a slow server."""
    requests = windows.rename(
        {"timed": "requests", "service_us_sum": "service_us", "total_us_sum": "total_us"}
    )
    work = demand.with_work(requests, usual).group_by("principal").agg(pl.sum("work_us"))
    total_us = work["work_us"].sum()
    if not total_us:
        return LatestWork(slow.start, slow.factor, [], is_known=False)
    shares = work.select("principal", share=pl.col("work_us") / total_us)
    return LatestWork(slow.start, slow.factor, list(_named(shares, windows)), is_known=True)


def _named(shares: pl.DataFrame, windows: pl.DataFrame) -> Iterator[Share]:
    """Yield the principals with much of the work, and groups whose parts do not explain theirs."""
    members = principal_windows.members(windows)
    parts = shares.join(members, on="principal", how="left")
    large = parts.filter(pl.col("share") >= MIN_SHARE).sort("share", "principal", descending=True)
    named = set(large["principal"])
    groups: list[tuple[str, str, float]] = []
    proven = parts.filter(~pl.col("is_claim").fill_null(value=False))
    for kind in map(str, GROUPS):  # from narrow to wide
        of_kind = (
            proven.drop_nulls(kind)
            .group_by(kind)
            .agg(
                pl.sum("share"),
                pl.col("principal"),
                explained=pl.col("share").filter(pl.col("principal").is_in(list(named))).sum(),
            )
        )
        wide = of_kind.filter(
            pl.col("share") >= MIN_SHARE, pl.col("explained") < _EXPLAINED * pl.col("share")
        )
        for text, share, principals, _ in wide.sort("share", kind, descending=True).iter_rows():
            groups.append((kind, text, share))
            named.update(principals)
    keys = _keys([(kind, text) for kind, text, _ in groups])
    found = [
        *(
            Share(principal_windows.principal_key(principal), share)
            for principal, share in large.select("principal", "share").iter_rows()
        ),
        *(Share(keys[kind, text], share) for kind, text, share in groups),
    ]
    yield from sorted(found, key=lambda each: -each.share)


def _keys(groups: Sequence[tuple[str, str]]) -> dict[tuple[str, str], PrincipalKey]:
    """Return the keys of groups of jobs, which are stored."""
    if not groups:
        return {}
    stored = job_groups.stored(groups)
    columns = ("kind", "key", "kind_id", "principal_id")
    return {
        (kind, text): (number, key)
        for kind, text, number, key in stored.select(columns).iter_rows()
    }
