"""Batches that agents send: each becomes a segment, once, in whatever order they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from blake3 import blake3
from django.db import DataError, IntegrityError, transaction

from collectors.batch.values import Unreadable
from collectors.formats import BY_NAME
from collectors.parsed import Account, Parsed, reject_frame
from ioportal.ingest import checks, wire
from ioportal.ingest.formats import BATCH_LOADERS
from ioportal.ingest.loading import OTHER_REASONS, Refused
from ioportal.ingest.models import Batch, Reject, Segment
from ioportal.ingest.refusals import Conflict, Refusal
from ioportal.site.models import Source

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from ioportal.ingest.manifest import Manifest

log = structlog.get_logger()


@dataclass(frozen=True)
class Rows:
    """A file that was sent, and what it is said to be."""

    path: Path
    content_type: str

    def digest(self) -> str:
        """Return its BLAKE3."""
        return blake3().update_mmap(self.path).hexdigest()


def receive(source: Source, manifest: Manifest, rows: Rows, now: datetime) -> bool:
    """Store a batch, or find that it is stored; it is committed when this returns.

    Returns whether it was stored already.

    Raises:
        Refusal: it can never be stored.
    """
    content = manifest.content(rows.digest())
    already = _is_known(source, manifest, content)
    if not already:
        try:
            _store(source, manifest, rows, content, now)
        except IntegrityError:  # another delivery of it was committed meanwhile
            already = _is_known(source, manifest, content)
            if not already:
                raise
    _note(source, manifest, now)
    return already


def _is_known(source: Source, manifest: Manifest, content: str) -> bool:
    known = Batch.objects.filter(
        source=source, stream=manifest.stream, sequence=manifest.sequence
    ).first()
    if known and known.content != content:
        raise Conflict(
            f"Batch {manifest.key} of {source} was delivered before, with other content.",
            remedy="Begin a new stream: nothing is stored twice, and nothing in place of another.",
        )
    return known is not None


def _store(source: Source, manifest: Manifest, rows: Rows, content: str, now: datetime) -> None:
    table = BY_NAME[source.format].batch_table
    if manifest.table != table.name:
        raise Refusal(
            f"Source {source} sends {table.name}, not {manifest.table!r}.",
            code="table",
            remedy="Send it with the token of a source of that format.",
        )
    checks.check_coverage(manifest.coverage, now=now)
    frame = wire.read(rows.path, rows.content_type, table)
    checks.check(table, frame, now=now)
    with transaction.atomic():
        batch = _begin(source, manifest, content)
        loader = BATCH_LOADERS[table](batch, manifest.coverage)
        try:
            if frame.height:
                loader.store(Parsed(frame, reject_frame(()), Account()))
            loader.finish()
        except (Refused, Unreadable) as error:
            raise Refusal(str(error), code="refused") from error
        except DataError as error:
            raise Refusal(f"The database cannot hold it: {error}") from error
        batch.segment.save()
    log.info(
        "batch_stored",
        source=source.name,
        sequence=manifest.sequence,
        records=batch.segment.records,
    )


def _begin(source: Source, manifest: Manifest, content: str) -> Batch:
    """Create a batch's segment; whoever delivers it a second time waits here for the first."""
    account = manifest.account
    counted = dict(manifest.rejected_by_reason)
    if rest := account.rejected - sum(counted.values()):
        counted[OTHER_REASONS] = counted.get(OTHER_REASONS, 0) + rest
    segment = Segment(
        format=source.format,
        digest=Batch.digest(source, manifest.stream, manifest.sequence),
        name=f"{source} batch {manifest.sequence}",
        cluster=source.cluster,
        server=source.server,
        rejected_by_reason=counted,
        **account.model_dump(),
    )
    segment.save()
    batch = Batch.objects.create(
        segment=segment,
        source=source,
        stream=manifest.stream,
        sequence=manifest.sequence,
        content=content,
    )
    Reject.objects.bulk_create(
        Reject(segment=segment, **reject.model_dump()) for reject in manifest.rejects
    )
    return batch


def _note(source: Source, manifest: Manifest, now: datetime) -> None:
    """Keep what an agent says of itself."""
    told: dict[str, object] = {"last_batch_at": now}
    told |= {f"agent_{key}": value for key, value in manifest.agent.model_dump().items() if value}
    if manifest.spool:
        told |= {f"spool_{key}": value for key, value in manifest.spool.model_dump().items()}
    if manifest.sent_at:
        told["clock_offset_s"] = (manifest.sent_at - now).total_seconds()
    Source.objects.filter(pk=source.pk).update(**told)
