"""Records of a look-up: PanDA jobs or batch jobs with the figures of their batch job.

Names follow PanDA's monitor where it has the value. Its `tot*` and `rate*` are in kB; fields with
`bytes` in their name are in bytes. All figures belong to the batch job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, Func, OuterRef, Subquery, TextField

from collectors.tables import METADATA_OPERATIONS
from ioportal.api.look_up.fields import FIGURES, JOB_COLUMNS
from ioportal.core.postgres.compiled import Compiled, Parameter
from ioportal.findings.models import Flag
from ioportal.jobs.analysis.anonymity import shown
from ioportal.jobs.expressions import KEYS, EachOf
from ioportal.jobs.models import Job, WorkloadJob
from ioportal.jobs.visibility import visibility_key
from ioportal.load.job_exports import PANDA_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

    from ioportal.jobs.models import WorkloadJobQuerySet

MOST_COMPILED = 100  # statements of a kind: they differ by user and condition


@dataclass(frozen=True)
class Viewer:
    """A user, equal to all users who see the same jobs."""

    key: str
    user: User = field(compare=False)

    @classmethod
    def of(cls, user: User) -> Self:
        """Return the viewer that a user is."""
        return cls(visibility_key(user), user)

    @property
    def sees_all(self) -> bool:
        """Whether all jobs are visible; the best plan for others depends on how many jobs are."""
        return self.user.is_staff


class _IsoTime(Func):
    """A time in UTC as PanDA writes it; the database formats thousands faster than Python."""

    template = """to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS')"""
    output_field = TextField()


def _loaded(*columns: str) -> dict[str, str]:
    """Return the names under which columns are loaded: times are loaded as text."""
    return {name: f"{name}_text" if name.endswith("_at") else name for name in columns}


def _compiled(
    rows: QuerySet[Any, Any], columns: dict[str, str], *, prepare: bool, **others: Any
) -> Compiled[dict[str, Any]]:
    """Compile the values of columns, as `_loaded` names them, and of other expressions."""
    texts = {alias: _IsoTime(name) for name, alias in columns.items() if alias != name}
    names = (*columns.values(), *others)
    values = rows.annotate(**texts, **others).values_list(*names)
    return Compiled(values, lambda row: dict(zip(names, row, strict=True)), prepare=prepare)


_KB = 1000
_PERCENT = 100
_STATISTICS = (
    "duration_s",
    "read_bytes",
    "write_bytes",
    "opens",
    "closes",
    "metadata_operations",
    "peak_metadata_rate",
    "peak_resolution_s",
    "largest_target_share",
    "quality",
    "bytes_quality",
    "computed_at",
    *(f"count_{kind}" for kind in METADATA_OPERATIONS),
)
_EVIDENCE = ("impact_s", "impact_share", "impact_is_estimated")
_JOB_LOADED = _loaded(
    *("pk", "batch_id", "array_index", "cluster__name", "cluster__simulated", "node_count"),
    *JOB_COLUMNS.values(),
    *(f"statistics__{name}" for name in _STATISTICS),
    *(f"evidence__{name}" for name in _EVIDENCE),
)
_PANDA_LOADED = _loaded(
    *PANDA_COLUMNS.values(), "batch_job_id", "cluster__name", "cluster__simulated"
)
_NO_BATCH_JOB: dict[str, Any] = dict.fromkeys(FIGURES) | {"flags": [], "shared_batch": False}


def panda_rows(panda_jobs: WorkloadJobQuerySet, *, prepare: bool) -> Compiled[dict[str, Any]]:
    """Return the rows that `of_panda_jobs` needs."""
    return _compiled(panda_jobs, _PANDA_LOADED, prepare=prepare)


