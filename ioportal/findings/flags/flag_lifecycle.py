"""The lifecycle of flags: one flag for each rule and subject, which accumulates findings.

A flag opens at its thresholds and ends below a lower bound, to prevent flapping. Flags have no
triage: the cases to which they belong do (`ioportal.findings.cases.case_lifecycle`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import Max
from django.utils import timezone

from ioportal.core.units import Source
from ioportal.findings import history
from ioportal.findings.cases import case_lifecycle
from ioportal.findings.flags import endings
from ioportal.findings.models import Flag, FlagEvent
from ioportal.jobs.analysis.anonymity import coarse, shown
from ioportal.jobs.models import Job, JobStatistics
from ioportal.rules import BY_CODE
from ioportal.rules.rule import ABUSE_AT_ONCE, HARM_S, Severity, Subject, advise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ioportal.findings.models import FlagQuerySet
    from ioportal.findings.thresholds import EffectiveThresholds
    from ioportal.rules.rule import Rule

HYSTERESIS = 0.8  # a flag ends below this share of its thresholds
GROWTH = 2.0  # times the last reported value: reported again
ABUSE_AFTER = timedelta(minutes=5)  # minimum duration of a finding of severity abuse
_BATCH_SIZE = 500  # flags of one UPDATE
_GOOD = JobStatistics.Quality.GOOD.value
_Kind = FlagEvent.Kind


@dataclass(frozen=True)
class _Finding:
    """The numbers of a finding and the context of its subject."""

    numbers: dict[str, float | None]
    context: dict[str, Any]

    def value(self, rule: Rule) -> float:
        return float(self.numbers[rule.measure] or 0)

    @property
    def harm_s(self) -> float | None:
        """Extra wait of others because of the subject, at least; None: unknown."""
        harm_s: float | None = self.context["harm_s"]
        return harm_s

    @property
    def harm_is_flagged(self) -> bool:
        """Whether a rule about impact flags the subject."""
        return bool(self.context["harm_is_flagged"])

    @property
    def harm_is_explained(self) -> bool:
        """Whether parts of a group explain its harm."""
        return bool(self.context["harm_is_explained"])


@dataclass
class Changes:
    """Changes of flags, stored together to keep the number of queries low."""

    opened: list[tuple[Flag, _Finding]] = field(default_factory=list)
    updated: list[Flag] = field(default_factory=list)
    events: list[FlagEvent] = field(default_factory=list)  # of updated flags

    def add(self, other: Changes) -> None:
        """Add the changes of another rule."""
        self.opened += other.opened
        self.updated += other.updated
        self.events += other.events

    def flagged_subjects(self) -> set[str]:
        """Return the subjects of flags that are neither ended nor suppressed."""
        flags = [flag for flag, _ in self.opened] + self.updated
        return {flag.subject for flag in flags if not (flag.ended_at or flag.is_suppressed)}


def lock_current(kind: Subject, frame: pl.DataFrame) -> dict[str, dict[str, Flag]]:
    """Return the current flags of some subjects by rule and subject, and lock them.

    One query for all rules: most rules have no flags.
    """
    flags = Flag.objects.of_kind(kind, frame["filesystem"][0]).current()
    flags = flags.filter(subject__in=frame["subject"].to_list())
    by_rule: dict[str, dict[str, Flag]] = {}
    for flag in flags.order_by().select_for_update():
        by_rule.setdefault(flag.rule, {})[flag.subject] = flag
    return by_rule


def evaluate_rule(
    rule: Rule,
    effective: EffectiveThresholds,
    kind: Subject,
    frame: pl.DataFrame,
    flags: dict[str, Flag],
) -> Changes:
    """Return the flags of a rule that open, continue or end.

    Args:
        rule: a rule of the subjects' kind.
        effective: the thresholds of all these subjects.
        kind: kind of the subjects.
        frame: evidence of the subjects, with the columns of `subject_evidence.CONTEXT`, harm_s and
            harm_is_flagged; hosts of one filesystem only.
        flags: current flags of the rule by subject; other subjects' flags are ignored.
    """
    until = dict(frame.select("subject", "until").iter_rows()) if flags else {}
    existing = {subject: flag for subject, flag in flags.items() if subject in until}
    findings = _findings(rule, effective.thresholds, frame) if effective.is_on else {}
    continuing = findings
    if existing and effective.is_on:
        flagged = frame.filter(pl.col("subject").is_in(list(existing)))
        relaxed = rule.relaxed(effective.thresholds, HYSTERESIS)
        continuing = _findings(rule, relaxed, flagged, effective.thresholds)
    new = {subject: finding for subject, finding in findings.items() if subject not in existing}
    if kind is not Subject.JOB:
        same_rule = Flag.objects.of_rule(rule.code, kind, frame["filesystem"][0])
        new = _without_known(new, same_rule)
    changes = Changes(updated=list(existing.values()))
    for subject, finding in new.items():
        changes.opened.append((_open(rule, effective, kind, subject, finding), finding))
    ended = []
    for subject, flag in existing.items():
        # Hysteresis is for values that vary: changed thresholds apply immediately.
        is_unchanged = flag.thresholds == effective.thresholds
        continued = (continuing if is_unchanged else findings).get(subject)
        if continued:
            changes.events += _update(rule, effective, flag, continued)
        elif kind is Subject.JOB or until[subject] >= flag.until:  # ignores older evidence
            ended.append(flag)
    changes.events += _end(rule, effective, kind, frame, ended)
    return changes


_UPDATED_FIELDS = [
    "severity",
    "until",
    "value",
    "numbers",
    "thresholds",
    "scope",
    "rule_version",
    "advice",
    "suppression_reasons",
    "ended_at",
    "ending",
    "changed_at",
]


def store(changes: Changes) -> None:
    """Store changed flags and their events, and update their cases."""
    opened = [flag for flag, _ in changes.opened]
    if opened:
        _set_since(opened)
        for flag, finding in changes.opened:
            _set_severity(BY_CODE[flag.rule], flag, finding)
        applications = [finding.context["application"] or "" for _, finding in changes.opened]
        case_lifecycle.assign(opened, applications)
        Flag.objects.bulk_create(opened)
    Flag.objects.bulk_update(changes.updated, _UPDATED_FIELDS, batch_size=_BATCH_SIZE)
    events = [*map(_opening, opened), *changes.events]
    FlagEvent.objects.bulk_create(events)
    case_lifecycle.update([*opened, *changes.updated], events)


def _set_since(flags: list[Flag]) -> None:
    """Set the beginning of new flags to the time at which the threshold was reached."""
    jobs = Job.objects.select_related("statistics").in_bulk(
        [flag.job_id for flag in flags if flag.job_id]
    )
    for flag in flags:
        flag.job = jobs[flag.job_id] if flag.job_id else None
    for position, reached in history.times_reached(flags).items():
        flags[position].since = reached


def _opening(flag: Flag) -> FlagEvent:
    return FlagEvent(
        flag=flag,
        kind=_Kind.SUPPRESSED if flag.is_suppressed else _Kind.OPENED,
        text=" ".join(flag.suppression_reasons) or flag.advice,
        value=flag.value,
    )


def _findings(
    rule: Rule,
    thresholds: dict[str, float],
    frame: pl.DataFrame,
    shown_thresholds: dict[str, float] | None = None,
) -> dict[str, _Finding]:
    """Return the findings by subject.

    Args:
        rule: a rule.
        thresholds: of the check.
        frame: evidence of the subjects.
        shown_thresholds: thresholds shown next to numbers; None: the thresholds of the check.
    """
    findings = rule.check(frame, thresholds)
    if findings.is_empty():
        return {}
    contexts = frame.join(findings.select("subject"), on="subject", how="semi")
    rows = {row["subject"]: row for row in contexts.iter_rows(named=True)}
    return {
        subject: _Finding(_storable(numbers, shown_thresholds or thresholds), rows[subject])
        for subject, numbers in findings.select("subject", "numbers").iter_rows()
    }


def _storable(
    numbers: dict[str, float | None], thresholds: dict[str, float]
) -> dict[str, float | None]:
    """Return numbers without infinity, which JSON cannot store; as they are `shown`."""
    return {
        name: shown(name, number, thresholds.get(name))
        if number is not None and isfinite(number)
        else None
        for name, number in numbers.items()
    }


def _without_known(findings: dict[str, _Finding], same_rule: FlagQuerySet) -> dict[str, _Finding]:
    """Drop findings on data of an ended flag: evaluating the same data again opens none."""
    if not findings:
        return findings
    ended = same_rule.filter(subject__in=findings).values_list("subject")
    until = dict(ended.annotate(Max("until")))
    return {
        subject: finding
        for subject, finding in findings.items()
        if subject not in until or finding.context["until"] > until[subject]
    }


def _open(
    rule: Rule, effective: EffectiveThresholds, kind: Subject, subject: str, finding: _Finding
) -> Flag:
    context = finding.context
    return Flag(
        rule=rule.code,
        rule_version=rule.version,
        subject_kind=kind,
        subject=subject,
        job_id=int(subject) if kind is Subject.JOB else None,
        owner=context["owner"] or "",
        cluster_id=context["cluster"],
        filesystem_id=context["filesystem"],
        severity=Flag.Severity.NOTICE,
        since=context["until"],
        until=context["until"],
        value=finding.value(rule),
        numbers=finding.numbers,
        thresholds=effective.thresholds,
        scope=effective.scope,
        advice=advise(effective.advice, finding.numbers, effective.thresholds),
        suppression_reasons=_suppression_reasons(rule, finding),
    )


def _update(
    rule: Rule, effective: EffectiveThresholds, flag: Flag, finding: _Finding
) -> Iterable[FlagEvent]:
    """Update a flag with a finding; yield its events."""
    previous_value, was_suppressed = flag.value, flag.is_suppressed
    flag.until = max(flag.until, finding.context["until"])
    flag.changed_at = timezone.now()
    # An ended job's finding is about the same run as before, with better data.
    if finding.value(rule) >= previous_value or finding.context.get("has_ended"):
        flag.value = finding.value(rule)
        flag.numbers = finding.numbers
        flag.rule_version = rule.version
    flag.thresholds, flag.scope = effective.thresholds, effective.scope
    flag.advice = advise(effective.advice, flag.numbers, effective.thresholds)
    flag.suppression_reasons = _suppression_reasons(rule, finding)
    if flag.is_suppressed != was_suppressed:
        yield _opening(flag)
    if _set_severity(rule, flag, finding):
        text = f"Severity raised to {flag.get_severity_display()}: {_reason(rule, flag, finding)}."
        yield FlagEvent(flag=flag, kind=_Kind.ESCALATED, text=text, value=flag.value)
    elif _doublings(flag, flag.value) > _doublings(flag, previous_value):
        yield FlagEvent(flag=flag, kind=_Kind.GREW, text=flag.advice, value=flag.value)


def _end(
    rule: Rule,
    effective: EffectiveThresholds,
    kind: Subject,
    frame: pl.DataFrame,
    flags: list[Flag],
) -> Iterator[FlagEvent]:
    """End flags whose findings no longer apply, each with the cause; yield their events."""
    if not flags:
        return
    frame = frame.filter(pl.col("subject").is_in([flag.subject for flag in flags]))
    relaxed = rule.relaxed(effective.thresholds, HYSTERESIS)
    reasons = endings.of_evidence(rule, kind, relaxed, frame) if effective.is_on else {}
    for flag in flags:
        reason = reasons.get(flag.subject, endings.SWITCHED_OFF)
        if effective.is_on and flag.thresholds != effective.thresholds:
            before = rule.relaxed({**rule.defaults, **flag.thresholds}, HYSTERESIS)
            if flag.subject in _findings(rule, before, frame):
                reason = endings.CHANGED_THRESHOLDS
            flag.thresholds, flag.scope = effective.thresholds, effective.scope
        yield flag.end(reason)


def _set_severity(rule: Rule, flag: Flag, finding: _Finding) -> bool:
    """Set the severity of a flag by its value, harm and duration; return whether it was raised.

    Of an ended job the whole run counts as duration. The severity falls when a rule about impact
    flags the subject, which is then triaged by that flag, when parts of a group explain its harm,
    or when the whole run of a job is known to be harmless: its harm was unknown before, or late
    data changed it.
    """
    lasted: timedelta = flag.until - flag.since
    if finding.context.get("has_ended"):
        lasted = max(lasted, timedelta(seconds=finding.context["duration_s"] or 0))
    has_lasted = lasted >= ABUSE_AFTER
    severity = rule.severity_at(
        flag.value,
        flag.thresholds,
        share=flag.numbers.get(rule.abuse_share),
        harm_s=finding.harm_s,
        harm_is_flagged=finding.harm_is_flagged,
        has_lasted=has_lasted,
    )
    is_higher = severity > flag.severity
    is_harmless = bool(flag.job_id) and severity == Severity.NOTICE
    is_of_others = finding.harm_is_flagged or finding.harm_is_explained
    if is_higher or (rule.needs_harm and (is_of_others or is_harmless)):
        flag.severity = severity
    return is_higher


def _reason(rule: Rule, flag: Flag, finding: _Finding) -> str:
    """Return why the severity of a flag was raised."""
    if flag.severity == Severity.ABUSE:
        return abuse_reason(rule, flag)
    if finding.harm_s is None:
        return "the extra wait of others is unknown"
    if finding.harm_s >= HARM_S:
        return f"the extra wait of others is {coarse(finding.harm_s):,.0f} s"
    return "no rule about impact flags it any more"


def abuse_reason(rule: Rule, flag: Flag) -> str:
    """Return how often a flag of severity abuse exceeds its threshold, and from when it is abuse.

    The severity does not fall, so the threshold may have been changed since.
    """
    times, minutes = rule.abuse_times or 0, ABUSE_AFTER // timedelta(minutes=1)
    ratio = flag.value / flag.threshold if flag.threshold else 0
    times_of = f"{ratio:,.1f}".removesuffix(".0")
    exceeded = f"{times_of} times its threshold, " if ratio else ""
    return (
        f"{exceeded}abuse from {times:g} times on, once it has lasted {minutes} minutes, or from "
        f"{ABUSE_AT_ONCE * times:g} times at once"
    )


def _doublings(flag: Flag, value: float) -> int:
    """Return how many times a value doubles the threshold."""
    threshold, times = flag.threshold or 0, 0
    while threshold > 0 and value >= threshold * GROWTH:
        value, times = value / GROWTH, times + 1
    return times


def has_good_data(rule: Rule) -> pl.Expr:
    """Return whether the data quality is good, for a frame with `subject_evidence.CONTEXT`."""
    return pl.lit(rule.is_about_data) | pl.col(_quality_column(rule)).eq_missing(_GOOD)


def _quality_column(rule: Rule) -> str:
    """Return the column with the quality of a rule's source."""
    by_source = {
        Source.RPC_TRACE: "trace_quality",
        Source.IMPACT: "impact_quality",
        Source.JOB_STATS: "bytes_quality",
    }
    return by_source.get(rule.source, "quality")


def _suppression_reasons(rule: Rule, finding: _Finding) -> list[str]:
    """Return why the finding is suppressed; empty if its data quality is good."""
    quality = finding.context[_quality_column(rule)]
    if rule.is_about_data or quality == _GOOD:
        return []
    if quality is None:
        return ["Data quality is not known yet."]
    return [f"Data quality is {quality}. Only findings on good data are reported."]
