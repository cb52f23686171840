"""Groups of jobs: all jobs of a user, of a project, or of a user with one job name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl
from django.db import connection
from psycopg import sql

from ioportal.analysis.impact import MEMBERS
from ioportal.telemetry.models import JobGroup, Principal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from django.db.models import QuerySet

# Texts of groups as expressions of a job `j`; null: none. User names have no blanks. Long job names
# are shortened.
TEXTS = {
    "user": sql.SQL("nullif(j.owner, '')"),
    "project": sql.SQL("nullif(j.project, '')"),
    "application": sql.SQL(
        "CASE WHEN j.owner <> '' AND j.name <> '' THEN j.owner || ' ' || left(j.name, 60) END"
    ),
}
_MEMBERS = sql.SQL("""
SELECT '{job}:' || j.id, {user}, {project}, {application} FROM jobs_job j WHERE j.id = ANY(%s)
""").format(job=sql.Literal(Principal.JOB.value), **TEXTS)


class Application(NamedTuple):
    """A user and a job name."""

    user: str
    name: str

    @classmethod
    def from_text(cls, text: str) -> Application:
        """Return the application of a group."""
        user, _, name = text.partition(" ")
        return cls(user, name)


def members(job_ids: Collection[int]) -> pl.DataFrame:
    """Return the groups of some jobs: columns of `analysis.impact.MEMBERS`."""
    with connection.cursor() as cursor:
        cursor.execute(_MEMBERS, [list(job_ids)])
        return pl.DataFrame(cursor.fetchall(), schema=MEMBERS, orient="row")


def stored(groups: Collection[tuple[str, str]]) -> pl.DataFrame:
    """Store missing groups and return the rows of all: columns of `_ROWS`."""
    kinds = {kind.label: kind for kind in JobGroup.Kind}
    wanted = [JobGroup(kind=kinds[kind], text=key) for kind, key in groups]
    JobGroup.objects.bulk_create(wanted, ignore_conflicts=True)
    texts = {group.text for group in wanted}
    rows = _rows(JobGroup.objects.filter(text__in=texts))
    keys = pl.DataFrame(list(groups), {name: _ROWS[name] for name in ("kind", "key")}, orient="row")
    return rows.join(keys, on=["kind", "key"])


def by_key(keys: Iterable[int]) -> pl.DataFrame:
    """Return the rows of stored groups: columns of `_ROWS`."""
    return _rows(JobGroup.objects.filter(pk__in=keys))


_ROWS = {
    "kind": pl.String(),  # its name
    "key": pl.String(),  # the text
    "kind_id": pl.Int16(),  # kind and principal_id in `ImpactWindow`
    "principal_id": pl.Int64(),
}


def _rows(groups: QuerySet[JobGroup]) -> pl.DataFrame:
    rows = [
        (group.get_kind_display(), group.text, group.kind, group.pk) for group in groups.iterator()
    ]
    return pl.DataFrame(rows, schema=_ROWS, orient="row")
