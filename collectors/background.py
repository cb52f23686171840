"""Work in the background, in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_background(
    threads: Executor,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    ahead: int = 1,
) -> Iterator[Result]:
    """Yield the function's result for each item, computed while the next item is produced."""
    pending: deque[Future[Result]] = deque()
    for item in items:
        pending.append(threads.submit(function, item))
        if len(pending) > ahead:
            yield pending.popleft().result()
    for following in pending:
        yield following.result()
