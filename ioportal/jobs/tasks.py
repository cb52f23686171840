"""The statistics stage as a task; and what is usual on servers."""

from celery import shared_task
from django.db import OperationalError

from ioportal.jobs import baselines, statistics
from ioportal.stages import drain_alone, failures_recorded


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def refresh_statistics() -> None:
    """Compute the figures of jobs that changed."""
    drain_alone("statistics", statistics.refresh_statistics)


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def refresh_baselines() -> None:
    """Reckon what is usual where that is a day old, or was reckoned from little."""
    with failures_recorded("baselines"):
        baselines.refresh()
