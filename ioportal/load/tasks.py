"""The refresh of baselines and the retention of data as tasks."""

from celery import shared_task
from django.db import OperationalError

from ioportal.load import baselines, retention_run
from ioportal.telemetry.stage_runs import failures_recorded


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def refresh_baselines() -> None:
    """Recompute baselines that are a day old or had too few windows."""
    with failures_recorded("baselines"):
        baselines.refresh()


@shared_task
def retain() -> None:
    """Drop and compress old chunks."""
    with failures_recorded("retention"):
        retention_run.retain()
