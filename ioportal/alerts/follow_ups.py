"""Follow-ups: whether mails helped, and the messages to recipients and staff about it.

A mail is watched for some weeks. Once its recipient's jobs have improved, the recipient is thanked,
and after some time without findings gets the green light: the request of the mail no longer
applies. If the jobs do not change, there is one reminder; later the history of the cases asks staff
to contact the user.
What withholds or delays mails about cases does so with follow-ups, and the reason is stored.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from ioportal.alerts import answers, compose, decide, facts, planning
from ioportal.alerts.compared_jobs import day_of
from ioportal.alerts.decide import Mode, Verdict
from ioportal.alerts.effects import Mailed, effects
from ioportal.alerts.fitness import as_followed_up
from ioportal.alerts.models import Answer, Notification, NotificationCase
from ioportal.alerts.outcomes import Outcome, Step, next_step
from ioportal.core.formatting import rough_duration
from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.core.visible_text import visible
from ioportal.findings.models import Case, CaseEvent
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from ioportal.alerts.compose import Content
    from ioportal.alerts.decide import Policy
    from ioportal.alerts.effects import Effect

_DAY = timedelta(days=1)
WATCHED = timedelta(days=60)
_State = Notification.State
_SUBJECT = 200  # characters in the database
_SAMPLE = "Sample: "
_STATES = {  # the worst first
    Outcome.UNCHANGED: "They have not improved since then.",
    Outcome.RECURRED: "The same was found again since then.",
    Outcome.PARTLY: "They have improved since then, but by less than half.",
    Outcome.UNKNOWN: "Whether they have improved since then is unclear.",
    Outcome.IMPROVED: "They have improved since then.",
}
STEPS = {
    Step.THANKS: "The jobs have improved: the user is thanked.",
    Step.GREEN_LIGHT: "The jobs have improved, without findings: the request no longer applies.",
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
        gates = _Gates([each.row.case_id for about in by_mail.values() for each in about], now)
        return sum(_take(mail, about, gates) for mail, about in _latest(by_mail))


class _Watched(NamedTuple):
    """A case that a mail was about, and what changed since then."""

    row: NotificationCase
    effect: Effect


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


def _with_effects(now: datetime) -> dict[Notification, list[_Watched]]:
    """Return the cases of watched mails that still belong to the recipient, with their effects."""
    watched = NotificationCase.objects.filter(
        case__owner=F("notification__recipient"),
        notification__kind=Notification.Kind.CASES,
        notification__state__in=[_State.SENT, _State.UNCERTAIN],
        notification__finished_at__gt=now - WATCHED,
    )
    rows = list(watched.select_related("notification__filesystem", "case").order_by("pk"))
    mailed = [Mailed(row.case, sent_at(row.notification)) for row in rows]
    by_mail = defaultdict(list)
    for row, effect in zip(rows, effects(mailed, now), strict=True):
        row.outcome, row.effect = effect.outcome, effect.text
        by_mail[row.notification].append(_Watched(row, effect))
    NotificationCase.objects.bulk_update(rows, ["outcome", "effect"])
    return by_mail


def _latest(
    by_mail: Mapping[Notification, list[_Watched]],
) -> Iterator[tuple[Notification, list[_Watched]]]:
    """Yield the mails with those cases that no later mail is about: follow-ups are not repeated."""
    last = {each.row.case_id: mail for mail, about in by_mail.items() for each in about}
    for mail, about in by_mail.items():
        yield mail, [each for each in about if last[each.row.case_id] == mail]


def sent_at(mail: Notification) -> datetime:
    """Return when a mail was sent, which has been."""
    assert mail.finished_at is not None  # noqa: S101
    return mail.finished_at


def _take(mail: Notification, about: list[_Watched], gates: _Gates) -> bool:
    """Take the step that is due after a mail; return whether there was one."""
    fit = [each for each in about if not gates.objection(each.row.case_id)]
    keys = [each.row.case_id for each in about]
    objections = {case: reason for case in keys if (reason := gates.objection(case))}
    if objections and _due_step(mail, about, gates) is not Step.NONE:
        _store_reasons(Verdict.WITHHELD, objections)
    step = _due_step(mail, fit, gates)
    if step is Step.NONE:
        return False
    if step is not Step.ESCALATION:
        if delay := gates.delay(mail.recipient):
            _store_reasons(Verdict.LATER, {each.row.case_id: delay for each in fit})
            return False
        _write(mail, step, fit, gates)
    mail.step, mail.stepped_at = step, gates.now
    mail.save(update_fields=["step", "stepped_at"])
    CaseEvent.objects.bulk_create(
        CaseEvent(
            case=each.row.case,
            kind=CaseEvent.Kind.FOLLOWED_UP,
            text=f"{STEPS[step]} Since the mail: {each.effect.text}.",
        )
        for each in fit
    )
    return True


def _due_step(mail: Notification, about: list[_Watched], gates: _Gates) -> Step:
    answer = mail.answers.first()
    return due_step(
        [each.effect for each in about],
        gates.policy,
        gates.now,
        last=Step(mail.step),
        last_at=mail.stepped_at or sent_at(mail),
        is_disputed=bool(answer and answer.kind == Answer.Kind.WRONG),
    )


def due_step(
    found: list[Effect],
    policy: Policy,
    now: datetime,
    *,
    last: Step,
    last_at: datetime,
    is_disputed: bool,
) -> Step:
    """Return the step that is due after a mail with some effects; arguments as of `next_step`."""
    improved = [each for each in found if each.outcome is Outcome.IMPROVED]
    after = policy.follow_up_after
    return next_step(
        [each.outcome for each in found],
        last,
        last_at,
        now,
        after=after,
        is_disputed=is_disputed,
        are_lifted=all(each.is_lifted(now, after) for each in improved),
    )


def _store_reasons(verdict: Verdict, by_case: dict[int, str]) -> None:
    planning.store_reasons(
        {case: (verdict, reason) for case, reason in by_case.items()}, are_follow_ups=True
    )


def _write(mail: Notification, step: Step, about: list[_Watched], gates: _Gates) -> None:
    """Write the follow-up of a mail."""
    account = UserAccount.objects.get(name=mail.recipient)
    written = content(
        step,
        [(each.effect, each.row.request) for each in about],
        account,
        gates.policy,
        gates.now,
        subject=mail.subject,
        answer=mail.answers.first(),
        is_simulated=mail.text.startswith(compose.SIMULATED),
    )
    is_draft = Mode.APPROVAL in {gates.policy.mode(each.row.case.rule) for each in about}
    Notification.objects.create(
        kind=Notification.Kind.FOLLOW_UP,
        follows=mail,
        recipient=mail.recipient,
        address=account.email,
        filesystem=mail.filesystem,
        subject=written.subject,
        text=written.text,
        html=written.html,
        reason=STEPS[step],
        state=_State.DRAFT if is_draft else _State.WAITING,
        next_attempt_at=None if is_draft else gates.now,
    )
    gates.count(mail)


def content(
    step: Step,
    about: Sequence[tuple[Effect, str]],
    account: UserAccount,
    policy: Policy,
    now: datetime,
    *,
    subject: str,
    answer: Answer | None,
    is_simulated: bool,
    is_sample: bool = False,
) -> Content:
    """Return the follow-up of a mail: thanks, the green light or a reminder.

    Args:
        step: the kind of follow-up.
        about: the effect on each case, and what the mail asked for; "": not stored.
        account: of the recipient.
        policy: when the request no longer applies.
        now: when it is written.
        subject: of the mail.
        answer: the latest answer to it.
        is_simulated: whether it was about simulated data.
        is_sample: whether it would not be written: a sample of its wording.
    """
    after, is_green_light = policy.follow_up_after, step is Step.GREEN_LIGHT
    context = {
        "subject": f"{_SAMPLE if is_sample else ''}Re: {subject}"[:_SUBJECT],
        "name": visible(account.greeting_name),
        "opening": _opening(step, [effect for effect, _ in about], visible(account.name)),
        "is_sample": is_sample,
        "is_reminder": step is Step.REMINDER,
        "is_green_light": is_green_light,
        "answer": _in_words(answer) if answer else "",
        "cases": [
            {
                "effect": effect,
                "request": request,
                "is_lifted": is_green_light and effect.is_lifted(now, after),
            }
            for effect, request in about
        ],
        "calm_time": rough_duration(after.total_seconds()),
        "simulated": is_simulated,
        "answers": answers.PLACES,
    }
    return compose.rendered("alerts/follow_up", context)


def _opening(step: Step, effects: Sequence[Effect], account: str) -> str:
    """Return the first sentences of a follow-up, which claim no more than its cases show."""
    outcomes = {each.outcome for each in effects}
    sent_on = day_of(effects[0].mailed.at)
    if step is not Step.REMINDER and outcomes - {Outcome.UNKNOWN} == {Outcome.IMPROVED}:
        return f"Thank you: your jobs have improved since our mail of {sent_on}."
    state = next(text for outcome, text in _STATES.items() if outcome in outcomes)
    return f"We wrote to you on {sent_on} about jobs of your account {account}. {state}"


def _in_words(answer: Answer) -> str:
    comment = f" {visible(answer.comment)}" if answer.comment else ""
    return f"{day_of(answer.at)}: {answer.get_kind_display()}.{comment}"
