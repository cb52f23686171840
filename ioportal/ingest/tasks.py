"""The stages of charging and of retention as tasks."""

from celery import shared_task
from django.db import OperationalError

from ioportal.ingest import charging, retaining
from ioportal.stages import drain_alone


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def charge_pending() -> None:
    """Charge what is touched."""
    drain_alone(charging.charge_pending)


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def retain() -> None:
    """Drop what was kept long enough."""
    retaining.retain()
