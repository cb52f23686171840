"""The page of one flag: its evidence, impact, and events."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.shortcuts import get_object_or_404
from django.urls import reverse

from ioportal.core import formatting
from ioportal.findings import history, latest_data
from ioportal.findings.flags import flag_texts, harm_texts
from ioportal.findings.flags.flag_history import history_chart
from ioportal.findings.flags.flag_texts import is_simulated, summaries, with_subjects
from ioportal.findings.models import Flag
from ioportal.jobs import similar_jobs
from ioportal.jobs.analysis.histograms import Scale
from ioportal.jobs.charts import histograms as charts
from ioportal.jobs.job_facts import Comparison, statistics_of
from ioportal.load.impact import queue_links
from ioportal.load.principals import job_group_filters
from ioportal.metrics import BY_NAME
from ioportal.rules.evidence import DAY
from ioportal.rules.outlier import OUTLIER, at_threshold
from ioportal.rules.rule import GROUPS, Subject
from ioportal.site.contacts import contact
from ioportal.site.models import Server

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.contrib.auth.models import User

    from ioportal.findings.flags.flag_texts import Figure, FlagSummary
    from ioportal.findings.history.source import MeasureHistory
    from ioportal.findings.models import FlagEvent
    from ioportal.jobs.analysis.histograms import Bin
    from ioportal.jobs.models import Job
    from ioportal.load.impact.episodes import Episode
    from ioportal.load.step_charts import StepsChart
    from ioportal.site.contacts import Contact


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
        histogram = similar_jobs.metric_histogram(
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


_LISTED_EPISODES = 12


class FlagPage:
    """A flag and its evidence, as far as `user` may see them."""

    def __init__(self, user: User, pk: int) -> None:
        visible = with_subjects(Flag.objects.visible_to(user))
        self._user = user
        self.flag: Flag = get_object_or_404(visible.select_related("job__statistics"), pk=pk)

    @cached_property
    def summary(self) -> FlagSummary:
        """Its subject, and its current impact."""
        [summary] = summaries([self.flag], self._user, latest_data.impact())
        return summary

    @property
    def contact(self) -> Contact | None:
        """How to reach the responsible user."""
        return contact(self.flag.owner, self._user)

    @property
    def simulated(self) -> bool:
        """Whether it is about simulated data."""
        return is_simulated(self.flag)

    @property
    def facts(self) -> dict[str, Any]:
        """The flag as one JSON object."""
        return flag_texts.facts(self.summary, self._user)

    @property
    def data_quality(self) -> str:
        """The quality of the data that its rule reads; "": below good, or of no matter."""
        rule = self.flag.definition
        if rule is None or rule.is_about_data or self.flag.is_suppressed:
            return ""
        return f"The data of this flag ({rule.source}) is good."

    @property
    def figures(self) -> list[Figure]:
        """Its numbers with their thresholds."""
        return flag_texts.figures(self.flag)

    @cached_property
    def measure_history(self) -> MeasureHistory | None:
        """The history of its measure; None: it has none."""
        return history.for_flag(self.flag)

    @cached_property
    def history_chart(self) -> StepsChart | None:
        """The history with the threshold; None: there is none, or data is past retention."""
        return history_chart(self.flag, self.summary.subject.text, self.measure_history)

    @cached_property
    def outlier_histogram(self) -> OutlierHistogram | None:
        """The similar jobs of an outlier; for staff, as single jobs can be read from it."""
        return OutlierHistogram.for_flag(self.flag) if self._user.is_staff else None

    @property
    def _episodes(self) -> list[Episode]:
        return self.summary.episodes_for(self._user)

    @property
    def episodes(self) -> list[tuple[Episode, Server, str]]:
        """The episodes with the largest impact, their servers and queues, in order of time."""
        largest = sorted(self._episodes[:_LISTED_EPISODES], key=lambda episode: episode.start)
        servers = Server.objects.select_related("filesystem").in_bulk(
            {episode.server_id for episode in largest}
        )
        return [
            (episode, server, queue_links.of_episode(server, episode, group))
            for episode in largest
            for server in [servers[episode.server_id]]
            for group in [harm_texts.group(self.flag, episode)]
        ]

    @property
    def more_episodes(self) -> int:
        """Number of episodes beyond those."""
        return max(0, len(self._episodes) - _LISTED_EPISODES)

    @cached_property
    def comparison(self) -> Comparison | None:
        """Its job among similar jobs; None: no job, or no statistics."""
        job = self.flag.job
        statistics = statistics_of(job) if job else None
        return Comparison(job, statistics, self._user) if job and statistics else None

    @property
    def source_link(self) -> tuple[str, str] | None:
        """Label and address of the rows that a finding adds up; None: its subject has a page.

        For a group of jobs the jobs, heaviest first; for a filesystem the unregistered NIDs.
        """
        flag = self.flag
        if flag.subject_kind == Subject.FILESYSTEM:
            return "unregistered NIDs", reverse("unregistered_nids")
        if flag.subject_kind not in GROUPS:
            return None
        span = {"start": (flag.since - DAY).isoformat(), "end": flag.until.isoformat()}
        group = job_group_filters(flag.subject_kind, flag.subject)
        query = urlencode({**group, **span, "sort": "-metadata_operations"})
        return "these jobs", f"{reverse('job_list')}?{query}"

    @property
    def events(self) -> Iterable[FlagEvent]:
        """Its events that the user may see."""
        return flag_texts.events(self.flag, self._user)
