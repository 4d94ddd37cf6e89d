"""Terms: a vocabulary in one UTF-8 buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.errors import require
from deciban.types import IntArray

# n-grams of words, of characters; shapes; hash_bits: see cpp/kernels/terms.hpp
Cut = tuple[int, int, int, int, bool, int]


@dataclass(frozen=True, eq=False)
class Terms:
    """Different terms in the order of their bytes, in one UTF-8 buffer: a few hundred thousand are usual.

    >>> list(Terms.of(["drugs", "buy"]))
    ['buy', 'drugs']
    """

    text: NDArray[np.uint8]
    ends: NDArray[np.int64]  # (V)

    @classmethod
    def of(cls, terms: Sequence[str]) -> Terms:
        words = sorted({term.encode("utf-8", "surrogatepass") for term in terms})
        return cls(np.frombuffer(b"".join(words), np.uint8), np.cumsum([len(w) for w in words], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> str:
        start = self.ends[index - 1] if index else 0
        return self.text[start : self.ends[index]].tobytes().decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Terms) and (
            self is other or (np.array_equal(self.ends, other.ends) and np.array_equal(self.text, other.text))
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def index(self) -> Any:
        """The lookup table."""
        return _kernels.Vocabulary(self.text, self.ends)

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text, "ends": self.ends}

    def union(self, other: Terms) -> tuple[Terms, IntArray, IntArray]:
        """The terms of both, and the indices of the terms of each in them."""
        text, ends, left, right = _kernels.merge_terms(self.text, self.ends, other.text, other.ends)
        return Terms(text, ends), left, right

    def check(self) -> None:
        """Raises DecibanError unless terms are sorted and different: model files may be damaged."""
        sizes = np.diff(self.ends, prepend=0)
        complete = self.text.ndim == self.ends.ndim == 1 and (sizes > 0).all() and sizes.sum() == len(self.text)
        require(complete, "the ends of terms do not fit their text")
        require((sizes < 1 << 15).all(), "a term is too long")
        require(_kernels.ascending_terms(self.text, self.ends), "terms are not in order")

    def take(self, indices: IntArray) -> Terms:
        """The terms at ascending indices."""
        sizes = np.diff(self.ends, prepend=0)
        selected = np.zeros(len(self), np.bool_)
        selected[indices] = True
        return Terms(self.text[np.repeat(selected, sizes)], np.cumsum(sizes[selected]))
