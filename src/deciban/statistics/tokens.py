"""Tokens: how often each term occurs in the documents of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from deciban import _kernels
from deciban.data.batch import Texts
from deciban.data.terms import Cut, Terms
from deciban.errors import require
from deciban.statistics.statistic import Statistic, never_learned, require_not_negative, require_weights
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
    def of(
        cls, texts: Texts, cut: Cut, labels: Labels, weights: FloatArray | None, classes: int, *, once: bool
    ) -> Tokens:
        """Counts how often documents have a term; with `once`, how many have it."""
        text, ends, words = _kernels.count_terms(texts.buffers, texts.places, cut, labels, classes, once)
        present = np.where(texts.present, 0, -1).astype(np.int32)[:, np.newaxis]
        sizes = np.array([0, 1], np.int64)
        documents = Sum(np.ascontiguousarray(_kernels.count_codes(present, sizes, labels, weights, classes)[:, :, 0]))
        terms = Terms(text, ends)
        if weights is None:
            return cls(terms, Sum(words), documents)
        rows = TermRows.of(texts, cut, terms)
        data = np.ones_like(rows.data) if once else rows.data
        weighted = _kernels.sum_sparse(data, rows.indices, rows.indptr, len(terms), labels, weights, classes)
        assert weighted is not None
        return cls(terms, Sum(weighted), documents)._without_unseen()

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
            raise never_learned("some terms are new")
        counts = self.counts - other.counts.scatter(right, len(terms), axis=1)
        require_not_negative(documents, counts)
        return type(self)(self.terms, counts, documents)._without_unseen()

    def _without_unseen(self) -> Self:
        """Without terms whose count is 0 in all classes."""
        seen = self.counts.words.any(axis=(0, 1))
        if seen.all():
            return self
        index = np.flatnonzero(seen)
        return type(self)(self.terms.take(index), self.counts.take(index, axis=1), self.documents)

    def reindex_classes(self, index: Index, classes: int) -> Self:
        return type(self)(self.terms, self.counts.scatter(index, classes), self.documents.scatter(index, classes))

    def take(self, index: Index) -> Self:
        return type(self)(self.terms, self.counts.take(index), self.documents.take(index))._without_unseen()

    def columns(self, index: Index) -> Self:
        """Terms of all columns are counted together."""
        return self

    def check(self, classes: int, columns: int) -> None:
        require_weights("counts", self.counts, (classes, len(self.terms)))
        require_weights("documents", self.documents, (classes,))
        require((self.counts.value.sum(axis=0) > 0).all(), "a term was never counted")
        self.terms.check()
