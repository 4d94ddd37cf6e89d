"""Imports on first use: loading a model and scoring rows needs none of these libraries."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


class _LazyModule:
    """A module that is imported on first use; its attributes are cached here."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        vars(self)[attribute] = value
        return value


def lazy(name: str) -> Any:
    """A module that is imported when an attribute of it is first used.

    >>> bisect = lazy("bisect")
    >>> bisect.bisect_left([1, 3, 5], 4)
    2
    """
    return _LazyModule(name)


def names_of(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package that imports each name from its module on first use.

    >>> names_of("deciban.families", {"Poisson": "deciban.families.poisson"})("Poisson").__module__
    'deciban.families.poisson'
    """

    def getattr_once(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return getattr_once


def issparse(x: Any) -> bool:
    """scipy.sparse.issparse without its import: until scipy.sparse is imported, there are no sparse arrays.

    >>> import numpy as np
    >>> issparse(np.eye(2))
    False
    """
    check = getattr(sys.modules.get("scipy.sparse"), "issparse", None)  # absent while it is being imported
    return check is not None and bool(check(x))
