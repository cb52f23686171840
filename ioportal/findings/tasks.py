"""Celery tasks: the observation and evaluation stages, and back-tests."""

from celery import shared_task
from django.db import OperationalError

from ioportal.findings import back_tests, evaluation, observation_stage
from ioportal.telemetry.stage_runs import drain_alone


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def observe() -> bool:
    """Find who does most of the work of slow servers; return false: no rows are left."""
    return drain_alone("observation", lambda _: 0, observation_stage.observe)


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def evaluate() -> bool:
    """Evaluate subjects with changed evidence; return whether rows are left."""
    return drain_alone("evaluation", evaluation.evaluate_round)


@shared_task
def run_back_tests() -> bool:
    """Run waiting back-tests; return whether rows are left."""
    return drain_alone("back-tests", lambda _: back_tests.run_next())
