"""Design: columns of any kind → features that a linear model multiplies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp

from deciban import _kernels
from deciban.batch import MISSING, NUMERIC, UNSEEN, Frame, Kind, Place
from deciban.errors import BadCell, DecibanError, cell_error, forbid_infinite, forbid_stored
from deciban.families import Natural
from deciban.late import late
from deciban.plans import Missing, Plan, is_sparse, read
from deciban.schema import Schema
from deciban.table import numbered
from deciban.types import FloatArray, IntArray, Level, Levels, sorted_levels

if TYPE_CHECKING:
    from deciban.families.formulas import Formula

formulas = late("deciban.families.formulas")  # only a report asks for them

NOT_SPARSE = "is missing or infinite, which cells of sparse rows cannot be here"
DENSE_AT_MOST = 512  # indicators that stand in a full matrix, beside numbers or alone


class Encoder(Protocol):
    """Some columns as features. `owners` says which of its columns each feature comes from."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def owners(self) -> tuple[int, ...]: ...

    @property
    def origin(self) -> FloatArray:
        """(m) what explanations count from: the means of the features in training, or what stands for them."""

    def features(self, frame: Frame, places: Sequence[Place]) -> Any:
        """(n, m) float64 or float32 matrix, or sparse rows; `places` are the columns' positions in the frame."""

    def formula(self, weights: FloatArray, origin: FloatArray) -> list[Formula]:
        """Σ weights (k, m) · (features − origin), as formulas that need no library; columns count from 0."""


@dataclass(frozen=True)
class Numbers:
    """A number is itself. A missing one is the column's mean, beside an indicator if some were missing in training."""

    labels: tuple[Level, ...]
    fill: FloatArray  # (d) means of what was there; 0 for sparse rows, where nothing is missing
    share: FloatArray  # (d) of the rows in which it was missing
    spread: FloatArray | None = None  # (d) standard deviation, if nothing was missing

    @classmethod
    def of(
        cls, labels: tuple[Level, ...], frame: Frame, places: Sequence[Place], weights: FloatArray | None
    ) -> Numbers:
        x = frame.counts(places)
        none = np.zeros(len(labels))
        if sp.issparse(x):
            forbid_stored(x, ~np.isfinite(x.data), NOT_SPARSE)
            return cls(labels, none, none)
        share = _shares(weights, len(x))
        first = x[:1].sum(axis=0, dtype=np.float64)  # any number near the others
        with np.errstate(invalid="ignore", over="ignore"):
            mean, square = _kernels.column_sums(x, first, share)
            if np.isfinite(mean).all() and np.isfinite(square).all():  # so are all cells
                return cls(labels, first + mean, none, np.sqrt(np.maximum(square - mean**2, 0.0)))
        forbid_infinite(x)
        present = ~np.isnan(x)
        there = share @ present
        peak = np.where(present, np.abs(x), 0.0).max(axis=0, initial=1e-300)
        mean = share @ np.where(present, x / peak, 0.0) / np.where(there > 0, there, 1.0) * peak
        return cls(labels, mean, np.where(present.all(axis=0), 0.0, np.where(there > 0, share @ ~present, 1.0)))

    @property
    def marked(self) -> tuple[int, ...]:
        """Columns with an indicator: missing here and there."""
        return tuple(np.flatnonzero((self.share > 0) & (self.share < 1)).tolist())

    @property
    def names(self) -> tuple[str, ...]:
        return (*map(str, self.labels), *(f"{self.labels[j]} missing" for j in self.marked))

    @property
    def owners(self) -> tuple[int, ...]:
        return (*range(len(self.labels)), *self.marked)

    @property
    def origin(self) -> FloatArray:
        return np.concatenate([self.fill, self.share[list(self.marked)]])

    def features(self, frame: Frame, places: Sequence[Place]) -> Any:
        x = frame.counts(places)
        if sp.issparse(x):
            forbid_stored(x, ~np.isfinite(x.data), NOT_SPARSE)
            return x
        if not self.share.any() and not _kernels.find_holes(x).any():
            return x
        forbid_infinite(x)
        missing = np.isnan(x)
        return np.hstack([np.where(missing, self.fill, x), missing[:, list(self.marked)].astype(np.float64)])

    def formula(self, weights: FloatArray, origin: FloatArray) -> list[Formula]:
        """A line for each column; the indicator adds a constant to it, and to what a missing cell adds."""
        d, (columns, marked) = len(self.labels), (list(range(len(self.labels))), list(self.marked))
        there, slope = np.zeros((d, len(weights))), weights[:, :d].T
        missing = (self.fill - origin[:d])[:, np.newaxis] * slope
        there[marked] = -(weights[:, d:] * origin[d:]).T
        missing[marked] += (weights[:, d:] * (1.0 - origin[d:])).T
        middle = np.repeat(origin[:d, np.newaxis], len(weights), axis=1)
        return [formulas.Curve(tuple(columns), middle, there if marked else None, slope, missing=missing)]


