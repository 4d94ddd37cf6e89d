"""Encoders: columns of numbers, of categories or of any exponential family as the features of a linear model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, get_type_hints

import numpy as np
import scipy.sparse as sp

from deciban import _kernels
from deciban.data.batch import MISSING, UNSEEN, Coded, ColumnRef, Frame, Texts
from deciban.errors import forbid_infinite, forbid_stored, require
from deciban.families import Natural
from deciban.generative.plan import Missing, Plan
from deciban.lazy import lazy
from deciban.plots.figures import counted
from deciban.statistics.statistic import require_numbers
from deciban.types import FloatArray, Level, Levels, is_sorted, sorted_levels

if TYPE_CHECKING:
    from deciban.export.formulas import Formula

formulas = lazy("deciban.export.formulas")  # needed only by reports

NOT_SPARSE = "is missing or infinite, which sparse rows do not allow"


class Encoder(Protocol):
    """Encodes some columns as features."""

    @property
    def levels(self) -> tuple[Levels, ...] | None:
        """The values of each column in training; None for numbers."""

    @property
    def names(self) -> tuple[str, ...]:
        """(m) the names of the features."""

    @property
    def owners(self) -> tuple[int, ...]:
        """(m) the column that each feature comes from."""

    @property
    def origin(self) -> FloatArray:
        """(m) the baseline of explanations: the means of the features in training, or another reference."""

    def describe(self, column: int) -> str:
        """How a column is encoded, in a few words."""

    def features(self, frame: Frame, places: Sequence[ColumnRef]) -> Any:
        """(n, m) float64 or float32 matrix, or sparse rows; `places` are the columns' positions in the frame."""

    def formula(self, weights: FloatArray, origin: FloatArray) -> list[Formula]:
        """Σ weights (k, m) · (features − origin), as formulas that need no library; columns count from 0."""


@dataclass(frozen=True)
class Numbers:
    """Numbers as they are; a missing one is imputed by the mean, with an indicator if some were missing in training."""

    levels: ClassVar[None] = None
    labels: tuple[Level, ...]
    fill: FloatArray  # (d) means of present values; 0 for sparse rows, where nothing is missing
    share: FloatArray  # (d) of rows with a missing value
    spread: FloatArray | None = None  # (d) standard deviation, if nothing was missing

    def check_fields(self) -> None:
        for name in ("fill", "share", "spread"):
            values = getattr(self, name)
            if values is not None:
                require_numbers(name, values, (len(self.labels),))
        require(((self.share >= 0) & (self.share <= 1)).all(), "a share of rows is not from 0 to 1")

    @classmethod
    def of(
        cls, labels: tuple[Level, ...], frame: Frame, places: Sequence[ColumnRef], weights: FloatArray | None
    ) -> Numbers:
        x = frame.counts(places)
        none = np.zeros(len(labels))
        if sp.issparse(x):
            forbid_stored(x, ~np.isfinite(x.data), NOT_SPARSE)
            return cls(labels, none, none)
        share = _shares(weights, len(x))
        first = x[:1].sum(axis=0, dtype=np.float64)  # any reference near the data
        with np.errstate(invalid="ignore", over="ignore"):
            mean, square = _kernels.column_sums(x, first, share)
            if np.isfinite(mean).all() and np.isfinite(square).all():  # so are all values
                return cls(labels, first + mean, none, np.sqrt(np.maximum(square - mean**2, 0.0)))
        forbid_infinite(x)
        present = ~np.isnan(x)
        total = share @ present
        peak = np.where(present, np.abs(x), 0.0).max(axis=0, initial=1e-300)
        mean = share @ np.where(present, x / peak, 0.0) / np.where(total > 0, total, 1.0) * peak
        return cls(labels, mean, np.where(present.all(axis=0), 0.0, np.where(total > 0, share @ ~present, 1.0)))

    @property
    def marked(self) -> tuple[int, ...]:
        """Columns with an indicator: missing in some rows, but not in all."""
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

    def describe(self, column: int) -> str:
        imputed = "; a missing value becomes the mean, with an indicator" if column in self.marked else ""
        return f"multiplied by a coefficient{imputed}"

    def features(self, frame: Frame, places: Sequence[ColumnRef]) -> Any:
        x = frame.counts(places)
        if sp.issparse(x):
            forbid_stored(x, ~np.isfinite(x.data), NOT_SPARSE)
            return x
        if not self.share.any() and not _kernels.rows_with_nan(x).any():
            return x
        forbid_infinite(x)
        missing = np.isnan(x)
        return np.hstack([np.where(missing, self.fill, x), missing[:, list(self.marked)].astype(np.float64)])

    def formula(self, weights: FloatArray, origin: FloatArray) -> list[Formula]:
        """A line for each column; the indicator adds constants for present and for missing values."""
        d, marked = len(self.labels), list(self.marked)
        present, slope = np.zeros((d, len(weights))), weights[:, :d].T
        missing = (self.fill - origin[:d])[:, np.newaxis] * slope
        present[marked] = -(weights[:, d:] * origin[d:]).T
        missing[marked] += (weights[:, d:] * (1.0 - origin[d:])).T
        middle = np.repeat(origin[:d, np.newaxis], len(weights), axis=1)
        return [formulas.Curve(tuple(range(d)), middle, present if marked else None, slope, missing=missing)]


