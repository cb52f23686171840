"""The lifecycle of flags: one flag for each rule and subject, which accumulates findings.

A flag opens at its thresholds and resolves below a lower bound, to prevent flapping. A resolved or
expired flag reopens only when the finding has doubled, or when there is new data.

Changes by staff are in `ioportal.flags.triage`, the states in `ioportal.flags.models.flag`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import Exists, OuterRef, Q

from ioportal.analysis.metrics import Source
from ioportal.analysis.rules.rule import Subject, advise
from ioportal.flags.models import Flag, FlagEvent
from ioportal.jobs.models import DirtyEvidence, JobStatistics

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ioportal.analysis.rules.rule import Rule
    from ioportal.flags.models import FlagQuerySet
    from ioportal.flags.thresholds import EffectiveThresholds

HYSTERESIS = 0.8  # an open flag resolves below this share of its thresholds
GROWTH = 2.0  # times the last reported value: reported again
ABUSE_AFTER = timedelta(minutes=5)  # minimum duration of a finding of severity abuse
EXPIRES_AFTER = {  # without new data about the subject
    Subject.JOB: timedelta(days=7),
    Subject.USER: timedelta(days=1),
    Subject.HOST: timedelta(minutes=30),
    Subject.FILESYSTEM: timedelta(hours=2),
}
_BATCH_SIZE = 500  # flags of one UPDATE
_GOOD = JobStatistics.Quality.GOOD.value
_Kind = FlagEvent.Kind
_State = Flag.State


@dataclass(frozen=True)
class _Finding:
    """The numbers of a finding and the context of its subject."""

    numbers: dict[str, float | None]
    context: dict[str, Any]

    def value(self, rule: Rule) -> float:
        return float(self.numbers[rule.measure] or 0)


def lock_unresolved(kind: Subject, frame: pl.DataFrame) -> dict[str, dict[str, Flag]]:
    """Return the unresolved flags of some subjects by rule and subject, and lock them.

    One query for all rules: most rules have no flags.
    """
    flags = Flag.objects.of_kind(kind, frame["filesystem"][0]).unresolved()
    flags = flags.filter(subject__in=frame["subject"].to_list())
    by_rule: dict[str, dict[str, Flag]] = {}
    for flag in flags.order_by().select_for_update():
        by_rule.setdefault(flag.rule, {})[flag.subject] = flag
    return by_rule


def update_flags(
    rule: Rule,
    effective: EffectiveThresholds,
    kind: Subject,
    frame: pl.DataFrame,
    flags: dict[str, Flag],
) -> None:
    """Open, update, suppress or resolve a rule's flags of some subjects.

    Args:
        rule: a rule of the subjects' kind.
        effective: the thresholds of all these subjects.
        kind: kind of the subjects.
        frame: evidence of the subjects, with the columns of `evidence.CONTEXT`; hosts of one
            filesystem only.
        flags: unresolved flags of the rule by subject; other subjects' flags are ignored.
    """
    until = dict(frame.select("subject", "until").iter_rows()) if flags else {}
    existing = {subject: flag for subject, flag in flags.items() if subject in until}
    findings = _findings(rule, effective.thresholds, frame) if effective.is_on else {}
    continuing = findings
    if existing and effective.is_on:
        flagged = frame.filter(pl.col("subject").is_in(list(existing)))
        relaxed = rule.relaxed(effective.thresholds, HYSTERESIS)
        continuing = _findings(rule, relaxed, flagged)
    new = {subject: finding for subject, finding in findings.items() if subject not in existing}
    same_rule = Flag.objects.of_rule(rule.code, kind, frame["filesystem"][0])
    resolved = _latest_resolved(same_rule, new)
    opened = [
        _open(rule, effective, kind, subject, finding)
        for subject, finding in new.items()
        if _may_open(rule, finding, resolved.get(subject))
    ]
    _store_opened(opened)
    events: list[FlagEvent] = []
    for subject, flag in existing.items():
        # Hysteresis is for values that vary: changed thresholds apply immediately.
        is_unchanged = flag.thresholds == effective.thresholds
        finding = (continuing if is_unchanged else findings).get(subject)
        if finding:
            events += _update(rule, effective, flag, finding)
        elif kind is Subject.JOB or until[subject] >= flag.until:  # ignores older evidence
            events += _resolve_below_thresholds(effective, flag)
    Flag.objects.bulk_update(existing.values(), _UPDATED_FIELDS)
    FlagEvent.objects.bulk_create(events)


_UPDATED_FIELDS = [
    "state",
    "severity",
    "until",
    "value",
    "numbers",
    "thresholds",
    "scope",
    "rule_version",
    "advice",
    "suppression_reasons",
    "resolution",
    "expired",
    "resolved_at",
    "changed_at",
]


def expire(now: datetime, latest_data: datetime) -> None:
    """Resolve flags without new data about their subject, and reopen flags muted until now.

    Args:
        now: current time.
        latest_data: end of the latest data. Findings that are much older (a year of logs loaded
            in one command) expire immediately, unless a user has acted on them.
    """
    triaged = Exists(FlagEvent.objects.filter(flag=OuterRef("pk")).exclude(by=""))
    for kind, after in EXPIRES_AFTER.items():
        is_old = Q(until__lt=latest_data - after) & ~triaged
        expiring = Flag.objects.exclude(state__in=[_State.RESOLVED, _State.MUTED]).filter(
            Q(changed_at__lt=now - after) | is_old, subject_kind=kind
        )
        if kind is Subject.JOB:
            expiring = expiring.filter(job__ended_at__lt=now - after)
        flags = list(expiring.select_for_update(of=["self"]))
        reason = f"Expired: no new data for {_in_words(after)}."
        events = [_resolve(flag, reason, expired=True) for flag in flags]
        Flag.objects.bulk_update(flags, _UPDATED_FIELDS, batch_size=_BATCH_SIZE)
        FlagEvent.objects.bulk_create(events)
    _unmute(now)


def _unmute(now: datetime) -> None:
    """Reopen flags that were muted until now, and request evaluation of their jobs."""
    due = Flag.objects.filter(state=_State.MUTED, muted_until__lte=now)
    flags = list(due.select_for_update())
    for flag in flags:
        flag.state, flag.muted_until, flag.changed_at = flag.initial_state, None, now
    Flag.objects.bulk_update(flags, ["state", "muted_until", "changed_at"])
    FlagEvent.objects.bulk_create(
        FlagEvent(flag=flag, kind=_Kind.REOPENED, text="The mute period ended.") for flag in flags
    )
    DirtyEvidence.objects.mark([flag.job_id for flag in flags if flag.job_id])


def _findings(rule: Rule, thresholds: dict[str, float], frame: pl.DataFrame) -> dict[str, _Finding]:
    findings = rule.check(frame, thresholds)
    if findings.is_empty():
        return {}
    contexts = frame.join(findings.select("subject"), on="subject", how="semi")
    rows = {row["subject"]: row for row in contexts.iter_rows(named=True)}
    return {
        subject: _Finding(numbers, rows[subject])
        for subject, numbers in findings.select("subject", "numbers").iter_rows()
    }


def _latest_resolved(flags: FlagQuerySet, subjects: Collection[str]) -> dict[str, Flag]:
    if not subjects:
        return {}
    resolved = flags.filter(state=_State.RESOLVED, subject__in=subjects)
    latest = resolved.order_by("subject", "-pk").distinct("subject")
    return {flag.subject: flag for flag in latest}


def _may_open(rule: Rule, finding: _Finding, resolved: Flag | None) -> bool:
    """Whether a finding opens a flag, given the subject's latest resolved flag of the rule."""
    if resolved is None:
        return True
    until = finding.context["until"]
    has_grown = finding.value(rule) >= GROWTH * resolved.value
    if resolved.resolved_by:
        is_later = until > resolved.until + EXPIRES_AFTER[rule.subject]
        return bool(has_grown or (rule.subject is not Subject.JOB and is_later))
    if resolved.expired:
        is_good_now = resolved.suppression_reasons and not _suppression_reasons(rule, finding)
        return bool(until > resolved.until or has_grown or is_good_now)
    return True


