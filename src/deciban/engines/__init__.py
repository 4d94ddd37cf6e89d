"""Engines fit, evaluate and predict where the rows are: statistics add, so a fit is a map and a sum.

`deciban.engines.dask` and `deciban.engines.spark` have the same functions; each needs its extra. See docs/scale.md.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["dask", "spark"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"deciban.engines.{name}")
    raise AttributeError(f"module 'deciban.engines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
