"""Whose requests waited in a queue, and what of it may be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ioportal.jobs.analysis.anonymity import coarse, hidden_sums
from ioportal.jobs.models import Job
from ioportal.load.impact.principal_windows import principal_key, principal_name
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ioportal.load.impact.queues import Queue
    from ioportal.load.top_consumers import PrincipalKey

_OF_JOBS = (Principal.JOB, Principal.CLAIMED)


def owners(principals: Iterable[PrincipalKey]) -> pl.DataFrame:
    """Return who owns principals: columns principal, owner, and key of the job."""
    keys = list(principals)
    jobs = [key for kind, key in keys if kind in _OF_JOBS]
    known = dict(Job.objects.filter(pk__in=jobs).values_list("pk", "owner"))
    rows = [
        (name, f"user {known[key]}", key)
        if kind in _OF_JOBS and key in known
        else (name, name, None)
        for kind, key in keys
        for name in [principal_name((kind, key))]
    ]
    schema = {"principal": pl.String, "owner": pl.String, "job": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def is_hidden(parts: pl.DataFrame, amount: str) -> bool:
    """Return whether a sum, or the part of it that is of jobs, could reveal a user.

    Args:
        parts: columns owner, job, and the amount.
        amount: a column.
    """
    some = parts.filter(pl.col(amount) > 0).with_columns(everything=0)
    return any(
        hidden_sums(each, ["everything"], [amount])[amount].any()
        for each in (some, some.drop_nulls("job"))
    )


def waiting_users(queue: Queue, group: tuple[str, str], *, exact: bool = False) -> int | None:
    """Return how many users waited because of a group; None: none, or not to be shown.

    Args:
        queue: a queue.
        group: kind and key of the group.
        exact: whether the number is for staff; users see it like a sum over others, rounded.
    """
    others = pl.col("principal").is_in(queue.others(group))
    waited = queue.parts.filter(others, pl.col("waited_s") > 0)
    jobs = waited.join(owners(map(principal_key, waited["principal"].unique())), on="principal")
    count = jobs.drop_nulls("job")["owner"].n_unique()
    if not exact:
        count = 0 if is_hidden(jobs, "waited_s") else round(coarse(count))
    return count or None
