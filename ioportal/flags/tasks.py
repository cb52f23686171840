"""Celery tasks: the evaluation stage and back-tests."""

from celery import shared_task
from django.db import OperationalError

from ioportal.flags import back_tests, evaluation
from ioportal.stage_runs import drain_alone


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def evaluate() -> bool:
    """Evaluate subjects with changed evidence; return whether rows are left."""
    return drain_alone("evaluation", evaluation.evaluate_round)


@shared_task
def run_back_tests() -> bool:
    """Run waiting back-tests; return whether rows are left."""
    return drain_alone("back-tests", lambda _: back_tests.run_next())
