"""Compare the stored rows of every segment with its account: ``manage.py reconcile``."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError
from django.db import connection, transaction
from django.db.models import Max, Min

from ioportal.ingest import attribution_stage
from ioportal.ingest.models import Segment
from ioportal.ingest.reconciliation import discrepancies, retained_parts
from ioportal.telemetry import commands, piecewise, rollups
from ioportal.telemetry.models import Coverage
from ioportal.telemetry.stage_runs import drain

if TYPE_CHECKING:
    from collections.abc import Iterator

_ISOLATE = "SELECT set_config('default_transaction_isolation', %s, false)"


@contextmanager
def snapshot() -> Iterator[None]:
    """Let all statements of a transaction see the data committed before its first statement."""
    with connection.cursor() as cursor:
        # The default of the next transaction: the level of a running one can no longer change.
        cursor.execute(_ISOLATE, ["repeatable read"])
        try:
            with transaction.atomic():
                yield
        finally:
            cursor.execute(_ISOLATE, ["read committed"])


_REPORT_EVERY_S = 5


class Command(commands.Command):
    """Reconciles all segments."""

    help = (
        "Attribute pending rows, then re-add the stored rows of every segment and compare "
        "them with its account. Exit code 1 on a difference."
    )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Reconcile every segment."""
        drain(attribution_stage.attribute_pending)
        drain(rollups.roll_up)
        segments = differences = partial = 0
        reported_at = time.monotonic()
        for segment in Segment.objects.select_related("batch").order_by("pk").iterator():
            segments += 1
            if time.monotonic() - reported_at > _REPORT_EVERY_S:
                reported_at = time.monotonic()
                self.stderr.write(f"{segments:,} segments so far")
            is_complete, sentences = self._compared(segment)
            if sentences:  # perhaps loaded, attributed again, or deleted since the first drain
                drain(attribution_stage.attribute_pending)
                is_complete, sentences = self._compared(segment)
            partial += not is_complete
            for sentence in sentences:
                differences += 1
                self.stderr.write(f"segment {segment.pk}, {segment.name}: {sentence}")
        for sentence in self._roll_up_discrepancies():
            differences += 1
            self.stderr.write(sentence)
        if differences:
            raise CommandError(f"{differences} differences in {segments} segments.")
        self.stdout.write(f"{segments} segments reconcile.")
        if partial:
            self.stdout.write(
                f"{partial} of them were checked in part: rows were dropped "
                "(IOPORTAL_..._RETENTION), or data arrived after retention."
            )

    @snapshot()
    def _compared(self, segment: Segment) -> tuple[bool, list[str]]:
        """Return whether a segment can be re-added completely, and what differs."""
        if not Segment.objects.filter(pk=segment.pk).exists():
            return True, []
        parts = retained_parts(segment)
        return parts.complete, discrepancies(segment, parts)

    @snapshot()
    def _roll_up_discrepancies(self) -> list[str]:
        traced = Coverage.objects.filter(source=Coverage.Source.RPC_TRACE)
        extent = traced.aggregate(start=Min("start"), end=Max("end"))
        if extent["start"] is None:
            return []
        return piecewise.discrepancies(extent["start"], extent["end"])
