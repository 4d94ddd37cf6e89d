"""Tokens: how often each term occurs in the documents of each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.data.batch import Texts
from deciban.data.terms import Cut, Terms
from deciban.errors import NegativeEvidence, require
from deciban.statistics.statistic import Arrays, Statistic, require_not_negative, require_weights
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, Index, IntArray, Labels


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

    def __getitem__(self, rows: slice) -> TermRows:
        start, stop, _ = rows.indices(len(self))
        first, last = self.indptr[start], self.indptr[stop]
        return TermRows(self.data[first:last], self.indices[first:last], self.indptr[start : stop + 1] - first)


@dataclass(frozen=True, eq=False)
class Tokens(Statistic):
    """N_c(t) = Σ w·(how often term t is in the document, or whether it is), over documents of class c.

    Only observed terms are listed: their union after +, fewer after −.

    >>> import numpy as np
    >>> texts = Texts.of(["buy book", "buy drugs"])
    >>> t = Tokens.of(texts, (1, 1, 1, 0, False, 0), np.array([0, 1], np.int32), None, 2, once=False)
    >>> list(t.terms), t.counts.value.tolist()
    (['book', 'buy', 'drugs'], [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    """

    terms: Terms
    counts: Sum  # (K, V)
    documents: Sum  # (K) Σ w of documents that are not missing

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
        weighted = _kernels.sum_sparse(data, rows.indices, rows.indptr, len(terms), labels, weights, classes)
        assert weighted is not None
        return cls(terms, Sum(weighted), documents)._seen()

    def __add__(self, other: Self) -> Self:
        documents = self.documents + other.documents
        if self.terms == other.terms:
            return type(self)(self.terms, self.counts + other.counts, documents)
        terms, left, right = self.terms.union(other.terms)
        counts = self.counts.scatter(left, len(terms), axis=1) + other.counts.scatter(right, len(terms), axis=1)
        return type(self)(terms, counts, documents)

    def __sub__(self, other: Self) -> Self:
        documents = self.documents - other.documents
        terms, _, right = self.terms.union(other.terms)
        if len(terms) > len(self.terms):
            raise NegativeEvidence("these rows were never learned (some terms are new); the model is unchanged")
        counts = self.counts - other.counts.scatter(right, len(terms), axis=1)
        require_not_negative(documents, counts)
        return type(self)(self.terms, counts, documents)._seen()

    def _seen(self) -> Self:
        """Without terms that no class has."""
        there = self.counts.words.any(axis=(0, 1))
        if there.all():
            return self
        index = np.flatnonzero(there)
        return type(self)(self.terms.take(index), self.counts.take(index, axis=1), self.documents)

    def reindex_classes(self, index: Index, classes: int) -> Self:
        return type(self)(self.terms, self.counts.scatter(index, classes), self.documents.scatter(index, classes))

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
