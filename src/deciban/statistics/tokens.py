"""Tokens: how often each class used each term of its texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.batch import Texts
from deciban.errors import NegativeEvidence
from deciban.statistics.base import Arrays, Statistic, require, require_not_negative, require_weights
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, Index, IntArray, Labels

Cut = tuple[
    int, int, int, int, bool, int
]  # n-grams of words, of characters; shapes; hash_bits: see cpp/kernels/terms.hpp


@dataclass(frozen=True, eq=False)
class Terms:
    """A list of different terms in the order of their bytes, as UTF-8 end to end: some hundred thousand are usual.

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

    def __getitem__(self, place: int) -> str:
        start = self.ends[place - 1] if place else 0
        return self.text[start : self.ends[place]].tobytes().decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return (self[place] for place in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Terms) and (
            self is other or (np.array_equal(self.ends, other.ends) and np.array_equal(self.text, other.text))
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def index(self) -> Any:
        """What looks terms up."""
        return _kernels.Vocabulary(self.text, self.ends)

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text, "ends": self.ends}

    def union(self, other: Terms) -> tuple[Terms, IntArray, IntArray]:
        """The terms of both, and where those of each stand in it."""
        text, ends, mine, theirs = _kernels.merge_terms(self.text, self.ends, other.text, other.ends)
        return Terms(text, ends), mine, theirs

    def check(self) -> None:
        """Raises DecibanError unless this is a list of terms in order, as is needed of what comes from a file."""
        sizes = np.diff(self.ends, prepend=0)
        whole = self.text.ndim == self.ends.ndim == 1 and (sizes > 0).all() and sizes.sum() == len(self.text)
        require(whole, "the ends of terms are not those of their text")
        require((sizes < 1 << 15).all(), "a term is too long")
        require(_kernels.ascending_terms(self.text, self.ends), "terms do not stand in order")

    def take(self, places: IntArray) -> Terms:
        """Some of the terms, by ascending places."""
        sizes = np.diff(self.ends, prepend=0)
        kept = np.zeros(len(self), np.bool_)
        kept[places] = True
        return Terms(self.text[np.repeat(kept, sizes)], np.cumsum(sizes[kept]))


@dataclass(frozen=True)
class TermRows:
    """Documents as counts of known terms: row i has data[indptr[i]:indptr[i+1]] of the terms in `indices`."""

    data: FloatArray
    indices: IntArray
    indptr: IntArray

    @classmethod
    def of(cls, texts: Texts, cut: Cut, terms: Terms) -> TermRows:
        return cls(*_kernels.term_rows(texts.buffers, texts.places, cut, terms.index))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), 1

    @property
    def rows(self) -> IntArray:
        """The row of each cell."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def __getitem__(self, some: slice) -> TermRows:
        start, stop, _ = some.indices(len(self))
        first, last = self.indptr[start], self.indptr[stop]
        return TermRows(self.data[first:last], self.indices[first:last], self.indptr[start : stop + 1] - first)


@dataclass(frozen=True, eq=False)
class Tokens(Statistic):
    """N_c(t) = Σ w·(how often term t is in the document, or whether it is), over documents of class c.

    Only terms that were seen are listed: a union when statistics are added, and less when rows are forgotten.

    >>> import numpy as np
    >>> texts = Texts.of(["buy book", "buy drugs"])
    >>> t = Tokens.of(texts, (1, 1, 1, 0, False, 0), np.array([0, 1], np.int32), None, 2, once=False)
    >>> list(t.terms), t.counts.value.tolist()
    (['book', 'buy', 'drugs'], [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    """

    terms: Terms
    counts: Sum  # (K, V)
    documents: Sum  # (K) Σ w of documents that are there

    @classmethod
    def zero(cls, classes: int, columns: int) -> Tokens:
        return cls(Terms.of([]), Sum.zeros((classes, 0)), Sum.zeros((classes,)))

    @classmethod
    def of(
        cls, texts: Texts, cut: Cut, labels: Labels, weights: FloatArray | None, classes: int, *, once: bool
    ) -> Tokens:
        """Counts every time a document has a term; or `once`, however often it has it."""
        text, ends, words = _kernels.count_terms(texts.buffers, texts.places, cut, labels, classes, once)
        there = np.where(texts.present, 0, -1).astype(np.int32)[:, np.newaxis]
        sizes = np.array([0, 1], np.int64)
        documents = Sum(np.ascontiguousarray(_kernels.count_codes(there, sizes, labels, weights, classes)[:, :, 0]))
        terms = Terms(text, ends)
        if weights is None:
            return cls(terms, Sum(words), documents)
        rows = TermRows.of(texts, cut, terms)
        data = np.ones_like(rows.data) if once else rows.data
        found = _kernels.sum_sparse(data, rows.indices, rows.indptr, len(terms), labels, weights, classes)
        assert found is not None
        return cls(terms, Sum(found), documents)._seen()

    def __add__(self, other: Self) -> Self:
        documents = self.documents + other.documents
        if self.terms == other.terms:
            return type(self)(self.terms, self.counts + other.counts, documents)
        terms, mine, theirs = self.terms.union(other.terms)
        counts = self.counts.place(mine, len(terms), axis=1) + other.counts.place(theirs, len(terms), axis=1)
        return type(self)(terms, counts, documents)

    def __sub__(self, other: Self) -> Self:
        documents = self.documents - other.documents
        terms, _, theirs = self.terms.union(other.terms)
        if len(terms) > len(self.terms):
            raise NegativeEvidence("these rows were never learned (some terms are new); the model is unchanged")
        counts = self.counts - other.counts.place(theirs, len(terms), axis=1)
        require_not_negative(documents, counts)
        return type(self)(self.terms, counts, documents)._seen()

    def _seen(self) -> Self:
        """Without terms that no class has."""
        there = self.counts.words.any(axis=(0, 1))
        if there.all():
            return self
        places = np.flatnonzero(there)
        return type(self)(self.terms.take(places), self.counts.take(places, axis=1), self.documents)

    def align(self, index: Index, classes: int) -> Self:
        return type(self)(self.terms, self.counts.place(index, classes), self.documents.place(index, classes))

    def take(self, index: Index) -> Self:
        return type(self)(self.terms, self.counts.take(index), self.documents.take(index))._seen()

    def columns(self, index: Index) -> Self:
        """Terms of several columns are counted together, so that their order does not matter."""
        return self

    def to_arrays(self) -> Arrays:
        return {
            "text": self.terms.text,
            "ends": self.terms.ends,
            "counts": self.counts.words,
            "documents": self.documents.words,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        terms = Terms(np.asarray(arrays["text"], np.uint8), np.asarray(arrays["ends"], np.int64))
        sums = (Sum(np.asarray(arrays[name], np.float64)) for name in ("counts", "documents"))
        return cls(terms, *sums)

    def check(self, classes: int, columns: int) -> None:
        require_weights("counts", self.counts, (classes, len(self.terms)))
        require_weights("documents", self.documents, (classes,))
        require((self.counts.value.sum(axis=0) > 0).all(), "a term was never counted")
        self.terms.check()
