"""Flags as pages, mails and the API present them: subject, evidence, figures as text, exports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db.models import Case, Exists, OuterRef, Q, When
from django.urls import reverse

from ioportal.core.units import Source
from ioportal.findings.flags import harm_texts
from ioportal.findings.flags.episodes import episodes_of, principal
from ioportal.findings.flags.flag_lifecycle import abuse_reason
from ioportal.findings.flags.flag_values import (
    in_words,
    measured,
    threshold_in_words,
    title_of,
    unit_of,
)
from ioportal.findings.models import Flag, FlagEvent
from ioportal.jobs.models import Job
from ioportal.load.impact import job_groups, principal_windows
from ioportal.load.principals import Name, job_group_name, named
from ioportal.rules import RULES
from ioportal.rules.rule import GROUPS, Subject
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from django.contrib.auth.models import User

    from ioportal.findings.models import FlagQuerySet
    from ioportal.load.impact.episodes import Episode
    from ioportal.load.impact.impact_totals import ImpactTotal
    from ioportal.load.top_consumers import PrincipalKey
    from ioportal.site.models import Filesystem

_LOWERED = "Notice instead of warning"
_COLUMNS = (
    "id",
    "case",
    "severity",
    "rule",
    "title",
    "subject_kind",
    "subject",
    "name",
    "job",
    "owner",
    "cluster",
    "filesystem",
    "measure",
    "value",
    "threshold",
    "unit",
    "since",
    "until",
    "opened_at",
    "ended_at",
    "ending",
    "simulated",
)
_STAFF_COLUMNS = ("advice",)
_STAFF_EVENTS = {FlagEvent.Kind.SUPPRESSED}
_WITH_ADVICE = {FlagEvent.Kind.OPENED, FlagEvent.Kind.GREW}


def severity_reason(flag: Flag) -> str:
    """Return why a flag is less or more severe than its rule; "": it is neither."""
    rule = flag.definition
    if rule is None or flag.severity == rule.severity:
        return ""
    if flag.severity > rule.severity:
        usual = Flag.Severity(rule.severity).label.lower()
        return f"Abuse instead of {usual}: {abuse_reason(rule, flag)}."
    about_impact = [each.code for each in RULES if each.source is Source.IMPACT]
    same_subject = Flag.objects.good().filter(
        rule__in=about_impact, subject_kind=flag.subject_kind, subject=flag.subject
    )
    if flag.rule not in about_impact and (other := same_subject.first()):
        return f"{_LOWERED}: “{other.title}” flags the same {flag.subject_kind} and is triaged."
    return f"{_LOWERED}: as far as is known, the extra wait of others is less than a minute."


@dataclass(frozen=True)
class FlagSummary:
    """A flag with the name of its subject, and its impact in the last five minutes."""

    flag: Flag
    subject: Name
    impact: ImpactTotal | None = None  # None: none reported, or its job has ended

    @property
    def address(self) -> str:
        """The address of its page."""
        return reverse("flag", args=[self.flag.pk])

    @property
    def value(self) -> str:
        """Its measure as text."""
        return in_words(self.flag, self.flag.measure, self.flag.value)

    @property
    def threshold(self) -> str:
        """The threshold of its measure as text."""
        return threshold_in_words(self.flag, self.flag.measure)

    @property
    def ratio(self) -> float | None:
        """Its measure over the threshold."""
        return self.flag.value / self.flag.threshold if self.flag.threshold else None

    @cached_property
    def severity_reason(self) -> str:
        """Why it is less or more severe than its rule; "": it is neither."""
        return severity_reason(self.flag)

    @cached_property
    def episodes(self) -> list[Episode]:
        """Its episodes of impact, largest first."""
        return episodes_of(self.flag)

    def episodes_for(self, user: User) -> list[Episode]:
        """Return its episodes as a user may see them."""
        return self.episodes if user.is_staff else [each.rounded for each in self.episodes]

    @cached_property
    def harm(self) -> str:
        """Its harm in words; "": it is not known."""
        harm = harm_texts.of_flag(self.flag, self.episodes)
        return harm.in_words(self.subject.text, harm_texts.pronoun(self.flag)) if harm else ""

    @property
    def is_running(self) -> bool:
        """Whether its job is running."""
        job = self.flag.job
        return bool(job and job.started_at and not job.ended_at)

    @property
    def status(self) -> str:
        """Whether the finding applies, as text."""
        return self.flag.ending or ("suppressed" if self.flag.is_suppressed else "applies")

    @property
    def text(self) -> str:
        """The finding as plain text."""
        flag, job = self.flag, self.flag.job
        lines = [f"{flag.title} ({flag.get_severity_display()}): {self.subject.text}"]
        if job:
            lines.append(f"{job.cluster}, user {job.owner}, {job.node_count} nodes")
        lines.append(f"{title_of(flag, flag.measure)}: {measured(flag)}")
        if self.harm:
            lines.append(self.harm)
        lines.append(flag.advice)
        return "\n".join(lines)


def with_subjects(flags: FlagQuerySet) -> FlagQuerySet:
    """Add what `summaries` and `is_simulated` need."""
    user_is_simulated = Exists(
        Job.objects.filter(
            Q(owner=OuterRef("owner")) & ~Q(owner="")
            | Q(project__in=[OuterRef("subject"), job_groups.project_part(OuterRef("subject"))]),
            cluster__simulated=True,
        )
    )
    is_of_user = Q(subject_kind__in=GROUPS)
    return flags.select_related("case", "job__cluster", "cluster", "filesystem").annotate(
        user_is_simulated=Case(When(is_of_user, then=user_is_simulated), default=False)
    )


def summaries(
    flags: Iterable[Flag], user: User, impacts: Mapping[PrincipalKey, ImpactTotal] | None = None
) -> list[FlagSummary]:
    """Return the summaries of flags that were fetched `with_subjects`.

    Args:
        flags: in the order of the result.
        user: who sees the names of hosts.
        impacts: impact by principal, as `latest_data.impact` returns it.
    """
    rows = [(flag, principal(flag)) for flag in flags]
    hosts = [sender for flag, sender in rows if sender and not flag.job_id]
    names = named(hosts, user, "job") if hosts else {}
    found = []
    for flag, sender in rows:
        impact = None if sender is None or _is_over(flag) else (impacts or {}).get(sender)
        shown = impact if impact is None or user.is_staff else impact.rounded
        found.append(FlagSummary(flag, _name(flag, names), shown))
    return found


def _is_over(flag: Flag) -> bool:
    return bool(flag.ended_at or (flag.job and flag.job.ended_at))


def _name(flag: Flag, names: Mapping[PrincipalKey, Name]) -> Name:
    if flag.job:
        return Name(f"job {flag.job.display_id}", reverse("job", args=[flag.job_id]))
    return subject_name(flag.subject_kind, flag.subject, flag.filesystem, names)


def subject_name(
    kind: str, subject: str, filesystem: Filesystem | None, names: Mapping[PrincipalKey, Name]
) -> Name:
    """Return the name of a subject, or of the owner of jobs.

    Args:
        kind: kind of subject.
        subject: its key or name.
        filesystem: of the finding.
        names: names of hosts and processes, and of jobs that are flagged like hosts.
    """
    if kind == Subject.JOB and not subject:
        return Name("jobs without a user")
    if kind == Subject.JOB:
        kind = Subject.USER
    if kind in GROUPS:
        group = job_group_name(kind, subject)
        return replace(group, text=f"{kind} {group.text}")
    if kind == Subject.FILESYSTEM and filesystem:
        return Name(f"filesystem {filesystem.name}")
    if kind == Subject.HOST:
        sender = principal_windows.principal_key(subject)
        if sender in names:
            prefix = "job " if sender[0] == Principal.JOB else ""
            return replace(names[sender], text=f"{prefix}{names[sender].text}")
    return Name(f"{kind} {subject}")


def about_principals(principals: Iterable[PrincipalKey]) -> Q:
    """Return the condition for flags about any of some principals."""
    listed = list(principals)
    jobs = [key for kind, key in listed if kind == Principal.JOB]
    senders = list(map(principal_windows.principal_name, listed))
    return Q(job__in=jobs) | Q(subject_kind=Subject.HOST, subject__in=senders)


def is_simulated(flag: Flag) -> bool:
    """Return whether a flag, fetched `with_subjects`, is about simulated data."""
    annotated: Any = flag
    places = (flag.cluster, flag.filesystem)
    return annotated.user_is_simulated or any(place.simulated for place in places if place)


_COMPUTED: dict[str, Callable[[FlagSummary], Any]] = {
    "id": lambda summary: summary.flag.pk,
    "case": lambda summary: summary.flag.case_id,
    "severity": lambda summary: summary.flag.get_severity_display(),
    "name": lambda summary: summary.subject.text,
    "job": lambda summary: summary.flag.job and summary.flag.job.display_id,
    "unit": lambda summary: unit_of(summary.flag, summary.flag.measure),
    "simulated": lambda summary: is_simulated(summary.flag),
}


def columns(user: User) -> tuple[str, ...]:
    """Return the columns that exports of flags have for a user; names are stable."""
    return (*_COLUMNS, *(_STAFF_COLUMNS if user.is_staff else ()))


def fact(summary: FlagSummary, name: str) -> Any:
    """Return the value of one of `columns`."""
    if name in _COMPUTED:
        return _COMPUTED[name](summary)
    value = getattr(summary.flag, name)
    return str(value) if name in {"cluster", "filesystem"} and value else value


def mark_jobs(jobs: Iterable[Job], user: User) -> None:
    """Set `worst_flag` of each job to its worst unresolved flag, or None."""
    listed = list(jobs)
    flags = _unresolved(user).filter(job__in={job.pk for job in listed})
    worst = {flag.job_id: flag for flag in flags}  # the last wins
    for job in listed:
        job.worst_flag = worst.get(job.pk)  # type: ignore[attr-defined]  # for templates


def worst_by_principal(
    principals: Collection[PrincipalKey], user: User
) -> dict[PrincipalKey, Flag]:
    """Return the worst unresolved flag of each principal that has one."""
    if not principals:
        return {}
    flags = _unresolved(user).filter(about_principals(principals))
    return {subject: flag for flag in flags if (subject := principal(flag))}


def _unresolved(user: User) -> FlagQuerySet:
    """Return the visible flags of unresolved cases, worst last."""
    flags = Flag.objects.visible_to(user).unresolved().select_related("case")
    return flags.order_by("severity", "until")


def for_job(job: Job, user: User) -> list[FlagSummary]:
    """Return a job's flags, current ones first."""
    flags = with_subjects(Flag.objects.visible_to(user).filter(job=job))
    rows = summaries(flags.order_by("-severity", "-until"), user)
    return sorted(rows, key=lambda row: row.flag.ended_at is not None)


