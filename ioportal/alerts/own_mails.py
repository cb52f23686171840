"""Writes the mails that users asked for: reports of ended jobs, and weekly summaries."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import CharField, Count, Exists, F, FloatField, OuterRef, Subquery, Value
from django.db.models.functions import Cast, Concat
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from ioportal.alerts import compose
from ioportal.alerts.models import Notification, Subscription
from ioportal.core.visible_text import visible
from ioportal.findings.job_report import JobReport, reportable
from ioportal.findings.week_summary import WeekSummary
from ioportal.jobs.models import Job
from ioportal.jobs.populations.selections import midnight
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from collections.abc import Iterator

_DAY = timedelta(days=1)
_SETTLED = timedelta(minutes=10)  # after the end of a job, its last counters have been read
_SUMMARY_HOUR = 7  # on Mondays, in the zone of the portal
_JOB_KEY = "report:"
_SUBJECT = 120


def write(now: datetime | None = None) -> None:
    """Write the mails that are due. Safe to run concurrently, and to repeat: each has a key."""
    now = now or timezone.now()
    subscriptions = _subscriptions()
    mails = [*_job_reports(subscriptions, now), *_week_summaries(subscriptions, now)]
    Notification.objects.bulk_create(mails, ignore_conflicts=True)


def _subscriptions() -> dict[str, Any]:
    """Return the subscriptions by user name, with the registered addresses."""
    accounts = UserAccount.objects.filter(name=OuterRef("user__username")).exclude(email="")
    rows = Subscription.objects.filter(user__is_active=True).select_related("user")
    rows = rows.annotate(address=Subquery(accounts.values("email")))
    return {row.user.get_username(): row for row in rows.filter(address__isnull=False)}


def _job_reports(subscriptions: dict[str, Any], now: datetime) -> Iterator[Notification]:
    wanted = [name for name, row in subscriptions.items() if row.job_reports]
    if not wanted:
        return
    written = Counter(
        dict(
            Notification.objects.filter(
                kind=Notification.Kind.REPORT,
                key__startswith=_JOB_KEY,
                recipient__in=wanted,
                created_at__gt=now - _DAY,
            )
            .values_list("recipient")
            .annotate(Count("pk"))
            .order_by()
        )
    )
    for job in _due_jobs(wanted, now):
        row = subscriptions[job.owner]
        if written[job.owner] < row.daily_cap:
            written[job.owner] += 1
            report = JobReport(job, row.user)
            yield Notification(
                key=f"{_JOB_KEY}{job.pk}",
                subject=f"Report: {report.title}"[:_SUBJECT],
                **_written(row, "alerts/job_report.txt", {"report": report.text}, now),
            )


def _due_jobs(owners: list[str], now: datetime) -> Any:
    """Return jobs that ended lately and have no report yet, the earliest first."""
    keys = Concat(Value(_JOB_KEY), Cast(OuterRef("pk"), CharField()))
    wanted = Subscription.objects.filter(
        user__username=OuterRef("owner"), changed_at__lt=OuterRef("ended_at")
    )
    recent = Job.objects.filter(
        owner__in=owners, ended_at__gt=now - _DAY, ended_at__lte=now - _SETTLED
    )
    return (
        reportable(recent)
        .alias(least=Subquery(wanted.values("min_node_hours"), output_field=FloatField()))
        .filter(~Exists(Notification.objects.filter(key=keys)), node_hours__gte=F("least"))
        .order_by("ended_at", "pk")
    )


def _week_summaries(subscriptions: dict[str, Any], now: datetime) -> Iterator[Notification]:
    local = timezone.localtime(now)
    if local.weekday() or local.hour < _SUMMARY_HOUR:
        return
    end, start = (midnight(local.date() - timedelta(days=days)) for days in (0, 7))
    wanted = [name for name, row in subscriptions.items() if row.weekly_summary]
    ended = Job.objects.filter(owner__in=wanted, ended_at__gte=start, ended_at__lt=end)
    owners = ended.order_by("owner").values_list("owner", flat=True).distinct()
    keys = {f"week:{start:%G-W%V}:{name}": subscriptions[name] for name in owners}
    written = set(Notification.objects.filter(key__in=keys).values_list("key", flat=True))
    for key, row in keys.items():
        if key not in written:
            context = {"summary": WeekSummary(row.user, start, end)}
            yield Notification(
                key=key,
                subject=f"Your jobs from {start:%Y-%m-%d} to {end - _DAY / 2:%Y-%m-%d}",
                **_written(row, "alerts/week_summary.txt", context, now),
            )


def _written(row: Any, template: str, context: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Return the facts of a mail to a subscriber."""
    name = row.user.get_username()
    return {
        "kind": Notification.Kind.REPORT,
        "recipient": name,
        "address": row.address,
        "text": render_to_string(
            template,
            {
                "name": visible(name),
                "settings_url": _settings_url(),
                **compose.signature(),
                **context,
            },
        ),
        "reason": "The user asked for it.",
        "state": Notification.State.WAITING,
        "next_attempt_at": now,
    }


def _settings_url() -> str:
    return f"{settings.PORTAL_URL}{reverse('own_account')}"
