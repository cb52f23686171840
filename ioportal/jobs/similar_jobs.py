"""Similar jobs: the one definition for job pages, rules and mails.

Similar to a job are the jobs of its cluster and size class that started in the 30 days before the
UTC day of its start: a day of storms does not make storms usual. If at least `MIN_SAME_NAME` of
them have its user and name, only these. Jobs with figures of poor quality are excluded, and jobs
with a warning. Size classes are powers of two: 1 node, 2 to 3, 4 to 7 and so on.

A job's place among them is an anonymous aggregate, never a single job of another user.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from django.db.models import Exists, OuterRef, Q
from psycopg import sql

from collectors.tables import UTC_US
from ioportal.jobs.analysis import usual
from ioportal.jobs.analysis.anonymity import coarse, coarsened, is_anonymous, rounded_count
from ioportal.jobs.analysis.histograms import Histogram, Scale, histogram
from ioportal.jobs.analysis.usual import MIN_SAME_NAME
from ioportal.jobs.models import Job, JobStatistics
from ioportal.jobs.populations.population_figures import metric_values
from ioportal.jobs.populations.population_values import Covariate, batch_job_values
from ioportal.metrics import BY_NAME, Metric
from ioportal.rules.rule import Severity
from ioportal.telemetry.copy import read_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from django.contrib.auth.models import AnonymousUser, User

    from ioportal.jobs.analysis.comparison.arms import Floats
    from ioportal.jobs.analysis.usual import Usual
    from ioportal.jobs.models import JobQuerySet
    from ioportal.jobs.populations.population_values import JobValues

    Flags = npt.NDArray[np.bool_]

_WINDOW = timedelta(days=30)
_POOR = JobStatistics.Quality.POOR
_WARNED = Job.objects.filter(  # jobs with a current finding on good data, more than a notice
    pk=OuterRef("pk"),
    flags__severity__gte=Severity.WARNING.value,
    flags__suppression_reasons=[],
    flags__ended_at=None,
)

# The definition in SQL, of a job `j`: whole part of the binary logarithm of its nodes, and a hash
# of user and name (frames hold numbers instead of long texts).
SIZE_CLASS = sql.SQL(
    "CASE WHEN j.node_count > 0 THEN 32 - position(B'1' IN j.node_count::bit(32)) END"
)
USER_AND_NAME = sql.SQL(
    "CASE WHEN j.owner <> '' AND j.name <> '' THEN"
    " hashtextextended(j.owner || E'\\n' || j.name, 0) END"
)
GROUP = {"cluster": pl.Int64(), "size_class": pl.Int64(), "user_and_name": pl.Int64()}
FIGURES = {
    **GROUP,
    "owner": pl.Int64(),  # a hash
    "started_at": UTC_US,
    "metadata_operations_per_node": pl.Float64(),
    "read_bytes": pl.Float64(),
}
_FIGURES = sql.SQL("""
SELECT j.cluster_id, {size_class}, {user_and_name}, hashtextextended(j.owner, 0), j.started_at,
    s.metadata_operations_per_node, s.read_bytes
FROM jobs_job j JOIN jobs_jobstatistics s ON s.job_id = j.id
WHERE j.started_at >= %(start)s AND j.started_at < %(end)s AND s.quality <> 'poor'
    AND j.node_count > 0 AND NOT EXISTS (
        SELECT FROM findings_flag f
        WHERE f.job_id = j.id AND f.severity >= {warning} AND f.suppression_reasons = '[]'
            AND f.ended_at IS NULL
    )