@dataclass(frozen=True)
class Figure:
    """One of a flag's numbers as text, with its threshold."""

    title: str
    value: str
    threshold: str  # "": none
    is_measure: bool


def figures(flag: Flag) -> list[Figure]:
    """Return the measure, other numbers with thresholds in the rule's order, then the rest.

    A number without a threshold is left out if another one of the same title has a threshold.
    """
    titles = {title_of(flag, name) for name in flag.thresholds}
    # The database does not keep the order of JSON members.
    in_order = flag.definition.thresholds if flag.definition else ()
    names = dict.fromkeys([flag.measure, *in_order, *flag.thresholds, *flag.numbers])
    return [
        Figure(
            title_of(flag, name),
            in_words(flag, name, flag.numbers.get(name)),
            threshold_in_words(flag, name) if name in flag.thresholds else "",
            name == flag.measure,
        )
        for name in names
        if name in flag.thresholds or (name in flag.numbers and title_of(flag, name) not in titles)
    ]


def events(flag: Flag, user: User) -> Iterable[FlagEvent]:
    """Return a flag's events in order; only staff see when it was suppressed, and the advice."""
    rows = flag.events.order_by("pk")
    if user.is_staff:
        return rows
    public = list(rows.exclude(kind__in=_STAFF_EVENTS))
    for event in public:
        if event.kind in _WITH_ADVICE:
            event.text = ""
    return public


def facts(summary: FlagSummary, user: User) -> dict[str, Any]:
    """Return a flag and its evidence under stable names."""
    flag = summary.flag
    return {
        **{name: fact(summary, name) for name in columns(user)},
        "rule_version": flag.rule_version,
        "numbers": flag.numbers,
        "thresholds": flag.thresholds,
        "scope": flag.scope,
        "suppression_reasons": flag.suppression_reasons,
        "impact_s": sum(episode.impact_s for episode in summary.episodes_for(user)),
        "events": [
            {
                "at": event.at,
                "kind": event.kind,
                "text": event.text,
                "value": event.value,
            }
            for event in events(flag, user)
        ],
    }
