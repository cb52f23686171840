"""Re-add the stored figures against every segment's account: ``manage.py reconcile``."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ioportal.ingest import charging
from ioportal.ingest.accounts import differences
from ioportal.ingest.models import Segment
from ioportal.stages import drain

_SAY_EVERY_S = 5


class Command(BaseCommand):
    """Checks every segment's account."""

    help = (
        "Charge what is pending, then re-add what is stored of every segment against its account; "
        "exit 1 on a difference."
    )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Check every segment."""
        drain(charging.charge_pending)
        segments = off = 0
        said = time.monotonic()
        for segment in Segment.objects.loaded().order_by("pk").iterator():
            segments += 1
            if time.monotonic() - said > _SAY_EVERY_S:
                said = time.monotonic()
                self.stderr.write(f"{segments:,} segments so far")
            found = differences(segment)
            if found:  # it was loaded, or charged anew, since the first drain, perhaps
                drain(charging.charge_pending)
                found = differences(segment)
            for sentence in found:
                off += 1
                self.stderr.write(f"segment {segment.pk}, {segment.name}: {sentence}")
        if off:
            raise CommandError(f"{off} differences in {segments} segments.")
        self.stdout.write(f"{segments} segments reconcile.")
