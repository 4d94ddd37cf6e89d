"""Linear programs over margins, solved by HiGHS on a working set of rows.

The working set starts as an evenly spaced sample; the rows with the least margins are added until none is violated. So
200,000 rows cost little more than some hundred.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from deciban.errors import DecibanError
from deciban.linear.margins import Pairs, ScaledSample, first_pairs, margin_matrix
from deciban.types import FloatArray, IntArray

# All tolerances are in scaled columns: values within ±1, weights within ±1, so margins of the order of 1.
NOTHING = 1e-14  # margins up to this are rounding of 0
TOUCHING = 1e-12  # rows this little on the wrong side are allowed: rounded sums of columns count as collinear
STRICT = 1e-9  # rows from here on are strictly on their side: with less, even weights of 1e9 would not move their odds
# HiGHS takes 1e-10 for 0 in its sums and drops entries below 1e-9, both absolute: scaling up makes it more exact.
FINE, COARSE = 2.0**20, 2.0**10  # 1e-16 and 1e-13 of an entry; the second for margins ≥ 0, where TOUCHING is allowed

FIRST = 400  # rows in the working set, and 2 for each coefficient
MORE = 200  # rows added after the first solution; then twice as many each time
LARGEST = 1e6  # weight in least_slack_weights; only columns with values of very different sizes would need more


class ProgramSolution(NamedTuple):
    """The solution of a linear program over some pairs of rows and rivals."""

    direction: FloatArray | None  # (K, d + 1), or None if there is none
    value: float  # the optimum
    floor: float  # if some row has a smaller margin, the rows with the least margins are added to the program
    near: float  # of those whose margin is below this
    multipliers: FloatArray  # (m) dual variables of the pairs
    pairs: Pairs = np.empty((2, 0), np.intp)  # (2, m)


Solver = Callable[[Any, int], ProgramSolution]  # takes the margin matrix and d + 1


def _solve(cost: FloatArray, **rows: Any) -> Any:
    """linprog at the tightest tolerance that works: columns with values of very different sizes may need a looser one.

    The interior point method is not used: on such columns it may not terminate.
    """
    limits = rows["A_ub"] if "A_ub" in rows else rows["A_eq"]
    max_iter = 1000 + 10 * sum(limits.shape)  # the simplex method takes about as many steps as rows, unless it cycles
    for tolerance in (1e-10, 1e-9, 1e-8, 1e-7):
        options = {
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            "maxiter": max_iter,
        }
        result = linprog(cost, method="highs", options=options, **rows)
        if result.status == 0:
            return result
    raise DecibanError(f"the linear program was not solved ({result.message}): take logarithms of very skewed columns")


def solve_all_rows(
    sample: ScaledSample, codes: IntArray, classes: int, solve: Solver, start: Pairs | None = None
) -> ProgramSolution:
    """The solution for all rows and rivals, from a working set of them; `start` may be that of another program.

    A program of fewer constraints has all solutions of the full one: if it has none, neither has the full one. Each
    round adds at least one pair, so it ends; the added ones are those with the least margins, so it ends soon.
    """
    size = sample.x.shape[1] + 1
    working = first_pairs(codes, classes, FIRST + 2 * size * (classes - 1)) if start is None else start
    more = MORE
    while True:
        row, rival = working
        solution = solve(margin_matrix(sample.rows(row), codes[row], rival, classes), size)._replace(pairs=working)
        if solution.direction is None:
            return solution
        least, rival, _ = sample.margins(solution.direction, codes)
        near = np.flatnonzero(least < solution.near)
        pairs = np.array([near, rival[near]])
        pairs = pairs[:, ~np.isin(pairs[0] * classes + pairs[1], working[0] * classes + working[1])]
        least = least[pairs[0]]
        if not (least < solution.floor).any():
            return solution
        worst = pairs if len(least) <= more else pairs[:, np.argpartition(least, more)[:more]]
        working, more = np.concatenate([working, worst], axis=1), 2 * more


def widest_margin(unit: float) -> Solver:
    """max t with a·u ≥ t and −1 ≤ weights ≤ 1.

    The multipliers are those of the nearest points of both convex hulls (in the sum of absolute differences); for
    t = 0, of a common point.
    """

    def solve(a: Any, size: int) -> ProgramSolution:
        m, width = a.shape
        cost = np.append(np.zeros(width), -1.0)
        bounds = np.vstack([_box(width, size), [-np.inf, np.inf]])
        result = _solve(cost, A_ub=sp.hstack([-unit * a, np.ones((m, 1))]), b_ub=np.zeros(m), bounds=bounds)
        widest = result.x[-1] / unit
        direction = _unfold(result.x[:-1], size) if widest > NOTHING else None
        return ProgramSolution(direction, widest, widest / 2, 2 * widest, -result.ineqlin.marginals)

    return solve


def largest_total(gain: FloatArray, count: int) -> Solver:
    """max gain·u with a·u ≥ 0 and −1 ≤ weights ≤ 1; gain·u is the sum of all margins, of which there are `count`."""

    def solve(a: Any, size: int) -> ProgramSolution:
        m, width = a.shape
        result = _solve(-gain, A_ub=-COARSE * a, b_ub=np.zeros(m), bounds=_box(width, size))
        # no margin is below 0, so each is at most their sum; more constraints would only lower the optimum
        direction = _unfold(result.x, size) if -result.fun > STRICT else None
        return ProgramSolution(direction, -result.fun, -TOUCHING, -0.01 * result.fun / count, -result.ineqlin.marginals)

    return solve


def sparsest(gain: FloatArray, total: float, margin: float) -> Solver:
    """min Σ|weights| with a·u ≥ margin and gain·u ≥ total, where u = p − q with p, q ≥ 0."""

    def solve(a: Any, size: int) -> ProgramSolution:
        m, width = a.shape
        unit, most = FINE if margin else COARSE, np.abs(gain).max()
        weight = (np.arange(width) % size != size - 1).astype(np.float64)
        whole = unit * sp.vstack([a, gain[np.newaxis] / most], format="csr")
        least = unit * np.append(np.full(m, margin), total / most)
        result = _solve(np.tile(weight, 2), A_ub=sp.hstack([-whole, whole]), b_ub=-least, bounds=(0.0, None))
        u = result.x[:width] - result.x[width:]
        return ProgramSolution(
            _unfold(u, size), result.fun, margin / 2 - TOUCHING, 2 * margin, -result.ineqlin.marginals
        )

    return solve


def least_slack_weights(a: Any) -> FloatArray:
    """The u of min Σ s with a·u ≥ 1 − s, s ≥ 0, |weights| ≤ LARGEST, from the dual: d + 1 constraints instead of n.

    The dual is max Σ α − LARGEST·Σ|r| with aᵀα = r for weights and 0 for the offset, 0 ≤ α ≤ 1; r = p − q, p, q ≥ 0.
    """
    m, size = a.shape
    p = sp.eye_array(size, size - 1)
    cost = np.append(-np.ones(m), np.full(2 * size - 2, LARGEST))
    upper = np.append(np.ones(m), np.full(2 * size - 2, np.inf))
    bounds = np.column_stack([np.zeros(len(upper)), upper])
    weights: FloatArray = -_solve(
        cost, A_eq=sp.hstack([a.T, -p, p]), b_eq=np.zeros(size), bounds=bounds
    ).eqlin.marginals
    return weights


def _box(width: int, size: int) -> FloatArray:
    """(width, 2) bounds ±1 for weights, none for offsets, which the weights bound as both classes have rows."""
    bound = np.tile(np.append(np.ones(size - 1), np.inf), width // size)
    return np.column_stack([-bound, bound])


def _unfold(u: FloatArray, size: int) -> FloatArray:
    return np.vstack([np.zeros(size), u.reshape(-1, size)])
