"""Queues of metadata servers and the groups that caused them, as far as a user may see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from ioportal.jobs.analysis.anonymity import coarse
from ioportal.load.analysis.replay.impact_by_group import PRINCIPAL
from ioportal.load.impact import queue_links
from ioportal.load.impact.principal_windows import principal_key
from ioportal.load.impact.queue_users import is_hidden, owners
from ioportal.load.principals import BYS, Name, job_group_names, named
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.core.time_ranges import TimeRange

UNNAMED = Name("another")  # beyond the named principals
_LISTED = 25
_EQUAL = 0.99  # of the largest impact: the narrowest of these groups is shown
_NARROWEST = (PRINCIPAL, "application", "campaign", "user", "project")
_KINDS = dict(Principal.choices)
_QUEUE = ("server", "start")
_OF_ALL = ("waited_s", "users_waited_s")
_FIGURES = ("share", "impact_s", "outside_s", *_OF_ALL)


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


def of_others(parts: pl.DataFrame, user: User) -> pl.DataFrame:
    """Return the parts of principals that a user may not see, with owner and job.

    Args:
        parts: with a column principal.
        user: sees own jobs, and jobs of own projects.
    """
    keys = [principal_key(name) for name in parts["principal"].unique()]
    visible = named(keys, user, BYS[0])
    return parts.join(owners(key for key in keys if key not in visible), on="principal")


def group_names(groups: Collection[tuple[str, str]], user: User) -> dict[tuple[str, str], Name]:
    """Return the names of groups of a replay that a user may see, by kind and key."""
    principals = {principal_key(key): key for kind, key in groups if kind == PRINCIPAL}
    names = named(list(principals), user, BYS[0])
    of_jobs = job_group_names((group for group in groups if group[0] != PRINCIPAL), user)
    return of_jobs | {
        (PRINCIPAL, key): names[pair] for pair, key in principals.items() if pair in names
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
    """Return a row for each group in each queue, largest impact first; users see one of a queue.

    Figures of two groups differ by what the others of one of them waited: that may be one user.

    Args:
        queues: columns of `load.analysis.replay.impact_by_group.QUEUES`, and server with its name.
        parts: columns of `load.analysis.replay.impact_by_group.PARTS`, and server.
        window: the analysed range.
        user: see `group_names`.
    """
    if not user.is_staff:
        queues, others = _outermost(queues, user), of_others(parts, user)
    ranked = queues.sort("impact_s", descending=True, nulls_last=True)
    names = group_names(ranked.select("kind", "key").drop_nulls().unique().rows(), user)
    found = []
    for row in ranked.iter_rows(named=True):
        key = row["kind"], row["key"]
        figures = {name: row[name] for name in _FIGURES}
        if not user.is_staff:
            of_queue = others.filter(server=row["server"], start=row["start"])
            figures = _rounded(figures, of_queue)
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

    For staff it is the narrowest of the groups with most impact. Arguments: see `rows`.
    """
    if queues.is_empty():
        return []
    if user.is_staff:
        total = pl.col("impact_s") + pl.col("outside_s")
        largest = total >= _EQUAL * total.max().over(_QUEUE)
        queues = _first(queues.filter(largest | total.is_null()), _NARROWEST)
    else:
        queues = _outermost(queues, user)
    listed = rows(queues.top_k(_LISTED, by="waited_s"), parts, window, user)
    return sorted(listed, key=lambda row: (row.start, row.server))


def _outermost(queues: pl.DataFrame, user: User) -> pl.DataFrame:
    """Return the widest group of each queue that a user may see."""
    visible = list(group_names(queues.select("kind", "key").drop_nulls().unique().rows(), user))
    own = pl.DataFrame(visible, {"kind": pl.String, "key": pl.String}, orient="row")
    return _first(queues.join(own, on=["kind", "key"], how="semi"), _NARROWEST[::-1])


def _first(queues: pl.DataFrame, kinds: Sequence[str]) -> pl.DataFrame:
    """Return one group of each queue: the first by kind, then the one with most work."""
    rank = pl.col("kind").replace_strict(
        {kind: number for number, kind in enumerate(kinds)}, default=None
    )
    by_rank = queues.sort(rank, -pl.col("share"), "key", nulls_last=True)
    return by_rank.unique(_QUEUE, keep="first", maintain_order=True)


def _rounded(figures: dict[str, float | None], others: pl.DataFrame) -> dict[str, float | None]:
    """Return the figures of a queue as users see them, with two significant digits.

    The group's figures are shown as in its flags; totals only if they reveal no single user.

    Args:
        figures: `_FIGURES`.
        others: what the principals that the user may not see have in the queue.
    """
    hidden = _OF_ALL if is_hidden(others, "waited_s") else ()
    return {
        name: None if value is None or name in hidden else coarse(value)
        for name, value in figures.items()
    }
