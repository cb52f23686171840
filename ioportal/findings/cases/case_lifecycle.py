"""Cases: the flags of a rule that are triaged together, opened and resolved by their findings.

Changes by staff are in `findings.cases.triage`, the states in `findings.models.case`. Rows are
locked, always in the order of their keys, so that several workers share a case.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Count, Exists, Max, Min, OuterRef, Q
from django.utils import timezone

from ioportal.findings.models import Case, CaseEvent, Flag, FlagEvent
from ioportal.rules.rule import GROUPS, Subject

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from datetime import datetime

    from ioportal.findings.models import FlagQuerySet

EXPIRES_AFTER = {  # without new findings
    Subject.JOB: timedelta(days=30),
    **dict.fromkeys(GROUPS, timedelta(days=30)),
    Subject.HOST: timedelta(minutes=30),
    Subject.FILESYSTEM: timedelta(hours=2),
}
# A finding that continues for so long after its case was resolved opens the case again. Findings on
# jobs do so only by growing.
CONTINUES_FOR = {
    **dict.fromkeys(GROUPS, timedelta(days=1)),
    Subject.HOST: timedelta(minutes=30),
    Subject.FILESYSTEM: timedelta(hours=2),
}
CURRENT_SPAN = timedelta(days=7)  # before its latest data: of the flags that give its severity
_BATCH_SIZE = 500  # cases of one UPDATE
_GROWTH = {FlagEvent.Kind.GREW, FlagEvent.Kind.ESCALATED}
_State = Case.State
_Kind = CaseEvent.Kind
_UPDATED_FIELDS = [
    "state",
    "severity",
    "since",
    "until",
    "changed_at",
    "resolved_at",
    "resolved_until",
    "resolution",
    "resolved_by",
    "muted_until",
]


class CaseKey(NamedTuple):
    """The identity of a case."""

    rule: str
    subject_kind: str
    subject: str  # of jobs: their owner
    application: str
    filesystem_id: int | None


def key_of(flag: Flag, application: str) -> CaseKey:
    """Return the identity of a flag's case."""
    subject = flag.owner if flag.subject_kind == Subject.JOB else flag.subject
    return CaseKey(flag.rule, flag.subject_kind, subject, application, flag.filesystem_id)


def assign(flags: Sequence[Flag], applications: Sequence[str]) -> None:
    """Set the cases of new flags, and create missing cases.

    Args:
        flags: flags that are not stored yet.
        applications: the application name of each flag; "": none.
    """
    by_key: dict[CaseKey, list[Flag]] = defaultdict(list)
    for flag, application in zip(flags, applications, strict=True):
        by_key[key_of(flag, application)].append(flag)
    cases = locked(by_key)
    if missing := by_key.keys() - cases.keys():
        # Another worker may create the same cases: then its rows are used.
        Case.objects.bulk_create(
            (_new(key, by_key[key]) for key in sorted(missing, key=str)), ignore_conflicts=True
        )
        cases = locked(by_key)
        created = Case.objects.filter(pk__in=[cases[key].pk for key in missing])
        CaseEvent.objects.bulk_create(
            _entry(case) for case in created.filter(events=None).order_by("pk")
        )
    for key, members in by_key.items():
        for flag in members:
            flag.case = cases[key]


def locked(keys: Collection[CaseKey]) -> dict[CaseKey, Case]:
    """Return the existing cases of some identities, and lock them."""
    values = [set(column) for column in zip(*keys, strict=True)]
    fields = ("rule__in", "subject_kind__in", "subject__in", "application__in")
    matching = Case.objects.filter(**dict(zip(fields, values[:-1], strict=True)))
    by_key = {
        CaseKey(*(getattr(case, name) for name in CaseKey._fields)): case
        for case in matching.order_by("pk").select_for_update()
    }
    return {key: by_key[key] for key in keys if key in by_key}


def _new(key: CaseKey, flags: list[Flag]) -> Case:
    good = [flag for flag in flags if not flag.is_suppressed]
    return Case(
        **key._asdict(),
        owner=flags[0].owner,
        state=_State.OPEN if good else _State.SUPPRESSED,
        severity=severity((flag.severity, flag.until) for flag in good or flags),
        since=min(flag.since for flag in good or flags),
        until=max(flag.until for flag in good or flags),
        changed_at=timezone.now(),
    )


def _entry(case: Case) -> CaseEvent:
    """Return the event of entering the state open or suppressed."""
    kind = _Kind.SUPPRESSED if case.state == _State.SUPPRESSED else _Kind.OPENED
    return CaseEvent(case=case, kind=kind)


