"""Task of the roll-up stage."""

from celery import shared_task
from django.db import OperationalError

from ioportal.telemetry import rollups
from ioportal.telemetry.stage_runs import drain_alone


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def roll_up() -> bool:
    """Roll up dirty intervals; return whether rows are left."""
    return drain_alone("roll-up", rollups.roll_up)
