"""The interface of all readers."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from collectors.agent.delivery.batches import Batch


class SourceMissing(Exception):  # noqa: N818  (a state of the source)
    """The source does not exist yet."""


@dataclass(frozen=True)
class Reading:
    """Batches, and the checkpoint after them."""

    batches: Sequence[Batch]
    checkpoint: dict[str, Any]


class Reader(Protocol):
    """Reads a source from a checkpoint.

    A checkpoint holds everything needed to resume: a reader in another process, or one whose last
    reading was not committed, reads the same data from it.
    """

    def read(self, checkpoint: dict[str, Any]) -> Generator[Reading]:
        """Yield new data; the caller commits each reading before it requests the next one.

        Raises:
            SourceMissing: the source does not exist yet.
            SourceUnavailable, OSError: the source cannot be read at present.
        """
        ...

    def behind_bytes(self) -> int:
        """Return the number of unread bytes at the last check."""
        ...

    def close(self) -> None:
        """Close open files."""
        ...
