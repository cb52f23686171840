"""Tasks of the attribution, upload and retention stages."""

from celery import shared_task
from django.db import OperationalError
from django.utils import timezone

from ioportal.ingest import attribution_stage, retention_stage, stream_discards, uploads
from ioportal.stage_runs import drain_alone, failures_recorded


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def attribute_pending() -> bool:
    """Attribute the rows of dirty intervals; return whether rows are left."""
    return drain_alone("attribution", _attribute)


def _attribute(limit: int) -> int:
    return attribution_stage.attribute_pending(limit) + stream_discards.delete_next(limit)


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def load_uploads() -> bool:
    """Load the uploaded files of experiments; return whether uploads are left."""
    return drain_alone("uploads", lambda _limit: uploads.load_next(1))  # one can take minutes


@shared_task
def retain() -> None:
    """Drop and compress old chunks."""
    with failures_recorded("retention"):
        retention_stage.retain()
        uploads.discard_abandoned(timezone.now())
