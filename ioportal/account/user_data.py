"""What the portal holds about a user: its export, and its removal."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any

import structlog
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.core.cache import cache
from django.db import transaction
from django.db.models import CharField, Func, Q, TextField, Value
from django.db.models.functions import Cast, Concat, Lower, Replace, Substr
from django.http import QueryDict
from django.utils import timezone

from ioportal.account.holdings import NAME_COLUMNS, SECTIONS, rows
from ioportal.account.models import Removal
from ioportal.alerts.models import (
    Answer,
    BouncedAddress,
    CaseDecision,
    DeliveryAttempt,
    MailPolicy,
    Notification,
    NotificationCase,
    NotificationImage,
    Silence,
    Subscription,
)
from ioportal.api.models import Token
from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.experiments.models import Experiment, Upload
from ioportal.findings.models import BackTest, Case, CaseEvent
from ioportal.jobs.models import Population
from ioportal.load.models import Report
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from ioportal.alerts.models import NotificationQuerySet

_USER_FILTERS = {"user", "produsername"}  # parameters of job lists
_FILTER_COLUMNS = (
    ("changes.Mitigation", "scope"),
    ("changes.DismissedChange", "scope"),
    ("jobs.Population", "query"),
)
_REMOVED = "(removed)"
_UNSENT = (Notification.State.DRAFT, Notification.State.WAITING)

log = structlog.get_logger()


def export(name: str) -> dict[str, Any]:
    """Return the data about a user: rows about the user, and counts of rows with the name."""
    return {
        "user": name,
        **{section.title: section.contents(name) for section in SECTIONS},
        "rows_with_the_name": counts(name),
    }


def counts(name: str) -> dict[str, int]:
    """Return the number of rows that name a user, by table and column; without empty ones."""
    named = {f"{each.table}.{each.column}": each.rows(name).count() for each in NAME_COLUMNS}
    about = {section.table: section.rows(name).count() for section in SECTIONS}
    return {place: count for place, count in (about | named).items() if count}


@transaction.atomic
def remove(name: str, reason: str = "") -> Removal:
    """Remove the data about a user; a pseudonym takes the place of the name.

    The pseudonym is random, and nothing relates it to the name. It is the same in all tables, so
    that jobs, cases and impact of the user still belong together.
    """
    for lock in (Lock.ACCOUNTING, Lock.FLAG_CREATION, Lock.ALERTS):
        hold(lock)
    pseudonym = f"removed-{secrets.token_hex(4)}"
    counted = counts(name)
    _remove_texts(name, pseudonym)
    _remove_from_filters(name, pseudonym)
    _remove_log_in(name)
    for column in NAME_COLUMNS:
        named = column.rows(name)
        rest = Substr(column.column, len(name) + 1)
        named.update(**{column.column: Concat(Value(pseudonym), rest, output_field=TextField())})
    removal = Removal.objects.create(pseudonym=pseudonym, reason=reason, rows=counted)
    transaction.on_commit(cache.clear)
    log.info("user_removed", pseudonym=pseudonym, rows=sum(counted.values()))
    return removal


def _remove_texts(name: str, pseudonym: str) -> None:
    """Remove addresses, texts of mails and notes."""
    accounts = UserAccount.objects.filter(name=name)
    _remove_digests(name, accounts)
    BouncedAddress.objects.filter(address__in=accounts.values(lower=Lower("email"))).delete()
    accounts.delete()
    DeliveryAttempt.objects.filter(notification__recipient=name).update(response="")
    NotificationImage.objects.filter(notification__recipient=name).delete()
    Answer.objects.filter(notification__recipient=name).update(comment="")
    mails = Notification.objects.filter(recipient=name)
    _remove_texts_to_others(name, mails)
    _discard(mails)
    mails.update(
        address="",
        subject=_REMOVED,
        text="",
        html="",
        response="",
        reason=_REMOVED,
        key=Replace("key", Value(name), Value(pseudonym)),
    )
    cases = Case.objects.filter(owner=name)
    cases.exclude(resolution="").update(resolution=_REMOVED)
    CaseEvent.objects.filter(case__owner=name).exclude(by="").update(text=_REMOVED)
    CaseDecision.objects.filter(case__owner=name).delete()
    Silence.objects.filter(recipient=name).update(reason=_REMOVED)
    for column in ("excluded", "digest_readers"):
        for policy in MailPolicy.objects.filter(**{f"{column}__contains": [name]}):
            names = [pseudonym if user == name else user for user in getattr(policy, column)]
            MailPolicy.objects.filter(pk=policy.pk).update(**{column: names})
    for test in BackTest.objects.filter(subjects__contains=[{"owner": name}]):
        test.subjects = [subject for subject in test.subjects if subject.get("owner") != name]
        test.save(update_fields=["subjects"])


def _remove_from_filters(name: str, pseudonym: str) -> None:
    """Replace a user in saved filters."""
    for table, column in _FILTER_COLUMNS:
        for key, filters in rows(table).values_list("pk", column):
            query = QueryDict(filters, mutable=True)
            for parameter in _USER_FILTERS & query.keys():
                users = query.getlist(parameter)
                query.setlist(parameter, [pseudonym if user == name else user for user in users])
            if query != QueryDict(filters):
                rows(table).filter(pk=key).update(**{column: query.urlencode()})


def _remove_texts_to_others(name: str, mails: NotificationQuerySet) -> None:
    """Remove the texts of messages to channels about a user's cases, and of copies of mails."""
    about = NotificationCase.objects.filter(case__owner=name).values("notification")
    tokens = mails.values(token_text=Cast("token", CharField()))
    copied = Func("key", Value(":"), Value(2), function="split_part", output_field=CharField())
    others = Notification.objects.exclude(recipient=name).alias(copied=copied)
    _blank(others.filter(Q(pk__in=about) | Q(kind=Notification.Kind.COPY, copied__in=tokens)))


