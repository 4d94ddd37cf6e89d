"""Reading ahead and writing behind: other threads make what comes next, or put away what is done."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from os import cpu_count
from typing import TYPE_CHECKING, TypeVar

from deciban.late import late

if TYPE_CHECKING:
    from concurrent.futures import Future

futures = late("concurrent.futures")

S = TypeVar("S")
T = TypeVar("T")

WORKERS = min(8, cpu_count() or 1)


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items in the same order; the next one is being fetched while one is in use.

    >>> list(ahead("abc"))
    ['a', 'b', 'c']
    """
    source, end = iter(items), object()
    with futures.ThreadPoolExecutor(1, "deciban-ahead") as pool:
        coming = pool.submit(next, source, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, source, end)
            yield item


def mapped(make: Callable[[S], T], items: Iterable[S], workers: int | None = None) -> Iterator[T]:
    """make(item) for each, in order; as many as there are workers are under way, and one more waits.

    >>> list(mapped(str.upper, "abc"))
    ['A', 'B', 'C']
    """
    workers = WORKERS if workers is None else workers
    with futures.ThreadPoolExecutor(workers, "deciban-read") as pool:
        pending: deque[Future[T]] = deque()
        try:
            for item in ahead(items):
                pending.append(pool.submit(make, item))
                if len(pending) > workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for waiting in pending:
                waiting.cancel()


def behind(use: Callable[[T], object], items: Iterable[T]) -> None:
    """use(item) for each, in order and one at a time, by another thread while the next one is being made.

    >>> found = []
    >>> behind(found.append, "abc")
    >>> found
    ['a', 'b', 'c']
    """
    with futures.ThreadPoolExecutor(1, "deciban-behind") as pool:
        last: Future[object] | None = None
        for item in items:
            if last is not None:
                last.result()
            last = pool.submit(use, item)
        if last is not None:
            last.result()