@dataclass(frozen=True)
class Indicators:
    """A category is one of its levels: an indicator for each but the first, which the others are compared with.

    A missing cell is a level of its own, the last, if there were some in training. A value never seen takes the mean
    of each indicator, so that it says what the average row says.
    """

    labels: tuple[Level, ...]
    levels: tuple[Levels, ...]  # of each column, the first one being the one compared with; None is missing
    origin: FloatArray  # (m) share of the rows of each feature

    @classmethod
    def of(
        cls, labels: tuple[Level, ...], frame: Frame, places: Sequence[Place], weights: FloatArray | None
    ) -> Indicators:
        coded = frame.coded(places)
        share = _shares(weights, frame.rows)
        levels, shares = [], []
        for j, values in enumerate(coded.levels):
            counts = np.bincount(coded.codes[:, j] + 1, weights=share, minlength=len(values) + 1)
            part = {None: float(counts[0]), **dict(zip(values, counts[1:].tolist(), strict=True))}
            order = sorted_levels(value for value, weight in part.items() if weight)
            levels.append(order)
            shares += [part[value] for value in order[1:]]
        return cls(labels, tuple(levels), np.array(shares))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(
            f"{label} = {'missing' if value is None else value}"
            for label, values in zip(self.labels, self.levels, strict=True)
            for value in values[1:]
        )

    @property
    def owners(self) -> tuple[int, ...]:
        return tuple(j for j, values in enumerate(self.levels) for _ in values[1:])

    def features(self, frame: Frame, places: Sequence[Place]) -> Any:
        codes = frame.codes(places, self.levels)
        starts = np.cumsum([0, *(max(0, len(values) - 1) for values in self.levels)])
        last = np.array([len(v) - 1 if v and v[-1] is None else UNSEEN for v in self.levels], dtype=np.int32)
        codes = np.where(codes == MISSING, last, codes)
        rows, columns = np.nonzero(codes > 0)
        cells, at, features = [np.ones(len(rows))], [rows], [starts[columns] + codes[rows, columns] - 1]
        for j in np.flatnonzero((codes == UNSEEN).any(axis=0)):
            strange, own = np.flatnonzero(codes[:, j] == UNSEEN), np.arange(starts[j], starts[j + 1])
            cells.append(np.tile(self.origin[own], len(strange)))
            at.append(np.repeat(strange, len(own)))
            features.append(np.tile(own, len(strange)))
        place = np.concatenate(at), np.concatenate(features)
        return sp.csr_array((np.concatenate(cells), place), shape=(len(codes), int(starts[-1])))

    def formula(self, weights: FloatArray, origin: FloatArray) -> list[Formula]:
        """A table for each column: of its values, and last of one never seen."""
        found: list[Formula] = []
        first = 0
        for j, levels in enumerate(self.levels):
            own = slice(first, first := first + max(0, len(levels) - 1))
            size = len(levels)
            held = np.vstack([np.eye(size)[:, 1:], self.origin[own]]) - origin[own]
            missing = size - 1 if size and levels[-1] is None else UNSEEN
            code = formulas.Code(j, size + 1, levels=levels, missing=missing, unseen=size)
            found.append(formulas.Lookup((j,), (code,), held @ weights[:, own].T))
        return found


