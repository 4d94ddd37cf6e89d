"""ClassIndex: class labels ↔ their positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deciban.errors import require
from deciban.types import IntArray, Labels, Level, Levels, is_sorted

UNKNOWN = -1  # the position of a label that is not among the classes
MAX_CHARACTERS = 1 << 28  # of an array of text, in which all cells are as wide as the widest


@dataclass(frozen=True)
class ClassIndex:
    """The positions of labels among the classes of a model; −1 for other labels.

    >>> index = ClassIndex(("ham", "spam"))
    >>> index.positions(["spam", "eggs"]), index.recode(np.array([0, 1, 1]), ("spam", "ham"))
    (array([ 1, -1]), array([1, 0, 0], dtype=int32))
    """

    classes: Levels

    @cached_property
    def _position(self) -> dict[Level, int]:
        return {label: k for k, label in enumerate(self.classes)}

    def positions(self, labels: Iterable[Level]) -> IntArray:
        """The position of each label."""
        return np.array([self._position.get(label, UNKNOWN) for label in labels], dtype=np.intp)

    def recode(self, codes: Labels, classes: Iterable[Level]) -> Labels:
        """(n) positions in `classes`, or −1, as positions in these classes."""
        if classes == self.classes:
            return codes
        table = np.append(self.positions(classes), UNKNOWN).astype(np.int32)
        return table[codes]


def require_classes(classes: Levels) -> None:
    """Raises an error unless classes are text or integers, sorted and distinct."""
    require(all(isinstance(label, (str, int)) for label in classes), "a class is neither text nor a whole number")
    require(is_sorted(classes), "classes are not in order, or one occurs twice")
    require_narrow(classes)


def require_narrow(words: Sequence[Any]) -> None:
    """Raises an error if an array of these words would be too large."""
    widest = max((len(word) for word in words if isinstance(word, str)), default=0)
    require(widest * len(words) <= MAX_CHARACTERS, "one of many words is too long")
