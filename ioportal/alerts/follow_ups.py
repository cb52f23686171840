"""Follow-ups: whether mails helped, and what recipients and staff are told then.

A mail is watched for some weeks. Once its recipient's jobs have improved, he is thanked. If they do
not change, he is reminded once; later the history of the cases says that staff should contact him.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from ioportal.alerts import answers, compose
from ioportal.alerts.decide import Mode
from ioportal.alerts.effects import Mailed, effects
from ioportal.alerts.models import Answer, Notification, NotificationCase
from ioportal.alerts.outcomes import Outcome, Step, next_step
from ioportal.alerts.planning import current_policy
from ioportal.flags.models import CaseEvent
from ioportal.postgres.advisory_locks import Lock, hold
from ioportal.site.models import UserAccount
from ioportal.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from ioportal.alerts.decide import Policy

_WATCHED = timedelta(days=60)
_State = Notification.State
_SUBJECT = 200
_STEPS = {
    Step.THANKS: "The jobs have improved: the user is thanked.",
    Step.REMINDER: "The jobs have not changed: the user is reminded.",
    Step.ESCALATION: "The jobs have not changed since the reminder: contact the user.",
}


def follow_up(now: datetime | None = None) -> int:
    """Store the effects of all watched mails, and take the steps that are due; return how many.

    Safe to run concurrently, and to repeat.
    """
    with transaction.atomic():
        hold(Lock.ALERTS)
        now = now or timezone.now()
        policy = current_policy()
        return sum(_take(mail, about, policy, now) for mail, about in _with_effects(now).items())


def _with_effects(now: datetime) -> dict[Notification, list[NotificationCase]]:
    """Return the cases of watched mails, with their effects stored."""
    watched = NotificationCase.objects.filter(
        notification__kind=Notification.Kind.CASES,
        notification__state__in=[_State.SENT, _State.UNCERTAIN],
        notification__finished_at__gt=now - _WATCHED,
    )
    rows = list(watched.select_related("notification", "case").order_by("pk"))
    by_mail = defaultdict(list)
    for row, effect in zip(rows, effects(_mailed(rows), now), strict=True):
        row.outcome, row.effect = effect.outcome, effect.text
        by_mail[row.notification].append(row)
    NotificationCase.objects.bulk_update(rows, ["outcome", "effect"])
    return by_mail


def _mailed(rows: Iterable[NotificationCase]) -> list[Mailed]:
    return [
        Mailed(row.case, row.notification.finished_at)
        for row in rows
        if row.notification.finished_at
    ]


def _take(mail: Notification, about: list[NotificationCase], policy: Policy, now: datetime) -> bool:
    """Take the step that is due after a mail; return whether there was one."""
    answer = mail.answers.first()
    last_at = mail.stepped_at or mail.finished_at
    assert last_at is not None  # noqa: S101  (it was sent)
    step = next_step(
        [Outcome(row.outcome) for row in about],
        Step(mail.step),
        last_at,
        now,
        after=policy.follow_up_after,
        is_disputed=bool(answer and answer.kind == Answer.Kind.WRONG),
    )
    if step is Step.NONE:
        return False
    mail.step, mail.stepped_at = step, now
    mail.save(update_fields=["step", "stepped_at"])
    if step is not Step.ESCALATION:
        _write(mail, step, about, policy, now)
    CaseEvent.objects.bulk_create(
        CaseEvent(case=row.case, kind=CaseEvent.Kind.FOLLOWED_UP, text=_event_text(row, step))
        for row in about
    )
    return True


def _event_text(about: NotificationCase, step: Step) -> str:
    return f"{_STEPS[step]} Since the mail: {about.effect}."


def _write(
    mail: Notification, step: Step, about: list[NotificationCase], policy: Policy, now: datetime
) -> None:
    """Write the follow-up of a mail; an excluded or unknown recipient gets none."""
    account = UserAccount.objects.filter(name=mail.recipient).exclude(email="").first()
    modes = {policy.mode(row.case.rule) for row in about}
    if account is None or Mode.OFF in modes or mail.recipient in policy.excluded:
        return
    context = {
        "subject": f"Re: {mail.subject}"[:_SUBJECT],
        "name": visible(account.greeting_name),
        "account": visible(account.name),
        "sent_at": mail.finished_at,
        "is_thanks": step is Step.THANKS,
        "cases": [
            (visible(row.case.title), row.effect, f"{settings.PORTAL_URL}/cases/{row.case_id}/")
            for row in about
        ],
        "simulated": mail.text.startswith(compose.SIMULATED),
        "answers": answers.PLACES,
    }
    content = compose.rendered("alerts/follow_up", context)
    is_draft = Mode.APPROVAL in modes
    Notification.objects.create(
        kind=Notification.Kind.FOLLOW_UP,
        follows=mail,
        recipient=mail.recipient,
        address=account.email,
        filesystem=mail.filesystem,
        subject=content.subject,
        text=content.text,
        html=content.html,
        reason=_STEPS[step],
        state=_State.DRAFT if is_draft else _State.WAITING,
        next_attempt_at=None if is_draft else now,
    )
