"""Re-add the stored figures against every segment's account: ``manage.py reconcile``."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandError
from django.db.models import Max, Min

from ioportal import commands
from ioportal.ingest import attribution_stage
from ioportal.ingest.models import Segment
from ioportal.ingest.reconciliation import discrepancies, retained_parts
from ioportal.stages import drain
from ioportal.telemetry import rollups
from ioportal.telemetry.models import Coverage

_SAY_EVERY_S = 5


class Command(commands.Command):
    """Checks every segment's account."""

    help = (
        "Charge what is pending, then re-add what is stored of every segment against its account; "
        "exit 1 on a difference."
    )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Check every segment."""
        drain(attribution_stage.attribute_pending)
        drain(rollups.roll_up)
        segments = off = unread = 0
        said = time.monotonic()
        for segment in Segment.objects.loaded().select_related("batch").order_by("pk").iterator():
            segments += 1
            parts = retained_parts(segment)
            unread += not parts.whole
            if time.monotonic() - said > _SAY_EVERY_S:
                said = time.monotonic()
                self.stderr.write(f"{segments:,} segments so far")
            found = discrepancies(segment, parts)
            if found:  # it was loaded, or charged anew, since the first drain, perhaps
                drain(attribution_stage.attribute_pending)
                found = discrepancies(segment, parts)
            for sentence in found:
                off += 1
                self.stderr.write(f"segment {segment.pk}, {segment.name}: {sentence}")
        for sentence in self._roll_ups_off():
            off += 1
            self.stderr.write(sentence)
        if off:
            raise CommandError(f"{off} differences in {segments} segments.")
        self.stdout.write(f"{segments} segments reconcile.")
        if unread:
            self.stdout.write(
                f"{unread} of them were checked in part: rows were dropped "
                "(IOPORTAL_..._RETENTION), or data arrived after retention."
            )

    def _roll_ups_off(self) -> list[str]:
        traced = Coverage.objects.filter(source=Coverage.Source.RPC_TRACE)
        extent = traced.aggregate(start=Min("start"), end=Max("end"))
        if extent["start"] is None:
            return []
        return rollups.discrepancies(extent["start"], extent["end"])