def update(flags: Collection[Flag], events: Iterable[FlagEvent], reason: str = "") -> None:
    """Update the cases of changed flags: their times, severity and state.

    Args:
        flags: stored flags that opened, continued or ended.
        events: their events.
        reason: why a case may be left without findings; "": its last finding ended.
    """
    if not flags:
        return
    grown = {event.flag_id for event in events if event.kind in _GROWTH}
    by_case: dict[int, list[Flag]] = defaultdict(list)
    for flag in flags:
        by_case[flag.case_id].append(flag)
    changed = list(Case.objects.filter(pk__in=by_case).order_by("pk").select_for_update())
    totals = _totals(by_case)
    entries: list[CaseEvent] = []
    for case in changed:
        entries += _follow(case, totals[case.pk], by_case[case.pk], grown, reason)
    Case.objects.bulk_update(changed, _UPDATED_FIELDS, batch_size=_BATCH_SIZE)
    CaseEvent.objects.bulk_create(entries)


class _Totals(NamedTuple):
    """The flags of a case; `good` are on good data and still apply (`FlagQuerySet.counted`)."""

    current: int
    good: int
    severity: int
    since: datetime
    until: datetime


class _Row(NamedTuple):
    """The flags of one severity in a case."""

    severity: int
    flags: int
    current: int
    since: datetime
    until: datetime


def _totals(cases: Iterable[int]) -> dict[int, _Totals]:
    flags = Flag.objects.filter(case__in=list(cases)).order_by()
    every, good = _by_severity(flags), _by_severity(flags.counted())
    totals = {}
    for case, rows in every.items():
        counted = good.get(case, [])
        totals[case] = _Totals(
            sum(row.current for row in rows),
            sum(row.flags for row in counted),
            severity((row.severity, row.until) for row in counted or rows),
            min(row.since for row in counted or rows),
            max(row.until for row in counted or rows),
        )
    return totals


def _by_severity(flags: FlagQuerySet) -> dict[int, list[_Row]]:
    by_case: dict[int, list[_Row]] = defaultdict(list)
    rows = flags.values_list("case", "severity").annotate(
        Count("pk"),
        current=Count("pk", filter=Q(ended_at=None)),
        since=Min("since"),
        until=Max("until"),
    )
    for case, *row in rows:
        by_case[case].append(_Row(*row))
    return by_case


def severity(flags: Iterable[tuple[int, datetime]]) -> int:
    """Return the severity of a case: the highest of its flags in the week before its latest data.

    Args:
        flags: severity and end of the data of its flags; at least one.
    """
    rows = list(flags)
    latest = max(until for _, until in rows)
    return max(rank for rank, until in rows if until > latest - CURRENT_SPAN)


def _follow(
    case: Case, totals: _Totals, flags: list[Flag], grown: set[int], reason: str
) -> Iterator[CaseEvent]:
    """Update a case by its changed flags; yield its events."""
    case.since, case.until, case.changed_at = totals.since, totals.until, timezone.now()
    if totals.severity > case.severity and case.state in {_State.OPEN, _State.ACKNOWLEDGED}:
        severity = Flag.Severity(totals.severity).label
        yield CaseEvent(case=case, kind=_Kind.ESCALATED, text=f"Severity raised to {severity}.")
    case.severity = totals.severity
    if case.state == _State.RESOLVED:
        if any(_reopens(case, flag, has_grown=flag.pk in grown) for flag in flags):
            yield reopen(case, "New findings.", has_good_data=True)
    elif case.state != _State.MUTED and not totals.current:
        [*_, ending] = (flag.ending for flag in flags if flag.ended_at)
        yield resolve(case, reason or ending)
    elif case.state == _State.SUPPRESSED and totals.good:
        case.state = _State.OPEN
        yield _entry(case)
    elif case.state == _State.OPEN and not totals.good:
        case.state = _State.SUPPRESSED
        yield _entry(case)


def _reopens(case: Case, flag: Flag, *, has_grown: bool) -> bool:
    """Whether a changed flag opens its resolved case again."""
    if flag.ended_at or flag.is_suppressed:
        return False
    if case.resolved_until is None or flag.since > case.resolved_until:
        return True
    if has_grown:
        return flag.until > case.resolved_until
    continues_for = CONTINUES_FOR.get(Subject(flag.subject_kind))
    return bool(continues_for and flag.until > case.resolved_until + continues_for)


