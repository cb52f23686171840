"""Impact of jobs, users, projects and applications on others.

A busy job need not slow down others. Impact is the extra wait of others because of a group of
jobs: the time of their RPCs, queue included, beyond the baseline of the same RPCs on a server with
little load. `ioportal.flags.impact_computation` computes it for slow intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl

from collectors.lustre import opcodes
from ioportal.analysis.accountability import MOMENT, PARTY_TIMES, accountable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ioportal.analysis.slowness import Slowdown

WINDOW = timedelta(seconds=10)
WINDOWS = {  # rows with the same key are summed
    "start": pl.Datetime("us", "UTC"),
    "server": pl.Int64(),
    "service": pl.Int64(),
    "opcode": pl.Int16(),
    "principal": pl.String(),
    "timed": pl.Int64(),  # RPCs with known times
    "service_us_sum": pl.Int64(),
    "total_us_sum": pl.Int64(),  # arrival to end, queue included
}
GROUPS = ("user", "project", "application")  # application: user and application name
# The groups of each principal in a job; null: none. Principals outside jobs may be missing.
# Principals of one source may be one user under several names; null: they are not.
MEMBERS = {
    "principal": pl.String(),
    **dict.fromkeys(GROUPS, pl.String()),
    "source": pl.String(),
}
BASELINES = {
    "server": pl.Int64(),
    "service": pl.Int64(),
    "opcode": pl.Int16(),
    "baseline_us": pl.Float64(),  # arrival to end of an RPC on a server with little load
}
REQUESTS = {  # of one principal, of one kind, in a slow interval or outside
    "server": pl.Int64(),
    "service": pl.Int64(),
    "opcode": pl.Int16(),
    "slow": pl.Datetime("us", "UTC"),  # start of the slow interval of the server; null: outside
    "principal": pl.String(),
    "rpcs": pl.Int64(),  # timed
    "total_us": pl.Int64(),
    "late_us": pl.Float64(),  # wait beyond the usual
}
MIN_BASELINE_WINDOWS = 1_000  # of a known baseline
MAX_WAIT = timedelta(minutes=2)  # work up to this long before a window delays its RPCs
BLOCKED_TIMES = 10  # slower than the busiest: service time beyond is blocked on locks
FREE_THREADS = 16  # of a service: so many blocked threads leave threads for others
SHORT_WAIT = timedelta(seconds=0.5)  # work before the window does not matter, in general
ENDED_TIMES = 2  # work of a window / work of the next, in which its overload ends
BEGUN_TIMES = 2  # times of RPCs / times in the window before, where an overload begins

_KIND = ("server", "service", "opcode")
_KINDS_OF_PARTIES = {  # users and projects, and the groups whose others they are
    "user_party": ("principal", "user", "application"),
    "project_party": ("project",),
}
US_PER_S = 1e6


@dataclass(frozen=True)
class Impact:
    """Load, impact and waiting of the principals and their groups in some windows.

    Both frames have a row for each, highest impact first: rpcs (timed), service_s (service time),
    share (of all work), impact_s (extra wait of others because of it) and suffered_s (its own
    extra waiting). `principals` has the column principal, `groups` the columns kind (of `GROUPS`)
    and key. `known_share` is the share of timed RPCs with a known baseline, `waited_s` the extra
    waiting of all.
    """

    principals: pl.DataFrame
    groups: pl.DataFrame
    known_share: float
    waited_s: float


def by_window(
    windows: pl.DataFrame,
    baseline: pl.DataFrame,
    members: pl.DataFrame,
    *,
    since: datetime | None = None,
    reads: pl.Series | None = None,
) -> pl.DataFrame:
    """Estimate how much less others would have waited without each principal and each group.

    In each window and service, impact is ``accountable share x worked share x max(0, sum over
    opcodes of (others' total time - others' RPCs x baseline))``; *others* are jobs of other users
    (of projects: of other projects), except of those that do more than `BUSIER_TIMES` the work:
    their waiting is their own doing. Nobody waits for pings and for requests outside jobs (of
    daemons, without a job id): the waiting of these is separate. Time blocked on locks does not
    count: such an RPC does not wait for work. The worked share is work / (work + blocked time
    beyond `FREE_THREADS`): if all threads are blocked, others queue for them, not for work.

    Args:
        windows: columns of `WINDOWS`; they begin `MAX_WAIT` before `since`, if there are any.
        baseline: columns of `BASELINES`.
        members: columns of `MEMBERS`.
        since: start of the first window of the result; None: of all.
        reads: times of reads, if windows between two reads have equal values; None: windows are of
            single RPCs.

    Returns:
        A row for each group in each window and service: kind ("principal" or one of `GROUPS`),
        key, start, server, service, and in microseconds work_us and all_work_us (work of the group
        and of all while the window's RPCs waited), others_us (time of others' RPCs with a known
        baseline), others_usual_us (their usual time), impact_us, and outside_us: the extra waiting
        of requests outside jobs and pings.

    Source: docs/metrics.md, "Impact".
    """
    loads = _loads(windows, baseline, members)
    current = loads if since is None else loads.filter(pl.col("start") >= since)
    return _impacts(current, loads, reads)


def _impacts(current: pl.DataFrame, loads: pl.DataFrame, reads: pl.Series | None) -> pl.DataFrame:
    """Return the rows of `by_window` in the current windows, of all loads."""
    overloads = _overloads(loads, reads)
    ahead = _work_ahead(current, loads, overloads)
    free_us = FREE_THREADS * pl.col("worked").n_unique() * (WINDOW / timedelta(microseconds=1))
    blocked_us = (pl.sum("blocked_us") - free_us).clip(lower_bound=0)
    worked = ahead.group_by(MOMENT).agg(
        worked_share=(pl.sum("work_us") / (pl.sum("work_us") + blocked_us)).fill_nan(1)
    )
    users_us, all_us = (_late_us(f"others_{prefix}") for prefix in ("users_", ""))
    share = pl.col("accountable") * pl.col("worked_share")
    frames = []
    for party, kinds in _KINDS_OF_PARTIES.items():
        work = pl.concat(
            ahead.drop_nulls(kind)
            .group_by(*MOMENT, key=kind)
            .agg(work_us=pl.sum("queued_work_us"), party=pl.first(party))
            .with_columns(kind=pl.lit(kind))
            for kind in kinds
        )
        times = current.group_by(*MOMENT, party=party).agg(pl.sum(*PARTY_TIMES))
        parties = (
            ahead.group_by(*MOMENT, party=party, source=pl.coalesce("source", party))
            .agg(party_us=pl.sum("queued_work_us"))
            .join(times, on=[*MOMENT, "party"], how="left")
            .with_columns(pl.col(PARTY_TIMES).fill_null(0))
        )
        frames.append(
            accountable(work, parties)
            .join(worked, on=MOMENT)
            .select(
                *MOMENT,
                "key",
                "work_us",
                "all_work_us",
                "kind",
                others_us="others_users_took_us",
                others_usual_us="others_users_usual_us",
                impact_us=share * users_us,
                outside_us=share * (all_us - users_us).clip(lower_bound=0),
            )
        )
    return pl.concat(frames)


def _late_us(prefix: str) -> pl.Expr:
    """Return the extra waiting of requests with `PARTY_TIMES` of a prefix."""
    took, usual, blocked = (pl.col(f"{prefix}{name}_us") for name in ("took", "usual", "blocked"))
    return (took - usual - blocked).clip(lower_bound=0)


def _loads(windows: pl.DataFrame, baseline: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return work, times and groups of each principal in each window and service.

    Work is the usual time of the RPCs, because the service time of an RPC includes the time for
    which it is blocked on locks. RPCs without a baseline count with their service time.
    The queued work is the part done while RPCs waited: a principal whose RPCs waited less than
    those of the busiest was active at other times of the window, too.
    """
    usual_us = pl.col("timed") * pl.col("baseline_us")
    is_known = pl.col("baseline_us").is_not_null()
    is_ping = pl.col("opcode") == opcodes.OBD_PING
    is_of_user = pl.col("user").is_not_null()
    slowness = (pl.col("service_us_sum") / pl.col("work_us")).fill_nan(1).clip(lower_bound=1)
    blocked_us = pl.col("known_service_us") - BLOCKED_TIMES * pl.col("slowness") * pl.col(
        "usual_us"
    )
    late_us = pl.col("took_us") - pl.col("usual_us") - pl.col("blocked_us")
    wait_us = pl.when(pl.col("known") > 0).then(late_us.clip(lower_bound=0) / pl.col("known"))
    busiest_us = pl.col("wait_us").sort_by("work_us", "wait_us").last().over(MOMENT)
    queued_share = (pl.col("wait_us") / busiest_us).fill_nan(1).fill_null(1).clip(upper_bound=1)
    return (
        # A baseline of 0 is unknown: no factor relates to it.
        windows.join(baseline.filter(pl.col("baseline_us") > 0), on=_KIND, how="left")
        .with_columns(
            usual_us=usual_us.fill_null(0),
            took_us=pl.when(is_known).then(pl.col("total_us_sum").cast(pl.Float64)).otherwise(0),
            known_service_us=pl.when(is_known).then("service_us_sum").otherwise(0),
            known=pl.when(is_known).then("timed").otherwise(0),
            work_us=usual_us.fill_null(pl.col("service_us_sum")),
        )
        .with_columns(
            pl.when(is_ping).then(0).otherwise(name).alias(f"users_{name}")
            for name in ("took_us", "usual_us")
        )
        .group_by(*MOMENT, "principal")
        .agg(
            pl.sum("timed", "service_us_sum", "work_us"),
            pl.sum("known", "known_service_us", "took_us", "usual_us"),
            pl.sum("users_took_us", "users_usual_us"),
        )
        # All RPCs of a busy server are slow, also those of the busiest; blocked are some.
        .with_columns(slowness=slowness.sort_by("work_us").last().over(MOMENT))
        .with_columns(blocked_us=blocked_us.clip(lower_bound=0))
        .with_columns(wait_us=wait_us)
        .with_columns(queued_work_us=pl.col("work_us") * queued_share)
        .join(members, on="principal", how="left")
        .with_columns(
            user_party=pl.coalesce("user", "principal"),
            project_party=pl.coalesce("project", "principal"),
            users_blocked_us="blocked_us",
        )
        .with_columns(
            pl.when(is_of_user).then(name).otherwise(0)
            for name in PARTY_TIMES
            if name.startswith("users_")
        )
    )