@dataclass(frozen=True)
class Sufficient:
    """T(x), the sufficient statistics of an exponential family, as its natural parameters multiply them.

    Statistics that are 1 wherever a cell is there are turned into indicators that it is missing, so that they leave
    complete rows alone.
    """

    plan: Plan  # its columns count from 0
    params: Any
    natural: Natural
    levels: tuple[Levels, ...] | None
    missing: Missing

    @property
    def names(self) -> tuple[str, ...]:
        pairs = zip(self.natural.names, self.natural.presence, strict=True)
        return tuple(name.replace(" is there", " is missing") if here else name for name, here in pairs)

    @property
    def owners(self) -> tuple[int, ...]:
        return self.natural.columns

    @property
    def origin(self) -> FloatArray:
        """A cell is missing: then a part of a column is all of its evidence, as in the generative model."""
        absent = self.natural.presence if self.natural.absence is None else self.natural.absence
        return absent.astype(np.float64)

    @property
    def coefficients(self) -> FloatArray:
        """(K, m) of the features."""
        return np.where(self.natural.presence, -self.natural.eta, self.natural.eta)

    @property
    def constant(self) -> FloatArray:
        """(K) at the origin, where all cells are missing."""
        if self.natural.absence is None:
            return self.natural.constant
        result: FloatArray = self.natural.constant + self.natural.eta[:, self.natural.absence].sum(axis=1)
        return result

    def features(self, frame: Frame, places: Sequence[Place]) -> Any:
        values = read(self.plan, frame, list(places), self.levels, self.missing)
        found = self.plan.family.sufficient(self.params, values)
        if not self.natural.presence.any():
            return found
        dense = found.toarray() if sp.issparse(found) else found
        return np.where(self.natural.presence, 1.0 - dense, dense)

    def formula(self, weights: FloatArray, origin: FloatArray) -> list[Formula]:
        """The family's, and for each column what turned statistics and the origin make of it."""
        presence = self.natural.presence
        turned = np.where(presence, -weights, weights)
        always = weights * (presence - origin)  # (k, m) w(1 − T − o) is −wT and this, w(T − o) is wT and this
        owners = np.array(self.owners, dtype=np.intp)
        constants = [formulas.Always((j,), always[:, owners == j].sum(axis=1)) for j in sorted(set(self.owners))]
        found = [self._read(formula) for formula in self.plan.family.linear_formula(self.params, turned)]
        return [*found, *constants]

    def _read(self, formula: Any) -> Any:
        """As the plan reads cells."""
        if not isinstance(formula, formulas.Lookup):
            return formula
        codes = formula.codes
        if self.plan.presence:
            codes = tuple(code.present() for code in codes)
        elif self.missing == "category":
            codes = tuple(code.counting_missing() for code in codes)
        return replace(formula, codes=codes)


@dataclass(frozen=True)
class Part:
    """An encoder and the columns it reads."""

    columns: tuple[int, ...]
    encoder: Encoder


