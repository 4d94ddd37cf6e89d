"""Marks of tests that need a browser."""

import pytest

SLOW = pytest.mark.slow  # cases of the full matrix, which make test-all runs
ONE_BROWSER = pytest.mark.xdist_group("browser")


def some_slow(names, *fast):
    """Parameters of which only the fast ones run in make test."""
    return [name if name in fast else pytest.param(name, marks=SLOW) for name in names]
