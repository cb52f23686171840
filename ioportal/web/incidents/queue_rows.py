"""Queues of metadata servers and the groups that caused them, as far as a user may see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from ioportal.jobs.analysis.populations import coarse, hidden_sums
from ioportal.jobs.models import Job
from ioportal.load import queue_links
from ioportal.load.analysis.replay.impact import PRINCIPAL
from ioportal.load.job_groups import Application, Campaign
from ioportal.load.principal_windows import principal_key, principal_name
from ioportal.load.principals import BYS, Name, job_group_name, named
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.core.time_ranges import TimeRange
    from ioportal.load.top_consumers import PrincipalKey

UNNAMED = Name("another")  # beyond the named principals
_LISTED = 25
_EQUAL = 0.99  # of the largest impact: the narrowest of these groups is shown
_NARROWEST = (PRINCIPAL, "application", "campaign", "user", "project")
_KINDS = dict(Principal.choices)
_OF_GROUP = ("share", "impact_s", "outside_s")
_OF_QUEUE = ("waited_s", "users_waited_s")


@dataclass(frozen=True)
class QueueRow:
    """A queue with the group that others waited for most; None: not visible, or no group."""

    server: str
    start: datetime
    end: datetime
    kind: str
    name: Name | None
    key: tuple[str, str]  # kind and key of the group in a replay
    share: float | None  # of the queue's work
    impact_s: float | None  # waiting that users' requests would have been spared
    outside_s: float | None  # the same of pings, daemons and unnamed requests
    waited_s: float | None  # waiting of all requests in the queue
    users_waited_s: float | None  # the part that is of users' requests
    address: str = ""

    @property
    def length_s(self) -> float:
        """Its length."""
        return (self.end - self.start).total_seconds()

    @property
    def facts(self) -> dict[str, object]:
        """Its members in exports."""
        facts = {**vars(self), "name": self.name.text if self.name else None}
        return {name: value for name, value in facts.items() if name not in {"key", "address"}}


def owners(principals: Iterable[PrincipalKey]) -> pl.DataFrame:
    """Return who owns principals: columns principal, owner, and key of the job."""
    keys = list(principals)
    jobs = [key for kind, key in keys if kind == Principal.JOB]
    known = dict(Job.objects.filter(pk__in=jobs).values_list("pk", "owner"))
    rows = [
        (name, f"user {known[key]}", key)
        if kind == Principal.JOB and key in known
        else (name, name, None)
        for kind, key in keys
        for name in [principal_name((kind, key))]
    ]
    schema = {"principal": pl.String, "owner": pl.String, "job": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def of_others(parts: pl.DataFrame, user: User) -> pl.DataFrame:
    """Return the parts of principals that a user may not see, with owner and job.

    Args:
        parts: with a column principal.
        user: sees own jobs, and those of own projects.
    """
    keys = [principal_key(name) for name in parts["principal"].unique()]
    visible = named(keys, user, BYS[0])
    return parts.join(owners(key for key in keys if key not in visible), on="principal")


def group_names(groups: Collection[tuple[str, str]], user: User) -> dict[tuple[str, str], Name]:
    """Return the names of groups of a replay that a user may see, by kind and key."""
    principals = {principal_key(key): key for kind, key in groups if kind == PRINCIPAL}
    names = named(list(principals), user, BYS[0])
    return {(PRINCIPAL, key): names[pair] for pair, key in principals.items() if pair in names} | {
        (kind, key): job_group_name(kind, key)
        for kind, key in groups
        if kind != PRINCIPAL and _may_see(kind, key, user)
    }


def may_see(group: tuple[str, str], user: User) -> bool:
    """Return whether a user may see a group, given by kind and key."""
    try:
        return group in group_names([group], user)
    except ValueError:  # not a key
        return False


def kind_label(kind: str, key: str) -> str:
    """Return the kind of a group in words."""
    return _KINDS[principal_key(key)[0]] if kind == PRINCIPAL else kind


def rows(
    queues: pl.DataFrame, parts: pl.DataFrame, window: TimeRange, user: User
) -> list[QueueRow]:
    """Return a row for each group in each queue, largest impact first.

    Args:
        queues: columns of `load.analysis.replay.impact.QUEUES`, and server with its name.
        parts: columns of `load.analysis.replay.impact.PARTS`, and server.
        window: the analysed range.
        user: see `group_names`.
    """
    ranked = queues.sort("impact_s", descending=True, nulls_last=True)
    keys = ranked.select("kind", "key").drop_nulls().unique(maintain_order=True).rows()
    names = group_names(keys, user)
    hidden = {} if user.is_staff else _hidden(parts, user)
    found = []
    for row in ranked.iter_rows(named=True):
        key = row["kind"], row["key"]
        if not user.is_staff and key not in names:
            continue
        figures = {name: row[name] for name in (*_OF_GROUP, *_OF_QUEUE)}
        if not user.is_staff:
            figures = _rounded(figures, hidden.get((row["server"], row["start"])))
        found.append(
            QueueRow(
                row["server"],
                row["start"],
                row["end"],
                kind_label(*key) if row["kind"] else "",
                names.get(key, UNNAMED) if row["kind"] else None,
                key,
                **figures,
                address=queue_links.address(row["server"], window, key, row["start"])
                if row["kind"]
                else "",
            )
        )
    return found


def longest(
    queues: pl.DataFrame, parts: pl.DataFrame, window: TimeRange, user: User
) -> list[QueueRow]:
    """Return the queues in which requests waited most, in order, each with a group.

    It is the narrowest of the groups with most impact. Arguments: see `rows`.
    """
    if queues.is_empty():
        return []
    narrow = {kind: number for number, kind in enumerate(_NARROWEST)}
    if not user.is_staff:
        keys = queues.select("kind", "key").drop_nulls().unique().rows()
        visible = list(group_names(keys, user))
        own = pl.DataFrame(visible, {"kind": pl.String, "key": pl.String}, orient="row")
        queues = queues.join(own, on=["kind", "key"], how="semi")
    of_queue = ("server", "start")
    total = pl.col("impact_s") + pl.col("outside_s")
    largest = (
        queues.filter((total >= _EQUAL * total.max().over(of_queue)) | total.is_null())
        .sort(pl.col("kind").replace_strict(narrow, default=None), nulls_last=True)
        .unique(of_queue, keep="first", maintain_order=True)
        .top_k(_LISTED, by="waited_s")
    )
    return sorted(rows(largest, parts, window, user), key=lambda row: (row.start, row.server))


def _may_see(kind: str, key: str, user: User) -> bool:
    """Return whether a user sees all jobs of a group of jobs."""
    if user.is_staff:
        return True
    if kind in {"project", "campaign"}:
        project = Campaign.from_text(key).project if kind == "campaign" else key
        return user.groups.filter(name=project).exists()
    owner = Application.from_text(key).user if kind == "application" else key
    return owner == user.get_username()


def _hidden(parts: pl.DataFrame, user: User) -> dict[tuple[Any, ...], dict[str, bool]]:
    """Return whether sums over others in a queue could reveal a single user."""
    sums = hidden_sums(of_others(parts, user), ("server", "start"), ("work_s", "waited_s"))
    return {(row.pop("server"), row.pop("start")): row for row in sums.iter_rows(named=True)}


def _rounded(
    figures: dict[str, float | None], hidden: dict[str, bool] | None
) -> dict[str, float | None]:
    """Return figures without those of too few others; None: all in the queue are visible."""
    unknown = hidden or {"work_s": False, "waited_s": False}
    return {
        name: None
        if value is None or unknown["work_s" if name == "share" else "waited_s"]
        else coarse(value)
        for name, value in figures.items()
    }
