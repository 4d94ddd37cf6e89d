"""Weighed: a generative model whose evidence counts as much as its weights say. It scores and explains rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban import _kernels
from deciban.batch import Frame
from deciban.errors import BadCell
from deciban.families.base import rows_of
from deciban.generative import Block, ClassPrior, Generative, line_title, log_prior, named_cell, numbered_row, title
from deciban.late import late
from deciban.plans import converts, is_sparse, read
from deciban.sources import Sample
from deciban.statistics import Counts
from deciban.types import FloatArray, IntArray
from deciban.weighing.reader import Adder, Reader
from deciban.weighing.readers import Readers
from deciban.weighing.weights import Weights

if TYPE_CHECKING:
    from deciban.held_out import Judged

# what judges rows that were learned is not needed for others
held_out = late("deciban.held_out")
sampling = late("deciban.sources.sampling")
left_out = late("deciban.weighing.left_out")

DECIBANS = 10.0 / np.log(10.0)  # in one nat
CELLS = 1 << 22  # numbers, that are made of rows at a time
SPLIT = 4096  # rows, that are split into shares at a time
SHOWN = 200  # rows that tell what columns contribute


@dataclass(frozen=True)
class Weighed:
    """log p(c|x) = log p(c) + b_c + Σ_pieces w_pc·evidence_pc, normalised."""

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
            values = self.weights.of(reader.pieces, self.evidence.schema.names, self.evidence.classes)
            if values.any() or type(block.plan.family).__name__ == "Gaussian":
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

    def _read(self, frame: Frame, first_row: int | IntArray = 0) -> Iterator[tuple[Reader, Any, FloatArray]]:
        """Every block's values of some rows."""
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

    def parts(self, frame: Frame) -> tuple[list[str], list[FloatArray]]:
        """What each column, pair and term contributes, as (n, K) arrays, with their names; "prior" is the first.

        The prior has what no column has: the bias, and the constants of joint densities.
        """
        found, names = self.shares(frame, terms=False), self.evidence.schema.names
        told: dict[str, FloatArray] = {}
        for block, (reader, values, weights) in zip(self.readers, self._read(frame), strict=True):
            for line, share in reader.lines(values, weights) if reader.by_lines else ():
                name = line_title(block[0].plan.columns, names, line)
                told[name] = told[name] + share if name in told else share
        titles = ["prior", *(title(columns, names) for columns in [*found][1:]), *told]
        return titles, [*found.values(), *told.values()]

    def shares(self, frame: Frame, *, terms: bool = True) -> dict[tuple[int, ...], FloatArray]:
        """(n, K) what no column contributes, what each one does (that of texts only with terms), and each pair."""
        starts = range(0, max(frame.rows, 1), SPLIT)
        found = [self._shares(frame.slice(at, min(at + SPLIT, frame.rows)), terms) for at in starts]
        return {columns: np.concatenate([part[columns] for part in found]) for columns in found[0]}

    def _shares(self, frame: Frame, terms: bool) -> dict[tuple[int, ...], FloatArray]:
        base = np.broadcast_to(self.log_prior + self.bias, (frame.rows, len(self.log_prior)))
        found: dict[tuple[int, ...], FloatArray] = {(): base}
        for reader, values, weights in self._read(frame):
            if reader.by_lines and not terms:
                continue
            for columns, share in reader.split(values, weights):
                found[columns] = found[columns] + share if columns in found else share
        return {columns: found[columns] for columns in sorted(found, key=lambda columns: (len(columns), columns))}

    def left_out(self, sample: Sample, seed: int) -> Judged:
        """Rows that were learned, each judged by evidence of all the others; without its only row a class has none."""
        rows = left_out.LeftOut.of(self.evidence, sample, seed)
        z = np.tile(self.log_prior + self.bias, (len(rows.labels), 1))
        for block, reader, weights in self.readers:
            for at, found in rows.parts(block, reader):
                z[at : at + len(found)] += np.einsum("npk,pk->nk", found, weights)
        z[rows.alone, rows.labels[rows.alone]] = -np.inf
        _kernels.normalise(z, self.log_prior, False)
        judged: Judged = held_out.Judged(rows.labels, z, rows.sample.weights)
        return judged


def weigh(
    evidence: Generative, readers: Readers, sample: Sample, seed: int, *, learned: bool = True, sure: bool = False
) -> Weights:
    """Weights, and what every column contributes with them: mean evidence for the right class against the others."""
    weights = Weights.learned(evidence, readers, sample, seed, learned=learned, sure=sure)
    if len(evidence.classes) < 2 or is_sparse(sample.frame):
        return weights
    keys = sampling.row_keys(sample.frame, evidence.schema.places(sample.frame), seed)
    few = sampling.sampled(sample, keys, SHOWN)
    labels = left_out.places_of(evidence.classes, few)
    known = np.flatnonzero(labels >= 0 if few.weights is None else (labels >= 0) & (few.weights > 0))
    if not len(known):
        return weights
    rows = None if few.weights is None else few.weights[known]
    shares = Weighed(evidence, readers, weights, "empirical").shares(few.frame)
    decibans = []
    for share in [*shares.values()][1:]:
        own = share[known, labels[known]]
        others = (share[known].sum(axis=1) - own) / (share.shape[1] - 1)
        decibans.append(float(np.average(own - others, weights=rows)) * DECIBANS)
    names = tuple(tuple(evidence.schema.names[j] for j in columns) for columns in [*shares][1:])
    return replace(weights, parts=names, decibans=np.array(decibans))
