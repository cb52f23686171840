"""Cases as mails present them: evidence, comparison, request and remedies, in plain text.

Everything is limited to what the recipient may see.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
from django.conf import settings
from django.contrib.auth import get_user_model
from django.utils import timezone

from collectors.tables import METADATA_OPERATIONS
from ioportal.analysis import remedies
from ioportal.analysis.populations import MIN_GROUP
from ioportal.analysis.rules.evidence import PEAK_SPAN
from ioportal.analysis.rules.rule import HARM_S, HARM_SHARE
from ioportal.charts import images
from ioportal.flags import evidence, history
from ioportal.flags.models import Case, Flag
from ioportal.jobs.models import Job
from ioportal.reporting import flags, service_jobs
from ioportal.reporting.cases import Figures, summaries, with_places
from ioportal.reporting.flag_history import history_chart
from ioportal.reporting.formatting import percent, rough_duration, significant
from ioportal.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.contrib.auth.models import User

    from ioportal.analysis.remedies import Remedy
    from ioportal.flags.models import FlagQuerySet
    from ioportal.reporting.cases import CaseSummary

LISTED_JOBS = 10
_LISTED_KINDS = 3
_MAX_JOBS = 1_000  # the heaviest, of a group's flag
_NOBODY = 0  # no stored user has this key
_FREQUENT = 0.05  # share of the operations from which a kind is named
_LONG_S = 900  # of a job whose start can be told from its work
_NOTABLE = 0.01  # share of a server from which it matters how many jobs run at a time


class Topic:
    """A case as a mail presents it."""

    def __init__(self, summary: CaseSummary, reader: User, only: Flag | None = None) -> None:
        self.summary = (
            replace(summary, worst=only, figures=Figures(flags=1, jobs=1)) if only else summary
        )
        self.case = summary.case
        self._reader = reader
        self._only = only

    @property
    def heading(self) -> str:
        """The finding and its place."""
        place = f" on {self.case.filesystem}" if self.case.filesystem else ""
        return visible(f"{self.case.title}{place}")

    @property
    def why(self) -> str:
        """Why it matters to others."""
        if self._waited_s < HARM_S:
            used = ""
            if self._peak_share >= _NOTABLE:
                peak = percent(self._peak_share, 0)
                used = f" At its peak, one of these jobs used {peak}% of the server."
            return (
                "The metadata server answers the opens, stats and other metadata requests of all "
                f"users: what one job asks for delays the others.{used}"
            )
        estimated = " (estimated, within a factor of 2)" if self._is_estimated else ""
        waited = (
            f"Other users waited {rough_duration(self._waited_s)} longer for their files in total "
            f"because of these jobs{estimated}."
        )
        times, share = (self._worst.numbers.get(f"impact_{name}") for name in ("times", "share"))
        if times is None or share is None:
            return waited
        return (
            f"{waited} At the worst, their requests took {times:,.0f} times as long as usual, "
            f"while these jobs did {percent(share, 0)}% of the server's work."
        )

    @property
    def request(self) -> str:
        """What the recipient is asked to do until the problem is solved."""
        share = max(self._peak_share, self._worst.numbers.get("impact_share") or 0)
        if share < _NOTABLE:
            return "Please change these jobs so that they stay below the threshold."
        parallel = int(HARM_SHARE / share)
        many = "only one of these jobs" if parallel <= 1 else f"at most {parallel} of these jobs"
        return f"Please run {many} at a time until they stay below the threshold."

    @cached_property
    def remedies(self) -> list[Remedy]:
        """What else helps, ranked by the recipient's own operations."""
        counts = {kind: self._sum(f"count_{kind}") for kind in METADATA_OPERATIONS}
        counted = self._jobs.filter("failures_counted")
        failed = (counted["count_open"] - counted["count_close"]).clip(lower_bound=0)
        long = self._jobs.filter(pl.col("duration_s") >= _LONG_S)
        return remedies.ranked(counts, _total(long["startup_operations"]), _total(failed))

    @property
    def facts(self) -> list[str]:
        """A line for each figure."""
        row = self.summary
        about = self._only or self.case
        since, until = (timezone.localtime(each) for each in (about.since, about.until))
        lines = [
            f"{row.measure_title}: {row.highest} (threshold {row.threshold})",
            f"From {since:%Y-%m-%d %H:%M} to {until:%Y-%m-%d %H:%M %Z}",
        ]
        if self.case.application:
            lines.append(f"Jobs named {visible(self.case.application)}")
        return [*lines, *self._kinds, *self._similar, *self._panda_jobs]

    @cached_property
    def _panda_jobs(self) -> list[str]:
        return service_jobs.lines(self.case, self._reader)

    @property
    def _kinds(self) -> list[str]:
        sums = {kind: self._sum(f"count_{kind}") for kind in METADATA_OPERATIONS}
        total = sum(sums.values())
        frequent = sorted(
            (kind for kind in sums if total and sums[kind] / total >= _FREQUENT),
            key=lambda kind: -sums[kind],
        )[:_LISTED_KINDS]
        shares = ", ".join(f"{kind} {percent(sums[kind] / total, 0)}%" for kind in frequent)
        return [f"Metadata operations of these jobs: {total:,.0f} ({shares})"] if frequent else []

    @property
    def _similar(self) -> list[str]:
        """The heaviest job among similar jobs."""
        heaviest = self._jobs.sort(
            "metadata_operations_per_node", descending=True, nulls_last=True
        ).head(1)
        with_usual = evidence.for_jobs(heaviest["subject"].cast(pl.Int64).to_list()).frame
        compared = with_usual.filter(
            pl.col("similar_jobs") >= MIN_GROUP, pl.col("usual_operations") > 0
        )
        return [
            f"Heaviest job per node: {own:,.0f} operations, similar jobs usually {usual:,.0f} "
            f"({significant(own / usual)} times)"
            for own, usual in compared.select(
                "metadata_operations_per_node", "usual_operations"
            ).iter_rows()
        ]

    @property
    def jobs_heading(self) -> str:
        """How many jobs it is about."""
        figures = self.summary.figures
        total = f", {self.summary.total} in total" if self.summary.total else ""
        if figures.jobs <= 1:
            return "The job:" if figures.jobs else "Found for:"
        listed = f", of which the {LISTED_JOBS} worst" if figures.jobs > LISTED_JOBS else ""
        return f"{figures.jobs:,} jobs{total}{listed}:"

    @cached_property
    def worst(self) -> list[str]:
        """A line for each of the flags with the highest values."""
        rows = flags.with_subjects(self._flags).order_by("-value", "pk")[:LISTED_JOBS]
        return [
            f"{visible(row.subject.text)}: {row.value}"
            for row in flags.summaries(rows, self._reader)
        ]

    @property
    def link(self) -> str:
        """The address of the case's page."""
        return f"{settings.PORTAL_URL}{self.summary.address}"

    @cached_property
    def image(self) -> bytes | None:
        """The measure of the worst flag over time with its threshold, as PNG; None: no history."""
        flag = self._worst
        [row] = flags.summaries([flag], self._reader)
        chart = history_chart(flag, visible(row.subject.text), history.for_flag(flag))
        if chart is None or chart.is_empty:
            return None
        return images.png(chart.chart, chart.steps, chart.window.axis, chart.marks())

    @property
    def image_text(self) -> str:
        """The image in words."""
        return f"Timeline: {self.facts[0]}"

    @property
    def _worst(self) -> Flag:
        assert self.summary.worst  # noqa: S101  (`topics` omits the others)
        return self.summary.worst

    @property
    def _flags(self) -> FlagQuerySet:
        if self._only:
            return Flag.objects.filter(pk=self._only.pk)
        return Flag.objects.visible_to(self._reader).counted().filter(case=self.case)

    @cached_property
    def _jobs(self) -> pl.DataFrame:
        """Evidence of the case's jobs; of a group's case, of its heaviest jobs at that time."""
        jobs = list(self._flags.filter(job__isnull=False).values_list("job", flat=True))
        if jobs or not self.case.owner:
            return evidence.for_jobs(jobs, usual_on=None).frame
        ran = Job.objects.filter(owner=self.case.owner, started_at__lt=self._worst.until)
        ran = ran.exclude(ended_at__lte=self._worst.since).order_by(
            "-statistics__metadata_operations"
        )
        heaviest = list(ran.values_list("pk", flat=True)[:_MAX_JOBS])
        frame = evidence.for_jobs(heaviest, usual_on=None).frame
        named = self.case.application
        return frame.filter(pl.col("application") == named) if named else frame

    def _sum(self, column: str) -> float:
        return _total(self._jobs[column])

    @property
    def _waited_s(self) -> float:
        return max(self._sum("impact_s"), self._worst.numbers.get("impact_s") or 0)

    @property
    def _is_estimated(self) -> bool:
        return bool(
            self._worst.numbers.get("impact_is_estimated")
            or (self._jobs["impact_is_estimated"] > 0).any()
        )

    @property
    def _peak_share(self) -> float:
        """The share of the server's capacity that a typical job used at its peak."""
        rate = pl.col("peak_operations") / PEAK_SPAN.total_seconds()
        share: Any = self._jobs.select((rate / pl.col("capacity_per_s")).median()).item()
        return float(share or 0)


def _total(values: pl.Series) -> float:
    total: Any = values.sum()
    return float(total or 0)


def topics(cases: Collection[int], recipient: str, only: Flag | None = None) -> list[Topic]:
    """Return cases as their owner may see them, the most severe first.

    Args:
        cases: their keys.
        recipient: the owner.
        only: a flag, of a preview about nothing else.
    """
    # Whoever has the account has no more rights here: neither groups nor staff status.
    reader = get_user_model()(pk=_NOBODY, username=recipient)
    seen = with_places(Case.objects.visible_to(reader).filter(pk__in=cases))
    rows = summaries(seen.order_by("-severity", "-until", "pk"), reader)
    return [Topic(row, reader, only) for row in rows if row.worst]
