"""Segments, streams, lines, dirty intervals that await attribution, and late rows."""

from ioportal.ingest.models.dirty import (
    DirtyDeltas,
    DirtyExports,
    DirtyJob,
    DirtyReads,
    DirtyTrace,
)
from ioportal.ingest.models.late_rows import LateRows
from ioportal.ingest.models.lines import AccountingRecord, OwnerConflict, Reject
from ioportal.ingest.models.segment import Batch, Segment, SegmentQuerySet
from ioportal.ingest.models.stream import DisplacedClaim, Sender, Stream

__all__ = [
    "AccountingRecord",
    "Batch",
    "DirtyDeltas",
    "DirtyExports",
    "DirtyJob",
    "DirtyReads",
    "DirtyTrace",
    "DisplacedClaim",
    "LateRows",
    "OwnerConflict",
    "Reject",
    "Segment",
    "SegmentQuerySet",
    "Sender",
    "Stream",
]
