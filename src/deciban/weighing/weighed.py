"""Weighed: a generative model whose evidence counts as much as its weights say. It scores and explains rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban import _kernels
from deciban.batch import Frame
from deciban.contributions import By, Contributions, Line, title
from deciban.errors import BadCell
from deciban.families.base import rows_of
from deciban.generative import Block, ClassPrior, Generative, log_prior, named_cell, numbered_row
from deciban.late import late
from deciban.plans import converts, read
from deciban.sources import Sample
from deciban.statistics import Counts
from deciban.types import FloatArray, IntArray
from deciban.weighing.reader import Adder, Reader, Share
from deciban.weighing.readers import Readers
from deciban.weighing.weights import Weights

if TYPE_CHECKING:
    from deciban.held_out import Judged
    from deciban.sources.sampling import Keys

# what judges rows that were learned is not needed for others
held_out = late("deciban.held_out")
folding = late("deciban.weighing.folds")
left_out = late("deciban.weighing.left_out")

CELLS = 1 << 22  # numbers, that are made of rows at a time
SPLIT = 4096  # rows, that are split into shares at a time


@dataclass(frozen=True)
class Weighed:
    """log p(c|x) = log ((1 − ε)·softmax(z)_c + ε·p(c)), z_c = log p(c) + b_c + Σ_pieces w_pc·evidence_pc.

    ε is the share of the class prior (see `Weights`): odds are bounded by about 1/ε, whatever the evidence.
    """

    evidence: Generative
    blocks: Readers
    weights: Weights
    class_prior: ClassPrior

    @cached_property
    def log_prior(self) -> FloatArray:
        """(K) log p(c)."""
        return log_prior(self.evidence.counts.value, self.evidence.classes, self.class_prior)

    @cached_property
    def bias(self) -> FloatArray:
        return self.weights.bias_of(self.evidence.classes)

    @cached_property
    def readers(self) -> tuple[tuple[Block, Reader, FloatArray], ...]:
        """Every block that counts, with what reads it and (pieces, K) weights; and all that refuse infinite numbers."""
        found = []
        for block, reader in self.blocks:
            values = self.weights.of(reader.pieces, self.evidence.schema.all_names, self.evidence.classes)
            if values.any() or refuses_infinite(block):
                found.append((block, reader, values))
        return tuple(found)

    def converts(self, frame: Frame) -> bool:
        return converts([block.plan for block in self.evidence.blocks], frame)

    @cached_property
    def _adders(self) -> tuple[Adder, ...]:
        return tuple(reader.adder(weights) for _, reader, weights in self.readers)

    def joint(self, frame: Frame, out: FloatArray, first_row: int | IntArray = 0) -> None:
        """out (n, K) = the scores, but for a term common to all classes."""
        out[:] = self.log_prior + self.bias
        for add, (reader, values, weights) in zip(self._adders, self._read(frame, first_row), strict=True):
            step = max(1, CELLS // (reader.width * len(self.log_prior)))
            for at in range(0, frame.rows, step) if weights.any() else ():
                some = slice(at, at + step)
                add(rows_of(values, some), out[some])
        self._limit(out, self.log_prior)

    def _limit(self, scores: FloatArray, log_prior: FloatArray) -> None:
        """Turns scores (n, K) into log ((1 − ε)·softmax + ε·prior); where there is no ε, they stay as they are."""
        if self.weights.prior_share:
            _kernels.normalise(scores, self.log_prior, False)
            scores *= 1.0 - self.weights.prior_share
            scores += self.weights.prior_share * np.exp(log_prior)
            with np.errstate(divide="ignore"):  # a class whose prior is 0
                np.log(scores, out=scores)

    def limit(self, scores: FloatArray) -> FloatArray:
        """(n, K) what the limit adds to scores, less its mean over the classes: a part that no column has."""
        limited = scores.copy()
        self._limit(limited, self.log_prior)
        known = np.isfinite(scores)
        change = np.subtract(limited, scores, out=np.zeros_like(scores), where=known)
        result: FloatArray = np.where(known, change - change.mean(axis=1, keepdims=True, where=known), 0.0)
        return result

    def _read(
        self, frame: Frame, first_row: int | IntArray = 0, wanted: Callable[[Reader], bool] = lambda reader: True
    ) -> Iterator[tuple[Reader, Any, FloatArray]]:
        """Every block's values of some rows, for the readers that are wanted."""
        places = self.evidence.schema.places(frame)
        for block, reader, weights in self.readers:
            if not wanted(reader):
                continue
            levels = block.statistic.levels if isinstance(block.statistic, Counts) else None
            values = read(block.plan, frame, places, levels, self.evidence.missing)
            try:
                block.plan.family.check(values)
            except BadCell as bad:
                row = numbered_row(first_row, bad.row)
                raise named_cell(bad, block.plan, self.evidence.schema, places, frame, row) from None
            yield reader, values, weights

    @cached_property
    def _share_adders(self) -> tuple[Adder, ...]:
        return tuple(reader.share_adder(weights) for _, reader, weights in self.readers)

    def contributions(self, frame: Frame, by: By = "column") -> Contributions:
        """The class prior, what each column (by="pair": and each pair) and each term adds, and the intercept.

        The intercept is the bias, which belongs to no column.
        """
        names = self.evidence.schema.names
        shares, apart = self.column_shares(frame, by, terms=False), dict[tuple[int, ...], FloatArray]()
        for columns, share in self._pairs(frame, by):
            if len(columns) == 1:  # two that are derived from one column
                shares[:, columns[0]] += share
            else:
                apart[columns] = apart[columns] + share if columns in apart else share
        lines = [Line("prior"), *(Line(title((j,), names), (j,)) for j in self.explained_columns)]
        prior = np.broadcast_to(self.log_prior, (frame.rows, 1, len(self.log_prior)))
        found = [prior, shares[:, self.explained_columns]]
        more = {Line(title(columns, names), columns): share for columns, share in apart.items()}
        if self.bias.any():
            more[Line("intercept", last=True)] = np.broadcast_to(self.bias, (frame.rows, len(self.bias)))
        terms: dict[str, tuple[Line, FloatArray]] = {}
        for reader, values, weights in self._read(frame, wanted=lambda reader: reader.by_lines):
            for term in reader.lines(values, weights) if weights.any() else ():
                line = term.line(reader.pieces[0].columns, names)
                before = terms.get(line.name)
                terms[line.name] = line, term.nats if before is None else before[1] + term.nats
        lines += [*more, *(line for line, _ in terms.values())]
        found += [share[:, np.newaxis] for share in (*more.values(), *(nats for _, nats in terms.values()))]
        nats = np.concatenate(found, axis=1)
        if self.weights.prior_share:
            lines.append(Line(self.limit_name, last=True))
            nats = np.concatenate([nats, self.limit(nats.sum(axis=1))[:, np.newaxis]], axis=1)
        return Contributions(tuple(lines), nats)

    @property
    def limit_name(self) -> str:
        """What the line is called that bounds the evidence."""
        return f"limit of {self.weights.rows} rows"

    @cached_property
    def explained_columns(self) -> list[int]:
        """The columns that have a line: all, except documents of which nothing but their terms, in lines, is said."""
        documents = {j for block, reader in self.blocks if reader.by_lines for j in block.plan.columns}
        documents -= {j for _, reader in self.blocks if not reader.by_lines for p in reader.pieces for j in p.columns}
        return [j for j in range(len(self.evidence.schema.names)) if j not in documents]

    def column_shares(self, frame: Frame, by: By = "column", *, terms: bool = True) -> FloatArray:
        """(n, columns, K) what each column adds, documents only with `terms`; by="pair": without that of pairs."""
        schema = self.evidence.schema
        out = np.zeros((frame.rows, len(schema.all_names), len(self.log_prior)))
        for at in range(0, frame.rows, SPLIT):
            some = frame.slice(at, min(at + SPLIT, frame.rows))
            for add, (reader, values, weights) in zip(self._share_adders, self._read(some, at), strict=True):
                apart = (reader.by_lines and not terms) or (by == "pair" and reader.has_pairs)
                if weights.any() and not apart:
                    add(values, out[at : at + SPLIT])
        own = len(schema.names)
        for j in range(own, out.shape[1]):  # what is derived from a column is part of what the column adds
            out[:, schema.owners((j,))[0]] += out[:, j]
        return out[:, :own]

    def _pairs(self, frame: Frame, by: By) -> Iterator[Share]:
        for reader, values, weights in self._read(frame, wanted=lambda reader: by == "pair" and reader.has_pairs):
            for columns, share in reader.pairs(values, weights):
                yield self.evidence.schema.owners(columns), share

    def left_out(self, sample: Sample, seed: int) -> Judged:
        """Training rows, each judged by evidence of all the others, and by weights that rows of its fold never made.

        Without its only row a class has none.
        """
        rows = left_out.LeftOut.of(self.evidence, sample, seed)
        fold, folds = self._folds(rows.keys)
        with np.errstate(divide="ignore"):  # the only row of a class
            log_prior = np.log(rows.prior(0.0))
        if not (isinstance(self.class_prior, str) and self.class_prior == "empirical"):
            log_prior = np.tile(self.log_prior, (len(rows.labels), 1))
        classes = self.evidence.classes
        z = log_prior + np.stack([weights.bias_of(classes) for weights in folds])[fold]
        for block, reader in self.blocks:
            named = reader.pieces, self.evidence.schema.all_names, classes
            values = np.stack([weights.of(*named) for weights in folds])  # (F, pieces, K)
            if not values.any() and not refuses_infinite(block):
                continue
            for at, found in rows.parts(block, reader):
                here = slice(at, at + len(found))
                z[here] += np.einsum("npk,npk->nk", found, values[fold[here]])
        z[rows.alone, rows.labels[rows.alone]] = -np.inf
        self._limit(z, log_prior)
        _kernels.normalise(z, self.log_prior, False)
        judged: Judged = held_out.Judged(rows.labels, z, rows.sample.weights)
        return judged

    def _folds(self, keys: Keys) -> tuple[IntArray, list[Weights]]:
        """(n) the fold of each row, and the weights of each fold."""
        if not len(self.weights.fold_bias):
            return np.zeros(len(keys), np.intp), [self.weights]
        return folding.fold_of(keys), [self.weights.of_fold(f) for f in range(len(self.weights.fold_bias))]


def refuses_infinite(block: Block) -> bool:
    """Whether a block is read even where it has no weight: an infinite number is an error."""
    return type(block.plan.family).__name__ == "Gaussian"


def weigh(
    evidence: Generative, readers: Readers, sample: Sample, seed: int, *, learned: bool = True, sure: bool = False
) -> Weights:
    """Weights of all pieces of evidence, from rows that were learned or from others."""
    return Weights.learned(evidence, readers, sample, seed, learned=learned, sure=sure)
