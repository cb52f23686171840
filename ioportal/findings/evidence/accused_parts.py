"""Parts of groups of jobs: the narrowest subject that explains a harm is accused, and only once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from django.db.models import Q

from ioportal.findings.models import Flag
from ioportal.rules import RULES
from ioportal.rules.rule import GROUPS, Severity, Subject

if TYPE_CHECKING:
    from collections.abc import Sequence

_HARMFUL = [rule.code for rule in RULES if rule.needs_harm]
_PART = ["part_kind", "part"]
WINDOWS = {  # the impact of jobs and groups of jobs
    "part_kind": pl.String(),  # of `Subject`
    "part": pl.String(),  # key of a job, or text of a group
    "start": pl.Datetime("us", "UTC"),
    "impact_us": pl.Float64(),
}


def explained(
    kind: Subject, members: pl.DataFrame, windows: pl.DataFrame, accused: pl.DataFrame
) -> pl.DataFrame:
    """Return how much of the impact of each group its parts explain: columns key, parts_impact_s.

    It is the most that one part explains, or all its accused parts together. A part explains as
    much of a group's impact as its own impact in the same windows. An accused part of another
    accused part counts once.

    Args:
        kind: kind of the groups.
        members: jobs of the groups: key, job, and the narrower groups of each job.
        windows: columns of `WINDOWS`, of the groups and all their parts.
        accused: rows of accused parts: part_kind and part.
    """
    narrower = [name for name in GROUPS if name in members.columns]
    jobs = members.with_columns(job=pl.col("job").cast(pl.String)).rename({"job": Subject.JOB})
    kinds = [*reversed(narrower), Subject.JOB]  # wide before narrow
    parts = jobs.select("key", *kinds).unpivot(
        index="key", variable_name="part_kind", value_name="part"
    )
    own = windows.filter(part_kind=kind).select("start", key="part", whole_us="impact_us")
    single = (
        _with_windows(parts.drop_nulls().unique(), windows, own)
        .group_by("key", *_PART)
        .agg(_explained_s())
        .group_by("key")
        .agg(pl.max("parts_impact_s"))
    )
    texts = {name: accused.filter(part_kind=name)["part"].implode() for name in kinds}
    widest = [
        pl.when(pl.col(name).is_in(texts[name])).then(
            pl.struct(pl.lit(name.value).alias("part_kind"), pl.col(name).alias("part"))
        )
        for name in map(Subject, kinds)
    ]
    together = (
        _with_windows(
            jobs.select("key", widest=pl.coalesce(widest)).drop_nulls().unnest("widest").unique(),
            windows,
            own,
        )
        .group_by("key", "start")
        .agg(pl.sum("impact_us"), pl.first("whole_us"))
        .group_by("key")
        .agg(_explained_s())
    )
    return pl.concat([single, together]).group_by("key").agg(pl.max("parts_impact_s"))


def _with_windows(parts: pl.DataFrame, windows: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """Return the windows of parts in which their group has impact."""
    return parts.join(windows, on=_PART).join(own, on=["key", "start"])


def _explained_s() -> pl.Expr:
    explained_us = pl.min_horizontal("impact_us", "whole_us").sum()
    return (explained_us / 1e6).alias("parts_impact_s")


def accused(jobs: Sequence[int], groups: pl.DataFrame) -> pl.DataFrame:
    """Return the accused among jobs and groups of jobs: columns part_kind and part.

    They have a flag for harm that is not a notice.

    Args:
        jobs: keys of jobs.
        groups: columns part_kind and part.
    """
    wanted = Q(job__in=jobs)
    for kind in GROUPS:
        texts = groups.filter(part_kind=kind)["part"].to_list()
        wanted |= Q(subject_kind=kind, subject__in=texts)
    flags = Flag.objects.current().good().filter(wanted, rule__in=_HARMFUL)
    rows = flags.filter(severity__gt=Severity.NOTICE).order_by()
    return pl.DataFrame(
        list(rows.values_list("subject_kind", "subject").distinct()),
        schema={"part_kind": pl.String(), "part": pl.String()},
        orient="row",
    )