def _work_ahead(
    current: pl.DataFrame, loads: pl.DataFrame, overloads: pl.DataFrame
) -> pl.DataFrame:
    """Return the loads of the windows during which the RPCs of each current window waited.

    RPCs that took 25 s on average were delayed by the work of their window and the three before it.
    So were short waits by the window before, if its overload ended in this one: then it did
    `ENDED_TIMES` as much work or more, and was slower. If an overload began in this window, its
    requests did most of their work in the next one.
    """
    longest = MAX_WAIT // WINDOW
    window_us, negligible_us = (span / timedelta(microseconds=1) for span in (WINDOW, SHORT_WAIT))
    waits = (
        current.group_by(MOMENT)
        .agg(
            windows=((pl.sum("took_us") / pl.sum("timed") - negligible_us) / window_us)
            .fill_nan(0)
            .ceil()
            .clip(0, longest)
            .cast(pl.Int64)
        )
        .join(overloads, on=MOMENT)
    )
    before = (
        waits.with_columns(
            before=pl.int_ranges(
                -pl.col("windows_after"), pl.max_horizontal("windows", "windows_before") + 1
            )
        )
        .explode("before")
        .select(
            *MOMENT,
            worked=pl.col("start") - pl.duration(seconds=pl.col("before") * WINDOW.seconds),
        )
    )
    return before.join(loads.rename({"start": "worked"}), on=["server", "service", "worked"])


