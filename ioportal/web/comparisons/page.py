"""The comparison page: two to four arms, metric by metric."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.urls import reverse
from django.utils import timezone

from ioportal.changes import arm_totals
from ioportal.changes.comparison_conclusions import conclusions
from ioportal.changes.expectations import Finding
from ioportal.changes.models import Mitigation
from ioportal.core import formatting
from ioportal.core.charts.palette import MOST_ARMS
from ioportal.core.formatting import lowered
from ioportal.jobs.analysis.comparison.results import MIN_DAYS, MIN_JOBS, Refusal, Verdict
from ioportal.jobs.models import Population
from ioportal.jobs.populations.selections import population_text
from ioportal.load import moved_load
from ioportal.web.common.requests import changed_query
from ioportal.web.common.tables import Column, Table, by_position
from ioportal.web.comparisons import charts, presets
from ioportal.web.comparisons.compared_arms import ComparedArms
from ioportal.web.comparisons.query import FEWEST_ARMS
from ioportal.web.comparisons.table import COLUMNS, CONTROLLED, ArmRow, EffectCells
from ioportal.web.comparisons.warnings import mitigations, warnings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from ioportal.changes.analysis.periods import Period
    from ioportal.changes.arm_totals import Total
    from ioportal.jobs.analysis.comparison.results import Effect
    from ioportal.load.moved_load import Place
    from ioportal.metrics import Metric
    from ioportal.web.common.parts import Part
    from ioportal.web.comparisons.arms import Arm
    from ioportal.web.comparisons.presets import PresetForm
    from ioportal.web.comparisons.table import Effects

_DAY = timedelta(days=1)
_DAY_S = _DAY.total_seconds()
_SAME_LENGTH = 1.01  # longest / shortest period: a change of the clock is no difference


class ComparisonPage(ComparedArms):
    """The comparison of a URL, with its charts, tables and warnings."""

    most, fewest = MOST_ARMS, FEWEST_ARMS
    fewest_days = MIN_DAYS

    @property
    def errors(self) -> dict[str, list[str]]:
        """Messages by parameter."""
        return self.query.errors

    @property
    def subject(self) -> str:
        """The subject of the comparison, for the heading."""
        if self.query.is_before_and_after:
            everything = "All" if self.user.is_staff else "Your"
            return self.arms[0].filters_text or f"{everything} {self.kind.plural}"
        return " \N{EN DASH} ".join(self.names)

    @property
    def inputs(self) -> list[tuple[int, str]]:
        """Numbers and texts of the fields of the form, one of them empty if there is room."""
        count = min(MOST_ARMS, max(FEWEST_ARMS, len(self.query.texts) + 1))
        padded = [*self.query.texts[:count], *[""] * count][:count]
        return list(enumerate(padded, 1))

    @cached_property
    def presets(self) -> dict[str, PresetForm]:
        """Forms of the presets, for the first arm or all jobs."""
        return presets.unbound(self.user, self.arms[0].text if self.arms else "")

    @property
    def upgrade_presets(self) -> list[tuple[datetime, str, str]]:
        """The latest upgrades of servers: time, text and URL of the comparison."""
        base = self.arms[0].text if self.arms else ""
        return [(at, text, presets.date_url(base, at)) for at, text in presets.latest_upgrades()]

    @property
    def latest_mitigations(self) -> QuerySet[Mitigation]:
        """The latest mitigations; the page of each leads to its comparison."""
        visible = Mitigation.objects.visible_to(self.user)
        return visible.order_by("-started_at")[: presets.LISTED]

    @cached_property
    def saved_populations(self) -> list[tuple[Population, str]]:
        """Saved populations to select from, with their filters as text."""
        visible = Population.objects.visible_to(self.user)
        return [(population, population_text(population.query)) for population in visible]

    @property
    def is_empty(self) -> bool:
        """Whether an arm has no jobs."""
        return any(not summary.jobs for summary in self.result.arms)

    @property
    def empty_arms(self) -> list[str]:
        """Names of the arms without jobs."""
        pairs = zip(self.arms, self.result.arms, strict=True)
        return [arm.name for arm, summary in pairs if not summary.jobs]

    @property
    def table(self) -> Table[ArmRow]:
        """The metrics with a row for each arm."""
        rows = [
            ArmRow(metric, *facts)
            for metric, row in self.compared
            for facts in zip(
                self.arms,
                row.arms,
                [None, *self._cells(metric, row.effects)],
                [None, *(row.controlled or [None] * len(row.effects))],
                strict=True,
            )
        ]
        metric, *others = COLUMNS
        columns = (replace(metric, link=self._charts_url), *others)
        return Table("Metrics", columns, rows, css="comparison-table", is_grouped=True)

    def _charts_url(self, row: ArmRow) -> str:
        return f"{changed_query(self._given, metric=row.metric.name)}#charts-title"

    def _cells(self, metric: Metric, effects: Sequence[Effect]) -> list[EffectCells]:
        pairs = zip(self.arms[1:], effects, strict=True)
        return [EffectCells(arm, metric, effect, self.is_contrast) for arm, effect in pairs]

    @cached_property
    def finding(self) -> Finding | None:
        """The effect on the expected metric of the mitigation whose periods are compared."""
        mitigation, between = self.query.mitigation, self._between
        if not mitigation or not between or mitigation.metric not in self.result.metrics:
            return None
        if not between[0] <= mitigation.started_at <= mitigation.complete_at <= between[1]:
            return None
        [metric] = [each for each in self._metrics if each.name == mitigation.metric]
        [effect] = self.result.metrics[metric.name].effects
        together = [
            each
            for each in self.neighbours
            if between[0] <= each.event.start and each.event.end <= between[1]
        ]
        return Finding(mitigation, metric, effect, together)

    @property
    def _between(self) -> Period | None:
        """The time between two periods of the same jobs; None: the arms are others."""
        if not self.query.is_before_and_after or len(self.arms) > FEWEST_ARMS:
            return None
        end, start = self.arms[0].end, self.arms[1].start
        return (end, start) if end and start and end <= start else None

    @property
    def pending_statistics(self) -> int:
        """The number of jobs whose statistics are pending."""
        return sum(self.pending_of_arms)

    @cached_property
    def totals(self) -> list[Total]:
        """Totals of the arms."""
        return arm_totals.arm_totals(
            [arm.selection for arm in self.arms],
            [summary.jobs for summary in self.result.arms],
            [(arm.start, arm.end) for arm in self.arms],
            self.details,
            self.user,
            days=self.lengths if self.lengths_differ else None,
            is_contrast=self.is_contrast,
        )

    @property
    def total_sentences(self) -> list[tuple[Arm, str]]:
        """For each arm but the first: the changes of the totals."""
        return [
            (arm, arm_totals.sentence(self.totals, number, provisional=self.pending_statistics > 0))
            for number, arm in enumerate(self.arms[1:], 1)
        ]

    @cached_property
    def lengths(self) -> tuple[float, ...]:
        """Days of each arm until now; a missing start or end is taken from the span of all jobs."""
        span = self.span
        if span is None:
            return ()
        now = timezone.now()
        ends = (min(arm.end or span.end, now) for arm in self.arms)
        pairs = zip(self.arms, ends, strict=True)
        return tuple((end - (arm.start or span.start)) / _DAY for arm, end in pairs)

    @property
    def length_texts(self) -> str:
        """The lengths of the arms in words."""
        return ", ".join(formatting.rough_duration(days * _DAY_S) for days in self.lengths)

    @property
    def lengths_differ(self) -> bool:
        """Whether totals are of periods of different lengths."""
        lengths = self.lengths
        return bool(lengths) and max(lengths) > _SAME_LENGTH * min(lengths) > 0

    @property
    def verdicts(self) -> list[tuple[Arm, list[str]]]:
        """For each arm but the first: sentences, the largest changes first."""
        return [(arm, self._verdict(number)) for number, arm in enumerate(self.arms[1:])]

    def _verdict(self, number: int) -> list[str]:
        effects = [(metric, row.effects[number]) for metric, row in self.compared]
        return conclusions(effects, is_contrast=self.is_contrast)

    @property
    def refusals(self) -> list[str]:
        """Reasons why no metric of an arm has a conclusion."""
        reasons = []
        for number, arm in enumerate(self.arms[1:]):
            effects = [row.effects[number] for _, row in self.compared]
            first = next((effect.refusal for effect in effects if effect.refusal), None)
            if all(effect.verdict is Verdict.REFUSED for effect in effects):
                reasons.append(
                    f"No conclusion about {arm.name}: {first or Refusal.NO_VALUES}. Each arm needs "
                    f"at least {MIN_JOBS} jobs with a known value, on at least {MIN_DAYS} days."
                )
        return reasons

    @property
    def balance(self) -> Table[Any] | None:
        """The strata: jobs and share of each arm; common share after weighting."""
        balance = self.result.balance
        if balance is None:
            return None
        totals = balance.jobs.sum(axis=1)
        rows = []
        for column, stratum in enumerate(balance.strata.tolist()):
            counts = zip(balance.jobs[:, column].tolist(), totals.tolist(), strict=True)
            cells = ((count, count / total if total else 0.0) for count, total in counts)
            label = self._comparison.labels.get(stratum, formatting.UNKNOWN) or "none"
            rows.append((label, *chain.from_iterable(cells), float(balance.standard[column])))
        columns = by_position(
            Column("stratum", f"{self.strata[:1].upper()}{self.strata[1:]}"),
            *chain.from_iterable(
                (
                    Column("", arm.name, unit="jobs"),
                    Column("", "Share", unit="%", form=formatting.percent),
                )
                for arm in self.arms
            ),
            Column("weighted", "Weighted", unit="%", form=formatting.percent),
        )
        return Table("Balance of the arms", columns, rows)

    @cached_property
    def warnings(self) -> list[str]:
        """What may explain a difference other than the arms."""
        return warnings(self)

    @property
    def simulated(self) -> bool:
        """Whether any of the jobs is simulated."""
        return self.is_complete and self.details.simulated

    @property
    def controlled(self) -> Table[Effects]:
        """Effects in an arm, in the control and beyond the control, where these are known."""
        rows = [
            effects
            for metric, row in self.compared
            for effects in zip(
                self._cells(metric, row.effects),
                self._cells(metric, row.control_effects),
                self._cells(metric, row.controlled),
                strict=True,
            )
            if effects[2].effect.verdict is not Verdict.REFUSED
        ]
        return Table("Control, table", CONTROLLED, rows)

    @property
    def beyond_control(self) -> list[tuple[Arm, list[str]]]:
        """For each arm but the first: what changed more than in the control."""
        return [
            (arm, conclusions([(each, row.controlled[number]) for each, row in self.compared]))
            for number, arm in enumerate(self.arms[1:])
        ]

    @property
    def unpaired(self) -> list[str]:
        """Titles of metrics whose effect beyond the control is not paired by common days."""
        return [
            lowered(metric.title)
            for metric, row in self.compared
            if any(not each.refusal and not each.is_paired for each in row.controlled)
        ]

    @property
    def of_control(self) -> list[tuple[Arm, list[str]]]:
        """For each arm but the first: what changed in the control."""
        return [
            (
                arm,
                conclusions(
                    [(metric, row.control_effects[number]) for metric, row in self.compared]
                ),
            )
            for number, arm in enumerate(self.arms[1:])
        ]

    @cached_property
    def places(self) -> list[Place]:
        """The load of filesystems and NFS servers in the periods of the arms, for staff."""
        periods = [(arm.start, arm.end) for arm in self.arms if arm.start and arm.end]
        has_periods = len(periods) == len(self.arms) and len(set(periods)) > 1
        return moved_load.places(periods) if self.user.is_staff and has_periods else []

    @property
    def place_table(self) -> Table[Place]:
        """The places in columns."""
        return Table(
            "Load of all filesystems and NFS servers",
            (
                Column("name", "Place"),
                Column("kind", "Kind"),
                *(self._place_column("rates", n, "operations/s") for n in range(len(self.arms))),
                *(self._place_column("ratios", n, "ratio") for n in range(len(self.arms) - 1)),
            ),
            self.places,
            about="Metadata operations per second in the period of each arm: of filesystems, those "
            "counted by job id (job_stats) on the MDTs, and of NFS servers, of all clients. A load "
            "that falls on one and rises on another may have moved.",
        )

    def _place_column(self, field: str, number: int, unit: str) -> Column[Place]:
        arm = self.arms[number if field == "rates" else number + 1]
        return Column("", arm.name, lambda place: getattr(place, field)[number], unit)

    @property
    def rises(self) -> list[tuple[Arm, list[str]]]:
        """For each arm but the first: the filesystems and NFS servers whose load rose."""
        risen = (
            (arm, list(moved_load.rises(self.places, number)))
            for number, arm in enumerate(self.arms[1:], 1)
        )
        return [(arm, sentences) for arm, sentences in risen if sentences]

    @cached_property
    def parts(self) -> list[Part[Any]]:
        """The charts."""
        return [part for name in charts.PARTS if (part := self.part(name))]

    def part(self, name: str) -> Part[Any] | None:
        """Return one chart; None if the metric has none of this name."""
        part = charts.PARTS[name](self)
        return part and part.at(f"{reverse('compare_chart', args=[name])}?{self.query.address}")

    @property
    def url(self) -> str:
        """The URL of this page."""
        return f"{reverse('compare')}?{self.query.address}"

    @property
    def permanent_url(self) -> str:
        """The URL of this page with absolute times."""
        return f"{reverse('compare')}?{self.query.permanent_address}"

    @property
    def about(self) -> dict[str, Any]:
        """Members of JSON exports other than rows."""
        return {
            "arms": [
                {
                    "name": arm.name,
                    "filters": arm.selection.filters,
                    "start": arm.start,
                    "end": arm.end,
                    "jobs": summary.jobs,
                    "days": summary.days,
                    "matched_share": summary.matched,
                }
                for arm, summary in self.arm_summaries
            ],
            "counted": self.kind.plural,
            "pending_statistics": self.pending_statistics,
            "control": self.query.control_title or None,
            "covariate": str(self._comparison.covariate),
            "margin": self.query.margin,
            "expectation": self.finding.text if self.finding else None,
            "totals": {
                total.name: {
                    "values": total.values,
                    "known_jobs": total.known,
                    "per_day": total.per_day,
                }
                for total in self.totals
            },
            "conclusions_of_totals": {arm.name: text for arm, text in self.total_sentences},
            "conclusions": {arm.name: sentences for arm, sentences in self.verdicts},
            "warnings": [*mitigations(self), *self.warnings],
            "load": [
                {"place": place.name, "kind": place.kind, "operations_per_second": place.rates}
                for place in self.places
            ],
            "upgrades": [{"at": at, "what": what} for at, what in self.upgrades],
            "simulated": self.simulated,
        }
