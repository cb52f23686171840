"""Work in the background, in order."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_background(
    threads: Executor, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """Yield the function's result for each item, computed while the next item is produced."""
    pending = None
    for item in items:
        following = threads.submit(function, item)
        if pending:
            yield pending.result()
        pending = following
    if pending:
        yield pending.result()
