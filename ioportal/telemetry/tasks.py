"""Task of the roll-up stage."""

from celery import shared_task
from django.db import OperationalError

from ioportal.stage_runs import drain_alone
from ioportal.telemetry import rollups


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def roll_up() -> None:
    """Roll up dirty intervals."""
    drain_alone("roll-up", rollups.roll_up)