@dataclass(frozen=True)
class Design:
    """Features of a table: those of its numbers, then of its categories, as each encoder makes them."""

    schema: Schema
    parts: tuple[Part, ...]
    names: tuple[str, ...] = field(init=False)
    owners: tuple[int, ...] = field(init=False)  # the column of each feature

    def __post_init__(self) -> None:
        names = numbered(name for part in self.parts for name in part.encoder.names)  # all different
        object.__setattr__(self, "names", tuple(names))
        owners = tuple(part.columns[j] for part in self.parts for j in part.encoder.owners)
        object.__setattr__(self, "owners", owners)

    @classmethod
    def of(cls, frame: Frame, weights: FloatArray | None = None, rows: IntArray | None = None) -> Design:
        """Numbers and booleans are numbers, text is indicators, an empty column is nothing.

        `rows` are the numbers of the rows, for messages, if some were left out.
        """
        schema = Schema.of(frame)
        parts = []
        makers: tuple[Any, ...] = (Numbers, Indicators)
        for maker, columns in zip(makers, columns_by_encoder(schema), strict=True):
            if columns:
                labels = tuple(schema.names[j] for j in columns)
                try:
                    parts.append(Part(columns, maker.of(labels, frame, columns, weights)))
                except BadCell as bad:
                    raise _named(bad, columns, schema, frame, columns, _number(bad.row, 0, rows)) from None
        return cls(schema, tuple(parts))

    @property
    def spread(self) -> FloatArray | None:
        """(p) standard deviations of the features in training, where they are known."""
        if len(self.parts) == 1 and isinstance(self.parts[0].encoder, Numbers):
            return self.parts[0].encoder.spread
        return None

    def learned_matrix(self, frame: Frame, rows: IntArray) -> Any:
        """The features of the rows that the design was made from: what is known of them is not looked at again."""
        if self.spread is not None:
            return frame.counts(self.parts[0].columns)
        return self.matrix(frame, rows=rows)

    def matrix(self, frame: Frame, first_row: int = 0, rows: IntArray | None = None) -> Any:
        """(n, p) features: the frame's own matrix where it serves, a new one, or sparse rows."""
        places = self.schema.places(frame)
        found = []
        for part in self.parts:
            where = [places[j] for j in part.columns]
            try:
                found.append(part.encoder.features(frame, where))
            except BadCell as bad:
                raise _named(bad, part.columns, self.schema, frame, where, _number(bad.row, first_row, rows)) from None
        if not found:
            return np.zeros((frame.rows, 0))
        indicators = [x.shape[1] for x in found if sp.issparse(x)]
        if indicators:
            if not is_sparse(frame) and sum(indicators) <= DENSE_AT_MOST:
                found = [x.toarray() if sp.issparse(x) else x for x in found]
            else:
                return sp.csr_array(found[0] if len(found) == 1 else sp.hstack(found, format="csr"))
        return found[0] if len(found) == 1 else np.hstack(found)

    @property
    def origin(self) -> FloatArray:
        """(p) what explanations count from; the means of the features, unless this is a twin's design."""
        return np.concatenate([np.zeros(0), *(part.encoder.origin for part in self.parts)])

    def formula(self, weights: FloatArray, origin: FloatArray) -> list[Formula]:
        """Σ weights (k, p) · (features − origin), as formulas over the columns of the table."""
        found: list[Formula] = []
        first = 0
        for part in self.parts:
            own = slice(first, first := first + len(part.encoder.owners))
            found += [formulas.placed(f, part.columns) for f in part.encoder.formula(weights[:, own], origin[own])]
        return found

    @property
    def of_twin(self) -> bool:
        """Whether features are sufficient statistics, which often are redundant."""
        return any(isinstance(part.encoder, Sufficient) for part in self.parts)

    def forbid_infinite(self, frame: Frame, first_row: int, rows: IntArray | None = None) -> None:
        """Names an infinite cell, if there is one among the numbers."""
        places = self.schema.places(frame)
        for part in self.parts:
            if isinstance(part.encoder, Numbers):
                where = [places[j] for j in part.columns]
                try:
                    x = frame.counts(where)
                    if not sp.issparse(x):
                        forbid_infinite(x)
                except BadCell as bad:
                    number = _number(bad.row, first_row, rows)
                    raise _named(bad, part.columns, self.schema, frame, where, number) from None

    def converts(self, frame: Frame) -> bool:
        """Whether features are made, rather than read in place."""
        return not (len(self.parts) == 1 and isinstance(self.parts[0].encoder, Numbers))


def columns_by_encoder(schema: Schema) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The columns that are numbers, and those that are indicators."""
    if "text" in schema.kinds:
        raise DecibanError("these are documents, and this model takes numbers and categories: use NaiveBayes")
    wanted: tuple[set[Kind], ...] = ({*NUMERIC, "boolean"}, {"category"})
    numbers, categories = (tuple(j for j, kind in enumerate(schema.kinds) if kind in kinds) for kinds in wanted)
    return numbers, categories


def _shares(weights: FloatArray | None, rows: int) -> FloatArray:
    """(n) each row's part of the whole."""
    if weights is None:
        return np.full(rows, 1.0 / max(1, rows))
    result: FloatArray = weights / weights.sum()
    return result


def _named(
    bad: BadCell, columns: Sequence[int], schema: Schema, frame: Frame, places: Sequence[Place], row: int
) -> Exception:
    name, value = schema.names[columns[bad.column]], frame.cell(bad.row, places[bad.column])
    return cell_error(name, row, value, bad.problem)


def _number(row: int, first_row: int, rows: IntArray | None) -> int:
    return first_row + (row if rows is None else int(rows[row]))
