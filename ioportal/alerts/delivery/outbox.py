"""The outbox: delivers waiting notifications, so that a crash neither loses nor repeats one.

A worker claims a notification, talks to the server, and changes the state again just before
the end of the message. Each change is a conditional update that only the claim's owner can make.
One worker sends at a time (`ioportal.alerts.tasks`): notifications that another one left behind
belong to a worker that ended.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Case, F, Q, Value, When
from django.utils import timezone

from ioportal.alerts import fitness
from ioportal.alerts.delivery.connections import AnswerLost, NotSent, Withdrawn
from ioportal.alerts.delivery.deliveries import deliver
from ioportal.alerts.models import Channel, DeliveryAttempt, Notification
from ioportal.core.visible_text import visible_text
from ioportal.telemetry.stage_runs import TURN_S

if TYPE_CHECKING:
    from ioportal.alerts.models import NotificationQuerySet

log = structlog.get_logger()

RETRY_AFTER = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 240, 720, 1_440))
_State = Notification.State
_RESPONSE = 500  # characters
_NOTE_AGAIN_AFTER_S = (0.0, 1.0, 5.0, 15.0)


class Unfit(Exception):  # noqa: N818  (a result)
    """A notification must not be sent any more, for a reason."""


def release(notification: Notification, by: str) -> bool:
    """Send a draft, or an uncertain or failed one again; return whether its state allowed it.

    Raises:
        Unfit: it must not be sent any more.
    """
    allowed = [_State.DRAFT, _State.FAILED, _State.UNCERTAIN]
    waiting = Notification.objects.filter(pk=notification.pk, state__in=allowed)
    waiting = waiting.exclude(text="")  # removed by retention
    if not waiting.exists():
        return False
    if objection := fitness.objection(notification):
        raise Unfit(objection)
    now = timezone.now()
    is_draft = When(state=_State.DRAFT, then=Value(now))
    return bool(
        waiting.update(
            state=_State.WAITING,
            released_by=by,
            released_at=Case(is_draft, default=F("released_at")),
            next_attempt_at=now,
            attempts=0,
            claim=None,
            finished_at=None,
        )
    )


def discard(notification: Notification, by: str) -> bool:
    """Discard a notification that was not sent; return whether its state allowed it.

    A discarded mail counts as a decision about its cases: the same mail is not written again.
    """
    allowed = [_State.DRAFT, _State.WAITING, _State.FAILED]
    rows = Notification.objects.filter(pk=notification.pk, state__in=allowed)
    return bool(
        rows.update(
            state=_State.DISCARDED,
            released_by=by,
            next_attempt_at=None,
            finished_at=timezone.now(),
        )
    )


def recover() -> None:
    """Requeue mails that an ended worker had claimed; mark unconfirmed deliveries as uncertain."""
    _end_attempt(
        Notification.objects.filter(state=_State.SENDING),
        state=_State.WAITING,
        response="The worker ended before the end of the message.",
        claim=None,
        next_attempt_at=timezone.now(),
    )
    _end_attempt(
        Notification.objects.filter(state=_State.ENDING),
        state=_State.UNCERTAIN,
        response="The worker ended before the server answered.",
        finished_at=timezone.now(),
    )


def send_due(limit: int) -> int:
    """Send due notifications, one after the other; return how many.

    Args:
        limit: of their number; none begins after `TURN_S`, since a server may answer slowly.
    """
    keys = list(Notification.objects.due().values_list("pk", flat=True)[:limit])
    begun = monotonic()
    for count, key in enumerate(keys, 1):
        _send(key)
        if monotonic() - begun > TURN_S:
            return count
    return len(keys)


def _send(key: int) -> None:
    claim = uuid.uuid4()
    mine = Notification.objects.filter(pk=key, claim=claim)
    due = Notification.objects.due().filter(pk=key)
    if not due.update(state=_State.SENDING, claim=claim):
        return
    notification = mine.select_related("channel", "follows").get()
    now = timezone.now
    if objection := fitness.objection(notification):
        _withdraw(notification, mine, objection)
        return
    if (address := fitness.address_now(notification)) != notification.address:
        notification.address = address
        mine.update(address=address)

    def may_end() -> bool:
        return bool(mine.filter(state=_State.SENDING).update(state=_State.ENDING))

    try:
        answer = deliver(notification, may_end)
    except NotSent as error:
        _retry(notification, claim, error)
    except AnswerLost as error:
        _end_attempt(mine, state=_State.UNCERTAIN, response=str(error), finished_at=now())
        log.warning("notification_uncertain", notification=key, error=str(error))
    except Withdrawn:
        log.info("notification_withdrawn", notification=key)
    else:
        _note_sent(mine, answer)
        log.info("notification_sent", notification=key)


def _note_sent(mine: NotificationQuerySet, answer: str) -> None:
    """Store that a notification was sent, also if the database ends the connection meanwhile."""
    for wait_s in (*_NOTE_AGAIN_AFTER_S, None):
        try:
            _end_attempt(mine, state=_State.SENT, response=answer, finished_at=timezone.now())
        except (OperationalError, InterfaceError):
            if wait_s is None:
                raise
            connection.close()
            sleep(wait_s)
        else:
            return


def _withdraw(notification: Notification, mine: NotificationQuerySet, objection: str) -> None:
    """Discard a notification that must not be sent any more; its cases may be mailed about."""
    by = f" It was released by {notification.released_by}." if notification.released_by else ""
    _end_attempt(
        mine,
        state=_State.DISCARDED,
        response=f"{objection}{by}",
        released_by="",
        claim=None,
        next_attempt_at=None,
        finished_at=timezone.now(),
        **({"key": ""} if notification.channel else {}),  # it may be written again
    )
    log.info("notification_unfit", notification=notification.pk, reason=objection)


def _retry(notification: Notification, claim: uuid.UUID, error: NotSent) -> None:
    """Schedule the next attempt, or give up.

    If a channel or the mail server does not work, everything else for it waits as well: nothing
    must wait for a frozen server again and again.
    """
    number = notification.attempts + 1
    mine = Notification.objects.filter(pk=notification.pk, claim=claim)
    is_over = error.is_permanent or number > len(RETRY_AFTER)
    now = timezone.now()
    outcome: dict[str, Any] = (
        {"state": _State.FAILED, "finished_at": now}
        if is_over
        else {"state": _State.WAITING, "next_attempt_at": now + RETRY_AFTER[number - 1]}
    )
    _end_attempt(mine, attempts=number, claim=None, response=str(error), **outcome)
    if not error.is_about_message:
        others = Notification.objects.due().filter(_same_server(notification.channel))
        others.update(next_attempt_at=now + RETRY_AFTER[0])
    log.warning(
        "notification_not_sent", notification=notification.pk, error=str(error), over=is_over
    )


def _same_server(channel: Channel | None) -> Q:
    """Select what the server of a channel gets: tickets are mails, too."""
    if channel is None or channel.kind == Channel.Kind.TICKET:
        tickets = Channel.objects.filter(kind=Channel.Kind.TICKET)
        return Q(channel=None) | Q(channel__in=tickets)
    return Q(channel=channel)


def _end_attempt(
    notifications: NotificationQuerySet, *, state: str, response: str, **changes: Any
) -> None:
    """Change the state of notifications after an attempt, and log it in the same transaction.

    Args:
        notifications: in the state of the attempt.
        state: the new one.
        response: of the server.
        changes: of other columns.
    """
    response = visible_text(response)[:_RESPONSE]
    with transaction.atomic():
        keys = list(notifications.select_for_update().values_list("pk", flat=True))
        rows = Notification.objects.filter(pk__in=keys)
        rows.update(state=state, response=response, **changes)
        DeliveryAttempt.objects.bulk_create(
            DeliveryAttempt(notification_id=key, outcome=state, response=response) for key in keys
        )