""").format(
    size_class=SIZE_CLASS,
    user_and_name=USER_AND_NAME,
    warning=sql.Literal(Severity.WARNING.value),
)


def window(day: date) -> tuple[datetime, datetime]:
    """Return the interval of starts of jobs similar to one that started on a UTC day."""
    end = datetime.combine(day, time(), UTC)
    return end - _WINDOW, end


def for_job(job: Job) -> JobQuerySet:
    """Return the jobs similar to a job."""
    if job.started_at is None or job.node_count < 1:
        return Job.objects.none()
    start, end = window(job.started_at.astimezone(UTC).date())
    smallest = 1 << (job.node_count.bit_length() - 1)
    similar = Job.objects.filter(
        cluster=job.cluster_id,
        node_count__gte=smallest,
        node_count__lt=2 * smallest,
        started_at__gte=start,
        started_at__lt=end,
        statistics__isnull=False,
    ).exclude(Q(quality=_POOR) | Exists(_WARNED))
    if not (job.owner and job.name):
        return similar
    same_name = Q(owner=job.owner, name=job.name)
    enough = similar.filter(same_name).order_by("pk")[MIN_SAME_NAME - 1 : MIN_SAME_NAME]
    return similar.filter(same_name | ~Exists(enough))


def read_figures(start: datetime, end: datetime) -> pl.DataFrame:
    """Return figures of jobs that started in [start, end), with the columns of `FIGURES`.

    Figures are rounded like all figures of other users' jobs.
    """
    frame = read_frame(_FIGURES, FIGURES, {"start": start, "end": end})
    names = ("metadata_operations_per_node", "read_bytes")
    return frame.with_columns(_rounded(frame[name]) for name in names)


def _rounded(figures: pl.Series) -> pl.Series:
    known = figures.is_not_null()
    rounded = pl.Series(coarsened(figures.fill_null(0).to_numpy()))
    return pl.select(pl.when(known).then(rounded)).to_series().alias(figures.name)


_RANK_STEP = 0.05  # of ranks among other users' jobs
METRICS = tuple(
    BY_NAME[name]
    for name in (
        "metadata_operations",
        "metadata_operations_per_node",
        "peak_metadata_rate",
        "startup_share",
        "open_close_ratio",
        "largest_target_share",
        "read_bytes",
        "write_bytes",
        "mean_read_bytes",
        "mean_write_bytes",
        "mean_service_us",
        "cpu_efficiency",
    )
)


@dataclass(frozen=True)
class Standing:
    """A job's place among similar jobs by one metric.

    Without rank and usual values, these are too few, or could reveal jobs that the reader may not
    see. With such jobs, their number is rounded.
    """

    metric: Metric
    value: float
    similar_jobs: int
    rank: float | None  # share of similar jobs below: 0 to 1
    usual: Usual | None


def standings(job: Job, statistics: JobStatistics, reader: User | AnonymousUser) -> list[Standing]:
    """Return a job's place by each of its known metrics, as far as `reader` may see it."""
    known = [metric for metric in METRICS if getattr(statistics, metric.name) is not None]
    if not known:
        return []
    similar = for_job(job)
    jobs = batch_job_values(similar, [metric.name for metric in known], Covariate.NONE)
    is_hidden = np.zeros(jobs.batch_jobs.size, bool)
    if not reader.is_staff:
        hidden = batch_job_values(similar.hidden_from(reader), [], Covariate.NONE)
        is_hidden = np.isin(jobs.batch_jobs, hidden.batch_jobs)
    return [
        _standing(metric, getattr(statistics, metric.name), jobs, is_hidden) for metric in known
    ]


def metric_histogram(job: Job, metric: str, included: Sequence[float]) -> Histogram:
    """Return the histogram of a metric over similar jobs; its bins include some more values.

    Single jobs can be read from it: for users who may see all jobs.
    """
    figures = metric_values(for_job(job), [metric])[metric]
    samples = [figures.astype(np.int64), np.array(sorted(included)).astype(np.int64)]
    counted = histogram(samples, Scale.LOG)
    return replace(counted, counts=counted.counts[:1])


def _standing(metric: Metric, value: float, jobs: JobValues, is_hidden: Flags) -> Standing:
    values = jobs.values[metric.name]
    is_known = ~np.isnan(values)
    others = is_hidden & is_known
    number = int(np.count_nonzero(is_known))
    if not others.any():
        return _ranked(metric, value, values[is_known], number)
    if not is_anonymous(jobs.batch_jobs[others], jobs.users[others]):
        return Standing(metric, value, rounded_count(number), None, None)
    coarse_values = coarsened(values[is_known]).astype(float)
    standing = _ranked(metric, coarse(value), coarse_values, rounded_count(number))
    quantiles = standing.usual and standing.usual.rounded
    return replace(standing, value=value, rank=_rounded_rank(standing.rank), usual=quantiles)


def _rounded_rank(rank: float | None) -> float | None:
    """Return a rank from which the number of jobs cannot be computed."""
    return None if rank is None else round(round(rank / _RANK_STEP) * _RANK_STEP, 2)


def _ranked(metric: Metric, value: float, known: Floats, number: int) -> Standing:
    figures = np.sort(known)
    quantiles = usual.usual(figures)
    rank = None if quantiles is None else usual.rank(figures, value)
    return Standing(metric, value, number, rank, quantiles)
