"""Prefetching and parallel maps: other threads compute the next items, or consume finished ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from os import cpu_count
from typing import TYPE_CHECKING, TypeVar

from deciban.lazy import lazy

if TYPE_CHECKING:
    from concurrent.futures import Future

futures = lazy("concurrent.futures")

S = TypeVar("S")
T = TypeVar("T")

WORKERS = min(8, cpu_count() or 1)


def prefetch(items: Iterable[T]) -> Iterator[T]:
    """The same items in the same order; the next one is fetched while one is in use.

    >>> list(prefetch("abc"))
    ['a', 'b', 'c']
    """
    source, end = iter(items), object()
    with futures.ThreadPoolExecutor(1, "deciban-prefetch") as pool:
        upcoming = pool.submit(next, source, end)
        while (item := upcoming.result()) is not end:
            upcoming = pool.submit(next, source, end)
            yield item


def parallel_map(function: Callable[[S], T], items: Iterable[S], workers: int | None = None) -> Iterator[T]:
    """function(item) for each, in order; as many run as there are workers, and one more waits.

    >>> list(parallel_map(str.upper, "abc"))
    ['A', 'B', 'C']
    """
    workers = workers or WORKERS
    with futures.ThreadPoolExecutor(workers, "deciban-read") as pool:
        pending: deque[Future[T]] = deque()
        try:
            for item in prefetch(items):
                pending.append(pool.submit(function, item))
                if len(pending) > workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def consume_in_background(consume: Callable[[T], object], items: Iterable[T]) -> None:
    """consume(item) for each, in order, by another thread while the next item is computed.

    >>> items = []
    >>> consume_in_background(items.append, "abc")
    >>> items
    ['a', 'b', 'c']
    """
    with futures.ThreadPoolExecutor(1, "deciban-consume") as pool:
        last: Future[object] = pool.submit(lambda: None)
        for item in items:
            last.result()
            last = pool.submit(consume, item)
        last.result()
