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
from ioportal.alerts import asked_changes
from ioportal.alerts.asked_changes import Load
from ioportal.alerts.decide import FRESH
from ioportal.changes import past_effects
from ioportal.core.formatting import percent, significant, total_waiting
from ioportal.core.visible_text import visible
from ioportal.findings import history, latest_data
from ioportal.findings.cases import service_jobs
from ioportal.findings.cases.case_texts import Figures, summaries, with_places
from ioportal.findings.evidence import subject_evidence
from ioportal.findings.flags import flag_texts
from ioportal.findings.flags.flag_history import history_chart
from ioportal.findings.flags.flag_values import in_words, threshold_in_words, title_of
from ioportal.findings.models import Case, Flag, JobEvidence
from ioportal.jobs import similar_jobs
from ioportal.jobs.analysis import remedies
from ioportal.jobs.analysis.anonymity import coarse, shown
from ioportal.jobs.expressions import KNOWN_UNTIL, most_at_once
from ioportal.jobs.models import Job
from ioportal.load import capacity, operations
from ioportal.load.impact import episodes
from ioportal.load.impact.episodes import moment_text
from ioportal.rules.evidence import PEAK_SPAN
from ioportal.rules.rule import HARM_S
from ioportal.site.models import Server
from ioportal.telemetry import retention
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.findings.cases.case_texts import CaseSummary
    from ioportal.findings.flags.harm_texts import Harm
    from ioportal.findings.models import FlagQuerySet
    from ioportal.jobs.analysis.remedies import Remedy

