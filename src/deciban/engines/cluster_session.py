"""A session with a cluster, as the command line uses it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker


@dataclass(frozen=True)
class ClusterSession:
    """A connection to a running cluster."""

    dashboard: str | None
    progress: Callable[[], tuple[str, int, int] | None]  # (pass, finished tasks, all tasks), or None between passes


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Defers Ctrl-C until a cluster has started and can be closed; its processes never receive it.

    A terminal signals all processes of a command; those started while the signal is blocked keep it blocked.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it later would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
