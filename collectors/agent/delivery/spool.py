"""Batches on disk from when they are read until the portal has them.

A source's folder holds

    state.json             the stream, the next sequence number, and where to read on
    batches/NUMBER.batch   not delivered yet
    refused/NUMBER.batch   the portal will not have them: an admin must look

A batch counts from the moment when the state says so: one that has the next number or a later one
was left by a crash and is written again. So the place to read on and the batches that were read up
to there change together, and nothing is read twice or not at all.
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
    """What waits in a spool."""

    batches: int
    bytes: int
    oldest_at: datetime | None
    refused: int


class Spool:
    """The batches of one source; one reader commits, one shipper takes.

    Args:
        folder: the source's own.
        max_bytes: for so much there is room, refused batches included.
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
        self.place: dict[str, Any] = state["place"]
        self._sequence: int = state["sequence"]
        for left in self._files(self._waiting):
            if _number(left) >= self._sequence:
                left.unlink()

    def commit(self, batches: Iterable[Batch], place: dict[str, Any]) -> int:
        """Keep batches and where to read on; return how many bytes were written.

        The place is for the reader, plain values of its own.

        Raises:
            OSError: they could not be written, or the disk is full; all is as before.
        """
        sequence, written = self._sequence, 0
        for batch in batches:
            content = batch.encoded(self.stream, sequence)
            durable.write(self._path(sequence), content)
            sequence += 1
            written += len(content)
        state = {"stream": self.stream, "sequence": sequence, "place": place}
        durable.write(self._state, json.dumps(state).encode())
        with self._lock:
            self._sequence, self.place = sequence, place
        return written

    def has_room(self) -> bool:
        """Tell whether more should be read."""
        return self.used_bytes() < self._max_bytes

    def oldest(self) -> Path | None:
        """Return the batch to deliver next."""
        with self._lock:
            sequence = self._sequence
        return next((p for p in self._files(self._waiting) if _number(p) < sequence), None)

    def delivered(self, batch: Path) -> None:
        """Forget a batch that the portal has. If that is lost, it is delivered once more."""
        batch.unlink()

    def refuse(self, batch: Path) -> None:
        """Move a batch aside that the portal will not have."""
        batch.rename(self._refused / batch.name)
        durable.sync_folder(self._refused)

    def depth(self) -> Depth:
        """Count what waits."""
        waiting = self._files(self._waiting)
        size, oldest_at = 0, None
        for path in waiting:
            with suppress(FileNotFoundError):  # delivered just now
                status = path.stat()
                size += status.st_size
                oldest_at = oldest_at or datetime.fromtimestamp(status.st_mtime, UTC)
        return Depth(len(waiting), size, oldest_at, len(self._files(self._refused)))

    def used_bytes(self) -> int:
        """Count what lies on disk."""
        used = 0
        for path in (*self._files(self._waiting), *self._files(self._refused)):
            with suppress(FileNotFoundError):
                used += path.stat().st_size
        return used

    def _load(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._state.read_bytes()))
        except FileNotFoundError:
            state = {"stream": str(uuid.uuid4()), "sequence": 1, "place": {}}
            durable.write(self._state, json.dumps(state).encode())
            return state

    def _path(self, sequence: int) -> Path:
        return self._waiting / f"{sequence:012}{_SUFFIX}"

    @staticmethod
    def _files(folder: Path) -> list[Path]:
        return sorted(folder.glob(f"[0-9]*{_SUFFIX}"))


def _number(path: Path) -> int:
    return int(path.name.removesuffix(_SUFFIX))
