"""The daily digest for staff: cases, mails and data problems of the last day."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.urls import reverse
from django.utils.timesince import timesince

from ioportal.alerts.compose import Digest, Entry, Section
from ioportal.alerts.models import CaseDecision, Notification, NotificationCase
from ioportal.core.visible_text import visible
from ioportal.findings.cases.case_texts import is_simulated, summaries, with_places, worst_first
from ioportal.findings.models import Case
from ioportal.ingest import health

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    from ioportal.alerts.models import NotificationQuerySet
    from ioportal.findings.cases.case_texts import CaseSummary

_DAY = timedelta(days=1)
_LISTED_CASES = 20
_LISTED = 10
_State = Notification.State


def digest(now: datetime) -> Digest:
    """Return the digest of the day before `now`; its readers are staff, who see everything."""
    reader = get_user_model()(is_staff=True)
    cases = Case.objects.visible_to(reader).to_triage().filter(until__gt=now - _DAY)
    first = summaries(worst_first(with_places(cases), {})[:_LISTED_CASES], reader)
    mails = Notification.objects.visible_to(reader)
    lost = mails.filter(state__in=[_State.FAILED, _State.UNCERTAIN], finished_at__gt=now - _DAY)
    problems = list(_data_problems(now))
    sections = (
        Section("Cases", _cases(first, now), cases.count(), "No cases need attention."),
        _mails("Drafts", mails.filter(state=_State.DRAFT), "No drafts are waiting."),
        _mails("Failed and uncertain mails", lost, "No mails failed in the last day."),
        Section("Data problems", problems[:_LISTED], len(problems), "No problems."),
    )
    counts = [f"{each.title.lower()}: {each.count:,}" for each in sections if each.count]
    return Digest(
        f"Daily digest: {', '.join(counts) or 'nothing needs attention'}",
        "This is what needs attention: cases with data of the last day, the worst first, then "
        "mails and data sources.",
        sections,
        any(is_simulated(row.case) for row in first),
    )


def brake_notice(cases: Collection[int], limit: int) -> Digest:
    """Return the notice that mails about cases are held by the hourly limit."""
    reader = get_user_model()(is_staff=True)
    held = worst_first(with_places(Case.objects.visible_to(reader).filter(pk__in=cases)), {})
    rows = summaries(held[:_LISTED_CASES], reader)
    entries = [Entry(_heading(row), [*_owner(row)], row.address) for row in rows]
    return Digest(
        f"Mails about cases are held: {limit} within an hour",
        f"The policy allows {limit} mails to users within an hour. Further mails wait until fewer "
        "were written in the last hour. If many cases are wrong, set their rules to approval or "
        "off, or create a silence.",
        (Section("Held cases", entries, len(cases), ""),),
        any(is_simulated(row.case) for row in rows),
    )


def _cases(rows: Sequence[CaseSummary], now: datetime) -> list[Entry]:
    keys = [row.case.pk for row in rows]
    sent = NotificationCase.objects.filter(
        case__in=keys, notification__state__in=[_State.SENT, _State.UNCERTAIN]
    )
    mails: dict[int, list[NotificationCase]] = defaultdict(list)
    for mail in sent.select_related("notification").order_by("pk"):
        mails[mail.case_id].append(mail)
    decisions = CaseDecision.objects.filter(case__in=keys).order_by("case_id", "-pk")
    reasons = dict(decisions.distinct("case_id").values_list("case", "reason"))
    return [
        Entry(
            _heading(row),
            [
                *_owner(row),
                f"{row.measure_title}: {row.highest} (threshold {row.threshold})",
                f"Flags: {row.trend}",
                _mails_in_words(mails[row.case.pk], now),
                f"Latest decision: {visible(reasons.get(row.case.pk, 'none'))}",
            ],
            row.address,
        )
        for row in rows
    ]


def _mails_in_words(mails: Sequence[NotificationCase], now: datetime) -> str:
    if not mails:
        return "No mails"
    last = mails[-1]
    sent_at = last.notification.finished_at or last.notification.created_at
    effect = f". Since then: {visible(last.effect)}" if last.effect else ""
    return f"Mails: {len(mails)}, the last {_age(sent_at, now)} ago{effect}"


def _heading(row: CaseSummary) -> str:
    case = row.case
    named = f", jobs named {case.application}" if case.application else ""
    place = f" on {case.filesystem}" if case.filesystem else ""
    severity = case.get_severity_display()
    return visible(f"{case.title}: {row.subject.text}{named}{place} ({severity})")


def _owner(row: CaseSummary) -> Iterator[str]:
    if row.contact:
        name = visible(row.contact.name or row.contact.user)
        yield f"Owner: {name}, {row.contact.address or 'no address'}"


def _mails(title: str, mails: NotificationQuerySet, none: str) -> Section:
    entries = [
        Entry(
            visible(mail.subject),
            [
                f"To {visible(mail.recipient or mail.address)}: {mail.get_state_display()}",
                *([visible(mail.response)] if mail.response else ()),
            ],
            reverse("mail", args=[mail.pk]),
        )
        for mail in mails.order_by("created_at", "pk")[:_LISTED]
    ]
    return Section(title, entries, mails.count(), none)


def _data_problems(now: datetime) -> Iterator[Entry]:
    page = reverse("health")
    for failure in health.failing_stages():
        yield Entry(f"Stage {failure.stage} fails: {visible(failure.error)[:200]}", path=page)
    for backlog in health.backlogs(now):
        if backlog.is_late and backlog.oldest:
            yield Entry(
                f"Backlog of {backlog.stage}: {backlog.rows:,} {backlog.kind}, the oldest of "
                f"{_age(backlog.oldest, now)} ago",
                path=page,
            )
    for source in health.sources(now):
        if source.problems:
            yield Entry(f"Source {source.source.name}", source.problems, page)


def _age(moment: datetime, now: datetime) -> str:
    return timesince(moment, now, depth=1).replace("\xa0", " ")
