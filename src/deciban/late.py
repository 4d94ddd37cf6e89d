"""Late: libraries that are imported when they are first used. A model is loaded and scores rows without them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


class _Late:
    """Stands for a module. What was asked for once is kept, so that it costs no more than an attribute does."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(import_module(self._name), attribute)
        vars(self)[attribute] = found
        return found


def late(name: str) -> Any:
    """A module that is imported when something of it is asked for.

    >>> bisect = late("bisect")
    >>> bisect.bisect_left([1, 3, 5], 4)
    2
    """
    return _Late(name)


def names_of(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names, each at home in a module of it, are imported when they are asked for.

    >>> names_of("deciban.families", {"Poisson": "poisson"})("Poisson").__module__
    'deciban.families.poisson'
    """

    def named(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return named


def issparse(x: Any) -> bool:
    """scipy.sparse.issparse, without an import: while nobody has imported scipy.sparse there are no such rows.

    >>> import numpy as np
    >>> issparse(np.eye(2))
    False
    """
    asked = getattr(sys.modules.get("scipy.sparse"), "issparse", None)  # there is none while it is being imported
    return asked is not None and bool(asked(x))