def of_panda_jobs(viewer: Viewer, jobs: Collection[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of rows of PanDA jobs that a user may see, in their order."""
    rows = _batch_jobs(viewer, {job["batch_job_id"] for job in jobs} - {None})
    records = []
    for job in jobs:
        own = {name: job[_PANDA_LOADED[column]] for name, column in PANDA_COLUMNS.items()}
        _, batch = rows.get(job["batch_job_id"], ({}, _NO_BATCH_JOB))
        places = {"cluster": job["cluster__name"], "simulated": job["cluster__simulated"]}
        records.append(own | batch | places)
    return records


def of_batch_jobs(viewer: Viewer, keys: Iterable[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the primary keys and records of batch jobs."""
    for key, (row, batch) in _batch_jobs(viewer, keys).items():
        own = {name: row[_JOB_LOADED[column]] for name, column in JOB_COLUMNS.items()}
        yield key, {"batchid": batch["batch_job"], **own, **batch}


def _batch_jobs(
    viewer: Viewer, keys: Iterable[int]
) -> dict[int, tuple[dict[str, Any], dict[str, Any]]]:
    """Return the row and the fields `FIGURES` of each batch job that a user may see."""
    rows = _batch_rows(viewer).run(keys=list(keys))
    return {row["pk"]: (row, _fields(row, viewer)) for row in rows}


@lru_cache(MOST_COMPILED)
def _batch_rows(viewer: Viewer) -> Compiled[dict[str, Any]]:
    links: Any = WorkloadJob.jobs.through.objects.filter(job=OuterRef("pk")).order_by()
    flags = Flag.objects.visible_to(viewer.user).counted().filter(job=OuterRef("pk"))
    visible = Job.objects.visible_to(viewer.user).filter(pk__in=EachOf(Parameter("keys", KEYS)))
    return _compiled(
        visible,
        _JOB_LOADED,
        prepare=viewer.sees_all,
        inside=Subquery(links.values("job").annotate(count=Count("pk")).values("count")),
        rules=ArraySubquery(flags.order_by("-severity", "rule").values("rule")),
    )


def _fields(row: dict[str, Any], viewer: Viewer) -> dict[str, Any]:
    figure = {name: row[_JOB_LOADED[f"statistics__{name}"]] for name in _STATISTICS}
    impact = {name: row[f"evidence__{name}"] for name in _EVIDENCE}
    if not viewer.sees_all:
        impact = {name: shown(name, value) for name, value in impact.items()}
    duration_s, read, written = (
        figure[name] for name in ("duration_s", "read_bytes", "write_bytes")
    )
    operations = figure["metadata_operations"]
    array_index, inside = row["array_index"], row["inside"] or 0
    return {
        "cluster": row["cluster__name"],
        "simulated": row["cluster__simulated"],
        "batch_job": f"{row['batch_id']}[{array_index}]" if array_index else row["batch_id"],
        "shared_batch": inside > 1,
        "npandajobs": inside,
        "nodes": row["node_count"],
        "totrbytes": _scaled(read, _KB),
        "totwbytes": _scaled(written, _KB),
        "raterbytes": _scaled(read, _KB * (duration_s or 0)),
        "ratewbytes": _scaled(written, _KB * (duration_s or 0)),
        "bytes_unit": "kB",
        "read_bytes": read,
        "write_bytes": written,
        "open_total": figure["opens"],
        "close_total": figure["closes"],
        "mdops_total": operations,
        "mdops_rate_max": figure["peak_metadata_rate"],
        "mdops_rate_max_interval_s": figure["peak_resolution_s"],
        "mdt_share_max_pct": _percent(figure["largest_target_share"]),
        "op_mix": {
            kind: round(count / operations, 4)
            for kind in METADATA_OPERATIONS
            if (count := figure[f"count_{kind}"]) and operations
        }
        if operations is not None
        else None,
        "impact_s": impact["impact_s"],
        "impact_is_estimated": impact["impact_is_estimated"],
        "mds_share_pct": _percent(impact["impact_share"]),
        "flags": list(dict.fromkeys(row["rules"])),
        "quality": figure["quality"],
        "bytes_quality": figure["bytes_quality"],
        "computedtime": figure["computed_at"],
        "url": f"{settings.PORTAL_URL}/jobs/{row['pk']}/",
    }


def _scaled(value: float | None, unit: float) -> float | None:
    return value / unit if value is not None and unit else None


def _percent(share: float | None) -> float | None:
    return None if share is None else _PERCENT * share