def _blank(mails: NotificationQuerySet) -> None:
    """Remove the texts of mails to others, and do not send them."""
    keys = list(mails.values_list("pk", flat=True))
    mails = Notification.objects.filter(pk__in=keys)
    _discard(mails)
    NotificationImage.objects.filter(notification__in=keys).delete()
    mails.update(subject=_REMOVED, text="", html="", response="")


def _remove_digests(name: str, accounts: QuerySet[UserAccount]) -> None:
    """Remove the texts of digests and notices to others with the name or address of a user."""
    words = {name}
    for account in accounts:
        words |= {account.email, account.full_name}
    for user in get_user_model().objects.filter(username=name):
        words |= {user.email, user.get_full_name()}
    contained = Q()
    for word in words - {""}:
        contained |= Q(text__iregex=rf"(^|\W){re.escape(word)}(\W|$)")
    _blank(Notification.objects.filter(contained, kind=Notification.Kind.DIGEST))


def _discard(mails: NotificationQuerySet) -> None:
    mails.filter(state__in=_UNSENT).update(
        state=Notification.State.DISCARDED, next_attempt_at=None, finished_at=timezone.now()
    )


def _remove_log_in(name: str) -> None:
    """Remove what belongs to the log-in, and disable it."""
    users = get_user_model().objects.filter(username=name)
    for model in (Token, Subscription):
        model.objects.filter(user__in=users).delete()
    Population.objects.filter(owner__in=users, is_shared=False).delete()
    Upload.objects.filter(owner__in=users).delete()
    Experiment.objects.filter(owner__in=users, is_public=False, project="").delete()
    Report.objects.filter(reporter__in=users).update(description=_REMOVED)
    for user in users:
        user.groups.clear()
    users.update(
        first_name="",
        last_name="",
        email="",
        password=make_password(None),
        is_active=False,
        is_staff=False,
        is_superuser=False,
    )
