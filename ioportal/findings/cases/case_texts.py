"""Cases as pages, mails and the API present them: subject, figures as text, exports."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, Subquery, Sum, Value, When
from django.urls import reverse
from django.utils import timezone

from ioportal.core.formatting import counted
from ioportal.findings import latest_data
from ioportal.findings.cases.case_lifecycle import severity
from ioportal.findings.flags import harm_texts
from ioportal.findings.flags.episodes import principal
from ioportal.findings.flags.flag_texts import about_principals, severity_reason, subject_name
from ioportal.findings.flags.flag_values import (
    in_words,
    measured,
    threshold_in_words,
    title_of,
    unit_of,
)
from ioportal.findings.models import Case, CaseEvent, Flag
from ioportal.jobs.models import Job
from ioportal.load.impact import principal_windows
from ioportal.load.impact.impact_totals import ImpactTotal
from ioportal.load.principals import Name, named
from ioportal.rules.rule import Subject
from ioportal.site.contacts import contacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.findings.flags.harm_texts import Harm
    from ioportal.findings.models import CaseQuerySet, FlagQuerySet
    from ioportal.load.top_consumers import PrincipalKey
    from ioportal.site.contacts import Contact

TREND_SPAN = timedelta(days=7)
_LISTED = 10
_RECENT = timedelta(days=1)


@dataclass(frozen=True)
class Figures:
    """Figures over the flags of a case that a user may see."""

    flags: int = 0
    jobs: int = 0
    total: float | None = None  # of the measure
    recent: int = 0  # flags with data in the latest `TREND_SPAN`
    before: int = 0  # flags in the span before
    suppressed: int = 0  # flags on data of insufficient quality
    ended: int = 0  # flags on jobs whose finding no longer applies

    @property
    def in_words(self) -> str:
        """Its flags and jobs; suppressed flags are named last, or alone."""
        if self.flags:
            parts = [counted(self.flags, "flag")]
        elif self.ended:
            parts = ["no current flag", f"{self.ended:,} ended"]
        else:
            parts = ["no flag on good data"]
        if self.jobs:
            parts.append(counted(self.jobs, "job"))
        if self.suppressed:
            parts.append(f"{self.suppressed:,} suppressed")
        return ", ".join(parts)


@dataclass(frozen=True)
class CaseSummary:
    """A case with its figures, worst flag, and impact in the last five minutes."""

    case: Case
    subject: Name
    figures: Figures
    worst: Flag | None  # None: its flags are gone
    contact: Contact | None  # of the owner
    impact: ImpactTotal | None = None  # None: none reported

    @property
    def address(self) -> str:
        """The address of its page."""
        return reverse("case", args=[self.case.pk])

    @property
    def measure_title(self) -> str:
        """The title of its measure."""
        return title_of(self.worst, self.worst.measure) if self.worst else ""

    @property
    def highest(self) -> str:
        """The highest value of its measure as text."""
        return in_words(self.worst, self.worst.measure, self.worst.value) if self.worst else ""

    @property
    def threshold(self) -> str:
        """The threshold of its worst flag as text."""
        return threshold_in_words(self.worst, self.worst.measure) if self.worst else ""

    @property
    def total(self) -> str:
        """The total of its measure as text; "": it does not add up."""
        if self.worst is None or self.figures.total is None:
            return ""
        return in_words(self.worst, self.worst.measure, self.figures.total)

    @cached_property
    def harm(self) -> Harm | None:
        """The harm of its worst flag; None: it is not known."""
        return harm_texts.of_flag(self.worst) if self.worst else None

    @property
    def _worst_job(self) -> str:
        """The job of its worst flag; "": it has none."""
        return f"job {self.worst.job.display_id}" if self.worst and self.worst.job else ""

    @property
    def harm_in_words(self) -> str:
        """The harm of its worst flag in words; "": it is not known."""
        if not (self.worst and self.harm):
            return ""
        pronoun = harm_texts.pronoun(self.worst)
        return self.harm.in_words(self._worst_job or self.subject.text, pronoun)

    @cached_property
    def severity_reason(self) -> str:
        """Why it is less severe than its rule; "": it is not."""
        definition = self.case.definition
        if not (self.worst and definition) or self.case.severity >= definition.severity:
            return ""
        return severity_reason(self.worst)

    @property
    def trend(self) -> str:
        """Its flags of the last days, compared with the days before, as text."""
        days = TREND_SPAN // timedelta(days=1)
        if not self.figures.recent:
            last = timezone.localtime(self.case.until)
            year = "" if last.year == timezone.localtime().year else f" {last.year}"
            date = f"{last.day} {last:%b}{year}"
            if self.case.until > timezone.now() - TREND_SPAN:
                return f"none that still applies; latest data on {date}"
            return f"none in the latest {days} days; last on {date}"
        return (
            f"{self.figures.recent:,} in the latest {days} days, "
            f"{self.figures.before:,} in the {days} days before"
        )

    @property
    def text(self) -> str:
        """The case as plain text."""
        case, figures = self.case, self.figures
        job, whose = self._worst_job, self.subject.text
        who = f"{job} of {whose}" if job and figures.jobs == 1 else whose
        lines = [f"{case.title} ({case.get_severity_display()}): {who}"]
        if case.application:
            lines.append(f"Jobs named {case.application}")
        lines.append(figures.in_words.capitalize())
        if self.total:
            lines.append(f"Total: {self.total}")
        if self.worst:
            highest = f", highest of {job}" if job and figures.jobs > 1 else ""
            lines.append(f"{self.measure_title}{highest}: {measured(self.worst)}")
            if self.harm:
                lines.append(self.harm_in_words)
            lines.append(self.worst.advice)
        return "\n".join(lines)


def with_places(cases: CaseQuerySet) -> CaseQuerySet:
    """Add what `summaries` and `is_simulated` need, and the owner's latest answer to a mail."""
    owned = Job.objects.filter(owner=OuterRef("owner"), cluster__simulated=True)
    has_owner = ~Q(owner="")
    answers = CaseEvent.objects.filter(case=OuterRef("pk"), kind=CaseEvent.Kind.ANSWERED)
    return cases.select_related("filesystem", "assignee").annotate(
        owner_is_simulated=models.Case(When(has_owner, then=Exists(owned)), default=False),
        answer=Subquery(answers.order_by("-pk").values("text")[:1]),
    )


