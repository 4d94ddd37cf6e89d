"""The score tables of a filter, as the bytes that the kernel reads."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.data.terms import Cut, Terms
from deciban.export.formulas import Always, Bag, Formula, Lookup, Weighted
from deciban.export.score_formula import ScoreFormula
from deciban.types import FloatArray


@dataclass
class _Table:
    columns: tuple[int, ...]
    cut: Cut
    terms: Terms
    often: FloatArray  # (V, K) for every occurrence of a term
    once: FloatArray  # (V, K) for its first one
    absent: FloatArray  # (K) for a document


def encoded_tables(score: ScoreFormula) -> bytes | None:
    """The tables of scores that are sums over terms, all of them finite; None for other scores."""
    if not score.probabilities or score.mean is not None or len(score.classes) < 2:
        return None
    start, tables = score.start.astype(np.float64), list[_Table]()
    for _, nats in score.constants:
        start = start + nats
    for formula in score.active_formulas:
        weights = np.ones(len(score.classes))
        if isinstance(formula, Weighted):
            weights, formula = formula.weights, formula.formula
        read = _table(formula, weights)
        if read is None:
            return None
        start = start + read[0]
        _append(tables, read[1])
    numbers = [start, score.prior, *(part for table in tables for part in (table.often, table.once, table.absent))]
    if not all(np.isfinite(part).all() for part in numbers):
        return None
    parts = [_texts(score.schema.names), _texts(list(map(str, score.classes)))]
    parts += [_floats(start), _floats(score.prior), _floats(np.array([score.limit[1] if score.limit else 0.0]))]
    needed = [code.column for code in score.unknown if code.missing < 0]  # their absence changes weights
    parts += [_integers([len(needed), *needed]), _integers([len(tables)])]
    for table in tables:
        evidence = [part if part.any() else None for part in (table.often, table.once)]
        present = sum(bit for bit, part in zip((1, 2), evidence, strict=True) if part is not None)
        size = [len(table.terms), len(table.terms.text), present]
        parts += [_integers([len(table.columns), *table.columns, *map(int, table.cut), *size])]
        parts += [_integers(table.terms.ends), *(_floats(part) for part in evidence if part is not None)]
        parts += [_floats(table.absent), table.terms.text.tobytes()]
    return b"".join(parts)


def _table(formula: Formula, weights: FloatArray) -> tuple[FloatArray, _Table] | None:
    """What a formula adds to every row, and by its documents; None if the tables cannot say that."""
    k = len(weights)
    nothing = np.zeros(k)
    no_terms = Terms(np.zeros(0, np.uint8), np.zeros(0, np.int64))
    no_table = _Table((), (1, 1, 1, 0, False, 0), no_terms, np.zeros((0, k)), np.zeros((0, k)), nothing)
    if isinstance(formula, Always):
        return weights * formula.nats, no_table
    if isinstance(formula, Lookup) and len(formula.codes) == 1:
        code = formula.codes[0]
        if code.levels is None and code.cuts is not None and not len(code.cuts) and code.first == 0:
            missing = weights * formula.table[code.missing] if code.missing >= 0 else nothing
            no_table.columns, no_table.absent = (code.column,), weights * formula.table[0] - missing
            return missing, no_table
    if not isinstance(formula, Bag) or (formula.certain is not None and formula.certain.any()):
        return None
    table, zeros = weights * formula.table, np.zeros_like(formula.table)
    often, once = (zeros, table) if formula.once else (table, zeros)
    absent = nothing if formula.absent is None else weights * formula.absent
    return nothing, _Table(formula.columns, formula.cut, formula.terms, often, once, absent)


def _append(tables: list[_Table], new: _Table) -> None:
    """Adds a table, to another one of the same terms if there is one: terms are looked up once."""
    for table in tables:
        if (table.columns, tuple(table.cut)) == (new.columns, tuple(new.cut)) and table.terms == new.terms:
            table.often, table.once, table.absent = (
                table.often + new.often,
                table.once + new.once,
                table.absent + new.absent,
            )
            return
    if new.columns:
        tables.append(new)


def _integers(values: Sequence[int] | NDArray[Any]) -> bytes:
    return np.asarray(values, np.int64).tobytes()


def _floats(values: FloatArray) -> bytes:
    return np.ascontiguousarray(values, np.float64).tobytes()


def _texts(texts: Sequence[Any]) -> bytes:
    encoded = [str(text).encode("utf-8", "surrogatepass") for text in texts]
    return struct.pack("=Q", len(encoded)) + b"".join(struct.pack("=Q", len(each)) + each for each in encoded)
