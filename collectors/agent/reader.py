"""What all ways of reading a source agree on."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from collectors.agent.delivery.batches import Batch


class NotThereYet(Exception):  # noqa: N818  (a state of the source)
    """The source does not exist yet: it may appear."""


@dataclass(frozen=True)
class Reading:
    """What was read, and where to read on when it is safe."""

    batches: Sequence[Batch]
    place: dict[str, Any]


class Reader(Protocol):
    """Reads a source on from a place.

    All that it must know in order to go on is in the place: a reader in another process, or one
    whose last reading was not kept, reads the same from there.
    """

    def read(self, place: dict[str, Any]) -> Generator[Reading]:
        """Yield what there is behind a place; each reading is kept before the next is asked for.

        Raises:
            NotThereYet: there is nothing to read.
            SourceUnavailable, OSError: it cannot be read now; try again later.
        """
        ...

    def behind_bytes(self) -> int:
        """Return how much was there and not read when it was last looked at."""
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...
