"""How flags follow from findings: one for each rule and subject, which gathers evidence.

A flag opens at the limits, and stays until its finding falls below a share of any: so it does not
flap. One that somebody resolved, or that rests, stays so, unless the finding has become twice as
bad since.
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
from ioportal.jobs.models import JobStatistics, StaleEvidence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ioportal.analysis.rules.rule import Rule
    from ioportal.flags.limits import InForce
    from ioportal.flags.models import FlagQuerySet

HELD_SHARE = 0.8  # of the limit: an open flag stays down to it
GROWTH = 2.0  # times the value that was told last: told again
ABUSE_AFTER = timedelta(minutes=5)  # a finding must have lasted, to be called abuse
RESTS_AFTER = {  # of a subject that nothing new is known of: its flag resolves itself
    Subject.JOB: timedelta(days=7),
    Subject.USER: timedelta(days=1),
    Subject.HOST: timedelta(minutes=30),
    Subject.FILESYSTEM: timedelta(hours=2),
}
_AT_ONCE = 500  # flags that one statement changes
_GOOD = JobStatistics.Quality.GOOD.value
_What = FlagEvent.What
_State = Flag.State


@dataclass(frozen=True)
class _Found:
    """A finding, and whose it is."""

    numbers: dict[str, float | None]
    about: dict[str, Any]

    def value(self, rule: Rule) -> float:
        return float(self.numbers[rule.measure] or 0)


def unresolved(kind: Subject, frame: pl.DataFrame) -> dict[str, dict[str, Flag]]:
    """Return the flags of some subjects that are not resolved, by rule and subject, and lock them.

    All rules' at once: most rules have none.
    """
    about = Flag.objects.about(kind, frame["filesystem"][0])
    flags = about.unresolved().filter(subject__in=frame["subject"].to_list())
    known: dict[str, dict[str, Flag]] = {}
    for flag in flags.order_by().select_for_update():
        known.setdefault(flag.rule, {})[flag.subject] = flag
    return known


def follow(
    rule: Rule, in_force: InForce, kind: Subject, frame: pl.DataFrame, flags: dict[str, Flag]
) -> None:
    """Open, grow, withhold or resolve the flags of some subjects by a rule.

    Args:
        rule: of the subjects' kind.
        in_force: the limits that hold for all of them.
        kind: of the subjects.
        frame: their evidence, with the columns of `evidence.ABOUT`; hosts' of one filesystem.
        flags: of the rule, which are not resolved: theirs, and maybe others'.
    """
    until = dict(frame.select("subject", "until").iter_rows()) if flags else {}
    known = {subject: flag for subject, flag in flags.items() if subject in until}
    over = _findings(rule, in_force.limits, frame) if in_force.is_on else {}
    held = over
    if known and in_force.is_on:
        of_known = frame.filter(pl.col("subject").is_in(list(known)))
        held = _findings(rule, rule.held(in_force.limits, HELD_SHARE), of_known)
    new = {subject: one for subject, one in over.items() if subject not in known}
    same = Flag.objects.of_same(rule.code, kind, frame["filesystem"][0])
    closed = _last_closed(same, new)
    opened = [
        _open(rule, in_force, kind, subject, one)
        for subject, one in new.items()
        if _is_news(rule, one, closed.get(subject))
    ]
    _store_opened(opened)
    events: list[FlagEvent] = []
    for subject, flag in known.items():
        # (limits that were changed hold at once: the share is there for values that move)
        now = (held if flag.limits == in_force.limits else over).get(subject)
        if now:
            events += _grown(rule, in_force, flag, now)
        elif kind is Subject.JOB or until[subject] >= flag.until:  # (else: of an older moment)
            events += _fallen(in_force, flag)
    Flag.objects.bulk_update(known.values(), _CHANGING)
    FlagEvent.objects.bulk_create(events)


_CHANGING = [
    "state",
    "severity",
    "until",
    "value",
    "numbers",
    "limits",
    "scope",
    "rule_version",
    "advice",
    "why_withheld",
    "why_resolved",
    "rests",
    "resolved_at",
    "changed_at",
]


def let_rest(now: datetime, known_until: datetime) -> None:
    """Resolve flags of whom nothing new is known, and wake those that were muted until now.

    Args:
        now: of the clock.
        known_until: the newest data: what ended long before them (a year's logs are loaded at
            once) rests as soon as it is flagged, unless somebody has dealt with it.
    """
    dealt_with = Exists(FlagEvent.objects.filter(flag=OuterRef("pk")).exclude(by=""))
    for kind, after in RESTS_AFTER.items():
        is_old = Q(until__lt=known_until - after) & ~dealt_with
        resting = Flag.objects.exclude(state__in=[_State.RESOLVED, _State.MUTED]).filter(
            Q(changed_at__lt=now - after) | is_old, subject_kind=kind
        )
        if kind is Subject.JOB:
            resting = resting.filter(job__ended_at__lt=now - after)
        flags = list(resting.select_for_update(of=["self"]))
        why = f"Nothing new of it for {_words(after)}."
        events = [_resolved(flag, why, rests=True) for flag in flags]
        Flag.objects.bulk_update(flags, _CHANGING, batch_size=_AT_ONCE)
        FlagEvent.objects.bulk_create(events)
    _wake(now)


def _wake(now: datetime) -> None:
    """Open flags that were muted until now, and have it judged whether they still hold."""
    awake = list(Flag.objects.filter(state=_State.MUTED, muted_until__lte=now).select_for_update())
    for flag in awake:
        flag.state, flag.muted_until, flag.changed_at = flag.state_of_opened, None, now
    Flag.objects.bulk_update(awake, ["state", "muted_until", "changed_at"])
    FlagEvent.objects.bulk_create(
        FlagEvent(flag=flag, what=_What.REOPENED, words="It was muted until now.") for flag in awake
    )
    StaleEvidence.objects.ask_for([flag.job_id for flag in awake if flag.job_id])


def _findings(rule: Rule, limits: dict[str, float], frame: pl.DataFrame) -> dict[str, _Found]:
    findings = rule.check(frame, limits)
    if findings.is_empty():
        return {}
    about = frame.join(findings.select("subject"), on="subject", how="semi")
    rows = {row["subject"]: row for row in about.iter_rows(named=True)}
    return {
        subject: _Found(numbers, rows[subject])
        for subject, numbers in findings.select("subject", "numbers").iter_rows()
    }


def _last_closed(same: FlagQuerySet, subjects: Collection[str]) -> dict[str, Flag]:
    resolved = same.filter(state=_State.RESOLVED, subject__in=subjects)
    newest = resolved.order_by("subject", "-pk").distinct("subject")
    return {flag.subject: flag for flag in newest}


def _is_news(rule: Rule, found: _Found, closed: Flag | None) -> bool:
    """Whether a finding opens a flag; not again what somebody has dealt with, or what rests."""
    if closed is None:
        return True
    until, has_grown = found.about["until"], found.value(rule) >= GROWTH * closed.value
    if closed.resolved_by:
        is_later = until > closed.until + RESTS_AFTER[rule.subject]
        return bool(has_grown or (rule.subject is not Subject.JOB and is_later))
    if closed.rests:
        blames_now = closed.why_withheld and not _why_withheld(rule, found)
        return bool(until > closed.until or has_grown or blames_now)
    return True


def _open(rule: Rule, in_force: InForce, kind: Subject, subject: str, found: _Found) -> Flag:
    about = found.about
    flag = Flag(
        rule=rule.code,
        rule_version=rule.version,
        subject_kind=kind,
        subject=subject,
        job_id=int(subject) if kind is Subject.JOB else None,
        owner=about["owner"] or "",
        cluster_id=about["cluster"],
        filesystem_id=about["filesystem"],
        severity=rule.severity_of(
            found.value(rule), in_force.limits, has_lasted=_has_lasted(about["until"], about)
        ),
        since=about["until"],
        until=about["until"],
        value=found.value(rule),
        numbers=found.numbers,
        limits=in_force.limits,
        scope=in_force.scope,
        advice=advise(in_force.advice, found.numbers, in_force.limits),
        why_withheld=_why_withheld(rule, found),
    )
    flag.state = flag.state_of_opened
    return flag


def _store_opened(flags: list[Flag]) -> None:
    Flag.objects.bulk_create(flags)
    FlagEvent.objects.bulk_create(
        FlagEvent(
            flag=flag,
            what=_What.WITHHELD if flag.why_withheld else _What.OPENED,
            words=" ".join(flag.why_withheld) or flag.advice,
            value=flag.value,
        )
        for flag in flags
    )


def _grown(rule: Rule, in_force: InForce, flag: Flag, found: _Found) -> Iterable[FlagEvent]:
    """Bring a flag up to date; yield what is worth to be told."""
    told = flag.value
    flag.until = max(flag.until, found.about["until"])
    flag.changed_at = datetime.now(flag.until.tzinfo)
    if found.value(rule) > flag.value:
        flag.value, flag.numbers = found.value(rule), found.numbers
        flag.rule_version = rule.version
    flag.limits, flag.scope = in_force.limits, in_force.scope
    flag.advice = advise(in_force.advice, flag.numbers, in_force.limits)
    reasons = _why_withheld(rule, found)
    flag.why_withheld = reasons
    if flag.state == _State.WITHHELD and not reasons:
        flag.state = _State.OPEN
        yield FlagEvent(flag=flag, what=_What.OPENED, words=flag.advice, value=flag.value)
    elif flag.state == _State.OPEN and reasons:  # (somebody looks at those of other states)
        flag.state = _State.WITHHELD
        yield FlagEvent(flag=flag, what=_What.WITHHELD, words=" ".join(reasons), value=flag.value)
    severity = rule.severity_of(
        flag.value, flag.limits, has_lasted=_has_lasted(flag.since, found.about)
    )
    if severity > flag.severity:
        flag.severity = severity
        words = f"It is {flag.get_severity_display()} now."
        yield FlagEvent(flag=flag, what=_What.ESCALATED, words=words, value=flag.value)
    elif _doublings(flag, flag.value) > _doublings(flag, told):
        yield FlagEvent(flag=flag, what=_What.GREW, words=flag.advice, value=flag.value)


def _fallen(in_force: InForce, flag: Flag) -> Iterable[FlagEvent]:
    """Resolve a flag whose finding does not hold; one that is muted stays so until its time."""
    if flag.state == _State.MUTED:
        return
    if not in_force.is_on:
        yield _resolved(flag, "Its rule is off here.")
    elif flag.limits == in_force.limits:
        yield _resolved(flag, "It is below the limits again.")
    else:
        flag.limits, flag.scope = in_force.limits, in_force.scope
        yield _resolved(flag, "The limits were changed, and it is below them.")


def _has_lasted(since: datetime, about: dict[str, Any]) -> bool:
    """Whether a finding has lasted for long enough to be abuse: as a job's whole run has."""
    lasted: timedelta = about["until"] - since
    whole_run = timedelta(seconds=about["duration_s"] or 0) if about.get("has_ended") else lasted
    return max(lasted, whole_run) >= ABUSE_AFTER


