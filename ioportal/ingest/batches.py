"""Batches from agents: each becomes one segment, whatever the order of arrival."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from blake3 import blake3
from django.db import DataError, IntegrityError, transaction

from collectors.batch.values import Unreadable
from collectors.formats import BY_NAME
from collectors.parsed import Account, Parsed, reject_frame
from ioportal.ingest import checks, senders, wire
from ioportal.ingest.loaders import BATCH_LOADERS
from ioportal.ingest.loading import OTHER_REASONS, Refused
from ioportal.ingest.manifest import Conflict, Refusal
from ioportal.ingest.models import Batch, Reject, Segment
from ioportal.site.models import Source

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    import polars as pl

    from collectors.tables import Table
    from ioportal.ingest.manifest import Manifest

log = structlog.get_logger()


@dataclass(frozen=True)
class Rows:
    """The uploaded file of rows and its content type."""

    path: Path
    content_type: str

    def digest(self) -> str:
        """Return the BLAKE3 digest of the file."""
        return blake3().update_mmap(self.path).hexdigest()


def receive(
    source: Source, manifest: Manifest, rows: Rows, now: datetime, *, seconds: Rows | None = None
) -> bool:
    """Store and commit a batch, unless it is stored already.

    Args:
        source: the sender.
        manifest: the description of the batch.
        rows: its rows.
        now: the present time.
        seconds: of an RPC trace, its rows of `tables.RPC_SECONDS`.

    Returns:
        Whether it was stored already.

    Raises:
        Refusal: the batch cannot be stored.
    """
    senders.admit(source, manifest, now)
    digests = [part.digest() for part in (rows, seconds) if part]
    content = manifest.content(" ".join(digests))
    already = _is_known(source, manifest, content)
    if not already:
        try:
            _store(source, manifest, _parsed(source, manifest, rows, seconds, now), content)
        except IntegrityError:  # another delivery was committed meanwhile
            already = _is_known(source, manifest, content)
            if not already:
                raise
    _update_source(source, manifest, now)
    return already


def _is_known(source: Source, manifest: Manifest, content: str) -> bool:
    sequence = manifest.sequence
    stored = Batch.objects.filter(
        source=source, stream=manifest.stream, first_sequence__lte=sequence, sequence__gte=sequence
    ).first()
    if stored and stored.content not in {"", content}:
        raise Conflict(
            f"Batch {manifest.key} of {source} was delivered before with different content.",
            remedy="Start a new stream: a stored batch is never replaced.",
        )
    return stored is not None


def _parsed(
    source: Source, manifest: Manifest, rows: Rows, seconds: Rows | None, now: datetime
) -> Parsed:
    """Return the rows of a batch, checked."""
    form = BY_NAME[source.format]
    if manifest.table != form.batch_table.name:
        raise Refusal(
            f"Source {source} sends {form.batch_table.name}, not {manifest.table!r}.",
            code="table",
            remedy="Use the token of a source of that format.",
        )
    checks.check_coverage(manifest.coverage, now=now)
    table = _read(rows, form.batch_table, now)
    if not seconds:
        return Parsed(table, reject_frame(()), Account())
    if not form.seconds_table or table.is_empty():
        raise Refusal(
            "The part 'seconds' belongs to a batch with rows of an RPC trace.",
            code="parts",
            remedy="Send it with the rows of rpc_windows.",
        )
    by_second = _read(seconds, form.seconds_table, now)
    return Parsed(table, reject_frame(()), Account(), seconds=by_second)


def _read(rows: Rows, table: Table, now: datetime) -> pl.DataFrame:
    frame = wire.read(rows.path, rows.content_type, table)
    checks.check(table, frame, now=now)
    return frame


def _store(source: Source, manifest: Manifest, parsed: Parsed, content: str) -> None:
    with transaction.atomic():
        senders.lock_stream(source, manifest)
        batch = _begin(source, manifest, content)
        loader = BATCH_LOADERS[BY_NAME[source.format].batch_table](batch, manifest.coverage)
        try:
            if parsed.table.height:
                loader.store(parsed)
            loader.finish()
        except Refused as error:  # by stored or registered data, which may change
            raise Refusal(str(error), code="refused", retry=True) from error
        except Unreadable as error:
            raise Refusal(str(error), code="refused") from error
        except DataError as error:
            raise Refusal(f"The database cannot store the batch: {error}") from error
        batch.segment.save()
    log.info(
        "batch_stored",
        source=source.name,
        sequence=manifest.sequence,
        records=batch.segment.records,
    )


def _begin(source: Source, manifest: Manifest, content: str) -> Batch:
    """Create the segment of a batch; a concurrent delivery of the same batch waits here."""
    account = manifest.account
    reasons = dict(manifest.rejected_by_reason)
    if rest := account.rejected - sum(reasons.values()):
        reasons[OTHER_REASONS] = reasons.get(OTHER_REASONS, 0) + rest
    segment = Segment(
        format=source.format,
        digest=Batch.digest(source, manifest.stream, manifest.sequence),
        name=f"{source} batch {manifest.sequence}",
        cluster=source.cluster,
        server=source.server,
        rejected_by_reason=reasons,
        **account.model_dump(),
    )
    segment.save()
    batch = Batch.objects.create(
        segment=segment,
        source=source,
        stream=manifest.stream,
        first_sequence=manifest.sequence,
        sequence=manifest.sequence,
        content=content,
    )
    Reject.objects.bulk_create(
        Reject(segment=segment, **reject.model_dump()) for reject in manifest.rejects
    )
    return batch


def _update_source(source: Source, manifest: Manifest, now: datetime) -> None:
    """Store the state that the agent reports with a batch."""
    state: dict[str, object] = {"last_batch_at": now}
    agent = manifest.agent.model_dump(exclude={"instance"})
    state |= {f"agent_{key}": value for key, value in agent.items() if value}
    if manifest.spool:
        spool = manifest.spool.model_dump(exclude={"refused"})
        state |= {f"spool_{key}": value for key, value in spool.items()}
    if manifest.sent_at:
        state["clock_offset_s"] = (manifest.sent_at - now).total_seconds()
    Source.objects.filter(pk=source.pk).update(**state)
    senders.accepted(source, manifest, now)
