"""WeightedEvidence: a generative model in which each piece of evidence has a weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deciban import _kernels
from deciban.contributions import By, Contributions, Line, title
from deciban.data.batch import Frame
from deciban.data.matched_frame import MatchedFrame
from deciban.data.schema import Schema
from deciban.evidence.block_evidence import AddScores, AddShares, BlockEvidence, Rows
from deciban.evidence.evidence_by_block import EvidenceByBlock
from deciban.evidence.weights import Weights
from deciban.families.labelled_values import rows_of
from deciban.generative.block import Block
from deciban.generative.estimate import ClassPrior, log_prior
from deciban.generative.model import Generative
from deciban.generative.plan import needs_small_batches
from deciban.lazy import lazy
from deciban.plots.figures import counted
from deciban.types import BoolArray, FloatArray, IntArray, Levels

if TYPE_CHECKING:
    from deciban.evidence.evidence_rows import EvidenceRows
    from deciban.generative.held_out import HeldOutPredictions

held_out = lazy("deciban.generative.held_out")  # needed for training rows only

BATCH_NUMBERS = 1 << 22  # allocated at a time
BATCH_ROWS = 4096  # split into shares at a time
PARALLEL_ROWS = 1 << 14  # scored by a thread at a time


class ReadBlock(NamedTuple):
    """A block's evidence, with the values of some rows and weights (pieces, K) or (n, pieces, K)."""

    source: BlockEvidence
    values: Any
    weights: FloatArray


