"""Applies decisions to the cases of the database: writes notifications, and stores reasons."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, F, Max, Min, OuterRef, Q, Subquery
from django.utils import timezone

from ioportal.alerts import compose
from ioportal.alerts.decide import (
    Candidate,
    Decision,
    Mailed,
    Policy,
    Silence,
    Verdict,
    decide,
    refusal,
)
from ioportal.alerts.digests import schedule
from ioportal.alerts.models import (
    BouncedAddress,
    CaseDecision,
    MailPolicy,
    Notification,
    NotificationCase,
    NotificationImage,
)
from ioportal.alerts.models import Silence as StoredSilence
from ioportal.alerts.topics import topics
from ioportal.analysis.metrics import Source
from ioportal.analysis.rules import BY_CODE
from ioportal.analysis.rules.rule import Subject
from ioportal.flags.models import Case, Flag
from ioportal.postgres.advisory_locks import Lock, hold
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

_DAY = timedelta(days=1)
_ENDS_WITHIN = timedelta(hours=2)  # of its latest data
_CONSIDERED = (Case.State.OPEN, Case.State.ACKNOWLEDGED, Case.State.SUPPRESSED)
_State = Notification.State
_REQUESTED = (Notification.Kind.DIGEST, Notification.Kind.REPORT)  # count for no limit
_FROM_POLICY = {field.name for field in fields(Policy)} - {"zone", "fresh", "growth"}


def plan(now: datetime | None = None) -> int:
    """Decide about all cases that may need a mail, and write the mails; return how many.

    Safe to run concurrently, and to repeat: a case is mailed about once.
    """
    with transaction.atomic():
        hold(Lock.ALERTS)
        now = now or timezone.now()
        decisions = _decisions(candidates(now), now)
        _store_reasons(decisions)
        schedule.write_brake_notices(
            [each.case for held in decisions if held.is_braked for each in held.candidates], now
        )
        mails = [each for each in decisions if each.verdict is Verdict.MAIL]
        for decision in mails:
            state = _State.DRAFT if decision.needs_approval else _State.WAITING
            _write(decision.candidates, decision.reason, state, now)
        return len(mails)


class Refused(Exception):  # noqa: N818  (an answer to staff, not an error)
    """A mail about a case may not be written; the text says why."""


def outlook(case: int) -> Decision:
    """Return what would happen with the mail about a case now; nothing is stored."""
    now = timezone.now()
    [decision] = (
        each
        for each in _decisions(candidates(now, also=case), now)
        if case in {candidate.case for candidate in each.candidates}
    )
    return decision


def write_draft(case: int, by: str) -> Notification:
    """Return the draft of a mail about a case that a member of staff asked for, or an earlier one.

    Raises:
        Refused: its data is not good, or its owner cannot get mails.
    """
    with transaction.atomic():
        hold(Lock.ALERTS)
        drafts = Notification.objects.all().to_users().filter(state=_State.DRAFT, cases__case=case)
        if draft := drafts.filter(kind=Notification.Kind.CASES).first():
            return draft
        now = timezone.now()
        [candidate] = (each for each in candidates(now, also=case) if each.case == case)
        if reason := refusal(candidate, current_policy()):
            raise Refused(reason)
        draft = _write([candidate], f"Written by {by}.", _State.DRAFT, now)
        if draft is None:
            raise Refused("It has no finding on good data.")
        return draft


def _decisions(considered: list[Candidate], now: datetime) -> list[Decision]:
    policy = current_policy()
    mailed = _mailed(now - max(_DAY, policy.interval))
    return decide(considered, list(silences(now)), list(mailed), policy, now)


def current_policy() -> Policy:
    """Return the latest policy of the site, or the default: drafts only."""
    zone = ZoneInfo(settings.TIME_ZONE)
    stored = MailPolicy.objects.first()
    if stored is None:
        return Policy(zone)
    return Policy(zone, **{name: getattr(stored, name) for name in _FROM_POLICY})


def candidates(now: datetime, also: int | None = None) -> list[Candidate]:
    """Return cases above notices, neither muted nor resolved; those that ended; and one more.

    Groups of jobs and hosts end as soon as they stay below the thresholds: a storm of the night is
    over before quiet hours are.
    """
    last = NotificationCase.objects.filter(case=OuterRef("pk"), notification__channel=None).exclude(
        notification__state=Notification.State.DISCARDED
    )
    last = last.order_by("-notification__created_at")
    ended = Q(
        state=Case.State.RESOLVED,
        resolved_by="",
        resolved_at__gt=now - _DAY,
        resolved_at__lt=F("until") + _ENDS_WITHIN,  # others expired
    ) & ~Q(subject_kind=Subject.JOB)  # whose findings end only if they no longer apply
    considered = Q(state__in=_CONSIDERED) | ended
    cases = Case.objects.filter(considered & Q(severity__gt=Flag.Severity.NOTICE) | Q(pk=also))
    rows = cases.order_by("pk").values(
        "pk", "rule", "severity", "state", "owner", "opened_at", "filesystem__name",
        has_ended=ExpressionWrapper(ended, BooleanField()),
        mailed_at=Subquery(last.values("notification__created_at")[:1]),
        mailed_value=Subquery(last.values("value")[:1]),
    )  # fmt: skip
    owners = {row["owner"] for row in rows}
    addresses = dict(UserAccount.objects.filter(name__in=owners).values_list("name", "email"))
    bounced = BouncedAddress.objects.times(addresses.values())
    evidence = Flag.objects.counted().filter(case__in=[row["pk"] for row in rows]).order_by()
    figures = {
        case: (value, lag)
        for case, value, lag in evidence.values_list("case").annotate(
            Max("value"), lag=Min(F("opened_at") - F("until"))
        )
    }
    return [
        _candidate(
            row,
            address := addresses.get(row["owner"], ""),
            bounced.get(address.lower()),
            *figures.get(row["pk"], (0.0, timedelta(0))),
        )
        for row in rows
    ]


def _candidate(
    row: Mapping[str, Any],
    address: str,
    bounced_at: datetime | None,
    value: float,
    lag: timedelta,
) -> Candidate:
    rule = BY_CODE.get(row["rule"])
    return Candidate(
        case=row["pk"],
        rule=row["rule"],
        is_about_impact=bool(rule and rule.source is Source.IMPACT),
        is_about_data=bool(rule and rule.is_about_data),
        is_notice=row["severity"] <= Flag.Severity.NOTICE,
        state="ended" if row["has_ended"] else row["state"],
        recipient=row["owner"],
        address=address,
        filesystem=row["filesystem__name"] or "",
        value=value,
        opened_at=row["opened_at"],
        lag=lag,
        mailed_at=row["mailed_at"],
        mailed_value=row["mailed_value"] or 0.0,
        bounced_at=bounced_at,
    )


def silences(now: datetime) -> Iterator[Silence]:
    """Yield the silences that have not expired."""
    for stored in StoredSilence.objects.filter(until__gt=now).select_related("filesystem"):
        yield Silence(
            stored.until,
            stored.recipient or None,
            stored.rule or None,
            stored.filesystem.name if stored.filesystem else None,
            stored.reason,
        )


def _mailed(since: datetime) -> Iterator[Mailed]:
    about_cases = (Notification.Kind.CASES, Notification.Kind.FOLLOW_UP)
    earlier = Notification.objects.all().to_users()
    earlier = earlier.filter(created_at__gt=since, kind__in=about_cases)
    earlier = earlier.exclude(state=Notification.State.DISCARDED)
    earlier = earlier.exclude(kind__in=_REQUESTED)
    for recipient, filesystem, at in earlier.values_list(
        "recipient", "filesystem__name", "created_at"
    ):
        yield Mailed(recipient, filesystem or "", at)


def _store_reasons(decisions: Iterable[Decision]) -> None:
    """Store the decision of each case whose reason has changed."""
    by_case = {each.case: decision for decision in decisions for each in decision.candidates}
    latest = {
        row.case_id: (row.verdict, row.reason)
        for row in CaseDecision.objects.filter(case__in=by_case)
        .order_by("case_id", "-pk")
        .distinct("case_id")
    }
    CaseDecision.objects.bulk_create(
        CaseDecision(case_id=case, verdict=decision.verdict, reason=decision.reason)
        for case, decision in by_case.items()
        if latest.get(case) != (decision.verdict, decision.reason)
    )


def _write(
    about_cases: Iterable[Candidate], reason: str, state: str, now: datetime
) -> Notification | None:
    """Write the mail about some cases of a recipient; None: their flags ended meanwhile."""
    cases = {each.case: each for each in about_cases}
    [recipient] = {each.recipient for each in cases.values()}
    about = topics(cases, recipient)
    if not about:
        return None
    account = UserAccount.objects.get(name=recipient)
    content = compose.about_cases(about, account)
    notification = Notification.objects.create(
        recipient=recipient,
        address=account.email,
        filesystem=about[0].case.filesystem,
        subject=content.subject,
        text=content.text,
        html=content.html,
        reason=reason,
        state=state,
        created_at=now,
        next_attempt_at=None if state == _State.DRAFT else now,
    )
    NotificationImage.objects.bulk_create(
        NotificationImage(notification=notification, name=name, png=png)
        for name, png in content.images.items()
    )
    NotificationCase.objects.bulk_create(
        NotificationCase(
            notification=notification,
            case=topic.case,
            value=cases[topic.case.pk].value,
            rule_version=topic.summary.worst.rule_version if topic.summary.worst else 0,
        )
        for topic in about
    )
    return notification