def is_simulated(case: Case) -> bool:
    """Return whether a case, fetched `with_places`, is about simulated data."""
    annotated: Any = case
    return annotated.owner_is_simulated or bool(case.filesystem and case.filesystem.simulated)


def summaries(
    cases: Iterable[Case],
    user: User,
    impacts: Mapping[int, ImpactTotal] | None = None,
    flags: FlagQuerySet | None = None,
) -> list[CaseSummary]:
    """Return the summaries of cases that were fetched `with_places`.

    Args:
        cases: in the order of the result.
        user: figures are over the flags that the user may see.
        impacts: impact by case, as `current_impacts` returns them.
        flags: the flags that figures are over; None: all that the user may see.
    """
    rows = list(cases)
    flags = (Flag.objects.visible_to(user) if flags is None else flags).filter(case__in=rows)
    if not user.is_staff:
        _restrict(rows, flags)
    figures, worst = _figures(rows, flags), _worst_flags(flags)
    hosts = [
        principal_windows.principal_key(case.subject)
        for case in rows
        if case.subject_kind == Subject.HOST
    ]
    names = named(hosts, user, "job") if hosts else {}
    contacts_of = contacts((case.owner for case in rows), user)
    return [
        CaseSummary(
            case,
            subject_name(case.subject_kind, case.subject, case.filesystem, names),
            figures.get(case.pk, Figures()),
            worst.get(case.pk),
            contacts_of.get(case.owner),
            (impacts or {}).get(case.pk),
        )
        for case in rows
    ]


def _restrict(cases: list[Case], flags: FlagQuerySet) -> None:
    """Give cases the severity and the times of some flags, which the user may see."""
    by_severity = flags.order_by().values_list("case", "severity")
    rows: dict[int, list[tuple[int, datetime, datetime, datetime]]] = defaultdict(list)
    for key, *row in by_severity.annotate(Min("since"), Max("until"), Min("opened_at")):
        rows[key].append(tuple(row))
    for case in cases:
        if case.pk not in rows:  # its flags ended meanwhile
            continue
        severities, since, until, opened_at = zip(*rows[case.pk], strict=True)
        case.severity = severity(zip(severities, until, strict=True))
        case.since, case.until, case.opened_at = min(since), max(until), min(opened_at)


def _figures(cases: list[Case], flags: FlagQuerySet) -> dict[int, Figures]:
    flags = flags.order_by()
    now = timezone.now()
    latest, earlier = now - TREND_SPAN, now - 2 * TREND_SPAN
    counted = (
        flags.counted()
        .values("case")
        .annotate(
            flags=Count("pk"),
            jobs=Count("job", distinct=True),
            total=Sum("value"),
            recent=Count("pk", filter=Q(until__gt=latest)),
            before=Count("pk", filter=Q(until__lte=latest, until__gt=earlier)),
        )
    )
    stored = flags.values_list("case").annotate(
        count=Count("pk"), suppressed=Count("pk", filter=~Q(suppression_reasons=[]))
    )
    by_case: dict[int, dict[str, Any]] = {row["case"]: {**row} for row in counted}
    adds_up = {case.pk for case in cases if case.definition and case.definition.adds_up}
    figures = {}
    for case, count, suppressed in stored:
        row = by_case.get(case, {})
        row.pop("case", None)
        if case not in adds_up:
            row["total"] = None
        ended = count - suppressed - row.get("flags", 0)
        figures[case] = Figures(**row, suppressed=suppressed, ended=ended)
    return figures


