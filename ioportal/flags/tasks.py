"""The stage of judging, and back-tests, as tasks."""

from celery import shared_task
from django.db import OperationalError

from ioportal.flags import backtest, judging
from ioportal.stages import drain_alone


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def judge() -> None:
    """Judge what is always there, and what changed."""
    drain_alone("judge", judging.judge_round)


@shared_task
def run_back_tests() -> None:
    """Try limits on the past, where somebody asked for it."""
    drain_alone("back-tests", backtest.run_waiting)
