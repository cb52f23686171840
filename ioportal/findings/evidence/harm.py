"""Harm of subjects: the extra wait of others, as far as requests are timed.

Harm is computed from figures about the impact of jobs and groups, and from the registered capacity
of filesystems.
"""

from __future__ import annotations

import polars as pl
from django.db import connection
from django.db.models import Exists, OuterRef

from ioportal.rules import capacity
from ioportal.rules.capacity import DEFAULT_PER_S
from ioportal.rules.rule import HARM_SHARE, is_explained
from ioportal.site.models import Server, Target
from ioportal.telemetry.models import Coverage

AMOUNTS = (
    "impact_us",
    "work_us",
    "all_work_us",
    "others_us",
    "others_usual_us",
    "estimated_us",  # the part of the impact that is estimated
)
FIGURES = {  # of sums of `AMOUNTS`
    "peak_impact_s": pl.col("impact_us") / 1e6,
    "impact_share": pl.col("work_us") / pl.col("all_work_us"),
    "impact_times": (pl.col("others_us") / pl.col("others_usual_us")).fill_nan(None),
    "impact_is_estimated": pl.col("estimated_us") > pl.col("impact_us") / 2,
}
_TIME = pl.Datetime("us", "UTC")
_KEYS = ["timed_filesystem", "hour"]
_ESTIMATE_MARGIN = 2  # an estimated impact accuses from this many times the limit on
# Timed for an hour at least and until shortly before: baselines need calm intervals. A filesystem
# of null stands for all. Servers without targets have no requests.
_TIMED = """
SELECT requested.filesystem, requested.hour, bool_and(EXISTS (
    SELECT FROM telemetry_coverage c
    WHERE c.source = ANY(%(sources)s) AND c.source_id = m.id
        AND tstzrange(c.start, c."end", '[]')
            && tstzrange(hour - interval '1 day', hour - interval '1 hour', '[]')
) AND EXISTS (
    SELECT FROM telemetry_coverage c
    WHERE c.source = ANY(%(sources)s) AND c.source_id = m.id
        AND tstzrange(c.start, c."end", '[]')
            && tstzrange(hour - interval '30 minutes', hour + interval '1 hour', '[]')
))
FROM unnest(%(filesystems)s::integer[], %(hours)s::timestamptz[]) AS requested (filesystem, hour)
JOIN site_server m ON m.filesystem_id = coalesce(requested.filesystem, m.filesystem_id)
    AND m.kind = 'mds' AND EXISTS (SELECT FROM site_target t WHERE t.server_id = m.id)
GROUP BY 1, 2
"""


def with_harm(subjects: pl.DataFrame) -> pl.DataFrame:
    """Add harm_s: extra wait of others because of each subject, at least. Null: it may be large.

    And harm_is_explained: parts of a group explain its impact, and are accused instead. Subjects
    have the columns of `subject_evidence.CONTEXT`, and impact_s, impact_share and
    impact_is_estimated if their impact is computed. Unknown harm is never abuse. It may be large
    only if requests were not timed at the subject's highest load, and this load reaches
    `HARM_SHARE` of the registered capacity.
    """
    if "impact_s" not in subjects.columns:
        return subjects.with_columns(
            harm_s=pl.lit(None, pl.Float64), harm_is_explained=pl.lit(value=False)
        )
    subjects = subjects.with_columns(
        timed_filesystem=pl.coalesce("load_filesystem", "filesystem"),
        hour=pl.coalesce("load_at", "until").dt.truncate("1h"),
    )
    is_large = capacity.counted_share(subjects.columns) >= HARM_SHARE
    is_unknown = is_large.fill_null(value=False) & ~pl.col("is_timed").fill_null(value=False)
    is_harmless = pl.col("impact_s").is_null() & ~is_unknown
    if "parts_impact_s" in subjects.columns:
        explained = is_explained().fill_null(value=False)
    else:
        explained = pl.lit(value=False)
    is_estimated = pl.col("impact_is_estimated") > 0
    at_least = pl.col("impact_s") / pl.when(is_estimated).then(_ESTIMATE_MARGIN).otherwise(1)
    return (
        subjects.join(_timed(subjects), on=_KEYS, how="left", nulls_equal=True)
        .with_columns(
            harm_s=pl.when(is_harmless | explained).then(0.0).otherwise(at_least),
            harm_is_explained=explained,
        )
        .drop(*_KEYS, "is_timed")
    )


def _timed(subjects: pl.DataFrame) -> pl.DataFrame:
    """Return whether requests were timed on each filesystem in each hour."""
    requested = subjects.select(_KEYS).unique()
    values = {
        "sources": [Coverage.Source.RPC_TRACE.value, Coverage.Source.MDS_STATS.value],
        "filesystems": requested["timed_filesystem"].to_list(),
        "hours": requested["hour"].to_list(),
    }
    columns = {"timed_filesystem": pl.Int64(), "hour": _TIME, "is_timed": pl.Boolean()}
    with connection.cursor() as cursor:
        cursor.execute(_TIMED, values)
        return pl.DataFrame(cursor.fetchall(), schema=columns, orient="row")


def with_capacity(subjects: pl.DataFrame, filesystem: str = "filesystem") -> pl.DataFrame:
    """Add the capacity of each subject's filesystem, and whether it is registered completely.

    Only metadata servers with targets count: the others are on standby.

    Args:
        subjects: rows with a column of filesystems.
        filesystem: the name of this column.
    """
    known = _by_filesystem().rename({"filesystem": filesystem})
    return subjects.join(known, on=filesystem, how="left").with_columns(
        pl.col("capacity_per_s").fill_null(DEFAULT_PER_S),
        pl.col("capacity_is_registered").fill_null(value=False),
    )


def _by_filesystem() -> pl.DataFrame:
    has_targets = Exists(Target.objects.filter(server=OuterRef("pk")))
    servers = Server.objects.filter(kind=Server.Kind.MDS).annotate(has_targets=has_targets)
    rows = servers.values_list("filesystem", "capacity_per_s", "has_targets").order_by()
    columns = {"filesystem": pl.Int64(), "per_s": pl.Float64(), "is_used": pl.Boolean()}
    is_used = pl.col("is_used") | ~pl.col("is_used").any().over("filesystem")
    return (
        pl.DataFrame(list(rows), schema=columns, orient="row")
        .filter(is_used)
        .group_by("filesystem")
        .agg(
            capacity_per_s=pl.col("per_s").fill_null(DEFAULT_PER_S).sum(),
            capacity_is_registered=pl.col("per_s").is_not_null().all(),
        )
    )
