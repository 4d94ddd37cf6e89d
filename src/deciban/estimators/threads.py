"""Threads of linear algebra."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


_LOCK, _LIMITS = Lock(), list[Any]()  # one for each running fit


@contextmanager
def one_thread() -> Iterator[None]:
    """Run linear algebra in one thread: matrices are small here, and synchronising threads costs more.

    The limit holds for the whole process, so the first of several fits sets it and the last one lifts it.
    """
    with _LOCK:
        _LIMITS.append(_LIMITS[0] if _LIMITS else _blas().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _LOCK:
            limit = _LIMITS.pop()
            if not _LIMITS:
                limit.restore_original_limits()
