"""Produce the next item of an iterator in a thread while the caller uses the current one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_Item = TypeVar("_Item")


def prefetch(items: Iterator[_Item]) -> Generator[_Item]:
    """Yield the same items; a thread produces the next one meanwhile.

    Parsing and copying then use two processors, because neither holds Python's lock for long.
    `items` must not use the database: the thread has no connection. A caller that may stop early
    closes the generator, which ends the thread.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        upcoming = thread.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = thread.submit(next, items, None)
            yield item
