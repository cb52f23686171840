"""Writes digests at the hour of the policy, and notices to staff, each once by its key.

A missed hour is made up for on the same day; digests of past days are never written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth import get_user_model
from django.utils import timezone

from ioportal.alerts.digests import admins, projects
from ioportal.alerts.models import MailPolicy, Notification
from ioportal.site.models import Project

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from datetime import datetime

    from ioportal.alerts.compose import Digest


_SUBJECT = 200  # characters in the database


def write_due(now: datetime | None = None) -> int:
    """Write the digests of today that are due and not yet written; return how many.

    Safe to run concurrently, and to repeat.
    """
    policy = MailPolicy.objects.first()
    local = timezone.localtime(now, ZoneInfo(settings.TIME_ZONE))
    if policy is None or local.hour < policy.digest_hour:
        return 0
    due = [*_for_staff(policy, local), *_for_projects(policy, local)]
    Notification.objects.bulk_create(due, ignore_conflicts=True)  # written by another worker
    return len(due)


def write_brake_notices(cases: Collection[int], now: datetime) -> None:
    """Notify the readers of digests, once a day, that mails about cases are held."""
    policy = MailPolicy.objects.first()
    if policy is None or not cases:
        return
    local = timezone.localtime(now, ZoneInfo(settings.TIME_ZONE))
    notices = _to_readers(
        policy, "brake", local, lambda: admins.brake_notice(cases, policy.hourly_brake)
    )
    Notification.objects.bulk_create(notices, ignore_conflicts=True)  # written by another worker


def _for_staff(policy: MailPolicy, now: datetime) -> Iterator[Notification]:
    return _to_readers(policy, "digest", now, lambda: admins.digest(now))


def _to_readers(
    policy: MailPolicy, what: str, now: datetime, compose: Callable[[], Digest]
) -> Iterator[Notification]:
    """Yield a mail for each reader who has none of its kind on this day."""
    staff = get_user_model().objects.filter(is_staff=True, is_active=True).exclude(email="")
    users = {
        f"{what}:{now:%Y-%m-%d}:{user.username}": user
        for user in staff.filter(username__in=policy.digest_readers).order_by("username")
    }
    due = users.keys() - _written(users)
    if not due:
        return
    digest = compose()
    for key, user in users.items():
        if key in due:
            name = user.get_full_name() or user.username
            yield _notification(
                key, digest, now, recipient=user.username, address=user.email, name=name
            )


def _for_projects(policy: MailPolicy, now: datetime) -> Iterator[Notification]:
    if now.weekday() != policy.project_digest_day:
        return
    rows = Project.objects.select_related("account").exclude(account__name__in=policy.excluded)
    contacts = {
        f"weekly-digest:{now:%Y-%m-%d}:{project.pk}": project for project in rows if project.address
    }
    due = {key: contacts[key] for key in contacts.keys() - _written(contacts)}
    if not due:
        return
    names = {project.name for project in due.values()}
    digests = projects.digests(names, now.date(), now.tzinfo or ZoneInfo(settings.TIME_ZONE))
    for key, project in due.items():
        if digest := digests.get(project.name):
            yield _notification(
                key,
                digest,
                now,
                recipient=project.account.name if project.account else "",
                address=project.address,
                name=project.contact_name,
            )


def _written(keys: Iterable[str]) -> set[str]:
    return set(Notification.objects.filter(key__in=list(keys)).values_list("key", flat=True))


def _notification(
    key: str, digest: Digest, now: datetime, *, recipient: str, address: str, name: str
) -> Notification:
    mail = digest.mail(name)
    return Notification(
        kind=Notification.Kind.DIGEST,
        key=key,
        recipient=recipient,
        address=address,
        subject=mail.subject[:_SUBJECT],
        text=mail.text,
        html=mail.html,
        reason="The policy asks for this digest.",
        state=Notification.State.WAITING,
        next_attempt_at=now,
    )