@dataclass(frozen=True)
class Indicators:
    """One-hot indicators of categories, without the first level, which is the reference.

    If values were missing in training, missing is a level of its own, the last. An unseen value takes the mean of each
    indicator, so it contributes as much as the average row.
    """

    labels: tuple[Level, ...]
    levels: tuple[Levels, ...]  # of each column, the first being the reference; None is missing
    origin: FloatArray  # (m) the share of rows with each level

    def check_fields(self) -> None:
        labels, levels = self.labels, self.levels
        require(len(labels) == len(levels), f"values of {len(levels)} columns instead of {len(labels)}")
        require(all(map(is_sorted, levels)), "values of a column are not in order, or not distinct")
        require_numbers("origin", self.origin, (sum(max(0, len(values) - 1) for values in levels),))

    @classmethod
    def of(
        cls, labels: tuple[Level, ...], frame: Frame, places: Sequence[ColumnRef], weights: FloatArray | None
    ) -> Indicators:
        coded = frame.coded(places)
        share = _shares(weights, frame.rows)
        levels, shares = [], []
        for j, values in enumerate(coded.levels):
            counts = np.bincount(coded.codes[:, j] + 1, weights=share, minlength=len(values) + 1)
            share_of = {None: float(counts[0]), **dict(zip(values, counts[1:].tolist(), strict=True))}
            order = sorted_levels(value for value, weight in share_of.items() if weight)
            levels.append(order)
            shares += [share_of[value] for value in order[1:]]
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

    def describe(self, column: int) -> str:
        levels = self.levels[column]
        first = "missing" if levels and levels[0] is None else str(levels[0]) if levels else ""
        return f"an indicator for each of {counted(len(levels), 'value')} except the first, {first!r}"

    def features(self, frame: Frame, places: Sequence[ColumnRef]) -> Any:
        codes = frame.codes(places, self.levels)
        starts = np.cumsum([0, *(max(0, len(values) - 1) for values in self.levels)])
        last = np.array([len(v) - 1 if v and v[-1] is None else UNSEEN for v in self.levels], dtype=np.int32)
        codes = np.where(codes == MISSING, last, codes)
        rows, columns = np.nonzero(codes > 0)
        cells, at, features = [np.ones(len(rows))], [rows], [starts[columns] + codes[rows, columns] - 1]
        for j in np.flatnonzero((codes == UNSEEN).any(axis=0)):
            unseen, indicators = np.flatnonzero(codes[:, j] == UNSEEN), np.arange(starts[j], starts[j + 1])
            cells.append(np.tile(self.origin[indicators], len(unseen)))
            at.append(np.repeat(unseen, len(indicators)))
            features.append(np.tile(indicators, len(unseen)))
        indices = np.concatenate(at), np.concatenate(features)
        return sp.csr_array((np.concatenate(cells), indices), shape=(len(codes), int(starts[-1])))

    def formula(self, weights: FloatArray, origin: FloatArray) -> list[Formula]:
        """A lookup table for each column: its levels, then an unseen value."""
        lookups: list[Formula] = []
        first = 0
        for j, levels in enumerate(self.levels):
            features = slice(first, first := first + max(0, len(levels) - 1))
            size = len(levels)
            indicators = np.vstack([np.eye(size)[:, 1:], self.origin[features]]) - origin[features]
            missing = size - 1 if size and levels[-1] is None else UNSEEN
            code = formulas.Code(j, size + 1, levels=levels, missing=missing, unseen=size)
            lookups.append(formulas.Lookup((j,), (code,), indicators @ weights[:, features].T))
        return lookups


