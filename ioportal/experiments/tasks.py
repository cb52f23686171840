"""Uploads of experiments as tasks."""

from celery import shared_task
from django.db import OperationalError
from django.utils import timezone

from ioportal.experiments import uploads
from ioportal.telemetry.stage_runs import drain_alone, failures_recorded


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def load_uploads() -> bool:
    """Load the uploaded files of experiments; return whether uploads are left."""
    return drain_alone("uploads", lambda _limit: uploads.load_next(1))  # one can take minutes


@shared_task
def discard_uploads() -> None:
    """Discard uploads that were never completed."""
    with failures_recorded("uploads"):
        uploads.discard_abandoned(timezone.now())
