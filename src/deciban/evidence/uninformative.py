"""Why a feature carries no evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deciban.data.batch import MISSING, Frame
from deciban.data.schema import Schema
from deciban.errors import require
from deciban.statistics import Counts, Extrema, Histogram, Moments, Scatter
from deciban.types import IntArray, Level

if TYPE_CHECKING:
    from deciban.data import Sample
    from deciban.generative.block import Block
    from deciban.generative.model import Generative

ABSENT, CONSTANT = "missing in every row", "constant"
NO_HELP = "did not help on left-out rows"
NO_DIFFERENCE = "does not distinguish the classes"
DISTINCT = 0.9  # of the values of an identifier, at least
LISTED = 20  # features in a note
FIRST_ROWS = 1_000  # in which features that repeat others are looked for first


@dataclass(frozen=True)
class ColumnFacts:
    """Which features repeat others, and which are identifiers, as seen in rows: statistics do not show it."""

    repeats: tuple[tuple[Level, Level], ...] = ()  # a feature, and the first that it repeats
    identifiers: tuple[tuple[Level, float], ...] = ()  # text or whole numbers, and the share of distinct values

    def check_fields(self) -> None:
        require(all(a != b for a, b in self.repeats), "a column repeats itself")
        require(len({a for a, _ in self.repeats}) == len(self.repeats), "a column repeats two others")
        require(all(0 < share <= 1 for _, share in self.identifiers), "a share of values is not from 0 to 1")

    @classmethod
    def of(cls, schema: Schema, sample: Sample) -> ColumnFacts:
        """A feature repeats another if both group the rows in the same way."""
        rows, names = sample.frame.rows, schema.names
        weights = sample.weights  # duplicates may be one row
        count = rows if weights is None or not rows else float(weights.sum() / weights.min())
        first: dict[bytes, int] = {}
        repeats, identifiers = [], []
        places = dict(enumerate(schema.positions(sample.frame))) if rows > 1 else {}
        places = {j: place for j, place in places.items() if schema.kinds[j] not in ("text", "empty")}
        few = sample.frame.slice(0, min(FIRST_ROWS, rows))
        heads = {j: _partition(few, place)[0].tobytes() for j, place in places.items()}
        alike = Counter(heads.values())
        for j, place in places.items():
            if alike[heads[j]] == 1 and not _names_rows(sample.frame, place):
                continue
            codes, values = _partition(sample.frame, place)
            if values < 2:
                continue
            present = count - rows + np.count_nonzero(codes != MISSING)
            if values >= DISTINCT * present and _names_rows(sample.frame, place):
                identifiers.append((names[j], min(1.0, float(values / present))))
            # features with all values distinct repeat each other only if their values are equal
            content = codes.tobytes() if 2 * values <= rows else _content(sample.frame, place)
            original = first.setdefault(content, j)
            if original != j:
                repeats.append((names[j], names[original]))
        return cls(tuple(repeats), tuple(identifiers))

    def shared(self, other: ColumnFacts) -> ColumnFacts:
        """The facts that hold for the rows of both."""
        others = dict(other.identifiers)
        both = tuple((name, min(share, others[name])) for name, share in self.identifiers if name in others)
        return ColumnFacts(tuple(pair for pair in self.repeats if pair in other.repeats), both)


def _partition(frame: Frame, column: int) -> tuple[IntArray, int]:
    """(n) the index of each value among the distinct ones, by first appearance; and the number of these."""
    if frame.kinds[column] == "category":
        cells: NDArray[Any] = frame.coded([column]).codes[:, 0]
        places = np.full(int(cells.max(initial=MISSING)) + 2, len(cells))
        np.minimum.at(places, cells + 1, np.arange(len(cells)))  # the first row of each value
        seen = 1 + np.flatnonzero(places[1:] < len(cells))
        order = np.full(len(places), MISSING, np.intp)
        order[seen[np.argsort(places[seen])]] = np.arange(len(seen))
        return order[cells + 1], len(seen)
    cells = frame.numbers([column])[:, 0]
    present = np.flatnonzero(~np.isnan(cells))
    _, first, which = np.unique(cells[present], return_index=True, return_inverse=True)
    order = np.empty(len(first), np.intp)
    order[np.argsort(first)] = np.arange(len(first))
    codes = np.full(len(cells), MISSING, np.intp)
    codes[present] = order[which]
    return codes, len(first)


def _names_rows(frame: Frame, column: int) -> bool:
    """Whether values may be identifiers, and not measurements: text, or whole numbers."""
    if frame.kinds[column] == "category":
        return True
    x = frame.numbers([column])[:, 0]
    present = x[~np.isnan(x)]
    return bool((present == np.floor(present)).all())


def _content(frame: Frame, column: int) -> bytes:
    """The values of a column, to compare with others."""
    if frame.kinds[column] == "category":
        coded = frame.coded([column])
        return repr([None if c == MISSING else coded.levels[0][c] for c in coded.codes[:, 0].tolist()]).encode()
    return (frame.numbers([column])[:, 0].astype(np.float64) + 0.0).tobytes()


def reasons(evidence: Generative, unused: Collection[Level], facts: ColumnFacts | None) -> dict[Level, str]:
    """Why each of the unused features, or constant categories, carries no evidence; facts if weights were fitted."""
    known, constant = dict[Level, str](), set[Level]()
    for block in evidence.blocks:
        for i, j in enumerate(block.plan.columns):
            if j >= len(evidence.schema.names):
                continue  # a derived feature
            reason = None if block.plan.presence else _reason_of(block, i)
            if reason is not None:
                known.setdefault(evidence.schema.names[j], reason)
            if reason is not None and block.levels is not None:
                constant.add(evidence.schema.names[j])  # its one value is no evidence, whatever its weight
    default = NO_DIFFERENCE
    if facts is not None:
        default = NO_HELP
        known = {name: f"repeats {other!r}" for name, other in facts.repeats} | known
        known = {name: f"different in {_share(share)} (an identifier)" for name, share in facts.identifiers} | known
    return {name: known.get(name, default) for name in evidence.schema.names if name in unused or name in constant}


def _share(share: float) -> str:
    return "every row" if share == 1 else f"{np.floor(100 * share):g} % of the rows"


def _reason_of(block: Block, i: int) -> str | None:
    """That a feature is always missing, or constant, if its statistic shows it."""
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
    count = scatter.count.value
    present = count > 0
    if not present.any():
        return False
    sums, products = scatter.sum[present, i], scatter.products[:, i, i]
    within = float(products.sum() - (sums**2 / count[present]).sum())
    means = scatter.origin[present, i] + sums / count[present]
    return within > 0 or bool(np.ptp(means) > 0)


def notes(reason_of: Mapping[Level, str]) -> list[str]:
    """One note for each reason, with the features that it holds for."""
    by_reason = dict[str, list[Level]]()
    for name, reason in reason_of.items():
        by_reason.setdefault(reason, []).append(name)
    return [f"no evidence from {_listed(names)}: {reason}" for reason, names in by_reason.items()]


def _listed(names: Iterable[Level]) -> str:
    shown = [repr(name) for name in names]
    more = f" and {len(shown) - LISTED} more" if len(shown) > LISTED else ""
    return ", ".join(shown[:LISTED]) + more
