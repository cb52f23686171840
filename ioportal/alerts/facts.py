"""What decides about mails, as the database has it: the policy, silences, and facts of cases."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import models
from django.db.models import F, Max, Min, Q, Value, When
from django.utils import timezone

from ioportal.alerts.decide import FRESH, Candidate, Mailed, Policy, SameHarm, Silence
from ioportal.alerts.models import BouncedAddress, MailPolicy, Notification, NotificationCase
from ioportal.alerts.models import Silence as StoredSilence
from ioportal.core.units import Source
from ioportal.findings import observation_stage
from ioportal.findings.flags import endings
from ioportal.findings.models import Case, CaseEvent, Flag
from ioportal.load.impact.job_groups import LONGEST_NAME, Application
from ioportal.rules import BY_CODE, RULES
from ioportal.rules.rule import Subject
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from ioportal.findings.models import CaseQuerySet

_ENDS_WITHIN = timedelta(hours=2)  # of its latest data; others expired
_FROM_POLICY = {field.name for field in fields(Policy)} - {"zone"}
_State = Notification.State
# Findings on jobs end only if they no longer apply. NARROWER_GROUP: part of the group is evaluated
# instead.
ENDED = (
    Q(state=Case.State.RESOLVED, resolved_by="", resolved_at__lt=F("until") + _ENDS_WITHIN)
    & ~Q(subject_kind=Subject.JOB)
    & ~Q(resolution=endings.NARROWER_GROUP)
)
_HARMFUL = {rule.code for rule in RULES if rule.needs_harm}
_OF_PERSONS = (Subject.JOB, Subject.APPLICATION, Subject.USER)
_SCOPE = ("rule", "subject_kind", "subject", "application", "filesystem__name")


def current_policy() -> Policy:
    """Return the latest policy of the site, or the default: drafts only."""
    return _policy(MailPolicy.objects.first())


def policy_at(time: datetime) -> Policy:
    """Return the policy that applied at a time."""
    return _policy(MailPolicy.objects.filter(set_at__lte=time).first())


def _policy(stored: MailPolicy | None) -> Policy:
    zone = ZoneInfo(settings.TIME_ZONE)
    if stored is None:
        return Policy(zone)
    return Policy(zone, **{name: getattr(stored, name) for name in _FROM_POLICY})


def silences(now: datetime, created_after: datetime | None = None) -> list[Silence]:
    """Return the silences that have not expired: all, or those created after a time."""
    stored = StoredSilence.objects.filter(until__gt=now)
    if created_after:
        stored = stored.filter(created_at__gt=created_after)
    rows = stored.values_list("until", "recipient", "rule", "filesystem__name", "reason")
    return [Silence(*row) for row in rows]


def mailed(since: datetime) -> list[Mailed]:
    """Return the mails about cases and the follow-ups that were written since a time."""
    kinds = (Notification.Kind.CASES, Notification.Kind.FOLLOW_UP)
    rows = Notification.objects.filter(kind__in=kinds, channel=None, created_at__gt=since)
    rows = rows.exclude(state=_State.DISCARDED)
    return [
        Mailed(recipient, filesystem or "", at)
        for recipient, filesystem, at in rows.values_list(
            "recipient", "filesystem__name", "created_at"
        )
    ]


def candidates(cases: CaseQuerySet) -> list[Candidate]:
    """Return cases with the facts that decide about their mails, in the order of their keys."""
    state = models.Case(
        When(ENDED, then=Value("ended")),
        When(state=Case.State.RESOLVED, resolved_by="", then=Value("expired")),
        default=F("state"),
    )
    rows = list(
        cases.order_by("pk").values(
            *("pk", "severity", "owner", "opened_at", "since", "until", *_SCOPE), state_now=state
        )
    )
    keys = [row["pk"] for row in rows]
    owners = {row["owner"] for row in rows}
    addresses = dict(UserAccount.objects.filter(name__in=owners).values_list("name", "email"))
    bounced = BouncedAddress.objects.times(addresses.values())
    figures, last_mails, same_harm = _figures(keys), _last_mails(keys), _same_harm(rows)
    found = [
        _candidate(
            row,
            address := addresses.get(row["owner"], ""),
            bounced.get(address.lower()),
            figures.get(row["pk"]),
            last_mails.get(row["pk"], {}),
        )
        for row in rows
    ]
    slow = {row.server.filesystem.name for row in observation_stage.slow(timezone.now())}
    return [
        replace(
            each,
            same_harm=same_harm.get(each.case),
            is_going_on=each.is_about_impact
            and (each.filesystem in slow or bool(slow and not each.filesystem)),
        )
        for each in found
    ]


def _figures(cases: list[int]) -> dict[int, tuple[float, timedelta]]:
    """Return the highest value of each case, without history if possible, and its lag."""
    flags = Flag.objects.counted().without_history(FRESH).filter(case__in=cases)
    rows = (
        flags.order_by()
        .values_list("case")
        .annotate(Max("value"), lag=Min(F("opened_at") - F("until")))
    )
    return {case: (value, lag) for case, value, lag in rows}


def _last_mails(cases: Iterable[int]) -> dict[int, Mapping[str, Any]]:
    """Return the last mail about each case to its present owner.

    A mail that staff discarded counts, one that was discarded because it did not fit does not. A
    mail that the server refused, or from before the case was opened again, counts for no growth.
    """
    reopened = CaseEvent.objects.filter(case=models.OuterRef("case"), kind=CaseEvent.Kind.REOPENED)
    rows = (
        NotificationCase.objects.filter(case__in=cases, notification__recipient=F("case__owner"))
        .filter(notification__channel=None)
        .exclude(notification__state=_State.DISCARDED, notification__released_by="")
        .annotate(
            at=F("notification__created_at"),
            by=F("notification__released_by"),
            state=F("notification__state"),
            response=F("notification__response"),
            reopened_at=models.Subquery(reopened.order_by("-pk").values("at")[:1]),
        )
        .order_by("case_id", "-at", "-pk")
        .distinct("case_id")
    )
    names = ("case", "value", "at", "by", "state", "response", "reopened_at")
    return {row["case"]: row for row in rows.values(*names)}


def _candidate(
    row: Mapping[str, Any],
    address: str,
    bounced_at: datetime | None,
    figures: tuple[float, timedelta] | None,
    last: Mapping[str, Any],
) -> Candidate:
    rule = BY_CODE.get(row["rule"])
    value, lag = figures or (0.0, timedelta(0))
    return Candidate(
        case=row["pk"],
        rule=row["rule"],
        is_about_impact=bool(rule and rule.source is Source.IMPACT),
        is_about_data=bool(rule and rule.is_about_data),
        is_notice=row["severity"] <= Flag.Severity.NOTICE,
        state=row["state_now"],
        recipient=row["owner"],
        address=address,
        filesystem=row["filesystem__name"] or "",
        value=value,
        opened_at=row["opened_at"],
        lag=lag,
        has_findings=figures is not None,
        mailed_at=last.get("at"),
        mailed_value=last["value"] if last and _counts_for_growth(last) else 0.0,
        discarded_by=last["by"] if last and last["state"] == _State.DISCARDED else "",
        bounced_at=bounced_at,
        until=row["until"],
    )


def _same_harm(cases: Sequence[Mapping[str, Any]]) -> dict[int, SameHarm]:
    """Return the last mail to the owner of each case about another case with the same harm.

    It was written after the harm began. A mail about impact is about every finding on these jobs, a
    mail about load is about load only.
    """
    harmful = [
        case for case in cases if case["rule"] in _HARMFUL and case["subject_kind"] in _OF_PERSONS
    ]
    if not harmful:
        return {}
    about = NotificationCase.objects.filter(
        notification__kind=Notification.Kind.CASES,
        notification__channel=None,
        notification__recipient__in={case["owner"] for case in harmful},
        notification__created_at__gt=min(case["since"] for case in harmful),
        case__rule__in=_HARMFUL,
        case__subject_kind__in=_OF_PERSONS,
    ).exclude(notification__state=_State.DISCARDED, notification__released_by="")
    fields_of_mail = ("case", "notification__created_at", "notification__recipient")
    rows = about.order_by("notification__created_at").values_list(
        *fields_of_mail, *(f"case__{name}" for name in _SCOPE)
    )
    return {
        case["pk"]: SameHarm(key, at)
        for key, at, owner, *scope in rows
        for case in harmful
        if case["pk"] != key
        and case["owner"] == owner
        and case["since"] < at
        and _covers(dict(zip(_SCOPE, scope, strict=True)), case)
    }


def _covers(mailed: Mapping[str, Any], case: Mapping[str, Any]) -> bool:
    """Return whether a mail about a case of the same owner is about another one, too."""
    is_wider = _is_about_impact(mailed["rule"]) or not _is_about_impact(case["rule"])
    filesystems = {mailed["filesystem__name"], case["filesystem__name"]} - {None}
    names = {_application(mailed), _application(case)} - {None}
    return is_wider and len(names) <= 1 and len(filesystems) <= 1


def _application(case: Mapping[str, Any]) -> str | None:
    """Return the name of a case's jobs; None: all jobs of its owner."""
    if case["subject_kind"] == Subject.USER:
        return None
    if case["subject_kind"] == Subject.APPLICATION:
        return Application.from_text(case["subject"]).name
    return str(case["application"])[:LONGEST_NAME]


def _is_about_impact(rule: str) -> bool:
    return BY_CODE[rule].source is Source.IMPACT


def _counts_for_growth(last: Mapping[str, Any]) -> bool:
    was_refused = last["state"] == _State.FAILED and not last["response"].startswith(
        Notification.BOUNCED
    )
    is_earlier = last["reopened_at"] is not None and last["at"] < last["reopened_at"]
    return not (was_refused or is_earlier)