def _worst_flags(flags: FlagQuerySet) -> dict[int, Flag]:
    """Return the flag of each case with the highest value, of good data if there is one."""
    worst = flags.order_by("case_id", "suppression_reasons", "-value").distinct("case_id")
    return {flag.case_id: flag for flag in worst}


def current_impacts(
    user: User, impacts: Mapping[PrincipalKey, ImpactTotal]
) -> dict[int, ImpactTotal]:
    """Return the impact of the latest five minutes by case, of flags a user may see.

    Args:
        user: the reader.
        impacts: impact by principal, as `latest_data.impact` returns it.
    """
    if not impacts:
        return {}
    flags = (
        Flag.objects.visible_to(user)
        .unresolved()
        .filter(about_principals(impacts))
        .exclude(job__ended_at__isnull=False)
    )
    by_case: dict[int, dict[PrincipalKey, ImpactTotal]] = defaultdict(dict)
    for flag in flags.only("case_id", "job_id", "subject_kind", "subject"):
        sender = principal(flag)
        if sender and sender in impacts:
            by_case[flag.case_id][sender] = impacts[sender]
    return {case: ImpactTotal.joined(parts.values()).rounded for case, parts in by_case.items()}


def worst_first(cases: CaseQuerySet, impacts: Mapping[int, ImpactTotal]) -> CaseQuerySet:
    """Order cases: with current impact, of the last day, older; each by severity, then latest."""
    has_impact = When(pk__in=list(impacts), then=Value(0))
    is_recent = When(until__gt=timezone.now() - _RECENT, then=Value(1))
    recency = models.Case(has_impact, is_recent, default=Value(2))
    return cases.order_by(recency, "-severity", "-until", "-pk")


def for_owner(owner: str, user: User) -> list[CaseSummary]:
    """Return the worst unresolved cases of a user."""
    cases = Case.objects.visible_to(user).unresolved().filter(owner=owner)
    return worst(cases, user, _LISTED, latest_data.impact())


def worst(
    cases: CaseQuerySet, user: User, count: int, impacts: Mapping[PrincipalKey, ImpactTotal]
) -> list[CaseSummary]:
    """Return the worst of some cases, those with current impact first.

    Args:
        cases: that the user may see.
        user: the reader.
        count: the maximum number of cases.
        impacts: impact by principal, as `latest_data.impact` returns it.
    """
    by_case = current_impacts(user, impacts)
    return summaries(worst_first(with_places(cases), by_case)[:count], user, by_case)


_PUBLIC_EVENTS = {CaseEvent.Kind.OPENED, CaseEvent.Kind.REOPENED}


def public_events(user: User) -> Q:
    """Return the condition of events that a user may see: staff see all.

    Others see no triage, but their own answers.
    """
    if user.is_staff:
        return Q()
    own = Q(kind=CaseEvent.Kind.ANSWERED, by=user.get_username())
    return Q(kind__in=_PUBLIC_EVENTS, by="") | own


_COLUMNS = (
    "id",
    "severity",
    "rule",
    "title",
    "subject_kind",
    "subject",
    "name",
    "application",
    "owner",
    "filesystem",
    "state",
    "flags",
    "jobs",
    "measure",
    "total",
    "highest",
    "threshold",
    "unit",
    "since",
    "until",
    "opened_at",
    "recent",
    "before",
    "simulated",
)
_STAFF_COLUMNS = (
    "advice",
    "suppressed",
    "muted_until",
    "assignee",
    "resolved_at",
    "resolved_by",
    "resolution",
)
_COMPUTED: dict[str, Callable[[CaseSummary], Any]] = {
    "id": lambda summary: summary.case.pk,
    "severity": lambda summary: summary.case.get_severity_display(),
    "name": lambda summary: summary.subject.text,
    "highest": lambda summary: summary.worst and summary.worst.value,
    "threshold": lambda summary: summary.worst and summary.worst.threshold,
    "measure": lambda summary: summary.worst and summary.worst.measure,
    "unit": lambda summary: summary.worst and unit_of(summary.worst, summary.worst.measure),
    "advice": lambda summary: summary.worst and summary.worst.advice,
    "simulated": lambda summary: is_simulated(summary.case),
}


def columns(user: User) -> tuple[str, ...]:
    """Return the columns that exports of cases have for a user; names are stable."""
    return (*_COLUMNS, *(_STAFF_COLUMNS if user.is_staff else ()))


def facts(summary: CaseSummary, user: User) -> dict[str, Any]:
    """Return the columns of a case for a user, by name."""
    return {name: fact(summary, name) for name in columns(user)}


def fact(summary: CaseSummary, name: str) -> Any:
    """Return the value of one of `columns`."""
    if name in _COMPUTED:
        return _COMPUTED[name](summary)
    if name in Figures.__dataclass_fields__:
        return getattr(summary.figures, name)
    value = getattr(summary.case, name)
    return str(value) if name in {"filesystem", "assignee"} and value else value
