"""Reasons: why a column carries no evidence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deciban.batch import MISSING, Frame
from deciban.schema import Schema
from deciban.statistics import Counts, Extrema, Histogram, Moments, Scatter
from deciban.types import IntArray, Level

if TYPE_CHECKING:
    from deciban.generative import Block, Generative
    from deciban.sources import Sample

ABSENT, CONSTANT = "missing in every row", "constant"
NO_HELP = "did not help on left-out rows"
NO_DIFFERENCE = "does not tell the classes apart"
DIFFERENT = 0.9  # of the cells of an identifier, at least, are different
LISTED = 20  # columns in a note


@dataclass(frozen=True)
class ColumnFacts:
    """What rows show of columns and statistics do not keep: which repeat others, and which are identifiers."""

    repeats: tuple[tuple[Level, Level], ...] = ()  # a column, and the first one whose cells differ where its cells do
    identifiers: tuple[tuple[Level, float], ...] = ()  # a column of names or whole numbers, and the share that differ

    @classmethod
    def of(cls, schema: Schema, sample: Sample) -> ColumnFacts:
        """Of a fit's rows, or some of them."""
        rows, names = sample.frame.rows, schema.names
        weights = sample.weights
        count = rows if weights is None or not rows else float(weights.sum() / weights.min())  # equal rows may be one
        first: dict[bytes, int] = {}
        repeats, identifiers = [], []
        for j, place in enumerate(schema.own_places(sample.frame)):
            if schema.kinds[j] in ("text", "empty") or rows < 2:
                continue
            codes, values = _partition(sample.frame, place)
            if values < 2:
                continue
            present = count - rows + np.count_nonzero(codes != MISSING)
            if values >= DIFFERENT * present and _names_rows(sample.frame, place):
                identifiers.append((names[j], min(1.0, float(values / present))))
            # columns that differ in all rows are not alike for that: their cells must be equal
            mark = codes.tobytes() if 2 * values <= rows else _cells(sample.frame, place)
            before = first.setdefault(mark, j)
            if before != j:
                repeats.append((names[j], names[before]))
        return cls(tuple(repeats), tuple(identifiers))

    def shared(self, other: ColumnFacts) -> ColumnFacts:
        """What holds of the rows of both."""
        theirs = dict(other.identifiers)
        both = tuple((name, min(share, theirs[name])) for name, share in self.identifiers if name in theirs)
        return ColumnFacts(tuple(pair for pair in self.repeats if pair in other.repeats), both)


def _partition(frame: Frame, column: int) -> tuple[IntArray, int]:
    """(n) places of the cells among different ones, in order of first appearance; how many of these there are."""
    if frame.kinds[column] == "category":
        cells: NDArray[Any] = frame.coded([column]).codes[:, 0]
        there = np.flatnonzero(cells != MISSING)
    else:
        cells = frame.numbers([column])[:, 0]
        there = np.flatnonzero(~np.isnan(cells))
    _, first, places = np.unique(cells[there], return_index=True, return_inverse=True)
    order = np.empty(len(first), np.intp)
    order[np.argsort(first)] = np.arange(len(first))
    found = np.full(len(cells), MISSING, np.intp)
    found[there] = order[places]
    return found, len(first)


def _names_rows(frame: Frame, column: int) -> bool:
    """Whether different cells are names, and not measurements: text, or whole numbers."""
    if frame.kinds[column] == "category":
        return True
    x = frame.numbers([column])[:, 0]
    present = x[~np.isnan(x)]
    return bool((present == np.floor(present)).all())


def _cells(frame: Frame, column: int) -> bytes:
    if frame.kinds[column] == "category":
        coded = frame.coded([column])
        return repr([None if c == MISSING else coded.levels[0][c] for c in coded.codes[:, 0].tolist()]).encode()
    x: bytes = (frame.numbers([column])[:, 0].astype(np.float64) + 0.0).tobytes()
    return x


def reasons(evidence: Generative, silent: Collection[Level], facts: ColumnFacts | None) -> dict[Level, str]:
    """Why each of some columns carries no evidence; without facts, none was fitted to rows that were left out."""
    known, single = dict[Level, str](), set[Level]()
    for block in evidence.blocks:
        for i, j in enumerate(block.plan.columns):
            if j >= len(evidence.schema.names):
                continue  # derived from a column
            reason = None if block.plan.presence else _of_statistic(block, i)
            if reason is not None:
                known.setdefault(evidence.schema.names[j], reason)
            if reason is not None and isinstance(block.statistic, Counts):
                single.add(evidence.schema.names[j])  # its one value says nothing, whatever its weight
    last, repeats, identifiers = NO_DIFFERENCE, dict[Level, Level](), dict[Level, float]()
    if facts is not None:
        last, repeats, identifiers = NO_HELP, dict(facts.repeats), dict(facts.identifiers)
    found = {}
    for name in evidence.schema.names:
        if name not in silent and name not in single:
            continue
        if name in known:
            found[name] = known[name]
        elif name in repeats:
            found[name] = f"repeats {repeats[name]!r}"
        elif name in identifiers:
            share = identifiers[name]
            rows = "every row" if share == 1 else f"{np.floor(100 * share):g} % of the rows"
            found[name] = f"different in {rows} (an identifier)"
        else:
            found[name] = last
    return found


def _of_statistic(block: Block, i: int) -> str | None:
    """Whether a column is never present, or always the same, as far as its statistic can tell."""
    statistic = block.statistic
    if isinstance(statistic, Counts):
        levels = statistic.levels[i]
        values, present = len(levels), any(level is not None for level in levels)
    elif isinstance(statistic, Histogram):
        values, present = len(statistic.keys[i]), len(statistic.keys[i]) > 0
    elif isinstance(statistic, Moments):
        pooled = statistic.pooled()
        values, present = 1 + int(pooled.squares[0, i] > 0), bool(pooled.count.value[0, i] > 0)
    elif isinstance(statistic, Extrema):
        low, high = statistic.low[:, i].min(), statistic.high[:, i].max()
        values, present = 1 + int(high > low), bool(np.isfinite(low))
    elif isinstance(statistic, Scatter):
        values, present = 1 + int(_varies(statistic, i)), bool((statistic.count.value > 0).any())
    else:
        return None
    if not present:
        return ABSENT
    return CONSTANT if values < 2 else None


def _varies(scatter: Scatter, i: int) -> bool:
    """Whether a column differs within a class, or between two."""
    count = scatter.count.value
    there = count > 0
    sums, products = scatter.sum[there, i], scatter.products[:, i, i]
    within = float(products.sum() - (sums**2 / count[there]).sum())
    means = scatter.origin[there, i] + sums / count[there]
    return within > 0 or bool(np.ptp(means) > 0)


def notes(found: Mapping[Level, str]) -> list[str]:
    """Lines for people: the columns of each reason."""
    by_reason = dict[str, list[Level]]()
    for name, reason in found.items():
        by_reason.setdefault(reason, []).append(name)
    return [f"no evidence from {_listed(names)}: {reason}" for reason, names in by_reason.items()]


def _listed(names: Iterable[Level]) -> str:
    shown = [repr(name) for name in names]
    more = f" and {len(shown) - LISTED} more" if len(shown) > LISTED else ""
    return ", ".join(shown[:LISTED]) + more
