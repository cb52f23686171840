"""The spool: batches on disk until the portal has stored them.

Contents of a source's folder:

    state.json             stream, next sequence number, and checkpoint of the reader
    batches/NUMBER.batch   waiting for delivery
    refused/NUMBER.batch   refused by the portal, until the cause is fixed

A batch is committed when the state is written: batch files with the next number or a later one were
left by a crash and are discarded. Batches and checkpoint therefore change together, and nothing is
read twice or skipped.
"""

import json
import threading
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from collectors.agent import durable
from collectors.agent.delivery.batches import Batch

_SUFFIX = ".batch"


@dataclass(frozen=True)
class Depth:
    """Size of a spool."""

    batches: int
    bytes: int
    oldest_at: datetime | None
    refused: int


class Spool:
    """The batches of one source, for one reader and one shipper.

    Args:
        folder: of the source.
        max_bytes: capacity, including refused batches.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self._waiting = folder / "batches"
        self._refused = folder / "refused"
        self._state = folder / "state.json"
        self._lock = threading.Lock()
        for needed in (folder, self._waiting, self._refused):
            durable.make_folder(needed)
        state = self._load()
        self.stream: str = state["stream"]
        self.checkpoint: dict[str, Any] = state["checkpoint"]
        self._sequence: int = state["sequence"]
        for path in self._files(self._waiting):
            if _number(path) >= self._sequence:
                path.unlink()

    def commit(self, batches: Iterable[Batch], checkpoint: dict[str, Any]) -> int:
        """Store batches and the checkpoint after them; return the number of bytes written.

        Args:
            batches: to deliver.
            checkpoint: JSON values, defined by the reader.

        Raises:
            OSError: writing failed, for example because the disk is full; nothing has changed.
        """
        sequence, written = self._sequence, 0
        for batch in batches:
            content = batch.encoded(self.stream, sequence)
            durable.write(self._path(sequence), content)
            sequence += 1
            written += len(content)
        state = {"stream": self.stream, "sequence": sequence, "checkpoint": checkpoint}
        durable.write(self._state, json.dumps(state).encode())
        with self._lock:
            self._sequence, self.checkpoint = sequence, checkpoint
        return written

    def has_room(self) -> bool:
        """Whether there is room for more batches."""
        return self.used_bytes() < self._max_bytes

    def oldest(self) -> Path | None:
        """Return the batch to deliver next."""
        with self._lock:
            sequence = self._sequence
        return next((p for p in self._files(self._waiting) if _number(p) < sequence), None)

    def delivered(self, batch: Path) -> None:
        """Delete a delivered batch; after a crash it is delivered again under the same key."""
        batch.unlink()

    def refuse(self, batch: Path) -> None:
        """Move a batch to the refused ones."""
        batch.rename(self._refused / batch.name)
        durable.sync_folder(self._refused)

    def refused(self) -> list[Path]:
        """Return the refused batches, oldest first."""
        return self._files(self._refused)

    def depth(self) -> Depth:
        """Return the size of the spool."""
        waiting = self._files(self._waiting)
        size, oldest_at = 0, None
        for path in waiting:
            with suppress(FileNotFoundError):  # delivered meanwhile
                status = path.stat()
                size += status.st_size
                oldest_at = oldest_at or datetime.fromtimestamp(status.st_mtime, UTC)
        return Depth(len(waiting), size, oldest_at, len(self._files(self._refused)))

    def used_bytes(self) -> int:
        """Return the bytes in use, including refused batches."""
        used = 0
        for path in (*self._files(self._waiting), *self._files(self._refused)):
            with suppress(FileNotFoundError):
                used += path.stat().st_size
        return used

    def _load(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._state.read_bytes()))
        except FileNotFoundError:
            state = {"stream": str(uuid.uuid4()), "sequence": 1, "checkpoint": {}}
            durable.write(self._state, json.dumps(state).encode())
            return state

    def _path(self, sequence: int) -> Path:
        return self._waiting / f"{sequence:012}{_SUFFIX}"

    @staticmethod
    def _files(folder: Path) -> list[Path]:
        return sorted(folder.glob(f"[0-9]*{_SUFFIX}"))


def _number(path: Path) -> int:
    return int(path.name.removesuffix(_SUFFIX))
