"""Follow-ups: whether mails helped, and what recipients and staff are told then.

A mail is watched for some weeks. Once its recipient's jobs have improved, he is thanked. If they do
not change, he is reminded once; later the history of the cases says that staff should contact him.
What withholds or delays mails about cases does so with follow-ups, and the reason is stored.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from ioportal.alerts import answers, compose, decide, facts, reasons
from ioportal.alerts.decide import Mode, Verdict
from ioportal.alerts.effects import Mailed, effects
from ioportal.alerts.fitness import as_followed_up
from ioportal.alerts.models import Answer, Notification, NotificationCase
from ioportal.alerts.outcomes import Outcome, Step, next_step
from ioportal.flags.models import Case, CaseEvent
from ioportal.postgres.advisory_locks import Lock, hold
from ioportal.site.models import UserAccount
from ioportal.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_DAY = timedelta(days=1)
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
        by_mail = _with_effects(now)
        gates = _Gates([row.case_id for rows in by_mail.values() for row in rows], now)
        return sum(_take(mail, about, gates) for mail, about in by_mail.items())


class _Gates:
    """What withholds and delays follow-ups at a time.

    Args:
        cases: that mails were about.
        now: the current time.
    """

    def __init__(self, cases: list[int], now: datetime) -> None:
        self.now = now
        self.policy = facts.current_policy()
        self._mailed = facts.mailed(now - _DAY)
        silences = facts.silences(now)
        self._objections = {
            each.case: decide.objection(as_followed_up(each), silences, self.policy, now)
            for each in facts.candidates(Case.objects.filter(pk__in=cases))
        }

    def objection(self, case: int) -> str:
        """Return why nothing is sent about a case; "": it may be."""
        return self._objections[case]

    def delay(self, recipient: str) -> str:
        """Return why nothing is sent to a user now; "": it may be."""
        return decide.delay(recipient, self._mailed, self.policy, self.now)

    def count(self, mail: Notification) -> None:
        """Count a follow-up for the limits of the next ones."""
        place = mail.filesystem.name if mail.filesystem else ""
        self._mailed.append(decide.Mailed(mail.recipient, place, self.now))


def _with_effects(now: datetime) -> dict[Notification, list[NotificationCase]]:
    """Return the cases of watched mails that still belong to the recipient, with their effects."""
    watched = NotificationCase.objects.filter(
        case__owner=F("notification__recipient"),
        notification__kind=Notification.Kind.CASES,
        notification__state__in=[_State.SENT, _State.UNCERTAIN],
        notification__finished_at__gt=now - _WATCHED,
    )
    rows = list(watched.select_related("notification__filesystem", "case").order_by("pk"))
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


def _take(mail: Notification, about: list[NotificationCase], gates: _Gates) -> bool:
    """Take the step that is due after a mail; return whether there was one."""
    fit = [row for row in about if not gates.objection(row.case_id)]
    withheld = [row for row in about if gates.objection(row.case_id)]
    if withheld and _due_step(mail, about, gates) is not Step.NONE:
        objections = {row.case_id: gates.objection(row.case_id) for row in withheld}
        _store_reasons(Verdict.WITHHELD, objections)
    step = _due_step(mail, fit, gates)
    if step is Step.NONE:
        return False
    if step is not Step.ESCALATION:
        if delay := gates.delay(mail.recipient):
            _store_reasons(Verdict.LATER, {row.case_id: delay for row in fit})
            return False
        _write(mail, step, fit, gates)
    mail.step, mail.stepped_at = step, gates.now
    mail.save(update_fields=["step", "stepped_at"])
    CaseEvent.objects.bulk_create(
        CaseEvent(case=row.case, kind=CaseEvent.Kind.FOLLOWED_UP, text=_event_text(row, step))
        for row in fit
    )
    return True


def _due_step(mail: Notification, about: list[NotificationCase], gates: _Gates) -> Step:
    answer = mail.answers.first()
    last_at = mail.stepped_at or mail.finished_at
    assert last_at is not None  # noqa: S101  (it was sent)
    return next_step(
        [Outcome(row.outcome) for row in about],
        Step(mail.step),
        last_at,
        gates.now,
        after=gates.policy.follow_up_after,
        is_disputed=bool(answer and answer.kind == Answer.Kind.WRONG),
    )


def _store_reasons(verdict: Verdict, by_case: dict[int, str]) -> None:
    reasons.store(
        {case: (verdict, reason) for case, reason in by_case.items()}, are_follow_ups=True
    )


def _event_text(about: NotificationCase, step: Step) -> str:
    return f"{_STEPS[step]} Since the mail: {about.effect}."


def _write(mail: Notification, step: Step, about: list[NotificationCase], gates: _Gates) -> None:
    """Write the follow-up of a mail."""
    account = UserAccount.objects.get(name=mail.recipient)
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
    is_draft = Mode.APPROVAL in {gates.policy.mode(row.case.rule) for row in about}
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
        next_attempt_at=None if is_draft else gates.now,
    )
    gates.count(mail)