def _open(
    rule: Rule, effective: EffectiveThresholds, kind: Subject, subject: str, finding: _Finding
) -> Flag:
    context = finding.context
    flag = Flag(
        rule=rule.code,
        rule_version=rule.version,
        subject_kind=kind,
        subject=subject,
        job_id=int(subject) if kind is Subject.JOB else None,
        owner=context["owner"] or "",
        cluster_id=context["cluster"],
        filesystem_id=context["filesystem"],
        severity=rule.severity_at(
            finding.value(rule),
            effective.thresholds,
            has_lasted=_has_lasted(context["until"], context),
        ),
        since=context["until"],
        until=context["until"],
        value=finding.value(rule),
        numbers=finding.numbers,
        thresholds=effective.thresholds,
        scope=effective.scope,
        advice=advise(effective.advice, finding.numbers, effective.thresholds),
        suppression_reasons=_suppression_reasons(rule, finding),
    )
    flag.state = flag.initial_state
    return flag


def _store_opened(flags: list[Flag]) -> None:
    Flag.objects.bulk_create(flags)
    FlagEvent.objects.bulk_create(
        FlagEvent(
            flag=flag,
            kind=_Kind.SUPPRESSED if flag.suppression_reasons else _Kind.OPENED,
            text=" ".join(flag.suppression_reasons) or flag.advice,
            value=flag.value,
        )
        for flag in flags
    )


