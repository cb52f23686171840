"""The charging stage as a task."""

from celery import shared_task
from django.db import OperationalError

from ioportal.ingest import charging
from ioportal.stages import drain


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def charge_pending() -> None:
    """Charge what is touched."""
    drain(charging.charge_pending)
