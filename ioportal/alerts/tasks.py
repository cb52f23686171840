"""Celery tasks: decisions about mails, and their delivery."""

from celery import shared_task
from django.db import OperationalError

from ioportal.alerts import follow_ups, outbox, planning
from ioportal.stage_runs import drain_alone


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def plan_mails() -> None:
    """Write the mails about cases that are due."""
    planning.plan()


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def follow_up() -> None:
    """Store the effects of mails, and write the follow-ups that are due."""
    follow_ups.follow_up()


@shared_task
def send_mails() -> bool:
    """Send waiting mails; return whether some are left. One worker sends at a time."""

    def send(limit: int) -> int:
        outbox.recover()
        return outbox.send_due(limit)

    return drain_alone("mails", send)
