"""Libraries that only charts need, imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from deciban.errors import DecibanError


class _PlotLibrary:
    """A library that is imported when one of its attributes is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        try:
            return getattr(import_module(self._name), attribute)
        except ModuleNotFoundError:
            raise DecibanError(f"plots need {self._name}: pip install 'deciban[plot]'") from None


alt: Any = _PlotLibrary("altair")
contourpy: Any = _PlotLibrary("contourpy")
