"""Fixtures of the tests of the command line."""

import signal
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def interrupt() -> Iterator[Callable[[], None]]:
    """Does what Ctrl-C does, also in jobs in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
