"""Weighed: a generative model whose evidence counts as much as its weights say. It scores and explains rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
from deciban.types import FloatArray, IntArray, Levels
from deciban.weighing.reader import Adder, Reader, Rows, ShareAdder
from deciban.weighing.readers import Readers
from deciban.weighing.weights import Weights

if TYPE_CHECKING:
    from deciban.held_out import Judged

# what judges rows that were learned is not needed for others
held_out = late("deciban.held_out")
folding = late("deciban.weighing.folds")
left_out = late("deciban.weighing.left_out")

Blocks = Sequence[tuple[Reader, Any, FloatArray]]  # with their values and weights

CELLS = 1 << 22  # numbers, that are made of rows at a time
SPLIT = 4096  # rows, that are split into shares at a time


@dataclass(frozen=True)
class Weighed:
    """log p(c|x) = log ((1 − ε)·softmax(z)_c + ε·p(c)), z_c = log p(c) + b_c + Σ_pieces w_pc·evidence_pc.

    ε is the share of the class prior (see `Weights`): odds are bounded by about 1/ε, whatever the evidence. The weights
    and the bias of a row depend on which of its columns are unknown (see `UnknownColumns`).
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
        """Every block that counts, with what reads it and (pieces, K) weights; and all that refuse infinite numbers,
        or say which columns are unknown."""
        found = []
        for block, reader in self.blocks:
            named = reader.pieces, self.evidence.schema.all_names, self.evidence.classes
            values, changes = self.weights.of(*named), self.weights.changes_of(*named)
            if values.any() or changes.any() or refuses_infinite(block) or self._tells_unknown(block):
                found.append((block, reader, values))
        return tuple(found)

    @cached_property
    def _changing(self) -> dict[int, int]:
        """The columns of the table that change weights where they are unknown, and their places among them."""
        place = {name: j for j, name in enumerate(self.evidence.schema.names)}
        return {place[name]: c for c, name in enumerate(self.weights.unknown.names) if name in place}

    def _tells_unknown(self, block: Block) -> bool:
        alone = not (block.plan.presence or block.plan.family.joint)
        return alone and not self._changing.keys().isdisjoint(block.plan.columns)

    @cached_property
    def changes(self) -> tuple[tuple[FloatArray, NDArray[np.bool_]], ...]:
        """For each of the readers: how its weights change for each column that may be unknown, (C, pieces, K), and
        which pieces are about the values of that column alone, (C, pieces): they say nothing then. That a cell is
        missing may still be evidence, where another column that tells as much is unknown, too."""
        names, classes = self.evidence.schema.all_names, self.evidence.classes
        return tuple(
            (self.weights.changes_of(reader.pieces, names, classes), self._about_one(reader))
            for _, reader, _ in self.readers
        )

    def _about_one(self, reader: Reader) -> NDArray[np.bool_]:
        """(C, pieces) which pieces say nothing without a column that changes weights: those of its values alone, and
        of a gap between two dates."""
        schema, names = self.evidence.schema, self.weights.unknown.names
        place, own = {name: j for j, name in enumerate(schema.names)}, len(schema.names)
        alone = np.zeros((len(names), len(reader.pieces)), np.bool_)
        for p, piece in enumerate(reader.pieces):
            owners = schema.owners(piece.columns)
            gap = len(piece.columns) == 1 and piece.columns[0] >= own
            for c, name in enumerate(names):
                alone[c, p] = piece.kind != "present" and place.get(name, -1) in owners and (len(owners) == 1 or gap)
        return alone

    def unknown(self, blocks: Iterable[tuple[Reader, Any, FloatArray]], rows: int) -> NDArray[np.bool_] | None:
        """(n, C) which of the columns that change weights are unknown in rows; None, if none is."""
        mask = np.zeros((rows, len(self.weights.unknown.names)), np.bool_)
        for reader, values, _ in blocks if self._changing else ():
            if (cells := reader.unknown(values)) is None:
                continue
            for i, j in enumerate(cells.columns):
                if (c := self._changing.get(j)) is not None:
                    missing = not self.weights.unknown.informative[c]
                    mask[:, c] |= cells.unseen[:, i] | (missing & cells.missing[:, i])
        return mask if mask.any() else None

    def row_weights(self, reader: int, unknown: NDArray[np.bool_]) -> FloatArray:
        """(n, pieces, K) the weights of the pieces of a reader (by its place), where columns (n, C) are unknown."""
        changes, alone = self.changes[reader]
        return changed_weights(self.readers[reader][2], changes, alone, unknown)

    def row_bias(self, unknown: NDArray[np.bool_]) -> FloatArray:
        """(n, K) the bias, where columns (n, C) are unknown."""
        return changed_bias(self.weights, self.evidence.classes, unknown)

    def converts(self, frame: Frame) -> bool:
        return converts([block.plan for block in self.evidence.blocks], frame)

    @cached_property
    def _adders(self) -> tuple[Adder, ...]:
        return tuple(reader.adder(weights) for _, reader, weights in self.readers)

    def joint(self, frame: Frame, out: FloatArray, first_row: int | IntArray = 0) -> None:
        """out (n, K) = the scores, up to a term common to all classes."""
        blocks = list(self._read(frame, first_row))
        unknown = self.unknown(blocks, frame.rows)
        if unknown is None:
            self._add_known(blocks, out)
        else:
            partly = unknown.sum(axis=1) > 0
            for rows in (np.flatnonzero(~partly), np.flatnonzero(partly)):
                some, scores = list(self._read(frame.take(rows), rows)), np.empty((len(rows), out.shape[1]))
                if partly[rows].any():
                    self._add_unknown(some, scores, unknown[rows])
                else:
                    self._add_known(some, scores)
                out[rows] = scores
        self._limit(out, self.log_prior)

    def _add_known(self, blocks: Blocks, out: FloatArray) -> None:
        """The scores of rows in which no column is unknown."""
        out[:] = self.log_prior + self.bias
        for add, (reader, values, weights) in zip(self._adders, blocks, strict=True):
            step = max(1, CELLS // (reader.width * len(self.log_prior)))
            for at in range(0, len(out), step) if weights.any() else ():
                some = slice(at, at + step)
                add(rows_of(values, some), out[some])

    def _add_unknown(self, blocks: Blocks, out: FloatArray, unknown: NDArray[np.bool_]) -> None:
        """The scores of rows in which columns are unknown: each has weights of its own."""
        out[:] = self.log_prior + self.row_bias(unknown)
        for i, (reader, values, _) in enumerate(blocks):
            step = max(1, CELLS // (reader.width * len(self.log_prior)))
            for at in range(0, len(out), step) if reader.pieces else ():
                some = slice(at, at + step)
                weights = self.row_weights(i, unknown[some])
                out[some] += np.einsum("npk,npk->nk", reader.evidence(Rows(rows_of(values, some))), weights)

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

    def _read(self, frame: Frame, first_row: int | IntArray = 0) -> Iterator[tuple[Reader, Any, FloatArray]]:
        """Every block's values of some rows, with what reads them and its weights."""
        places = self.evidence.schema.places(frame)
        for block, reader, weights in self.readers:
            levels = block.statistic.levels if isinstance(block.statistic, Counts) else None
            values = read(block.plan, frame, places, levels, self.evidence.missing)
            try:
                block.plan.family.check(values)
            except BadCell as bad:
                row = numbered_row(first_row, bad.row)
                raise named_cell(bad, block.plan, self.evidence.schema, places, frame, row) from None
            yield reader, values, weights

    @cached_property
    def _share_adders(self) -> tuple[ShareAdder, ...]:
        return tuple(reader.share_adder() for _, reader, _ in self.readers)

    def contributions(self, frame: Frame, by: By = "column") -> Contributions:
        """The class prior, what each column (by="pair": and each pair) and each term adds, and the intercept.

        The intercept is the bias, which belongs to no column.
        """
        names, blocks = self.evidence.schema.names, list(self._read(frame))
        unknown = self.unknown(blocks, frame.rows)
        weighted = list(self._with_row_weights(blocks, unknown))
        shares, apart = self.column_shares(frame, by, terms=False), dict[tuple[int, ...], FloatArray]()
        for reader, values, weights in weighted if by == "pair" else ():
            for columns, share in reader.pairs(values, weights) if reader.has_pairs else ():
                owners = self.evidence.schema.owners(columns)
                if len(owners) == 1:  # two that are derived from one column
                    shares[:, owners[0]] += share
                else:
                    apart[owners] = apart[owners] + share if owners in apart else share
        lines = [Line("prior"), *(Line(title((j,), names), (j,)) for j in self.explained_columns)]
        prior = np.broadcast_to(self.log_prior, (frame.rows, 1, len(self.log_prior)))
        found = [prior, shares[:, self.explained_columns]]
        more = {Line(title(columns, names), columns): share for columns, share in apart.items()}
        bias = np.broadcast_to(self.bias, prior[:, 0].shape) if unknown is None else self.row_bias(unknown)
        if self.has_intercept:
            more[Line("intercept", last=True)] = bias
        terms: dict[str, tuple[Line, FloatArray]] = {}
        for reader, values, weights in weighted:
            for term in reader.lines(values, weights) if reader.by_lines and weights.any() else ():
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
    def has_intercept(self) -> bool:
        return bool(self.bias.any() or self.weights.unknown.bias.any())

    def _with_row_weights(
        self, blocks: Blocks, unknown: NDArray[np.bool_] | None
    ) -> Iterator[tuple[Reader, Any, FloatArray]]:
        """Blocks with their weights: (pieces, K), or (n, pieces, K) where columns are unknown."""
        for i, (reader, values, weights) in enumerate(blocks):
            yield reader, values, weights if unknown is None else self.row_weights(i, unknown)

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
            blocks = list(self._read(some, at))
            weighted = self._with_row_weights(blocks, self.unknown(blocks, some.rows))
            for add, (reader, values, weights) in zip(self._share_adders, weighted, strict=True):
                apart = (reader.by_lines and not terms) or (by == "pair" and reader.has_pairs)
                if weights.any() and not apart:
                    add(values, weights, out[at : at + SPLIT])
        own = len(schema.names)
        for j in range(own, out.shape[1]):  # what is derived from a column is part of what the column adds
            owners = schema.owners((j,))
            for owner in owners:
                out[:, owner] += out[:, j] / len(owners)
        return out[:, :own]

    def left_out(self, sample: Sample, seed: int) -> Judged:
        """Training rows, each judged by evidence of all the others, and by weights that rows of its fold never made.

        Without its only row a class has none.
        """
        rows, fold = left_out.LeftOut.of(self.evidence, sample, seed).dealt()
        folds = [self.weights.of_fold(f) for f in range(len(self.weights.fold_bias))]
        if not folds:
            fold, folds = np.zeros_like(fold), [self.weights]
        with np.errstate(divide="ignore"):  # the only row of a class
            log_prior = np.log(rows.prior(0.0))
        if not (isinstance(self.class_prior, str) and self.class_prior == "empirical"):
            log_prior = np.tile(self.log_prior, (len(rows.labels), 1))
        classes, names = self.evidence.classes, self.evidence.schema.all_names
        known = [(reader, rows.values(block), weights) for block, reader, weights in self.readers]
        unknown = self.unknown(known, len(fold))
        bias = np.stack([weights.bias_of(classes) for weights in folds])[fold]
        if unknown is not None:
            bias = np.select(
                [fold[:, np.newaxis] == f for f in range(len(folds))],
                [changed_bias(weights, classes, unknown) for weights in folds],
            )
        z = log_prior + bias
        for block, reader in self.blocks:  # folds may have weights where all rows together have none
            values = np.stack([weights.of(reader.pieces, names, classes) for weights in folds])  # (F, pieces, K)
            changes = np.stack([weights.changes_of(reader.pieces, names, classes) for weights in folds])
            for at, found in rows.parts(block, reader) if values.any() or changes.any() else ():
                here = slice(at, at + len(found))
                row_weights = values[fold[here]]
                if unknown is not None:
                    for f in range(len(folds)):
                        mine = fold[here] == f
                        row_weights[mine] = changed_weights(
                            values[f], changes[f], self._about_one(reader), unknown[here][mine]
                        )
                z[here] += np.einsum("npk,npk->nk", found, row_weights)
        z[rows.alone, rows.labels[rows.alone]] = -np.inf
        self._limit(z, log_prior)
        _kernels.normalise(z, self.log_prior, False)
        judged: Judged = held_out.Judged(rows.labels, z, rows.sample.weights)
        return judged


def changed_weights(
    weights: FloatArray, changes: FloatArray, alone: NDArray[np.bool_], unknown: NDArray[np.bool_]
) -> FloatArray:
    """(n, pieces, K) weights (pieces, K) with the changes (C, pieces, K) of the columns that are unknown (n, C)."""
    mask = unknown.astype(np.float64)
    changed: FloatArray = np.maximum(weights + np.einsum("nc,cpk->npk", mask, changes), 0.0)
    changed[mask @ alone > 0] = 0.0
    return changed


def changed_bias(weights: Weights, classes: Levels, unknown: NDArray[np.bool_]) -> FloatArray:
    """(n, K) the bias with the changes of the columns that are unknown (n, C)."""
    changes = np.einsum("nc,ck->nk", unknown.astype(np.float64), weights.bias_changes_of(classes))
    bias = weights.bias_of(classes) + changes
    result: FloatArray = bias * weights.unknown.bias_left(unknown)[:, np.newaxis]
    return result


def refuses_infinite(block: Block) -> bool:
    """Whether a block is read even where it has no weight: an infinite number is an error."""
    return type(block.plan.family).__name__ == "Gaussian"


def weigh(
    evidence: Generative, readers: Readers, sample: Sample, seed: int, *, learned: bool = True, sure: bool = False
) -> Weights:
    """Weights of all pieces of evidence, from rows that were learned or from others."""
    return Weights.learned(evidence, readers, sample, seed, learned=learned, sure=sure)
