"""The stage of judging as a task."""

from celery import shared_task
from django.db import OperationalError

from ioportal.flags import judging
from ioportal.stages import drain_alone


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def judge() -> None:
    """Judge what changed, and what is always there."""
    drain_alone(judging.judge_pending)
    judging.judge_standing()