def _overloads(loads: pl.DataFrame, reads: pl.Series | None) -> pl.DataFrame:
    """Return how many windows before and after each window belong to the same overload.

    They do if the overload ended or began in the window: the windows between the two reads around
    it have equal values, and so it did so anywhere between them. An overload begins where RPCs take
    `BEGUN_TIMES` as long as before, relative to usual, if the next window does at least as much
    work and is slower.
    """
    windows = loads.select(MOMENT).unique().sort("start").with_columns(read="start")
    if reads is not None:
        known = pl.DataFrame({"read": reads.unique().sort()})
        windows = windows.drop("read").join_asof(
            known, left_on="start", right_on="read", coalesce=False
        )
    of_server = ("server", "service")
    spans = (
        loads.join(windows, on=MOMENT)
        .group_by(*of_server, "read")
        .agg(
            all_us=pl.sum("work_us") / pl.col("start").n_unique(),
            times=pl.sum("took_us") / pl.sum("usual_us"),
            first=pl.min("start"),
            last=pl.max("start"),
        )
    )
    figures = ("all_us", "times")
    before = spans.select(*of_server, *figures, first=pl.col("last") + WINDOW)
    after = spans.select(*of_server, *figures, last=pl.col("first") - WINDOW)
    spans = spans.join(before, on=[*of_server, "first"], how="left", suffix="_before").join(
        after, on=[*of_server, "last"], how="left", suffix="_after"
    )

    def overloads(which: str, busier_times: float) -> pl.Expr:
        is_busier = pl.col(f"all_us_{which}") >= busier_times * pl.col("all_us")
        return (is_busier & (pl.col(f"times_{which}") > pl.col("times"))).fill_null(value=False)

    begins = pl.col("times") >= BEGUN_TIMES * pl.col("times_before").fill_null(1)
    since_first, until_last = (
        span.dt.total_microseconds() // (WINDOW // timedelta(microseconds=1)) + 1
        for span in (pl.col("start") - pl.col("first"), pl.col("last") - pl.col("start"))
    )
    return windows.join(spans, on=[*of_server, "read"], nulls_equal=True).select(
        *MOMENT,
        begins=begins,
        windows_before=pl.when(overloads("before", ENDED_TIMES)).then(since_first).otherwise(0),
        windows_after=pl.when(begins & overloads("after", 1)).then(until_last).otherwise(0),
    )