LISTED_JOBS = 10
_LISTED_KINDS = 3
_MAX_JOBS = 1_000  # the heaviest, of a group's flag
_PER_NODE = "metadata_operations_per_node"
_NOBODY = 0  # no stored user has this key
_FREQUENT = 0.05  # share of the operations from which a kind is named
_LONG_S = 900  # shortest job whose start can be separated from its work
_SERVER = "The metadata server answers the opens, stats and other metadata requests of all users."


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
    def found_at(self) -> datetime:
        """When the worst finding was complete: a group's is repeated for days after its cause."""
        if self._worst.job_id:
            return self._worst.until
        return self._harm.end if self._harm else self._worst.since

    @cached_property
    def why(self) -> str:
        """Why it matters to others."""
        if self._waited_s < HARM_S:
            return f"{_SERVER}{self._peak_in_words}"
        worst = visible(self.summary.harm_in_words)
        if worst and self.summary.figures.flags == 1:
            return worst
        until = ""
        if self._running and self._complete:
            until = f" until {timezone.localtime(max(self._complete.values())):%H:%M:%S %Z}"
        waited = (
            f"The extra wait of other users because of {self._these_jobs} was about "
            f"{total_waiting(coarse(self._waited_s))} in total{until}."
        )
        return f"{waited} {worst}".strip()

    @property
    def _peak_in_words(self) -> str:
        if self._peak_share is None:
            return ""
        who = "this job" if self._is_one_job else "the worst of these jobs"
        share, place = percent(self._peak_share, 0), self.case.filesystem or "the filesystem"
        return (
            f" At its peak, {who} did {share}% of all metadata operations on {visible(f'{place}')}."
        )

    @cached_property
    def request(self) -> str:
        """What the recipient is asked to do until the problem is solved."""
        return asked_changes.request(self._load)

    @property
    def _load(self) -> Load:
        """The load of the worst flag's jobs on the server, as far as it is known."""
        flag, harm, rule = self._worst, self._harm, self._worst.definition
        threshold = rule.thresholds[self._number] if rule else None
        known = self._capacity
        return Load(
            self._measure_title,
            self._in_words(flag),
            self._threshold,
            is_of_one_job=self._is_one_job,
            is_of_job=flag.job is not None,
            is_ceiling=bool(threshold and threshold.is_ceiling),
            has_ended=bool(self._jobs["has_ended"].all()),
            share=self._share_of_a_job if self._waited_s >= HARM_S else None,
            rate=self._rate_of_a_job,
            sent_s=harm.sent_s if harm else 0,
            counted="metadata RPCs" if harm and harm.address else "metadata operations",
            capacity=known.per_s if known else None,
            capacity_origin=known.origin if known else "",
            at_once=self._at_once,
            goal=threshold.goal if threshold else "",
        )

    @property
    def _share_of_a_job(self) -> float | None:
        """The share of one job in the server's work while others waited; None: unknown."""
        share = self._worst.numbers.get("impact_share")
        if self._harm:
            share = self._harm.share
        if share is None:
            return self._peak_share
        return float(share) / self._parallel

    @property
    def _rate_of_a_job(self) -> float | None:
        """What one job sent a second while others waited; None: unknown."""
        harm, job = self._harm, self._worst.job_id
        if harm is None:
            return None
        if harm.requests is not None and harm.sent_s:
            return harm.requests / harm.sent_s / self._parallel
        if job is None:
            return None
        return operations.job_rate(job, harm.server.filesystem_id, harm.start, harm.end)

    @property
    def _parallel(self) -> int:
        """The number of jobs of which the worst flag has the sum."""
        return 1 if self._worst.job_id else self._at_once or 1

    @property
    def _capacity(self) -> capacity.Known | None:
        """The capacity of the server of the waiting; None: unknown."""
        if self._harm:
            return capacity.known(self._harm.server, self._harm.end)
        servers = Server.objects.filter(filesystem=self.case.filesystem, kind=Server.Kind.MDS)
        match list(servers[:2]):
            case [server]:
                return capacity.known(server)
        return None  # of several, any may be the one

    @property
    def _harm(self) -> Harm | None:
        return self.summary.harm

    @cached_property
    def _peak_share(self) -> float | None:
        """The part of the worst flag's job in all operations in its peak five minutes.

        None: unknown.
        """
        rows = JobEvidence.objects.filter(job=self._worst.job_id, peak_operations__gt=0)
        figures: Any = rows.exclude(filesystem=None).first()
        if figures is None:
            return None
        end = figures.peak_operations_at
        place = figures.filesystem_id
        return operations.job_share(figures.job_id, place, end - PEAK_SPAN, end)

    @property
    def _is_one_job(self) -> bool:
        return self.summary.figures.jobs == 1

    @property
    def _these_jobs(self) -> str:
        return "this job" if self._is_one_job else "these jobs"

    @cached_property
    def _at_once(self) -> int:
        """The largest number of the case's jobs that ran at the same time."""
        keys = self._jobs["subject"].cast(pl.Int64).to_list()
        jobs = Job.objects.filter(pk__in=keys, started_at__isnull=False)
        runs = jobs.values_list("started_at", KNOWN_UNTIL)
        return most_at_once((start, end) for start, end in runs if start < end)

    @property
    def _number(self) -> str:
        """The number of a flag that readers are shown."""
        rule = self._worst.definition
        return rule.plain_measure or rule.measure if rule else self._worst.measure

    def _in_words(self, flag: Flag) -> str:
        """Return the number of a flag as of its job's latest statistics."""
        value = flag.value if self._number == flag.measure else flag.numbers.get(self._number)
        return in_words(flag, self._number, self._current.get(flag.job_id or _NOBODY, value))

    @cached_property
    def _current(self) -> dict[int, float]:
        """The number of each job in the latest statistics: flags store an earlier number."""
        if self._number not in self._jobs.columns:
            return {}
        known = self._jobs.drop_nulls(self._number).select("subject", self._number)
        threshold = self._worst.thresholds.get(self._number)
        return {int(key): shown(self._number, value, threshold) for key, value in known.iter_rows()}

    @property
    def _threshold(self) -> str:
        return threshold_in_words(self._worst, self._number)

    @property
    def _measure_title(self) -> str:
        return title_of(self._worst, self._number)

    @cached_property
    def remedies(self) -> list[Remedy]:
        """Remedies, ranked by the recipient's own operations."""
        counted = self._jobs.filter("failures_counted")
        failed = (counted["count_open"] - counted["count_close"]).clip(lower_bound=0)
        long = self._jobs.filter(pl.col("duration_s") >= _LONG_S)
        return remedies.ranked(self._counts, _total(long["startup_operations"]), _total(failed))

    @cached_property
    def helped(self) -> list[str]:
        """What helped with the same kind of finding before."""
        return past_effects.that_helped(self.case, self._counts, self._at_once, self._reader)

    @cached_property
    def facts(self) -> list[str]:
        """A line for each figure."""
        about = self._only or self.case
        running = ""
        if self._counted_until:
            # The latest interval may end after the present time: it is not complete.
            until = moment_text(min(self._counted_until, timezone.now()))
            running = f"; data until {until} (still running: operations are counted until then)"
        first = "Threshold reached" if self._is_one_job else "Threshold first reached"
        lines = [
            self._measured,
            f"{first}: {moment_text(about.since)}{running}",
        ]
        if self.case.application:
            lines.append(f"Jobs named {visible(self.case.application)}")
        panda_jobs = service_jobs.lines(self.case, self._reader)
        return [*lines, *self._kinds, *self._similar, *panda_jobs]

    @property
    def _measured(self) -> str:
        highest = ", highest job" if self.summary.figures.jobs > 1 else ""
        value = self._in_words(self._worst)
        so_far = " so far" if self._running else ""
        return f"{self._measure_title}{highest}: {value}{so_far} (threshold {self._threshold})"

    @cached_property
    def _counts(self) -> dict[str, float]:
        """The metadata operations of the jobs by kind."""
        return {kind: _total(self._jobs[f"count_{kind}"]) for kind in METADATA_OPERATIONS}

    @property
    def _kinds(self) -> list[str]:
        sums = self._counts
        total = sum(sums.values())
        frequent = sorted(
            (kind for kind in sums if total and sums[kind] / total >= _FREQUENT),
            key=lambda kind: -sums[kind],
        )[:_LISTED_KINDS]
        shares = ", ".join(f"{kind} {percent(sums[kind] / total, 0)}%" for kind in frequent)
        if not frequent:
            return []
        middle: Any = self._jobs["metadata_operations"].median()
        median = "" if self._is_one_job else f", median {middle or 0:,.0f} a job"
        return [f"Metadata operations of {self._these_jobs}: {total:,.0f}{median} ({shares})"]

    @cached_property
    def _counted_until(self) -> datetime | None:
        """Up to when the operations of jobs that still run are counted; None: all ended."""
        return operations.counted_until(self._running) if self._running else None

    @property
    def _running(self) -> list[int]:
        """The keys of the jobs that still run."""
        return self._jobs.filter(~pl.col("has_ended"))["subject"].cast(pl.Int64).to_list()

    @property
    def _similar(self) -> list[str]:
        """The heaviest job among similar jobs, as its page shows it to the recipient."""
        known = self._jobs.drop_nulls(_PER_NODE).sort(_PER_NODE)["subject"].cast(pl.Int64)
        job = Job.objects.select_related("statistics").filter(pk__in=known.tail(1).to_list())
        return [
            f"Heaviest job per node: {each.value:,.0f} operations, similar jobs usually "
            f"{each.usual.median:,.0f} ({significant(each.value / each.usual.median)} times)"
            for heaviest in job
            for each in similar_jobs.standings(heaviest, heaviest.statistics, self._reader)
            if each.metric.name == _PER_NODE and each.usual and each.usual.median
        ]

    @property
    def jobs_heading(self) -> str:
        """How many jobs it is about."""
        figures = self.summary.figures
        if figures.jobs <= 1:
            return "The job:" if figures.jobs else "Found for:"
        total = f", {self._total_in_words} in total" if self.summary.total else ""
        listed = f", of which the {LISTED_JOBS} worst" if figures.jobs > LISTED_JOBS else ""
        return f"{figures.jobs:,} jobs{total}{listed}:"

    @property
    def _total_in_words(self) -> str:
        """The total of the measure as of the jobs' latest statistics."""
        if not self._current:
            return self.summary.total
        total = shown(self._number, sum(self._current.values()))
        return in_words(self._worst, self._number, total)

    @cached_property
    def worst(self) -> list[str]:
        """A line for each of the flags with the highest values."""
        rows = flag_texts.with_subjects(self._flags).order_by("-value", "pk")[:LISTED_JOBS]
        return [
            f"{visible(row.subject.text)}: {self._in_words(row.flag)}"
            for row in flag_texts.summaries(rows, self._reader)
        ]

    @property
    def link(self) -> str:
        """The address of the case's page."""
        return f"{settings.PORTAL_URL}{self.summary.address}"

    @cached_property
    def image(self) -> bytes | None:
        """The measure of the worst flag over time with its threshold, as PNG; None: no history."""
        flag = self._worst
        [row] = flag_texts.summaries([flag], self._reader)
        chart = history_chart(flag, visible(row.subject.text), history.for_flag(flag))
        if chart is None or chart.is_empty:
            return None
        from ioportal.core.charts import images  # noqa: PLC0415  (loads matplotlib: mails only)

        return images.png(chart.chart, chart.steps, chart.window.axis, chart.marks())

    @property
    def image_text(self) -> str:
        """The image in words."""
        return f"Timeline: {self._measured}"

    @cached_property
    def image_caption(self) -> str:
        """What the image shows, and what its lines are."""
        if self._worst.job is None:
            about = "All jobs together."
        elif self._is_one_job:
            about = ""
        else:
            jobs = f"{self.summary.figures.jobs:,}"
            about = f"Job {visible(self._worst.job.display_id)} alone, the highest of {jobs} jobs."
        return (
            f"{about} Dashed: the threshold. Vertical lines: when it was reached (red); start and "
            "end of the job (grey)."
        ).strip()

    @property
    def _worst(self) -> Flag:
        assert self.summary.worst  # noqa: S101  (`topics` omits the others)
        return self.summary.worst

    @property
    def _flags(self) -> FlagQuerySet:
        if self._only:
            return Flag.objects.filter(pk=self._only.pk)
        return _quotable(self._reader).counted().filter(case=self.case)

    @cached_property
    def _jobs(self) -> pl.DataFrame:
        """Evidence of the case's jobs; of a group's case, of its heaviest jobs at that time."""
        jobs = list(self._flags.filter(job__isnull=False).values_list("job", flat=True))
        if jobs or not self.case.owner:
            return subject_evidence.for_jobs(jobs, usual_on=None).frame
        ran = Job.objects.filter(owner=self.case.owner, started_at__lt=self._worst.until)
        ran = ran.exclude(ended_at__lte=self._worst.since).order_by(
            "-statistics__metadata_operations"
        )
        heaviest = list(ran.values_list("pk", flat=True)[:_MAX_JOBS])
        frame = subject_evidence.for_jobs(heaviest, usual_on=None).frame
        named = self.case.application
        return frame.filter(pl.col("application") == named) if named else frame

    @property
    def _waited_s(self) -> float:
        known = self._jobs.filter("has_ended")["impact_s"].drop_nulls()
        waited_s = _total(known) + sum(self._waits_so_far)
        if self._worst.job_id and (len(known) or self._waits_so_far):
            return waited_s
        return max(waited_s, self._worst.numbers.get("impact_s") or 0)

    @cached_property
    def _waits_so_far(self) -> list[float]:
        """The extra wait because of jobs that still run, as its episodes show it."""
        if not self._running:
            return []
        running = [(int(Principal.JOB), job) for job in self._running]
        always = retention.ALWAYS
        found = episodes.of_principals(running, always.start, always.end, self._complete)
        return [episode.impact_s for episode in found]

    @cached_property
    def _complete(self) -> dict[int, datetime]:
        return latest_data.complete_until()


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
    rows = summaries(seen.order_by("-severity", "-until", "pk"), reader, flags=_quotable(reader))
    return [Topic(row, reader, only) for row in rows if row.worst]


def _quotable(reader: User) -> FlagQuerySet:
    """What a mail may quote: no history that was loaded later, unless there is nothing else."""
    return Flag.objects.visible_to(reader).without_history(FRESH)
