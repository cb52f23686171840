"""Applies decisions to the cases of the database: writes notifications, and stores reasons."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog
from django.db import OperationalError, transaction
from django.db.models import Q
from django.utils import timezone

from ioportal.alerts import compose, facts, fitness
from ioportal.alerts.case_mail_texts import topics
from ioportal.alerts.decide import Verdict, decide, refusal
from ioportal.alerts.digests import schedule
from ioportal.alerts.models import CaseDecision, Notification, NotificationCase, NotificationImage
from ioportal.core.postgres.advisory_locks import Busy, Lock, hold, hold_soon
from ioportal.core.visible_text import visible
from ioportal.findings.models import Case, Flag
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from ioportal.alerts.decide import Candidate, Decision, Policy
    from ioportal.alerts.models import NotificationQuerySet

log = structlog.get_logger()

_DAY = timedelta(days=1)
_CONSIDERED = (Case.State.OPEN, Case.State.ACKNOWLEDGED, Case.State.SUPPRESSED)
_State, _Kind = Notification.State, Notification.Kind
_ON_ITS_WAY = (_State.WAITING, _State.SENDING, _State.ENDING)
_ARRIVED = (_State.SENT, _State.UNCERTAIN)
_FOLLOW_UP = "Follow-up: "
_REASON = 300  # in the database


def plan(now: datetime | None = None) -> int:
    """Decide about all cases that may need a mail, and write the mails; return how many.

    Safe to run concurrently, and to repeat: a case is mailed about once.

    Raises:
        Exception: the first error about a mail, after all others were written.
    """
    with transaction.atomic():
        hold(Lock.ALERTS)
        now = now or timezone.now()
        decisions = _decisions(candidates(now), now)
        errors: list[Exception] = []
        done = [_carried_out(decision, errors, now) for decision in decisions]
        store_reasons(
            {each.case: (held.verdict, held.reason) for held in done for each in held.candidates}
        )
        schedule.write_brake_notices(
            [each.case for held in decisions if held.is_braked for each in held.candidates], now
        )
    if errors:
        raise errors[0]
    return sum(decision.verdict is Verdict.MAIL for decision in done)


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

    A draft that may no longer be sent is replaced: staff who create another know why.

    Raises:
        Refused: its data is not good, its owner cannot get mails, or a mail about it is recent.
    """
    with transaction.atomic():
        try:
            hold_soon(Lock.ALERTS)
        except Busy as error:
            raise Refused("Other mails are being written. Try again in a minute.") from error
        now, policy = timezone.now(), facts.current_policy()
        [candidate] = facts.candidates(Case.objects.filter(pk=case))
        about = Notification.objects.filter(
            channel=None, kind=_Kind.CASES, recipient=candidate.recipient, cases__case=case
        )
        reason = refusal(candidate, policy) or _recently_mailed(about, policy, now)
        if reason:
            raise Refused(reason)
        drafts = about.filter(state=_State.DRAFT)
        for draft in drafts:
            if not fitness.objection(draft):
                return draft
        unfit = [draft.pk for draft in drafts]
        new = _write([candidate], f"Written by {by}.", _State.DRAFT, now, requested_by=by)
        if new is None:
            raise Refused("It has no finding on good data that still applies.")
        outdated = Notification.objects.filter(pk__in=unfit)
        outdated.update(
            state=_State.DISCARDED, response=f"{by} created another draft.", finished_at=now
        )
        return new


def _recently_mailed(about: NotificationQuerySet, policy: Policy, now: datetime) -> str:
    """Return when a case was mailed about within the interval, or that it is now; "": neither."""
    if about.filter(state__in=_ON_ITS_WAY).exists():
        return "A mail about it is on its way."
    sent = about.filter(state__in=_ARRIVED, finished_at__gt=now - policy.interval)
    times = sent.order_by("-finished_at").values_list("finished_at", flat=True)
    if last := times.first():
        at, due = (time.astimezone(policy.zone) for time in (last, last + policy.interval))
        return f"A mail about it was sent at {at:%H:%M}; the next one may follow at {due:%H:%M}."
    return ""


def _decisions(considered: list[Candidate], now: datetime) -> list[Decision]:
    policy = facts.current_policy()
    mailed = facts.mailed(now - max(_DAY, policy.interval))
    return decide(considered, facts.silences(now), mailed, policy, now)


def candidates(now: datetime, also: int | None = None) -> list[Candidate]:
    """Return cases above notices that are neither muted nor resolved, ended cases, and one more.

    Groups of jobs and hosts end as soon as they stay below the thresholds: a storm of the night is
    over before quiet hours are.
    """
    considered = Q(state__in=_CONSIDERED) | (facts.ENDED & Q(resolved_at__gt=now - _DAY))
    considered &= Q(severity__gt=Flag.Severity.NOTICE)
    return facts.candidates(Case.objects.filter(considered | Q(pk=also)))


def _carried_out(decision: Decision, errors: list[Exception], now: datetime) -> Decision:
    """Write the mail of a decision, if there is one; return the decision as it was carried out.

    An error about one mail must not stop the others: it is added to `errors`.
    """
    if decision.verdict is not Verdict.MAIL:
        return decision
    state = _State.DRAFT if decision.needs_approval else _State.WAITING
    try:
        with transaction.atomic():
            mail = _write(decision.candidates, decision.reason, state, now)
    except OperationalError:  # of the database
        raise
    except Exception as error:  # noqa: BLE001
        errors.append(error)
        cases = [each.case for each in decision.candidates]
        log.warning("mail_not_written", cases=cases, error=repr(error))
        reason = f"The mail could not be written: {type(error).__name__}: {error}"
        return replace(decision, verdict=Verdict.LATER, reason=reason)
    if mail is None:
        hidden = "Its owner may see none of its findings."
        return replace(decision, verdict=Verdict.WITHHELD, reason=hidden)
    return decision


def _write(
    about_cases: Iterable[Candidate],
    reason: str,
    state: str,
    now: datetime,
    requested_by: str = "",
) -> Notification | None:
    """Write the mail about some cases of a recipient; None: the recipient may see no finding."""
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
        requested_by=requested_by,
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
            request=topic.request,
        )
        for topic in about
    )
    return notification


def store_reasons(
    decisions: Mapping[int, tuple[Verdict, str]], *, are_follow_ups: bool = False
) -> None:
    """Store verdicts and reasons by case if they differ from the latest of their kind."""
    prefix = _FOLLOW_UP if are_follow_ups else ""
    by_case = {
        case: (verdict, visible(f"{prefix}{reason}")[:_REASON])
        for case, (verdict, reason) in decisions.items()
    }
    rows = CaseDecision.objects.filter(case__in=by_case)
    of_kind = rows.filter if are_follow_ups else rows.exclude
    latest = of_kind(reason__startswith=_FOLLOW_UP).order_by("case_id", "-pk").distinct("case_id")
    stored = {row.case_id: (row.verdict, row.reason) for row in latest}
    CaseDecision.objects.bulk_create(
        CaseDecision(case_id=case, verdict=verdict, reason=reason)
        for case, (verdict, reason) in by_case.items()
        if stored.get(case) != (verdict, reason)
    )
