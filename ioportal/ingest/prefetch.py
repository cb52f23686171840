"""Making the next thing while the last one is used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_Thing = TypeVar("_Thing")


def prefetch(things: Iterator[_Thing]) -> Generator[_Thing]:
    """Yield the same things; a thread makes the next one while the caller works on this one.

    Parsing and copying then use two processors, for neither holds Python's lock for long. The
    thread has no database connection of its own: `things` must not need one. Who may leave off
    early closes the generator, so that the thread is done.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        coming = thread.submit(next, things, None)
        while (thing := coming.result()) is not None:
            coming = thread.submit(next, things, None)
            yield thing
