"""The refresh of baselines as a task."""

from celery import shared_task
from django.db import OperationalError

from ioportal.activity import baselines
from ioportal.stage_runs import failures_recorded


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def refresh_baselines() -> None:
    """Recompute baselines that are a day old or had too few windows."""
    with failures_recorded("baselines"):
        baselines.refresh()
