"""Groups of jobs: all of a user or a project, and those with one application name among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl
from django.db import connection
from django.db.models import CharField, Func, Q, Value
from psycopg import sql

from ioportal.jobs.application_names import application_name
from ioportal.load.analysis.waiting import MEMBERS
from ioportal.telemetry.models import JobGroup, Principal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from django.db.models import OuterRef, QuerySet

    from ioportal.load.top_consumers import PrincipalKey

LONGEST_NAME = 60  # characters of an application name
_SEPARATOR = ":"  # of the user database as well: no user name contains it
_MEMBERS = sql.SQL("""
SELECT '{job}:' || id, owner, project, name FROM jobs_job WHERE id = ANY(%s)
""").format(job=sql.Literal(Principal.JOB.value))


class Application(NamedTuple):
    """A user and a job name."""

    user: str
    name: str

    @classmethod
    def from_text(cls, text: str) -> Application:
        """Return the application of a group."""
        return cls(*_parted(text))


class Campaign(NamedTuple):
    """A project and a job name."""

    project: str
    name: str

    @classmethod
    def from_text(cls, text: str) -> Campaign:
        """Return the campaign of a group."""
        return cls(*_parted(text))


def _parted(text: str) -> tuple[str, str]:
    owner, _, name = text.partition(_SEPARATOR)
    return owner, name


def members(job_ids: Collection[int]) -> pl.DataFrame:
    """Return the groups of some jobs: columns of `load.analysis.waiting.MEMBERS`."""
    with connection.cursor() as cursor:
        cursor.execute(_MEMBERS, [list(job_ids)])
        columns = dict.fromkeys(("principal", "owner", "project", "name"), pl.String())
        jobs = pl.DataFrame(cursor.fetchall(), schema=columns, orient="row")
    none = {"source": pl.lit(None, pl.String), "is_claim": pl.lit(value=False)}
    return jobs.select("principal", **keys(), **none).select(*MEMBERS)


def keys() -> dict[str, pl.Expr]:
    """Return the texts of the groups of jobs with columns owner, project and name; null: none.

    The text of an application is the user and the name, which may be shortened: "alice:relax". That
    of a campaign is the project and the name. Projects with a colon have no campaigns.
    """
    known = {name: pl.when(pl.col(name) != "").then(name) for name in ("owner", "project")}
    application = application_name(pl.col("name")).str.head(LONGEST_NAME)
    named = _SEPARATOR + pl.when(application != "").then(application)
    is_clear = ~pl.col("project").str.contains(_SEPARATOR, literal=True)
    return {
        "user": known["owner"],
        "project": known["project"],
        "application": known["owner"] + named,
        "campaign": pl.when(is_clear).then(known["project"] + named),
    }


def of_job(job_id: int) -> list[PrincipalKey]:
    """Return the stored groups of a job: kind and key."""
    texts = members([job_id]).drop("principal").row(0, named=True)
    wanted = Q(pk=None)
    for kind in JobGroup.Kind:
        wanted |= Q(kind=kind, text=texts[kind.label])
    return list(JobGroup.objects.filter(wanted).values_list("kind", "pk"))


def of_user(name: str) -> list[PrincipalKey]:
    """Return the stored groups of a user and of the user's applications: kind and key."""
    wanted = Q(kind=JobGroup.Kind.USER, text=name) | Q(
        kind=JobGroup.Kind.APPLICATION, text__startswith=f"{name}{_SEPARATOR}"
    )
    return list(JobGroup.objects.filter(wanted).values_list("kind", "pk"))


def of_project(name: str) -> list[PrincipalKey]:
    """Return the stored groups of a project and of its campaigns: kind and key."""
    wanted = Q(kind=JobGroup.Kind.PROJECT, text=name) | Q(
        kind=JobGroup.Kind.CAMPAIGN, text__startswith=f"{name}{_SEPARATOR}"
    )
    return list(JobGroup.objects.filter(wanted).values_list("kind", "pk"))


def project_part(text: OuterRef) -> Func:
    """Return the project in the text of a campaign, in a query."""
    part = (text, Value(_SEPARATOR), Value(1))
    return Func(*part, function="split_part", output_field=CharField())


def project_of(kind: str, text: str) -> str:
    """Return the project of a campaign or a project."""
    return Campaign.from_text(text).project if kind == JobGroup.Kind.CAMPAIGN.label else text


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
