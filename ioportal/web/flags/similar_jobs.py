"""Where an outlier stands in the histogram of its peers, and from where on it is one."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from django.urls import reverse

from ioportal.analysis.histograms import Scale
from ioportal.analysis.metrics import BY_NAME
from ioportal.analysis.rules.outlier import OUTLIER, at_threshold
from ioportal.charts import histograms as charts
from ioportal.reporting import formatting
from ioportal.studies import similar_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.analysis.histograms import Bin
    from ioportal.flags.models import Flag
    from ioportal.jobs.models import Job


class PeersHistogram:
    """The peers of a flag's job by the metric that it is an outlier of."""

    metric = BY_NAME["metadata_operations_per_node"]
    script_id = "figure-peers"
    header = ("from", "below", "count", "share")

    def __init__(self, flag: Flag, job: Job) -> None:
        self._job = job
        self._lines = {
            f"job {job.display_id}": flag.numbers[self.metric.name],
            "threshold": at_threshold(flag.numbers, flag.thresholds),
        }
        self.exports_url = reverse("flag_peers", args=[flag.pk])

    @classmethod
    def of(cls, flag: Flag) -> PeersHistogram | None:
        """Return that of a flag; None: it is of another rule."""
        return cls(flag, flag.job) if flag.job and flag.rule == OUTLIER.code else None

    @cached_property
    def _bars(self) -> tuple[tuple[Bin, ...], charts.Bars]:
        found = similar_jobs.metric_histogram(
            self._job, self.metric.name, list(self._lines.values())
        )
        [counts] = found.counts
        return found.bins, charts.Bars("peers", sum(count or 0 for count in counts), counts)

    @property
    def peers(self) -> int:
        """How many it has."""
        return self._bars[1].known

    @property
    def is_empty(self) -> bool:
        """Whether it has none today."""
        return not self.peers

    @property
    def figure(self) -> charts.Figure:
        """The chart for Plotly."""
        bins, bars = self._bars
        chart = charts.Chart("{:,}".format, formatting.short, Scale.LOG, as_shares=False)
        return charts.figure(chart, bins, [bars], [""] * len(bins), self._lines)

    @property
    def rows(self) -> Iterator[tuple[str, int, float]]:
        """Yield the bins that hold peers: bounds, count and share."""
        for low, high, count, share in self.values:
            if count:
                yield charts.bounds_in_words("{:,}".format, (low, high)), count, share

    @property
    def values(self) -> Iterator[tuple[int, int, int, float]]:
        """Yield the rows of its twins: every bin."""
        bins, bars = self._bars
        for (low, high), count in zip(bins, bars.counts, strict=True):
            yield low, high, count or 0, bars.share(count or 0)
