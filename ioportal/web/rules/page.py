"""The rule pages: the list of rules, one rule with its thresholds, and one back-test."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Count, Max
from django.shortcuts import get_object_or_404
from django.urls import reverse

from ioportal.core.formatting import UNKNOWN, with_unit
from ioportal.findings.back_tests import MAX_LISTED
from ioportal.findings.models import TO_TRIAGE, BackTest, Case, ThresholdSet
from ioportal.jobs.models import Job
from ioportal.rules import RULES, examples
from ioportal.rules.rule import Subject
from ioportal.web.common.tables import Column, Table, to
from ioportal.web.rules import back_tests, thresholds
from ioportal.web.rules.forms import ThresholdForm
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from django.http import QueryDict

    from ioportal.core.units import Unit
    from ioportal.rules.rule import Rule, Threshold
    from ioportal.web.rules.back_tests import AffectedSubject
    from ioportal.web.rules.thresholds import Revision, Scope

_LISTED = 50  # revisions, and back-tests
_DEFAULT_PERIOD = timedelta(days=30)


@dataclass(frozen=True)
class RuleRow:
    """A rule in the list, with its thresholds and numbers of cases."""

    rule: Rule
    everywhere: Scope
    parts: list[Scope]
    to_triage: int
    total: int

    @property
    def measure(self) -> Threshold:
        """The threshold of its measure."""
        return self.rule.thresholds[self.rule.measure]

    @property
    def threshold(self) -> str:
        """The value of that threshold for the whole site, as text."""
        return with_unit(self.everywhere.effective.thresholds[self.rule.measure], self.measure.unit)


def _site_threshold(row: RuleRow) -> str:
    return row.threshold if row.everywhere.effective.is_on else "off"


_RULES: tuple[Column[RuleRow], ...] = (
    Column("rule", "Rule", "rule__title", link=to("rule", "rule__code")),
    Column("subject", "Subject", lambda row: f"{row.rule.subject}s"),
    Column("severity", "Severity", lambda row: row.rule.severity.name.lower()),
    Column("measure", "Measure", "measure__title", css="wrap"),
    Column(
        "threshold",
        "Site threshold",
        _site_threshold,
        "",
        note=lambda row: f"set by {row.everywhere.set.set_by}" if row.everywhere.set else "",
    ),
    Column(
        "parts",
        "Own thresholds for",
        cell=lambda row: "; ".join(each.title for each in row.parts),
        css="wrap",
    ),
    Column(
        "to_triage",
        "Cases to triage",
        unit="",
        link=lambda row: f"{reverse('case_list')}?rule={row.rule.code}",
    ),
    Column("total", "All cases", unit=""),
)


def rule_table() -> Table[RuleRow]:
    """Return all rules."""
    counts = {
        rule: (count, total)
        for rule, count, total in Case.objects.values_list("rule").annotate(
            to_triage=Count("pk", filter=TO_TRIAGE), total=Count("pk")
        )
    }
    sets = list(ThresholdSet.objects.current().select_related("cluster", "filesystem"))
    rows = [
        RuleRow(rule, everywhere, parts, *counts.get(rule.code, (0, 0)))
        for rule in RULES
        for everywhere, *parts in [thresholds.scopes(rule, sets)]
    ]
    return Table("Rules", _RULES, rows)


class RulePage:
    """One rule: its thresholds, their history, and back-tests."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    @cached_property
    def _sets(self) -> list[ThresholdSet]:
        """Its threshold sets, latest first."""
        sets = ThresholdSet.objects.filter(rule=self.rule.code)
        return list(sets.select_related("cluster", "filesystem"))

    @property
    def _current_sets(self) -> list[ThresholdSet]:
        """The latest set of each part of the site."""
        latest: dict[Any, ThresholdSet] = {}
        for each in self._sets:
            latest.setdefault((each.cluster_id, each.filesystem_id, each.queue), each)
        return list(latest.values())

    @property
    def example(self) -> str:
        """The advice of the rule's example."""
        return examples.advice(self.rule)

    @property
    def measure(self) -> Threshold:
        """The threshold of its measure."""
        return self.rule.thresholds[self.rule.measure]

    @cached_property
    def scopes(self) -> list[Scope]:
        """Current thresholds by part of the site."""
        return thresholds.scopes(self.rule, self._current_sets)

    @property
    def parts(self) -> tuple[str, ...]:
        """The kinds of parts of the site that may have their own thresholds."""
        return thresholds.PARTS[self.rule.subject]

    @cached_property
    def history(self) -> list[Revision]:
        """The latest changes of thresholds."""
        return thresholds.history(self.rule, self._sets)[:_LISTED]

    @cached_property
    def back_tests(self) -> Table[BackTest]:
        """The latest back-tests."""
        measure = self.measure
        columns: tuple[Column[BackTest], ...] = (
            Column("requested_at", "Requested", link=to("back_test", "rule", "pk")),
            Column("requested_by", "By"),
            Column("start", "From"),
            Column("end", "To"),
            Column(
                "threshold",
                measure.title,
                lambda test: test.thresholds.get(self.rule.measure),
                measure.unit,
                cell=lambda test: test.thresholds.get(self.rule.measure, "inherited"),
                css="wrap",
            ),
            Column("state", "State", cell="get_state_display"),
            Column("current", "Flagged", "counts__current", "by current thresholds"),
            Column("proposed", "Flagged", "counts__proposed", "by proposed thresholds"),
        )
        return Table(
            "Back-tests",
            columns,
            BackTest.objects.filter(rule=self.rule.code)[:_LISTED],
            nothing="No back-tests. Enter thresholds and a period above to compare flags with the "
            "current thresholds.",
        )

    def form_values(self, query: QueryDict) -> dict[str, Any]:
        """Return initial values of the threshold form.

        Values of a back-test (``from``), of a threshold set (``like``), or of the whole site.
        """
        source: ThresholdSet | BackTest
        start, end = None, None
        if pk := _key(query, "from"):
            source = get_object_or_404(BackTest, pk=pk, rule=self.rule.code)
            start, end = source.start, source.end
        elif pk := _key(query, "like"):
            source = get_object_or_404(ThresholdSet, pk=pk, rule=self.rule.code)
        else:
            everywhere = (each for each in self._current_sets if each.is_everywhere)
            source = next(everywhere, ThresholdSet())
        if start is None or end is None:
            start, end = _default_period()
        return ThresholdForm.initial_values(
            source.thresholds,
            cluster=source.cluster and source.cluster.name,
            filesystem=source.filesystem and source.filesystem.name,
            queue=source.queue,
            is_on=getattr(source, "is_on", None),
            advice=getattr(source, "advice", ""),
            start=start,
            end=end,
        )