@dataclass(frozen=True)
class Sufficient:
    """T(x), the sufficient statistics of an exponential family, whose coefficients are its natural parameters.

    Indicators that a value is present become indicators that it is missing, which are 0 in complete rows.
    """

    plan: Plan  # with columns numbered from 0
    params: Any
    natural: Natural
    levels: tuple[Levels, ...] | None
    missing: Missing

    def check_fields(self) -> None:
        """Shapes are checked by computing the statistics of an empty table."""
        family, natural, levels, d = self.plan.family, self.natural, self.levels, len(self.plan.columns)
        require(self.plan.columns == tuple(range(d)), "the columns of a feature do not count from 0")
        require(max(natural.columns, default=0) < d, "a feature of an unknown column")
        require((levels is None) == (family.reads != "codes"), "levels of numbers, or categories without levels")
        require(levels is None or (len(levels) == d and all(map(is_sorted, levels))), "levels do not match the columns")
        estimated = get_type_hints(type(family).estimate)["return"]
        require(isinstance(self.params, estimated), f"{type(family).__name__} has no {type(self.params).__name__}")
        for name, (array, shape) in family.param_shapes(self.params, len(natural.constant), d).items():
            require(array.shape == shape, f"{name} has shape {array.shape} instead of {shape}")
        require(getattr(self.params, "levels", levels) == levels, "parameters do not match the levels")
        rows: Any = np.zeros((0, d)) if levels is None else Coded(np.zeros((0, d), np.int32), levels)
        if family.reads == "texts":
            rows = Texts((), np.zeros((0, d, 3), np.int64))
        with np.errstate(all="ignore"):
            width = family.sufficient(self.params, rows).shape[1]
        require(width == len(natural.names), f"{len(natural.names)} natural parameters of {width} statistics")

    @property
    def names(self) -> tuple[str, ...]:
        pairs = zip(self.natural.names, self.natural.presence, strict=True)
        return tuple(name.replace(" is there", " is missing") if presence else name for name, presence in pairs)

    @property
    def owners(self) -> tuple[int, ...]:
        return self.natural.columns

    @property
    def origin(self) -> FloatArray:
        """All values missing: so a contribution is the whole evidence of a column, as in the generative model."""
        absent = self.natural.presence if self.natural.absence is None else self.natural.absence
        return absent.astype(np.float64)

    def describe(self, column: int) -> str:
        return f"sufficient statistics of {type(self.plan.family).__name__}"

    @property
    def coefficients(self) -> FloatArray:
        """(K, m) coefficients of the features."""
        return np.where(self.natural.presence, -self.natural.eta, self.natural.eta)

    @property
    def constant(self) -> FloatArray:
        """(K) the intercept at the origin, where all values are missing."""
        if self.natural.absence is None:
            return self.natural.constant
        result: FloatArray = self.natural.constant + self.natural.eta[:, self.natural.absence].sum(axis=1)
        return result

    def features(self, frame: Frame, places: Sequence[ColumnRef]) -> Any:
        values = self.plan.read(frame, places, self.missing, self.levels)
        statistics = self.plan.family.sufficient(self.params, values)
        if not self.natural.presence.any():
            return statistics
        dense = statistics.toarray() if sp.issparse(statistics) else statistics
        return np.where(self.natural.presence, 1.0 - dense, dense)

    def formula(self, weights: FloatArray, origin: FloatArray) -> list[Formula]:
        """The formulas of the family, and a constant for each column from negated indicators and the origin."""
        presence = self.natural.presence
        negated = np.where(presence, -weights, weights)
        always = weights * (presence - origin)  # (k, m) w(1 − T − o) is −wT and this, w(T − o) is wT and this
        owners = np.array(self.owners, dtype=np.intp)
        constants = [formulas.Always((j,), always[:, owners == j].sum(axis=1)) for j in sorted(set(self.owners))]
        terms = [self._with_missing(formula) for formula in self.plan.family.linear_formula(self.params, negated)]
        return [*terms, *constants]

    def _with_missing(self, formula: Any) -> Any:
        """The formula with the codes that the plan gives to missing values."""
        if not isinstance(formula, formulas.Lookup):
            return formula
        codes = formula.codes
        if self.plan.presence:
            codes = tuple(code.present() for code in codes)
        elif self.missing == "category":
            codes = tuple(code.counting_missing() for code in codes)
        return replace(formula, codes=codes)


def _shares(weights: FloatArray | None, rows: int) -> FloatArray:
    """(n) the weight of each row, summing to 1."""
    if weights is None:
        return np.full(rows, 1.0 / max(1, rows))
    result: FloatArray = weights / weights.sum()
    return result
