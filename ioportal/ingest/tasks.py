"""The attribution stage as a task."""

from celery import shared_task
from django.db import OperationalError

from ioportal.ingest import attribution_stage, stream_discards
from ioportal.telemetry.stage_runs import drain_alone


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def attribute_pending() -> bool:
    """Attribute the rows of dirty intervals; return whether rows are left."""
    return drain_alone("attribution", _attribute)


def _attribute(limit: int) -> int:
    return attribution_stage.attribute_pending(limit) + stream_discards.delete_next(limit)