def resolve(
    case: Case, reason: str, *, by: str = "", resolved_until: datetime | None = None
) -> CaseEvent:
    """Set a case to resolved; return the event.

    Args:
        case: a case, to be stored by the caller.
        reason: the resolution.
        by: a member of staff; "": automatically.
        resolved_until: see `Case.resolved_until`.
    """
    case.state, case.resolution, case.resolved_by = _State.RESOLVED, reason, by
    case.resolved_at, case.resolved_until, case.muted_until = timezone.now(), resolved_until, None
    return CaseEvent(case=case, kind=_Kind.RESOLVED, by=by, text=reason)


def reopen(case: Case, reason: str, *, has_good_data: bool) -> CaseEvent:
    """Set a case to its initial state; return the event. The caller saves the case."""
    case.state = _State.OPEN if has_good_data else _State.SUPPRESSED
    case.resolution, case.resolved_by = "", ""
    case.resolved_at = case.resolved_until = case.muted_until = None
    case.changed_at = timezone.now()
    return CaseEvent(case=case, kind=_Kind.REOPENED, text=reason)


def expire(now: datetime, latest_data: datetime) -> None:
    """Resolve cases without new findings, and reopen cases muted until now.

    Args:
        now: current time.
        latest_data: end of the latest data. Cases that are much older (a year of logs loaded in one
            command) expire immediately, unless a user has acted on them since.
    """
    for kind, after in EXPIRES_AFTER.items():
        acted = CaseEvent.objects.filter(case=OuterRef("pk"), at__gt=now - after).exclude(by="")
        is_old = Q(until__lt=latest_data - after) & ~Exists(acted)
        due = Case.objects.exclude(state__in=[_State.RESOLVED, _State.MUTED]).filter(
            Q(changed_at__lt=now - after) | is_old, subject_kind=kind
        )
        cases = list(due.order_by("pk").select_for_update())
        reasons = {case.pk: _expiry(case, now, after, latest_data) for case in cases}
        events = [
            # Findings newer than the expired findings reopen it, whenever they arrive.
            resolve(case, reasons[case.pk], resolved_until=max(case.until, latest_data - after))
            for case in cases
        ]
        Case.objects.bulk_update(cases, _UPDATED_FIELDS, batch_size=_BATCH_SIZE)
        CaseEvent.objects.bulk_create(events)
        if kind is not Subject.JOB:  # the next finding is another episode
            flags = list(Flag.objects.current().filter(case__in=cases))
            FlagEvent.objects.bulk_create([flag.end(reasons[flag.case_id]) for flag in flags])
            Flag.objects.bulk_update(flags, ["ended_at", "ending", "changed_at"])
    _unmute(now)


def _expiry(case: Case, now: datetime, after: timedelta, latest_data: datetime) -> str:
    """Return why a case expires: without findings, without data, or just loaded history."""
    span = _in_words(after)
    if case.changed_at < now - after and latest_data < now - after:
        latest = timezone.localtime(max(latest_data, case.until))
        return f"Expired without data: the site has none since {latest:%Y-%m-%d %H:%M}."
    if case.changed_at < now - after:
        return f"Expired: no new findings for {span}."
    return f"Expired: its latest data is more than {span} older than the latest data of the site."


def _unmute(now: datetime) -> None:
    """Reopen cases that were muted until now; resolve those whose findings have ended."""
    due = Case.objects.filter(state=_State.MUTED, muted_until__lte=now)
    cases = list(due.order_by("pk").select_for_update())
    totals = _totals(case.pk for case in cases)
    ended = Flag.objects.filter(case__in=cases).exclude(ended_at=None)
    latest = ended.order_by("case_id", "-ended_at", "-pk").distinct("case_id")
    endings = dict(latest.values_list("case_id", "ending"))
    events = []
    for case in cases:
        total = totals.get(case.pk)
        has_good_data = bool(total and total.good)
        events.append(reopen(case, "The mute period ended.", has_good_data=has_good_data))
        if not (total and total.current):
            ending = endings.get(case.pk, "")
            reason = f"The finding ended while the case was muted. {ending}".strip()
            events.append(resolve(case, reason))
    Case.objects.bulk_update(cases, _UPDATED_FIELDS, batch_size=_BATCH_SIZE)
    CaseEvent.objects.bulk_create(events)


def _in_words(span: timedelta) -> str:
    if span.days:
        return f"{span.days} days" if span.days > 1 else "a day"
    return f"{span.total_seconds() / 60:.0f} minutes"
