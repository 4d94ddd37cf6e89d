"""A session with a cluster, as the command line uses it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker


@dataclass(frozen=True)
class ClusterSession:
    """A cluster that works for this process."""

    dashboard: str | None
    progress: Callable[[], tuple[str, int, int] | None]  # the pass, its finished tasks and all; None between passes


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Ctrl-C waits until a cluster has started and can be closed; processes of the cluster never receive it.

    A terminal signals all processes of a command; those started while the signal is blocked keep it blocked.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would unblock it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