def _doublings(flag: Flag, value: float) -> int:
    """Return how many times a value is over the limit, by doubling."""
    limit, times = flag.limit or 0, 0
    while limit > 0 and value >= limit * GROWTH:
        value, times = value / GROWTH, times + 1
    return times


def blames(rule: Rule) -> pl.Expr:
    """Return whether a subject's data are good enough: of a frame with `evidence.ABOUT`."""
    return pl.lit(rule.is_about_data) | pl.col(_quality_of(rule)).eq_missing(_GOOD)


def _quality_of(rule: Rule) -> str:
    own = {Source.RPC_TRACE: "trace_quality", Source.JOB_STATS: "bytes_quality"}
    return own.get(rule.source, "quality")


def _why_withheld(rule: Rule, found: _Found) -> list[str]:
    """Return why nobody is to be blamed by these data."""
    quality = found.about[_quality_of(rule)]
    if rule.is_about_data or quality == _GOOD:
        return []
    if quality is None:
        return ["The quality of its data is not known yet."]
    return [f"Its data are {quality}, and only good ones are judged."]


def _resolved(flag: Flag, why: str, *, rests: bool = False) -> FlagEvent:
    flag.state, flag.why_resolved, flag.rests = _State.RESOLVED, why, rests
    flag.resolved_at = flag.changed_at = datetime.now(flag.until.tzinfo)
    return FlagEvent(flag=flag, what=_What.RESOLVED, words=why, value=flag.value)


def _words(span: timedelta) -> str:
    if span.days:
        return f"{span.days} days" if span.days > 1 else "a day"
    return f"{span.total_seconds() / 60:.0f} minutes"