@dataclass(frozen=True)
class WeightedEvidence:
    """log p(c|x) = log ((1 − ε)·softmax(z)_c + ε·p(c)), z_c = log p(c) + b_c + Σ_pieces w_pc·evidence_pc.

    ε is the share of the class prior (see `Weights`): it bounds odds by about 1/ε, whatever the evidence. The weights
    and the bias of a row depend on which of its features are unknown (see `UnknownColumns`).
    """

    evidence: Generative
    blocks: EvidenceByBlock
    weights: Weights
    class_prior: ClassPrior

    @property
    def schema(self) -> Schema:
        return self.evidence.schema

    @cached_property
    def log_prior(self) -> FloatArray:
        return log_prior(self.evidence.counts.value, self.evidence.classes, self.class_prior)

    @cached_property
    def bias(self) -> FloatArray:
        return self.weights.bias_of(self.evidence.classes)

    @cached_property
    def sources(self) -> tuple[tuple[Block, BlockEvidence, FloatArray], ...]:
        """Blocks with their evidence and weights (pieces, K).

        Blocks without weights are left out, unless they reject infinite numbers or show which features are unknown.
        """
        sources = []
        for block, source in self.blocks:
            weights, changes = self._weights_of(source, self.weights)
            if weights.any() or changes.any() or source.rejects_infinite or self._shows_unknown(block):
                sources.append((block, source, weights))
        return tuple(sources)

    def _weights_of(self, source: BlockEvidence, weights: Weights) -> tuple[FloatArray, FloatArray]:
        """(pieces, K) weights, and their changes (C, pieces, K) for each feature that may be unknown."""
        pieces = source.pieces, self.evidence.schema.all_names, self.evidence.classes
        return weights.of(*pieces), weights.changes_of(*pieces)

    @cached_property
    def _changing(self) -> dict[int, int]:
        """The features that change weights where they are unknown, and the index of each in `weights.unknown`."""
        index = {name: j for j, name in enumerate(self.evidence.schema.names)}
        return {index[name]: c for c, name in enumerate(self.weights.unknown.names) if name in index}

    def _shows_unknown(self, block: Block) -> bool:
        single = not (block.plan.presence or block.plan.family.joint)
        return single and not self._changing.keys().isdisjoint(block.plan.columns)

    @cached_property
    def changes(self) -> tuple[tuple[FloatArray, BoolArray], ...]:
        """For each source, where a feature is unknown: changes (C, pieces, K), and pieces without evidence (C, pieces).

        A missing value may still be evidence, where another feature that repeats it is unknown too.
        """
        sources = [source for _, source, _ in self.sources]
        return tuple((self._weights_of(source, self.weights)[1], self._about_one(source)) for source in sources)

    def _about_one(self, source: BlockEvidence) -> BoolArray:
        """(C, pieces) which pieces are no evidence where a feature is unknown.

        They are those of its values alone, and of a gap between two dates.
        """
        schema, names = self.evidence.schema, self.weights.unknown.names
        index = {name: j for j, name in enumerate(schema.names)}
        alone = np.zeros((len(names), len(source.pieces)), np.bool_)
        for p, piece in enumerate(() if source.of_missingness else source.pieces):
            owners = schema.source_columns(piece.columns)
            gap = len(piece.columns) == 1 and piece.columns[0] >= len(schema.names)
            for c, name in enumerate(names):
                alone[c, p] = index.get(name, -1) in owners and (len(owners) == 1 or gap)
        return alone

    def unknown(self, blocks: Iterable[ReadBlock], rows: int) -> BoolArray | None:
        """(n, C) which of the features that change weights are unknown in rows; None if none is."""
        mask = np.zeros((rows, len(self.weights.unknown.names)), np.bool_)
        for source, values, _ in blocks if self._changing else ():
            if (cells := source.unknown_cells(values)) is None:
                continue
            for i, j in enumerate(cells.columns):
                if (c := self._changing.get(j)) is not None:
                    missing = not self.weights.unknown.informative[c]
                    mask[:, c] |= cells.unseen[:, i] | (missing & cells.missing[:, i])
        return mask if mask.any() else None

    def row_weights(self, source: int, unknown: BoolArray) -> FloatArray:
        """(n, pieces, K) the weights of the pieces of a source (its index), where features (n, C) are unknown."""
        changes, alone = self.changes[source]
        return changed_weights(self.sources[source][2], changes, alone, unknown)

    def row_bias(self, unknown: BoolArray) -> FloatArray:
        """(n, K) the bias, where features (n, C) are unknown."""
        return changed_bias(self.weights, self.evidence.classes, unknown)

    def needs_small_batches(self, frame: Frame) -> bool:
        return needs_small_batches(self.evidence.plans, frame)

    @cached_property
    def _scorers(self) -> tuple[AddScores, ...]:
        return tuple(source.scorer(weights) for _, source, weights in self.sources)

    def joint(self, frame: Frame, out: FloatArray, first_row: int | IntArray = 0) -> None:
        """out (n, K) = the scores, up to a term common to all classes; of many rows in parallel."""
        starts = range(0, frame.rows, PARALLEL_ROWS)

        def score(start: int) -> None:
            stop = min(start + PARALLEL_ROWS, frame.rows)
            numbers = first_row + start if isinstance(first_row, int) else first_row[start:stop]
            self._joint(frame if len(starts) == 1 else frame.slice(start, stop), out[start:stop], numbers)

        if len(starts) < 2:
            self._joint(frame, out, first_row)
            return
        _ = self._scorers, self.changes  # made once
        with ThreadPoolExecutor(_kernels.thread_count()) as pool:
            for _ in pool.map(score, starts):
                pass

    def _joint(self, frame: Frame, out: FloatArray, first_row: int | IntArray) -> None:
        blocks = list(self._read(frame, first_row))
        unknown = self.unknown(blocks, frame.rows)
        if unknown is None:
            self._score_known(blocks, out)
        else:
            incomplete = unknown.any(axis=1)
            self._score_rows(blocks, np.flatnonzero(~incomplete), out, None)
            self._score_rows(blocks, np.flatnonzero(incomplete), out, unknown)
        self._limit(out, self.log_prior)

    def _score_rows(
        self, blocks: Sequence[ReadBlock], rows: IntArray, out: FloatArray, unknown: BoolArray | None
    ) -> None:
        """The scores of some rows, with their unknown features if they have any."""
        if not len(rows):
            return
        taken = [block._replace(values=rows_of(block.values, rows)) for block in blocks]
        scores = np.empty((len(rows), out.shape[1]))
        if unknown is None:
            self._score_known(taken, scores)
        else:
            self._score_unknown(taken, scores, unknown[rows])
        out[rows] = scores

    def _batches(self, source: BlockEvidence, rows: int) -> Iterator[slice]:
        step = max(1, BATCH_NUMBERS // (source.numbers_per_row * len(self.log_prior)))
        return (slice(at, at + step) for at in range(0, rows, step))

    def _score_known(self, blocks: Sequence[ReadBlock], out: FloatArray) -> None:
        out[:] = self.log_prior + self.bias
        for add, (source, values, weights) in zip(self._scorers, blocks, strict=True):
            for batch in self._batches(source, len(out)) if weights.any() else ():
                add(rows_of(values, batch), out[batch])

    def _score_unknown(self, blocks: Sequence[ReadBlock], out: FloatArray, unknown: BoolArray) -> None:
        """The scores of rows in which features are unknown: each has weights of its own."""
        out[:] = self.log_prior + self.row_bias(unknown)
        for (source, values, weights), (changes, alone) in zip(blocks, self.changes, strict=True):
            for batch in self._batches(source, len(out)) if weights.any() or changes.any() else ():
                evidence = np.ascontiguousarray(source.evidence(Rows(rows_of(values, batch))), np.float64)
                _kernels.add_changed(evidence, unknown[batch], weights, changes, alone, out[batch])

    def _limit(self, scores: FloatArray, log_prior: FloatArray) -> None:
        """Turns scores (n, K) into log ((1 − ε)·softmax + ε·prior); if ε is 0, they stay as they are."""
        if self.weights.prior_share:
            _kernels.normalise(scores, self.log_prior, False)
            scores *= 1.0 - self.weights.prior_share
            scores += self.weights.prior_share * np.exp(log_prior)
            with np.errstate(divide="ignore"):  # a class whose prior is 0
                np.log(scores, out=scores)

    def limit(self, scores: FloatArray) -> FloatArray:
        """(n, K) what the prior share adds to scores, minus its mean over the classes: it belongs to no feature."""
        limited = scores.copy()
        self._limit(limited, self.log_prior)
        known = np.isfinite(scores)
        change = np.subtract(limited, scores, out=np.zeros_like(scores), where=known)
        return np.where(known, change - change.mean(axis=1, keepdims=True, where=known), 0.0)

    def _read(self, frame: Frame, first_row: int | IntArray = 0) -> Iterator[ReadBlock]:
        rows = MatchedFrame(self.evidence.schema, frame, first_row)
        for block, source, weights in self.sources:
            yield ReadBlock(source, block.read_checked(rows), weights)

    @cached_property
    def _share_scorers(self) -> tuple[AddShares, ...]:
        return tuple(source.share_scorer() for _, source, _ in self.sources)

    def contributions(self, frame: Frame, by: By = "column") -> Contributions:
        """The class prior, the evidence of each feature (by="pair": and each pair) and each term, and the intercept.

        The intercept is the bias, which belongs to no feature.
        """
        names, blocks = self.evidence.schema.names, list(self._read(frame))
        unknown = self.unknown(blocks, frame.rows)
        weighted = list(self._with_row_weights(blocks, unknown))
        shares = self.column_shares(frame, by, terms=False)
        pairs = self._pair_shares(weighted, shares) if by == "pair" else {}
        prior = np.broadcast_to(self.log_prior, (frame.rows, 1, len(self.log_prior)))
        extra = {Line(title(columns, names), columns): share for columns, share in pairs.items()}
        if self.has_intercept:
            bias = np.broadcast_to(self.bias, prior[:, 0].shape) if unknown is None else self.row_bias(unknown)
            extra[Line("intercept", last=True)] = bias
        terms = self._term_shares(weighted)
        lines = [Line("prior"), *(Line(title((j,), names), (j,)) for j in self.explained_columns)]
        lines += [*extra, *(line for line, _ in terms)]
        parts = [prior, shares[:, self.explained_columns]]
        parts += [share[:, np.newaxis] for share in (*extra.values(), *(nats for _, nats in terms))]
        nats = np.concatenate(parts, axis=1)
        if self.weights.prior_share:
            lines.append(Line(self.limit_name, last=True))
            nats = np.concatenate([nats, self.limit(nats.sum(axis=1))[:, np.newaxis]], axis=1)
        return Contributions(tuple(lines), nats)

    def _pair_shares(self, blocks: Sequence[ReadBlock], shares: FloatArray) -> dict[tuple[int, ...], FloatArray]:
        """The evidence of pairs of features; that of two derived from one feature is added to its shares."""
        pairs = dict[tuple[int, ...], FloatArray]()
        for source, values, weights in blocks:
            for columns, share in source.pair_evidence(values, weights) if source.explains_pairs else ():
                owners = self.evidence.schema.source_columns(columns)
                if len(owners) == 1:
                    shares[:, owners[0]] += share
                else:
                    pairs[owners] = pairs[owners] + share if owners in pairs else share
        return pairs

    def _term_shares(self, blocks: Sequence[ReadBlock]) -> list[tuple[Line, FloatArray]]:
        """The evidence (n, K) of each term, summed over blocks."""
        terms: dict[str, tuple[Line, FloatArray]] = {}
        for source, values, weights in blocks:
            for term in source.term_lines(values, weights) if source.explains_terms and weights.any() else ():
                line = term.line(source.pieces[0].columns, self.evidence.schema.names)
                before = terms.get(line.name)
                terms[line.name] = line, term.nats if before is None else before[1] + term.nats
        return list(terms.values())

    @property
    def has_intercept(self) -> bool:
        return bool(self.bias.any() or self.weights.unknown.bias.any())

    def _with_row_weights(self, blocks: Sequence[ReadBlock], unknown: BoolArray | None) -> Iterator[ReadBlock]:
        """Blocks with weights (pieces, K), or (n, pieces, K) if features are unknown."""
        if unknown is None:
            return iter(blocks)
        return (block._replace(weights=self.row_weights(i, unknown)) for i, block in enumerate(blocks))

    @property
    def limit_name(self) -> str:
        return f"limit of {self.weights.rows} rows"

    @cached_property
    def explained_columns(self) -> list[int]:
        """The features that have a line: all, except documents that have lines for their terms and nothing else."""
        documents = {j for block, source in self.blocks if source.explains_terms for j in block.plan.columns}
        others = [source for _, source in self.blocks if not source.explains_terms]
        documents -= {j for source in others for piece in source.pieces for j in piece.columns}
        return [j for j in range(len(self.evidence.schema.names)) if j not in documents]

    def column_shares(self, frame: Frame, by: By = "column", *, terms: bool = True) -> FloatArray:
        """(n, features, K) the evidence of each feature, of documents only with `terms`; by="pair": without pairs."""
        schema = self.evidence.schema
        out = np.zeros((frame.rows, len(schema.all_names), len(self.log_prior)))
        for at in range(0, frame.rows, BATCH_ROWS):
            batch = frame.slice(at, min(at + BATCH_ROWS, frame.rows))
            blocks = list(self._read(batch, at))
            weighted = self._with_row_weights(blocks, self.unknown(blocks, batch.rows))
            for add, (source, values, weights) in zip(self._share_scorers, weighted, strict=True):
                skipped = (source.explains_terms and not terms) or (by == "pair" and source.explains_pairs)
                if weights.any() and not skipped:
                    add(values, weights, out[at : at + BATCH_ROWS])
        n_columns = len(schema.names)
        for j in range(n_columns, out.shape[1]):  # the share of a derived feature goes to its source columns
            owners = schema.source_columns((j,))
            for owner in owners:
                out[:, owner] += out[:, j] / len(owners)
        return out[:, :n_columns]

    def describe_columns(self) -> dict[int, str]:
        """The pieces of evidence of each feature that have a weight, in words."""
        texts, pairs = dict[int, list[str]](), Counter[int]()
        for _, source, weights in self.sources:
            for piece, weight in zip(source.pieces, weights, strict=True):
                columns = self.evidence.schema.source_columns(piece.columns) if weight.any() else ()
                if source.explains_pairs:
                    pairs.update(columns)
                    continue
                for j in columns:
                    texts.setdefault(j, []).append(source.describe(piece))
        for j, count in pairs.items():
            texts.setdefault(j, []).append(f"{counted(count, 'pair')} with other features")
        return {j: "; ".join(dict.fromkeys(each)) for j, each in texts.items()}

    def leave_one_out(self, rows: EvidenceRows) -> HeldOutPredictions:
        """Training rows, each scored by leave-one-out evidence, with weights fitted to the other folds.

        A class whose only row is left out has probability 0.
        """
        rows, fold = rows.in_folds()
        folds = [self.weights.of_fold(f) for f in range(len(self.weights.fold_bias))]
        if not folds:
            fold, folds = np.zeros_like(fold), [self.weights]
        with np.errstate(divide="ignore"):  # the only row of a class
            log_prior = np.log(rows.prior(0.0))
        if not (isinstance(self.class_prior, str) and self.class_prior == "empirical"):
            log_prior = np.tile(self.log_prior, (len(rows.labels), 1))
        blocks = [ReadBlock(source, rows.values(block), weights) for block, source, weights in self.sources]
        unknown = self.unknown(blocks, len(fold))
        z = log_prior + self._fold_bias(folds, fold, unknown)
        for block, source in self.blocks:  # folds may have weights where all rows together have none
            by_fold = [self._weights_of(source, weights) for weights in folds]
            weights, changes = np.stack([w for w, _ in by_fold]), np.stack([c for _, c in by_fold])  # (F, …)
            for at, evidence in rows.evidence_batches(block, source) if weights.any() or changes.any() else ():
                batch = slice(at, at + len(evidence))
                row_weights = weights[fold[batch]]
                if unknown is not None:
                    alone = self._about_one(source)
                    for f in range(len(folds)):
                        inside = fold[batch] == f
                        row_weights[inside] = changed_weights(weights[f], changes[f], alone, unknown[batch][inside])
                z[batch] += np.einsum("npk,npk->nk", evidence, row_weights)
        z[rows.alone, rows.labels[rows.alone]] = -np.inf
        self._limit(z, log_prior)
        _kernels.normalise(z, self.log_prior, False)
        predictions: HeldOutPredictions = held_out.HeldOutPredictions(rows.labels, z, rows.sample.weights)
        return predictions

    def _fold_bias(self, folds: Sequence[Weights], fold: IntArray, unknown: BoolArray | None) -> FloatArray:
        """(n, K) the bias, each row by the weights of its fold."""
        classes = self.evidence.classes
        if unknown is None:
            return np.stack([weights.bias_of(classes) for weights in folds])[fold]
        inside = [fold[:, np.newaxis] == f for f in range(len(folds))]
        return np.select(inside, [changed_bias(weights, classes, unknown) for weights in folds])


def changed_weights(weights: FloatArray, changes: FloatArray, alone: BoolArray, unknown: BoolArray) -> FloatArray:
    """(n, pieces, K) weights (pieces, K) with the changes (C, pieces, K) of the features that are unknown (n, C)."""
    mask = unknown.astype(np.float64)
    changed: FloatArray = np.maximum(weights + np.einsum("nc,cpk->npk", mask, changes), 0.0)
    changed[mask @ alone > 0] = 0.0
    return changed


def changed_bias(weights: Weights, classes: Levels, unknown: BoolArray) -> FloatArray:
    """(n, K) the bias with the changes of the features that are unknown (n, C)."""
    changes = np.einsum("nc,ck->nk", unknown.astype(np.float64), weights.bias_changes_of(classes))
    bias = weights.bias_of(classes) + changes
    result: FloatArray = bias * weights.unknown.bias_share(unknown)[:, np.newaxis]
    return result