def _key(query: QueryDict, name: str) -> int | None:
    text = query.get(name, "")
    return int(text) if text.isdecimal() and len(text) < len(str(2**63)) else None


def _default_period() -> tuple[datetime, datetime]:
    latest = Job.objects.aggregate(latest=Max("ended_at"))["latest"] or datetime.now(UTC)
    end = latest.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return end - _DEFAULT_PERIOD, end


class ComparedThreshold(NamedTuple):
    """A threshold of a back-test; None: inherited."""

    title: str
    unit: Unit
    current: float | None
    proposed: float | None


def _proposed(row: ComparedThreshold) -> str:
    return "inherited" if row.proposed is None else show.measure(row.proposed, row.unit)


_COMPARED: tuple[Column[ComparedThreshold], ...] = (
    Column("title", "Threshold", note="unit__value", css="wrap"),
    Column(
        "current",
        "Current",
        unit="at the time of the test",
        cell=lambda row: show.measure(row.current, row.unit),
    ),
    Column("proposed", "Proposed", unit="", cell=_proposed),
)


class BackTestPage:
    """A back-test and its result."""

    def __init__(self, rule: Rule, pk: int) -> None:
        self.rule = rule
        tests = BackTest.objects.select_related("cluster", "filesystem")
        self.test: BackTest = get_object_or_404(tests, pk=pk, rule=rule.code)
        self._set = ThresholdSet(
            cluster=self.test.cluster, filesystem=self.test.filesystem, queue=self.test.queue
        )

    @property
    def measure(self) -> Threshold:
        """The threshold of the rule's measure."""
        return self.rule.thresholds[self.rule.measure]

    @property
    def scope(self) -> str:
        """The part of the site that the test is for, as text."""
        return self._set.scope

    @property
    def thresholds(self) -> Table[ComparedThreshold]:
        """Current and proposed thresholds; for the whole site, empty ones are the defaults."""
        inherited = self.rule.defaults if self._set.is_everywhere else {}
        proposed = inherited | self.test.thresholds
        rows = [
            ComparedThreshold(
                threshold.title,
                threshold.unit,
                self.test.current_thresholds.get(name),
                proposed.get(name),
            )
            for name, threshold in self.rule.thresholds.items()
        ]
        return Table("Thresholds", _COMPARED, rows, css="narrow")

    @property
    def narrower_scopes(self) -> list[str]:
        """Parts of the site whose own thresholds take precedence over the proposed ones."""
        sets = ThresholdSet.objects.filter(rule=self.rule.code, set_at__lte=self.test.requested_at)
        return thresholds.narrower_scopes(self._set, sets)

    @property
    def evaluated(self) -> str:
        """The plural of the evaluated subjects."""
        return back_tests.EVALUATED[self.rule.subject]

    @property
    def summary(self) -> str:
        """The result as text, once the test is done."""
        return back_tests.summary(self.rule, self.test)

    @cached_property
    def subjects(self) -> list[AffectedSubject]:
        """Affected subjects: differences first, then the largest values."""
        return back_tests.affected_subjects(self.rule, self.test)

    @property
    def is_truncated(self) -> bool:
        """Whether more subjects may be affected than are stored."""
        return len(self.subjects) == MAX_LISTED

    @property
    def about(self) -> dict[str, object]:
        """The JSON export's members next to its rows."""
        test = self.test
        return {
            "rule": self.rule.code,
            "thresholds": test.thresholds,
            "start": test.start,
            "end": test.end,
            "state": test.state,
            "current_thresholds": test.current_thresholds,
            **test.counts,
        }

    @property
    def affected(self) -> Table[AffectedSubject]:
        """The affected subjects, with the address of their exports."""
        subject, measure = self.rule.subject, self.measure
        columns: tuple[Column[AffectedSubject], ...] = (
            Column("subject", ""),
            Column("name", subject.capitalize(), form=show.clipped, link=attrgetter("address")),
            Column("owner", "User" if subject is Subject.JOB else ""),
            Column("value", measure.title, unit=measure.unit, css="wrap"),
            Column("until", "Latest data"),
            Column("current", "Current", form=_flagged),
            Column("proposed", "Proposed", form=_flagged),
        )
        return Table(
            f"Affected {subject}s",
            columns,
            self.subjects,
            about=f"First {len(self.subjects)}: differences, then the largest values."
            if self.is_truncated
            else "",
            nothing="No flags by either set of thresholds.",
            exports_url="?",
        )


def _flagged(is_flagged: bool) -> str:  # noqa: FBT001  (a value of a cell)
    return "flagged" if is_flagged else UNKNOWN
