"""Celery task of the statistics stage."""

from celery import shared_task
from django.db import OperationalError

from ioportal.jobs import statistics
from ioportal.telemetry.stage_runs import drain_alone


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def refresh_statistics() -> bool:
    """Compute the statistics of changed jobs; return whether rows are left."""
    return drain_alone("statistics", statistics.refresh_statistics)
