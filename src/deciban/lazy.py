"""Libraries that are imported when they are first used. A model is loaded and scores rows without them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


class _LazyModule:
    """A module that is imported on first use; its attributes are kept here, so they are looked up once."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        vars(self)[attribute] = value
        return value


def lazy(name: str) -> Any:
    """A module that is imported when one of its attributes is first used.

    >>> bisect = lazy("bisect")
    >>> bisect.bisect_left([1, 3, 5], 4)
    2
    """
    return _LazyModule(name)


def names_of(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package that imports each of its names, by the module it is in, when it is first used.

    >>> names_of("deciban.families", {"Poisson": "deciban.families.poisson"})("Poisson").__module__
    'deciban.families.poisson'
    """

    def named(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return named


def issparse(x: Any) -> bool:
    """scipy.sparse.issparse, without an import: before scipy.sparse is imported there are no sparse arrays.

    >>> import numpy as np
    >>> issparse(np.eye(2))
    False
    """
    check = getattr(sys.modules.get("scipy.sparse"), "issparse", None)  # absent while it is being imported
    return check is not None and bool(check(x))
