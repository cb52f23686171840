"""The histogram of similar jobs of an outlier, with the job and the threshold."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from django.urls import reverse

from ioportal.core import formatting
from ioportal.jobs import standings
from ioportal.jobs.analysis.histograms import Scale
from ioportal.jobs.charts import histograms as charts
from ioportal.metrics import BY_NAME
from ioportal.rules.outlier import OUTLIER, at_threshold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.findings.models import Flag
    from ioportal.jobs.analysis.histograms import Bin
    from ioportal.jobs.models import Job


class OutlierHistogram:
    """The jobs similar to a flag's job, by the metric of the outlier rule."""

    metric = BY_NAME["metadata_operations_per_node"]
    script_id = "figure-similar-jobs"
    columns = ("from", "below", "count", "share")

    def __init__(self, flag: Flag, job: Job) -> None:
        self._job = job
        self._lines = {
            f"job {job.display_id}": flag.numbers[self.metric.name],
            "threshold": at_threshold(flag.numbers, flag.thresholds),
        }
        self.exports_url = reverse("flag_similar_jobs", args=[flag.pk])

    @classmethod
    def for_flag(cls, flag: Flag) -> OutlierHistogram | None:
        """Return the histogram of a flag; None: it is of another rule."""
        return cls(flag, flag.job) if flag.job and flag.rule == OUTLIER.code else None

    @cached_property
    def _bars(self) -> tuple[tuple[Bin, ...], charts.Bars]:
        histogram = standings.metric_histogram(
            self._job, self.metric.name, list(self._lines.values())
        )
        [counts] = histogram.counts
        total = sum(count or 0 for count in counts)
        return histogram.bins, charts.Bars("similar jobs", total, counts)

    @property
    def total(self) -> int:
        """Number of similar jobs with the metric."""
        return self._bars[1].known

    @property
    def is_empty(self) -> bool:
        """Whether there are no similar jobs."""
        return not self.total

    @property
    def figure(self) -> charts.Figure:
        """The chart for Plotly."""
        bins, bars = self._bars
        chart = charts.Chart(
            self.metric.title,
            str(self.metric.unit),
            "{:,}".format,
            formatting.short,
            Scale.LOG,
            as_shares=False,
        )
        return charts.figure(chart, bins, [bars], [""] * len(bins), self._lines)

    @property
    def rows(self) -> Iterator[tuple[str, int, float]]:
        """Yield bounds, count and share of the bins that are not empty."""
        for low, high, count, share in self.values:
            if count:
                yield charts.bounds_in_words("{:,}".format, (low, high)), count, share

    @property
    def values(self) -> Iterator[tuple[int, int, int, float]]:
        """Yield a row of `columns` for every bin."""
        bins, bars = self._bars
        for (low, high), count in zip(bins, bars.counts, strict=True):
            yield low, high, count or 0, bars.share(count or 0)
