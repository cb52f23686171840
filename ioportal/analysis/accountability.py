"""For how much of others' waiting a group is accountable, by the work of all parties."""

from __future__ import annotations

import polars as pl

MOMENT = ("server", "service", "start")
_TIMES = ("took_us", "usual_us", "blocked_us")
# Of the requests of users' jobs, and of all.
PARTY_TIMES = (*(f"users_{name}" for name in _TIMES), *_TIMES)
CALM_SHARE = 0.5  # of the work that a slow server does: it would do that much without a queue
BUSIER_TIMES = 2.0  # work of another party / of a group: with more, its waiting is its own doing


def accountable(work: pl.DataFrame, parties: pl.DataFrame) -> pl.DataFrame:
    """Return the share of others' waiting for which each group is accountable.

    A group is not accountable if it would have been enough to limit all busier parties to its
    load: then the server would do at most `CALM_SHARE` of its work. The share is also less than 1
    if another party is busier. Parties are users or projects, and what is outside jobs; a group
    and the rest of its party are separate. Parties of one source are limited as one: a user could
    send requests under many names, so that a user of one name looks like the busiest.

    Args:
        work: columns of `MOMENT`, party, work_us and those that identify a group.
        parties: columns of `MOMENT`, party, source, party_us (their sum is all work) and
            `PARTY_TIMES`.

    Returns:
        The columns of `work`, all_work_us, accountable, and the times of parties that are not
        busier: `PARTY_TIMES` with the prefix ``others_``.
    """
    shares = (
        parties.group_by(*MOMENT, "source")
        .agg(source_us=pl.sum("party_us"))
        .with_columns(all_work_us=pl.sum("source_us").over(MOMENT))
        .with_columns(source_share=(pl.col("source_us") / pl.col("all_work_us")).fill_nan(0))
        .with_columns(
            largest=pl.max("source_share").over(MOMENT),
            second=pl.col("source_share").top_k(2).min().over(MOMENT),
            count=pl.len().over(MOMENT),
        )
        .with_columns(second=pl.when(pl.col("count") > 1).then("second").otherwise(0))
    )
    groups = (
        work.join(parties, on=[*MOMENT, "party"])
        .join(shares, on=[*MOMENT, "source"])
        .with_columns(share=(pl.col("work_us") / pl.col("all_work_us")).fill_nan(0))
    )
    is_counted = pl.col("party_us") <= BUSIER_TIMES * pl.col("work_us")  # of its own party
    others = {
        f"others_{name}": pl.col(f"{name}_sum") - pl.when(is_counted).then(name).otherwise(0)
        for name in PARTY_TIMES
    }
    rest = pl.col("source_share") - pl.col("share")
    other = pl.when(pl.col("source_share") == pl.col("largest")).then("second").otherwise("largest")
    ratio = (pl.col("share") / pl.max_horizontal("share", rest, other)).fill_nan(0)
    reach = pl.col("limited") + pl.min_horizontal(rest, "share")
    return (
        _with_times_of_others(_limited(groups, shares), parties)
        .with_columns(accountable=((reach - CALM_SHARE) / (1 - CALM_SHARE)).clip(0, 1) * ratio**2)
        .with_columns(**others)
        .select(*work.columns, "all_work_us", "accountable", *others)
    )


def _with_times_of_others(groups: pl.DataFrame, parties: pl.DataFrame) -> pl.DataFrame:
    """Add the times of the parties with up to `BUSIER_TIMES` the work of each group.

    Columns `PARTY_TIMES` with the suffix ``_sum``.
    """
    sums = {f"{name}_sum": pl.col(name).cum_sum().over(MOMENT) for name in PARTY_TIMES}
    upto = parties.sort("party_us").select(*MOMENT, most_us=pl.col("party_us"), **sums)
    return (
        groups.with_columns(most_us=BUSIER_TIMES * pl.col("work_us"))
        .sort("most_us")
        .join_asof(upto, on="most_us", by=list(MOMENT), check_sortedness=False)
        .with_columns(pl.col(*sums).fill_null(0))
    )


def _limited(groups: pl.DataFrame, shares: pl.DataFrame) -> pl.DataFrame:
    """Add ``limited``: the sum of the sources' shares, each limited to the share of the group."""
    below = shares.sort("source_share").select(
        *MOMENT,
        share="source_share",
        sum_below=pl.col("source_share").cum_sum().over(MOMENT),
        count_below=pl.int_range(1, pl.len() + 1).over(MOMENT),
    )
    return (
        groups.sort("share")
        .join_asof(below, on="share", by=list(MOMENT), check_sortedness=False)
        .with_columns(pl.col("sum_below", "count_below").fill_null(0))
        .with_columns(
            limited=pl.col("sum_below")
            + (pl.col("count") - pl.col("count_below")) * pl.col("share")
        )
    )
