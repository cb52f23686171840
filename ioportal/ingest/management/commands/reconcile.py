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
from ioportal.ingest.reconciliation.comparing import Comparison, compare
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


_SEGMENTS, _RECORDS = 1_000, 200_000  # of a group: bounds its memory


def _groups() -> Iterator[list[int]]:
    """Yield the keys of all segments in groups, by format and time."""
    keys: list[int] = []
    records = 0
    segments = Segment.objects.order_by("format", "start", "pk").values_list("pk", "records")
    for pk, number in segments.iterator():
        if keys and (len(keys) == _SEGMENTS or records + number > _RECORDS):
            yield keys
            keys, records = [], 0
        keys.append(pk)
        records += number
    if keys:
        yield keys


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
        for group in _groups():
            compared = self._compared(group)
            different = [each.segment.pk for each in compared if each.differences]
            if different:  # perhaps loaded, attributed again, or deleted since the first drain
                drain(attribution_stage.attribute_pending)
                compared = [each for each in compared if not each.differences]
                compared += self._compared(different)
            segments += len(compared)
            partial += sum(not each.is_complete for each in compared)
            for each in compared:
                for sentence in each.differences:
                    differences += 1
                    self.stderr.write(f"segment {each.segment.pk}, {each.segment.name}: {sentence}")
            if time.monotonic() - reported_at > _REPORT_EVERY_S:
                reported_at = time.monotonic()
                self.stderr.write(f"{segments:,} segments so far")
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
    def _compared(self, keys: list[int]) -> list[Comparison]:
        """Compare the segments that still exist."""
        return compare(Segment.objects.filter(pk__in=keys).select_related("batch"))

    @snapshot()
    def _roll_up_discrepancies(self) -> list[str]:
        traced = Coverage.objects.filter(source=Coverage.Source.RPC_TRACE)
        extent = traced.aggregate(start=Min("start"), end=Max("end"))
        if extent["start"] is None:
            return []
        return piecewise.discrepancies(extent["start"], extent["end"])
