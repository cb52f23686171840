"""The registered capacity of filesystems: requests that their metadata servers can serve."""

from __future__ import annotations

import polars as pl
from django.db.models import Exists, OuterRef

from ioportal.rules.capacity import DEFAULT_PER_S
from ioportal.site.models import Server, Target


def with_capacity(subjects: pl.DataFrame, filesystem: str = "filesystem") -> pl.DataFrame:
    """Add the capacity of each subject's filesystem, and whether it is registered completely.

    It is that of the metadata servers with targets: others stand by.

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
