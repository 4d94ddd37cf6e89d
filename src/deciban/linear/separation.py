"""Separation: is there a hyperplane between two classes, and does a maximum-likelihood estimate exist?

Both are linear programs over the margins of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from deciban.errors import require
from deciban.linear.margins import ScaledSample, column_ranges, margin_matrix, spread_rows
from deciban.linear.separation_programs import (
    FINE,
    STRICT,
    TOUCHING,
    ProgramSolution,
    largest_total,
    least_slack_weights,
    solve_all_rows,
    sparsest,
    widest_margin,
)
from deciban.statistics.statistic import require_numbers
from deciban.types import FloatArray, IntArray

SLACK_ROWS = 5000  # the most rows that least_slack uses
PRUNED = 64  # up to this many columns are tested one by one for being redundant


@dataclass(frozen=True, eq=False)
class Hyperplane:
    """All x with w·x = d; a row is on the positive side if w·x > d.

    >>> import numpy as np
    >>> Hyperplane(np.array([2.0, 0.0]), 3.0).axis_intercepts
    array([1.5, inf])
    """

    weights: FloatArray  # (d)
    offset: float

    @property
    def axis_intercepts(self) -> FloatArray:
        """(d) d/w_i, where the hyperplane meets each axis; inf if it is parallel to the axis."""
        parallel = np.full(self.weights.shape, np.inf)
        intercepts: FloatArray = np.divide(self.offset, self.weights, out=parallel, where=self.weights != 0)
        return intercepts


@dataclass(frozen=True, eq=False)
class Certificate:
    """λ ≥ 0 with Σ λ_i sign_i x_i = 0, Σ λ_i sign_i = 0 and Σ λ_i = 1: the proof that no hyperplane separates.

    Σ₊ λ_i x_i / Σ₊ λ_i = Σ₋ λ_i x_i / Σ₋ λ_i is a point in the convex hulls of both sides (each Σ λ_i is ½): on
    the side of any hyperplane where it lies, there is a row of the other sign. At most d + 2 of the λ_i are not 0.
    The sums are 0 up to rounding.

    >>> import numpy as np
    >>> x, sign = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, -1.0, 1.0])
    >>> proof = halfspace(x, sign)
    >>> proof.rows, proof.multipliers.round(9)
    (array([0, 1, 2]), array([0.25, 0.5 , 0.25]))
    """

    rows: IntArray  # (≤ d + 2) ascending
    multipliers: FloatArray  # λ of these rows; 0 for all others

    def check_fields(self) -> None:
        require(self.rows.ndim == 1, "rows are not one-dimensional")
        require_numbers("multipliers", self.multipliers, self.rows.shape)


@dataclass(frozen=True)
class Separation:
    """(w_y − w_k)·x + b_y − b_k ≥ 0 for all rows and classes k ≠ y, and > 0 for some: no maximum-likelihood estimate.

    >>> Separation(columns=(2,), complete=False)
    Separation(columns=(2,), complete=False)
    """

    columns: tuple[int, ...]  # with nonzero weights; none is redundant (tested for up to 64)
    complete: bool  # whether some weights give > 0 for all rows


def halfspace(x: Any, sign: NDArray[Any]) -> Hyperplane | Certificate:
    """w, d with sign_i (w·x_i − d) ≥ 1 for all i; or, if there are none, λ that prove it (Farkas).

    x (n, d) is dense or CSR, finite; sign (n) is ±1. The margin is at least half of the widest there is for weights
    bounded in scaled columns; it is ≥ 1 as x @ w − d is computed, and in any order of summation if the gap exceeds
    rounding. Where double precision cannot separate the sides, the result is a certificate, whose sums are then 0 up to
    the rounding of x. Some hundred columns take seconds, a thousand minutes.

    >>> import numpy as np
    >>> corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> both = halfspace(corners, np.array([-1, -1, -1, 1]))
    >>> both.weights, both.offset
    (array([2., 2.]), 3.0)
    >>> one_of_two = halfspace(corners, np.array([-1, 1, 1, -1]))
    >>> one_of_two.multipliers.round(9)
    array([0.25, 0.25, 0.25, 0.25])
    """
    constant = _constant(x, sign)
    if constant is not None:
        return constant
    sample, codes = ScaledSample.of(x), (np.asarray(sign) > 0).astype(np.intp)
    for unit in (FINE, 1.0):  # with values of very different sizes the first may fail, and the second succeed
        solution = solve_all_rows(sample, codes, 2, widest_margin(unit))
        if solution.direction is not None:
            plane = _with_margin(sample, codes, solution.direction[1, :-1] * sample.scale)
            if plane is not None:
                return plane
        proof, error = _certificate(sample, codes, solution)
        if error <= TOUCHING:
            break
    return proof


def least_slack(x: Any, sign: NDArray[Any]) -> Hyperplane:
    """The w, d of min Σ s_i with sign_i (w·x_i − d) ≥ 1 − s_i and s_i ≥ 0, for a sample that is not separable.

    Of more than 5,000 rows, a sample is used, evenly spaced over each side.

    >>> import numpy as np
    >>> x, sign = np.array([[0.0], [0.0], [0.0], [1.0], [2.0], [3.0], [3.0], [3.0]]), [-1, -1, -1, 1, -1, 1, 1, 1]
    >>> plane = least_slack(x, np.array(sign))
    >>> plane.weights.round(3), round(plane.offset, 3)
    (array([0.667]), 1.0)
    """
    constant = _constant(x, sign)
    if constant is not None:
        return constant
    sample, codes = ScaledSample.of(x), (np.asarray(sign) > 0).astype(np.intp)
    share = min(1.0, SLACK_ROWS / len(codes))
    sides = (np.flatnonzero(codes == side) for side in (0, 1))
    rows = np.concatenate([spread_rows(side, int(np.ceil(share * len(side)))) for side in sides])
    scaled = least_slack_weights(margin_matrix(sample.rows(rows), codes[rows], 1 - codes[rows], 2))
    weights = scaled[:-1] * sample.scale + 0.0  # no −0
    return Hyperplane(weights, float(sample.centre @ weights - scaled[-1]))


def find_separation(x: Any, codes: NDArray[Any], classes: int) -> Separation | None:
    """Whether logistic or softmax regression without a penalty has no estimate (Albert and Anderson, 1984).

    max Σ_i Σ_k (w_y − w_k)·x_i + b_y − b_k, all terms ≥ 0 and −1 ≤ w ≤ 1: the optimum is 0 if there is an estimate.
    Otherwise the likelihood increases without bound in the optimal direction. Separated means: no row more than 1e-12
    of a column's range on the wrong side, and one at least 1e-9 on the right side; the first counts rounded sums of
    columns as collinear, the second ignores directions in which nothing moves. Classes without rows are ignored. If
    one column alone separates, it is the one named; if the separation is complete, columns that do it completely.

    >>> import numpy as np
    >>> x = np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 0.0], [4.0, 1.0]])
    >>> find_separation(x, np.array([0, 1, 0, 1]), 2)
    Separation(columns=(0,), complete=True)
    >>> find_separation(x, np.array([0, 0, 1, 1]), 2)
    Separation(columns=(1,), complete=False)
    >>> find_separation(x[:, :1], np.array([0, 1, 1, 0]), 2) is None
    True
    """
    present = np.bincount(codes, minlength=classes) > 0
    codes, classes = (np.cumsum(present) - 1)[codes], int(present.sum())
    if classes < 2:
        return None
    sample = ScaledSample.of(x)
    for complete in (True, False):
        columns = _columns(sample, codes, classes, complete)
        if columns:
            return Separation(columns, complete)
    return None


def _constant(x: Any, sign: NDArray[Any]) -> Hyperplane | None:
    """w = 0 and d = ∓1, if all rows are on one side."""
    positive = (sign > 0).any()
    return None if positive and (sign < 0).any() else Hyperplane(np.zeros(x.shape[1]), -1.0 if positive else 1.0)


def _with_margin(sample: ScaledSample, codes: IntArray, weights: FloatArray) -> Hyperplane | None:
    """The hyperplane in the middle of the gap, scaled to a least margin of 1; None if rounding exceeds it."""
    x = sample.x
    score = x @ weights
    low, high = score[codes == 0].max(), score[codes == 1].min()
    size = np.maximum(*np.abs(column_ranges(x))) @ np.abs(weights)
    rounding = (len(weights) + 4) * np.finfo(np.float64).eps * (size + abs(low) + abs(high))

    def between(slack: float) -> Hyperplane:
        gap = high - low - 2.0 * slack
        factor = 2.0 / gap if gap > 0 else 0.0  # 0 fails the check of the margin
        return Hyperplane(weights * factor + 0.0, float((0.5 * low + 0.5 * high) * factor))

    tight, safe = between(0.0), between(rounding)
    if _sums_exactly(x, tight, size) and _has_margin(tight, x, codes):
        return tight
    return next((plane for plane in (safe, tight) if _has_margin(plane, x, codes)), None)


def _has_margin(plane: Hyperplane, x: Any, codes: IntArray) -> bool:
    margin = np.where(codes == 1, 1.0, -1.0) * (x @ plane.weights - plane.offset)
    return bool((margin >= 1.0).all())


def _sums_exactly(x: Any, plane: Hyperplane, size: float) -> bool:
    """Whether w·x − d is free of rounding in any order: all are multiples of 2⁻¹⁰ and every sum fits into 53 bits."""
    cells = x.data if sp.issparse(x) else x
    short = all(bool((v * 1024.0 == np.rint(v * 1024.0)).all()) for v in (plane.weights, cells))
    return short and (plane.offset * 1024.0).is_integer() and size + abs(plane.offset) < 2.0**33


def _certificate(sample: ScaledSample, codes: IntArray, solution: ProgramSolution) -> tuple[Certificate, float]:
    """The multipliers of the program, and the error of the sums of scaled columns.

    They are refined by least squares, unless there is a direction: then the hulls meet only by rounding.
    """
    chosen = np.flatnonzero(solution.multipliers > 1e-12)
    rows, multipliers = solution.pairs[0, chosen], solution.multipliers[chosen]
    sign = np.where(codes[rows] == 1, 1.0, -1.0)
    sums = np.vstack([sample.rows(rows).toarray().T * sign, np.ones(len(rows))])  # Σ λ sign (z, 1) and Σ λ
    target = np.append(np.zeros(len(sums) - 1), 1.0)
    halves = np.where(sign > 0, multipliers[sign > 0].sum(), multipliers[sign < 0].sum())
    candidates = [0.5 * multipliers / halves]
    if solution.direction is None:
        candidates.append(_nonnegative_lstsq(sums, target))
    errors = [float(np.abs(sums @ each - target).max()) for each in candidates]
    best = candidates[int(np.argmin(errors))]
    order = np.argsort(rows)[best[np.argsort(rows)] > 0]
    return Certificate(rows[order], best[order]), min(errors)


def _nonnegative_lstsq(sums: FloatArray, target: FloatArray) -> FloatArray:
    """Least squares with λ ≥ 0: multipliers that are negative, by rounding, are dropped."""
    result = np.ones(sums.shape[1])
    while (active := result > 0).any():
        result = np.zeros(len(result))
        result[active] = np.linalg.lstsq(sums[:, active], target, rcond=None)[0]
        if (result[active] > 0).all():
            break
    return result


def _gain(sample: ScaledSample, codes: IntArray, classes: int) -> FloatArray:
    """The sum of all margins is gain·u: u_y counts K − 1 times for each row of y, and −1 times for other rows."""
    totals = sample.totals(codes, classes)
    gain: FloatArray = (classes * totals - totals.sum(axis=0))[1:].ravel()
    return gain


def _partial_direction(sample: ScaledSample, codes: IntArray, classes: int) -> ProgramSolution | None:
    """A direction with all margins ≥ 0 and some > 0."""
    total = largest_total(_gain(sample, codes, classes), len(codes) * (classes - 1))
    solution = solve_all_rows(sample, codes, classes, total)
    if solution.direction is None:
        return None
    _, _, greatest = sample.margins(solution.direction, codes)
    return solution if greatest.max() > STRICT else None


def _complete_direction(sample: ScaledSample, codes: IntArray, classes: int) -> ProgramSolution | None:
    """A direction with all margins > 0."""
    solution = solve_all_rows(sample, codes, classes, widest_margin(FINE))
    return solution if solution.direction is not None and solution.value > TOUCHING else None


def _columns(sample: ScaledSample, codes: IntArray, classes: int, complete: bool) -> tuple[int, ...]:
    """A column that separates alone; else the columns of the sparsest direction that are not redundant; or none."""
    alone = _single_columns(sample.x, codes, classes, complete)
    if len(alone):
        return (int(alone[0]),)
    find_direction = _complete_direction if complete else _partial_direction
    solution = find_direction(sample, codes, classes)
    if solution is None:
        return ()
    total, margin = (0.0, solution.value / 2) if complete else (solution.value / 2, 0.0)
    solve = sparsest(_gain(sample, codes, classes), total, margin)
    sparse = solve_all_rows(sample, codes, classes, solve, solution.pairs)
    return _without_redundant(sample, codes, classes, sparse, find_direction)


def _without_redundant(
    sample: ScaledSample,
    codes: IntArray,
    classes: int,
    solution: ProgramSolution,
    find_direction: Callable[[ScaledSample, IntArray, int], ProgramSolution | None],
) -> tuple[int, ...]:
    """The columns with weights in the direction, without those that the others make redundant."""
    assert solution.direction is not None
    weight = np.abs(solution.direction[:, :-1]).max(axis=0)
    columns = np.flatnonzero(weight > STRICT * weight.max())
    for j in columns if len(columns) <= PRUNED else ():
        rest = columns[columns != j]
        if find_direction(sample.columns(rest), codes, classes) is not None:
            columns = rest
    return tuple(columns.tolist())


def _single_columns(x: Any, codes: IntArray, classes: int, complete: bool) -> IntArray:
    """The columns that separate alone: some value has each class on one side; if complete, class ranges are disjoint.

    (As functions of one x the w_k·x + b_k are lines, and their maximum is a convex polygon.)
    """
    low, high = (np.array(ends) for ends in zip(*(column_ranges(x[codes == k]) for k in range(classes)), strict=True))
    order = np.lexsort((high, low), axis=0)
    low, high = (np.take_along_axis(ends, order, axis=0) for ends in (low, high))
    reached = np.maximum.accumulate(high, axis=0)[:-1]
    if complete:
        return np.flatnonzero((reached < low[1:]).all(axis=0))
    return np.flatnonzero((reached <= low[1:]).any(axis=0) & (low.min(axis=0) < high.max(axis=0)))