def impact(
    windows: pl.DataFrame, baseline: pl.DataFrame, members: pl.DataFrame, impacts: pl.DataFrame
) -> Impact:
    """Sum load, impact and waiting of each principal and group over all windows.

    Args:
        windows: columns of `WINDOWS`.
        baseline: columns of `BASELINES`.
        members: columns of `MEMBERS`.
        impacts: the impact of groups: columns kind, key and impact_us.

    Returns:
        The impact of every principal and group; no windows give no rows and a known share of 0.
    """
    timed = int(windows["timed"].sum())
    known = int(windows.join(baseline, on=_KIND, how="semi")["timed"].sum())
    loads = _loads(windows, baseline, members)
    of_groups = impacts.group_by("kind", "key").agg(impact_s=pl.sum("impact_us") / US_PER_S)
    late_us = pl.max_horizontal(pl.col("took_us") - pl.col("usual_us"), 0)
    all_work_us = loads["work_us"].sum()
    frames = {
        kind: loads.drop_nulls(kind)
        .group_by(*MOMENT, key=kind)
        .agg(pl.sum("timed", "service_us_sum", "work_us", "took_us", "usual_us"))
        .group_by("key")
        .agg(
            rpcs=pl.sum("timed"),
            service_s=pl.sum("service_us_sum") / US_PER_S,
            share=(pl.sum("work_us") / all_work_us).fill_nan(0),
            suffered_s=late_us.sum() / US_PER_S,
        )
        .join(of_groups.filter(kind=kind).drop("kind"), on="key", how="left")
        .with_columns(pl.col("impact_s").fill_null(0))
        .sort("impact_s", "service_s", "key", descending=[True, True, False])
        for kind in ("principal", *GROUPS)
    }
    groups = pl.concat([frames[kind].with_columns(kind=pl.lit(kind)) for kind in GROUPS])
    waited_us = loads.group_by(MOMENT).agg(pl.sum("took_us", "usual_us")).select(late_us.sum())
    return Impact(
        frames["principal"].rename({"key": "principal"}),
        # Of groups of the same jobs, the user comes first.
        groups.sort(pl.col("impact_s").round(6), descending=True, maintain_order=True),
        known / timed if timed else 0.0,
        waited_us.item() / US_PER_S,
    )


def requests(
    windows: pl.DataFrame, baseline: pl.DataFrame, slow: Sequence[Slowdown]
) -> pl.DataFrame:
    """Return who sent the requests of each kind, and of each slow interval.

    Args:
        windows: columns of `WINDOWS`.
        baseline: columns of `BASELINES`.
        slow: slow intervals; those of a server do not overlap.

    Returns:
        Columns of `REQUESTS`.
    """
    intervals = pl.DataFrame(
        [(each.server, each.start, each.end) for each in slow],
        schema={"server": pl.Int64, "slow": WINDOWS["start"], "slow_end": WINDOWS["start"]},
        orient="row",
    )
    late_us = pl.col("total_us_sum") - pl.col("timed") * pl.col("baseline_us")
    return (
        windows.sort("start")
        .join_asof(
            intervals.sort("slow"),
            left_on="start",
            right_on="slow",
            by="server",
            coalesce=False,
            check_sortedness=False,
        )
        .with_columns(slow=pl.when(pl.col("start") < pl.col("slow_end")).then("slow"))
        .join(baseline, on=_KIND, how="left")
        .group_by(*_KIND, "slow", "principal")
        .agg(
            rpcs=pl.sum("timed"),
            total_us=pl.sum("total_us_sum"),
            late_us=late_us.clip(lower_bound=0).sum(),
        )
        .filter(pl.col("rpcs") > 0)
        .select(pl.col(name).cast(kind) for name, kind in REQUESTS.items())
        .sort(*_KIND, "slow", "principal")
    )


def latency(windows: pl.DataFrame, baseline: pl.DataFrame) -> pl.DataFrame:
    """Return actual and usual times of each kind of RPC, largest extra waiting first.

    Args:
        windows: columns of `WINDOWS`.
        baseline: columns of `BASELINES`.

    Returns:
        Columns server, service, opcode, rpcs (timed), mean_us, usual_us (null: unknown).
    """
    return (
        windows.group_by(*_KIND)
        .agg(rpcs=pl.sum("timed"), total_us_sum=pl.sum("total_us_sum"))
        .filter(pl.col("rpcs") > 0)
        .join(baseline, on=_KIND, how="left")
        .with_columns(mean_us=pl.col("total_us_sum") / pl.col("rpcs"))
        .with_columns(late_us=pl.col("rpcs") * (pl.col("mean_us") - pl.col("baseline_us")))
        .sort(
            "late_us", "rpcs", *_KIND, descending=[True, True, False, False, False], nulls_last=True
        )
        .select(*_KIND, "rpcs", "mean_us", usual_us="baseline_us")
    )