def _update(
    rule: Rule, effective: EffectiveThresholds, flag: Flag, finding: _Finding
) -> Iterable[FlagEvent]:
    """Update a flag with a finding; yield its events."""
    previous_value = flag.value
    flag.until = max(flag.until, finding.context["until"])
    flag.changed_at = datetime.now(flag.until.tzinfo)
    if finding.value(rule) > flag.value:
        flag.value, flag.numbers = finding.value(rule), finding.numbers
        flag.rule_version = rule.version
    flag.thresholds, flag.scope = effective.thresholds, effective.scope
    flag.advice = advise(effective.advice, flag.numbers, effective.thresholds)
    reasons = _suppression_reasons(rule, finding)
    flag.suppression_reasons = reasons
    if flag.state == _State.SUPPRESSED and not reasons:
        flag.state = _State.OPEN
        yield FlagEvent(flag=flag, kind=_Kind.OPENED, text=flag.advice, value=flag.value)
    elif flag.state == _State.OPEN and reasons:  # other states are already triaged
        flag.state = _State.SUPPRESSED
        yield FlagEvent(flag=flag, kind=_Kind.SUPPRESSED, text=" ".join(reasons), value=flag.value)
    has_lasted = _has_lasted(flag.since, finding.context)
    severity = rule.severity_at(flag.value, flag.thresholds, has_lasted=has_lasted)
    if severity > flag.severity:
        flag.severity = severity
        text = f"Severity raised to {flag.get_severity_display()}."
        yield FlagEvent(flag=flag, kind=_Kind.ESCALATED, text=text, value=flag.value)
    elif _doublings(flag, flag.value) > _doublings(flag, previous_value):
        yield FlagEvent(flag=flag, kind=_Kind.GREW, text=flag.advice, value=flag.value)


def _resolve_below_thresholds(effective: EffectiveThresholds, flag: Flag) -> Iterable[FlagEvent]:
    """Resolve a flag whose finding no longer applies; muted flags stay muted."""
    if flag.state == _State.MUTED:
        return
    if not effective.is_on:
        yield _resolve(flag, "The rule was switched off here.")
    elif flag.thresholds == effective.thresholds:
        yield _resolve(flag, "Below the thresholds again.")
    else:
        flag.thresholds, flag.scope = effective.thresholds, effective.scope
        yield _resolve(flag, "Below the changed thresholds.")


def _has_lasted(since: datetime, context: dict[str, Any]) -> bool:
    """Whether a finding has lasted long enough for abuse; of an ended job the whole run counts."""
    lasted: timedelta = context["until"] - since
    if context.get("has_ended"):
        lasted = max(lasted, timedelta(seconds=context["duration_s"] or 0))
    return lasted >= ABUSE_AFTER


def _doublings(flag: Flag, value: float) -> int:
    """Return how many times a value doubles the threshold."""
    threshold, times = flag.threshold or 0, 0
    while threshold > 0 and value >= threshold * GROWTH:
        value, times = value / GROWTH, times + 1
    return times


def has_good_data(rule: Rule) -> pl.Expr:
    """Return whether the data quality is good, for a frame with `evidence.CONTEXT`."""
    return pl.lit(rule.is_about_data) | pl.col(_quality_column(rule)).eq_missing(_GOOD)


def _quality_column(rule: Rule) -> str:
    by_source = {Source.RPC_TRACE: "trace_quality", Source.JOB_STATS: "bytes_quality"}
    return by_source.get(rule.source, "quality")


def _suppression_reasons(rule: Rule, finding: _Finding) -> list[str]:
    """Return why the finding is suppressed; empty if its data quality is good."""
    quality = finding.context[_quality_column(rule)]
    if rule.is_about_data or quality == _GOOD:
        return []
    if quality is None:
        return ["Data quality is not known yet."]
    return [f"Data quality is {quality}. Only findings on good data are reported."]


def _resolve(flag: Flag, reason: str, *, expired: bool = False) -> FlagEvent:
    flag.state, flag.resolution, flag.expired = _State.RESOLVED, reason, expired
    flag.resolved_at = flag.changed_at = datetime.now(flag.until.tzinfo)
    return FlagEvent(flag=flag, kind=_Kind.RESOLVED, text=reason, value=flag.value)


def _in_words(span: timedelta) -> str:
    if span.days:
        return f"{span.days} days" if span.days > 1 else "a day"
    return f"{span.total_seconds() / 60:.0f} minutes"
