"""Separation: is there a hyperplane between the two sides of a sample, and does a likelihood have its maximum?

Both are linear programs, solved by HiGHS on a working set of rows: it starts as a spread sample and takes in the rows
that a solution gets most wrong, until there are none. So 200,000 rows cost little more than some hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from deciban.errors import DecibanError
from deciban.types import FloatArray, IntArray

# All tolerances are in scaled columns: cells within ±1, weights within ±1, so margins of the order of 1.
NOTHING = 1e-14  # a margin no larger than this is what rounding leaves of 0
TOUCHING = 1e-12  # rows this little on the wrong side are not: sums of columns, rounded, are to count as collinear
STRICT = 1e-9  # a row is strictly on its side from here on: with less, even weights of 1e9 would not move its odds
# HiGHS takes 1e-10 for 0 in its sums and drops cells below 1e-9, both absolute: larger cells make it look closer.
FINE, COARSE = 2.0**20, 2.0**10  # 1e-16 and 1e-13 of a cell; the second for margins ≥ 0, where TOUCHING is allowed

FIRST = 400  # rows in the working set, and 2 for each coefficient
MORE = 200  # taken in after the first solution; then twice as many each time
CHUNK = 1 << 10  # rows scaled at a time: they stay in the cache, and BLAS starts no threads for so little
SLACK_ROWS = 5000  # that least_slack reads
LARGEST = 1e6  # weight in least_slack; only columns whose cells differ as much in size have use for more
PRUNED = 64  # so many columns are tried one by one for being left out


# Results -------------------------------------------------------------------------------------------------------------


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
        """(d) d/w_i, where the hyperplane meets each axis; inf where it is parallel to it."""
        never = np.full(self.weights.shape, np.inf)
        meets: FloatArray = np.divide(self.offset, self.weights, out=never, where=self.weights != 0)
        return meets


@dataclass(frozen=True, eq=False)
class Certificate:
    """λ ≥ 0 with Σ λ_i sign_i x_i = 0, Σ λ_i sign_i = 0 and Σ λ_i = 1: the proof that no hyperplane separates.

    Σ₊ λ_i x_i / Σ₊ λ_i = Σ₋ λ_i x_i / Σ₋ λ_i is a point in the convex hulls of both sides (each Σ λ_i is ½), and on
    whichever side of a hyperplane this point lies, some row of the other sign lies there, too. At most d + 2 rows take
    part. The sums are 0 up to rounding.

    >>> import numpy as np
    >>> x, sign = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, -1.0, 1.0])
    >>> proof = halfspace(x, sign)
    >>> proof.rows, proof.multipliers.round(9)
    (array([0, 1, 2]), array([0.25, 0.5 , 0.25]))
    """

    rows: IntArray  # (≤ d + 2) ascending
    multipliers: FloatArray  # λ of these rows; that of all others is 0


@dataclass(frozen=True)
class Separation:
    """(w_y − w_k)·x + b_y − b_k ≥ 0 for all rows and classes k ≠ y, and > 0 for some: no maximum-likelihood estimate.

    >>> Separation(columns=(2,), complete=False)
    Separation(columns=(2,), complete=False)
    """

    columns: tuple[int, ...]  # which have weights; none of them can be left out (this is tried for up to 64)
    complete: bool  # whether weights exist with > 0 for all rows


# The questions -------------------------------------------------------------------------------------------------------


def halfspace(x: Any, sign: NDArray[Any]) -> Hyperplane | Certificate:
    """w, d with sign_i (w·x_i − d) ≥ 1 for all i; or, if there are none, λ that prove it (Farkas).

    x (n, d) is dense or CSR, finite; sign (n) is ±1. The margin is at least half of the widest there is for weights
    bounded in scaled columns; it is ≥ 1 as x @ w − d comes out, and in any order of summing if the gap is wider than
    what rounding may move. Where the sides are so close that none is kept apart in double precision, the answer is a
    certificate, whose sums are then 0 up to the rounding of x. Some hundred columns take seconds, a thousand minutes.

    >>> import numpy as np
    >>> corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> both = halfspace(corners, np.array([-1, -1, -1, 1]))
    >>> both.weights, both.offset
    (array([2., 2.]), 3.0)
    >>> one_of_two = halfspace(corners, np.array([-1, 1, 1, -1]))
    >>> one_of_two.multipliers.round(9)
    array([0.25, 0.25, 0.25, 0.25])
    """
    if _one_sided(sign):
        return _constant(x, sign)
    sample, codes = _Scaled.of(x), (np.asarray(sign) > 0).astype(np.intp)
    for unit in (FINE, 1.0):  # where cells differ much in size, the first may fail and the second may not
        found = _settle(sample, codes, 2, _widest(unit))
        if found.direction is not None:
            plane = _with_margin(sample, codes, found.direction[1, :-1] * sample.scale)
            if plane is not None:
                return plane
        proof, error = _certificate(sample, codes, found)
        if error <= TOUCHING:
            break
    return proof


def least_slack(x: Any, sign: NDArray[Any]) -> Hyperplane:
    """The w, d of min Σ s_i with sign_i (w·x_i − d) ≥ 1 − s_i and s_i ≥ 0, for a sample that is not separable.

    Beyond 5,000 rows it is that of a sample: one row in so many of each side.

    >>> import numpy as np
    >>> x, sign = np.array([[0.0], [0.0], [0.0], [1.0], [2.0], [3.0], [3.0], [3.0]]), [-1, -1, -1, 1, -1, 1, 1, 1]
    >>> plane = least_slack(x, np.array(sign))
    >>> plane.weights.round(3), round(plane.offset, 3)
    (array([0.667]), 1.0)
    """
    if _one_sided(sign):
        return _constant(x, sign)
    sample, codes = _Scaled.of(x), (np.asarray(sign) > 0).astype(np.intp)
    share = min(1.0, SLACK_ROWS / len(codes))
    sides = (np.flatnonzero(codes == side) for side in (0, 1))
    rows = np.concatenate([_spread(side, int(np.ceil(share * len(side)))) for side in sides])
    prices = _prices_of_slack(_margins_of(sample.rows(rows), codes[rows], 1 - codes[rows], 2))
    weights = prices[:-1] * sample.scale + 0.0  # no −0
    return Hyperplane(weights, float(sample.centre @ weights - prices[-1]))


def separating(x: Any, codes: NDArray[Any], classes: int) -> Separation | None:
    """Whether logistic or softmax regression without a penalty has no estimate (Albert and Anderson, 1984).

    max Σ_i Σ_k (w_y − w_k)·x_i + b_y − b_k, all terms ≥ 0 and −1 ≤ w ≤ 1: the optimum is 0 if there is an estimate.
    Otherwise the likelihood grows for ever in the direction found. What is called separated: no row further than 1e-12
    on the wrong side and one at least 1e-9 on the right one, of a column's range; the first lets sums of columns be
    collinear although rounded, the second keeps directions out in which nothing moves. A class without rows takes no
    part. If one column separates alone, it alone is named; if all rows can be put on their sides, columns that do.

    >>> import numpy as np
    >>> x = np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 0.0], [4.0, 1.0]])
    >>> separating(x, np.array([0, 1, 0, 1]), 2)
    Separation(columns=(0,), complete=True)
    >>> separating(x, np.array([0, 0, 1, 1]), 2)
    Separation(columns=(1,), complete=False)
    >>> separating(x[:, :1], np.array([0, 1, 1, 0]), 2) is None
    True
    """
    present = np.bincount(codes, minlength=classes) > 0
    codes, classes = (np.cumsum(present) - 1)[codes], int(present.sum())
    if classes < 2:
        return None
    sample = _Scaled.of(x)
    for complete in (True, False):
        columns = _columns(sample, codes, classes, complete)
        if columns:
            return Separation(columns, complete)
    return None


# Rows and margins ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scaled:
    """z = (x − centre)·scale, each column within ±1, and a 1 for the offset; of some rows at a time, to copy no x."""

    x: Any  # (n, d) float64, dense or CSR
    centre: FloatArray  # (d) the middle of the column; 0 if some cells of it are not stored, which must stay 0
    scale: FloatArray  # (d) powers of two, which cost no digits; 0 for a constant column, which gets no weight

    @classmethod
    def of(cls, x: Any) -> _Scaled:
        x = _canonical(x) if sp.issparse(x) else np.asarray(x, np.float64)
        low, high = _ranges(x)
        centre = 0.5 * low + 0.5 * high
        if sp.issparse(x):
            centre[np.bincount(x.indices, minlength=x.shape[1]) < x.shape[0]] = 0.0
        size = np.maximum(high - centre, centre - low)
        varies = size > 1e-300  # its weight could not be stored if it did by less
        return cls(x, centre, np.where(varies, np.ldexp(1.0, -np.frexp(np.where(varies, size, 1.0))[1]), 0.0))

    def cells(self, index: slice | IntArray) -> Any:
        part = self.x[index]
        if sp.issparse(part):
            z = (part.data - self.centre[part.indices]) * self.scale[part.indices]
            return sp.csr_array((z, part.indices, part.indptr), part.shape)
        return (part - self.centre) * self.scale

    def rows(self, index: IntArray) -> Any:
        """(m, d + 1) CSR."""
        return sp.hstack([sp.csr_array(self.cells(index)), np.ones((len(index), 1))], format="csr")

    def columns(self, index: IntArray) -> _Scaled:
        return _Scaled(self.x[:, index], self.centre[index], self.scale[index])

    def totals(self, codes: IntArray, classes: int) -> FloatArray:
        """(K, d + 1) Σ z of each class."""
        result = np.zeros((classes, self.x.shape[1] + 1))
        result[:, -1] = np.bincount(codes, minlength=classes)
        for part in _chunks(len(codes)):
            member = sp.csr_array(codes[part] == np.arange(classes)[:, np.newaxis], dtype=np.float64)
            total = member @ self.cells(part)
            result[:, :-1] += total.toarray() if sp.issparse(total) else total
        return result

    def margins(self, direction: FloatArray, codes: IntArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """For each row the least over k ≠ y of (u_y − u_k)·z, the k that has it, and the greatest; u (K, d + 1)."""
        least, rival, greatest = np.empty(len(codes)), np.empty(len(codes), np.intp), np.empty(len(codes))
        for part in _chunks(len(codes)):
            score = direction[:, :-1] @ self.cells(part).T + direction[:, -1:]
            place = codes[part], np.arange(score.shape[1])
            own = score[place]
            greatest[part] = own - score.min(axis=0)
            score[place] = -np.inf
            rival[part] = score.argmax(axis=0)
            least[part] = own - score.max(axis=0)
        return least, rival, greatest


def _canonical(x: Any) -> Any:
    """CSR with each cell stored once."""
    x = sp.csr_array(x, dtype=np.float64)
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    return x


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, start + CHUNK) for start in range(0, n, CHUNK))


def _ranges(x: Any) -> tuple[FloatArray, FloatArray]:
    """(d) the least and the greatest of each column."""
    low, high = x.min(axis=0), x.max(axis=0)
    return (low.toarray().ravel(), high.toarray().ravel()) if sp.issparse(x) else (low, high)


def _spread(rows: IntArray, count: int) -> IntArray:
    return rows[np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.intp)]


def _first(codes: IntArray, classes: int, count: int) -> Pairs:
    """Rows spread over each class, shared out among its rivals; each with all of them if there are few."""
    if len(codes) * (classes - 1) <= count:
        row, other = np.divmod(np.arange(len(codes) * classes), classes)
        return np.array([row, other])[:, other != codes[row]]
    share = -(-count // (classes * (classes - 1)))
    pairs = []
    for own in range(classes):
        rows = np.flatnonzero(codes == own)
        for place, rival in enumerate(k for k in range(classes) if k != own):
            some = _spread(rows[place % len(rows) :: classes - 1], share)
            pairs.append(np.array([some, np.full(len(some), rival)]))
    return np.concatenate(pairs, axis=1)


def _margins_of(z: Any, own: IntArray, rival: IntArray, classes: int) -> Any:
    """The matrix a with a·u = (u_own − u_rival)·z.

    u = (u_1 … u_K−1), each of d weights and an offset; that of class 0 is 0, as only differences count.
    """
    size, cells = z.shape[1], np.diff(z.indptr)

    def placed(k: IntArray) -> Any:
        return sp.csr_array((z.data, z.indices + size * np.repeat(k, cells), z.indptr), (len(k), size * classes))

    return (placed(own) - placed(rival))[:, size:]


# Linear programs -----------------------------------------------------------------------------------------------------


class _Found(NamedTuple):
    direction: FloatArray | None  # (K, d + 1), or None if there is none
    value: float  # the optimum
    floor: float  # no row's margin may be less; if one is, the worst are taken in
    near: float  # up to this margin
    multipliers: FloatArray  # (m) of the rows of the program
    pairs: Pairs = np.empty((2, 0), np.intp)  # (2, m) which these are


Pairs = IntArray  # (2, m) rows of the sample, and a rival of each: a class that is not its own
Solver = Callable[[Any, int], _Found]  # of the matrix of margins and d + 1


def _solve(cost: FloatArray, **rows: Any) -> Any:
    """linprog, as closely as it can: columns whose cells are of very different size may not allow the first tolerance.

    Never by its interior point method: that was seen not to end on such columns.
    """
    limits = rows["A_ub"] if "A_ub" in rows else rows["A_eq"]
    enough = 1000 + 10 * sum(limits.shape)  # the simplex method takes about as many steps as rows, or it cycles
    for tolerance in (1e-10, 1e-9, 1e-8, 1e-7):
        options = {
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            "maxiter": enough,
        }
        result = linprog(cost, method="highs", options=options, **rows)
        if result.status == 0:
            return result
    raise DecibanError(f"the linear program was not solved ({result.message}): take logarithms of very skew columns")


def _settle(sample: _Scaled, codes: IntArray, classes: int, solve: Solver, start: Pairs | None = None) -> _Found:
    """The solution for all rows and rivals, found on a working set of them; `start` may be that of another program.

    The program of some has all solutions that the one of all has: if it has none, that is the answer. Every round takes
    in one at least, so it ends; and those taken in are the worst, so it ends soon.
    """
    size = sample.x.shape[1] + 1
    working = _first(codes, classes, FIRST + 2 * size * (classes - 1)) if start is None else start
    more = MORE
    while True:
        row, rival = working
        found = solve(_margins_of(sample.rows(row), codes[row], rival, classes), size)._replace(pairs=working)
        if found.direction is None:
            return found
        least, rival, _ = sample.margins(found.direction, codes)
        near = np.flatnonzero(least < found.near)
        pairs = np.array([near, rival[near]])
        pairs = pairs[:, ~np.isin(pairs[0] * classes + pairs[1], working[0] * classes + working[1])]
        least = least[pairs[0]]
        if not (least < found.floor).any():
            return found
        worst = pairs if len(least) <= more else pairs[:, np.argpartition(least, more)[:more]]
        working, more = np.concatenate([working, worst], axis=1), 2 * more


def _widest(unit: float) -> Solver:
    """max t with a·u ≥ t and −1 ≤ weights ≤ 1. The multipliers are those of the points of the hulls that are nearest
    (in the sum of absolute differences): if t = 0, of a point common to both."""

    def solve(a: Any, size: int) -> _Found:
        m, width = a.shape
        cost = np.append(np.zeros(width), -1.0)
        bounds = np.vstack([_box(width, size), [-np.inf, np.inf]])
        result = _solve(cost, A_ub=sp.hstack([-unit * a, np.ones((m, 1))]), b_ub=np.zeros(m), bounds=bounds)
        widest = result.x[-1] / unit
        direction = _unfold(result.x[:-1], size) if widest > NOTHING else None
        return _Found(direction, widest, widest / 2, 2 * widest, -result.ineqlin.marginals)

    return solve


def _most(gain: FloatArray, count: int) -> Solver:
    """max gain·u with a·u ≥ 0 and −1 ≤ weights ≤ 1; gain·u is the sum of all margins, of which there are `count`."""

    def solve(a: Any, size: int) -> _Found:
        m, width = a.shape
        result = _solve(-gain, A_ub=-COARSE * a, b_ub=np.zeros(m), bounds=_box(width, size))
        # no margin is below 0, so each is at most their sum; a larger program would only have a smaller optimum
        direction = _unfold(result.x, size) if -result.fun > STRICT else None
        return _Found(direction, -result.fun, -TOUCHING, -0.01 * result.fun / count, -result.ineqlin.marginals)

    return solve


def _sparsest(gain: FloatArray, total: float, margin: float) -> Solver:
    """min Σ|weights| with a·u ≥ margin and gain·u ≥ total, where u = p − q with p, q ≥ 0."""

    def solve(a: Any, size: int) -> _Found:
        m, width = a.shape
        unit, most = FINE if margin else COARSE, np.abs(gain).max()
        weight = (np.arange(width) % size != size - 1).astype(np.float64)
        whole = unit * sp.vstack([a, gain[np.newaxis] / most], format="csr")
        least = unit * np.append(np.full(m, margin), total / most)
        result = _solve(np.tile(weight, 2), A_ub=sp.hstack([-whole, whole]), b_ub=-least, bounds=(0.0, None))
        u = result.x[:width] - result.x[width:]
        return _Found(_unfold(u, size), result.fun, margin / 2 - TOUCHING, 2 * margin, -result.ineqlin.marginals)

    return solve


def _prices_of_slack(a: Any) -> FloatArray:
    """min Σ s with a·u ≥ 1 − s, s ≥ 0 and |weights| ≤ LARGEST, by its dual: d + 1 rows instead of n, and u the prices.

    The dual is max Σ α − LARGEST·Σ|r| with aᵀα = r for weights and 0 for the offset, 0 ≤ α ≤ 1; r = p − q, p, q ≥ 0.
    """
    m, size = a.shape
    p = sp.eye_array(size, size - 1)
    cost = np.append(-np.ones(m), np.full(2 * size - 2, LARGEST))
    upper = np.append(np.ones(m), np.full(2 * size - 2, np.inf))
    bounds = np.column_stack([np.zeros(len(upper)), upper])
    prices: FloatArray = -_solve(cost, A_eq=sp.hstack([a.T, -p, p]), b_eq=np.zeros(size), bounds=bounds).eqlin.marginals
    return prices


def _box(width: int, size: int) -> FloatArray:
    """(width, 2) bounds ±1 for weights, none for offsets: both classes being there, the weights bound them."""
    bound = np.tile(np.append(np.ones(size - 1), np.inf), width // size)
    return np.column_stack([-bound, bound])


def _unfold(u: FloatArray, size: int) -> FloatArray:
    return np.vstack([np.zeros(size), u.reshape(-1, size)])


# Two sides -----------------------------------------------------------------------------------------------------------


def _one_sided(sign: NDArray[Any]) -> bool:
    return not ((sign > 0).any() and (sign < 0).any())


def _constant(x: Any, sign: NDArray[Any]) -> Hyperplane:
    """w = 0 and d = ∓1: everything on the only side there is."""
    return Hyperplane(np.zeros(x.shape[1]), -1.0 if (sign > 0).any() else 1.0)


def _with_margin(sample: _Scaled, codes: IntArray, weights: FloatArray) -> Hyperplane | None:
    """The offset in the middle, all scaled so that the least margin is 1, and more by what rounding may take from it;
    None if rounding takes all."""
    x = sample.x
    score = x @ weights
    low, high = score[codes == 0].max(), score[codes == 1].min()
    size = np.maximum(*np.abs(_ranges(x))) @ np.abs(weights)
    rounding = (len(weights) + 4) * np.finfo(np.float64).eps * (size + abs(low) + abs(high))
    tight, safe = (_between(weights, low, high, lost) for lost in (0.0, rounding))
    if _sums_exactly(x, tight, size) and _holds(tight, x, codes):
        return tight
    return next((plane for plane in (safe, tight) if _holds(plane, x, codes)), None)


def _between(weights: FloatArray, low: float, high: float, lost: float) -> Hyperplane:
    gap = high - low - 2.0 * lost
    factor = 2.0 / gap if gap > 0 else 0.0  # 0 fails where the margin is looked at
    return Hyperplane(weights * factor + 0.0, float((0.5 * low + 0.5 * high) * factor))


def _holds(plane: Hyperplane, x: Any, codes: IntArray) -> bool:
    margin = np.where(codes == 1, 1.0, -1.0) * (x @ plane.weights - plane.offset)
    return bool((margin >= 1.0).all())


def _sums_exactly(x: Any, plane: Hyperplane, size: float) -> bool:
    """Whether w·x − d is free of rounding in any order: all are multiples of 2⁻¹⁰ and every sum fits into 53 bits."""
    cells = x.data if sp.issparse(x) else x
    short = all(bool((v * 1024.0 == np.rint(v * 1024.0)).all()) for v in (plane.weights, cells))
    return short and (plane.offset * 1024.0).is_integer() and size + abs(plane.offset) < 2.0**33


def _certificate(sample: _Scaled, codes: IntArray, found: _Found) -> tuple[Certificate, float]:
    """The multipliers of the program, and by how much the sums of scaled columns miss. They are made exact up to
    rounding by least squares; not if there is a direction, as then the hulls do not meet, but for rounding."""
    chosen = np.flatnonzero(found.multipliers > 1e-12)
    rows, multipliers = found.pairs[0, chosen], found.multipliers[chosen]
    sign = np.where(codes[rows] == 1, 1.0, -1.0)
    sums = np.vstack([sample.rows(rows).toarray().T * sign, np.ones(len(rows))])  # Σ λ sign (z, 1) and Σ λ
    wanted = np.append(np.zeros(len(sums) - 1), 1.0)
    halves = np.where(sign > 0, multipliers[sign > 0].sum(), multipliers[sign < 0].sum())
    choice = [0.5 * multipliers / halves]
    if found.direction is None:
        choice.append(_not_negative(sums, wanted))
    errors = [float(np.abs(sums @ each - wanted).max()) for each in choice]
    best = choice[int(np.argmin(errors))]
    order = np.argsort(rows)[best[np.argsort(rows)] > 0]
    return Certificate(rows[order], best[order]), min(errors)


def _not_negative(sums: FloatArray, wanted: FloatArray) -> FloatArray:
    """Least squares with λ ≥ 0: what comes out negative, by rounding, is left out."""
    result = np.ones(sums.shape[1])
    while (kept := result > 0).any():
        result = np.zeros(len(result))
        result[kept] = np.linalg.lstsq(sums[:, kept], wanted, rcond=None)[0]
        if (result[kept] > 0).all():
            break
    return result


# Several classes -----------------------------------------------------------------------------------------------------


def _gain(sample: _Scaled, codes: IntArray, classes: int) -> FloatArray:
    """The sum of all margins is gain·u: u_y takes part in it K − 1 times for each row of y, and −1 times for others."""
    totals = sample.totals(codes, classes)
    gain: FloatArray = (classes * totals - totals.sum(axis=0))[1:].ravel()
    return gain


def _partly(sample: _Scaled, codes: IntArray, classes: int) -> _Found | None:
    """A direction with all margins ≥ 0 and some > 0."""
    most = _most(_gain(sample, codes, classes), len(codes) * (classes - 1))
    found = _settle(sample, codes, classes, most)
    if found.direction is None:
        return None
    _, _, greatest = sample.margins(found.direction, codes)
    return found if greatest.max() > STRICT else None


def _wholly(sample: _Scaled, codes: IntArray, classes: int) -> _Found | None:
    """A direction with all margins > 0."""
    found = _settle(sample, codes, classes, _widest(FINE))
    return found if found.direction is not None and found.value > TOUCHING else None


def _columns(sample: _Scaled, codes: IntArray, classes: int, complete: bool) -> tuple[int, ...]:
    """One column if one is enough to separate; else those of the direction with the least Σ|w| that are needed; or
    none if none do."""
    alone = _alone(sample.x, codes, classes, complete)
    if len(alone):
        return (int(alone[0]),)
    enough = _wholly if complete else _partly
    found = enough(sample, codes, classes)
    if found is None:
        return ()
    total, margin = (0.0, found.value / 2) if complete else (found.value / 2, 0.0)
    solve = _sparsest(_gain(sample, codes, classes), total, margin)
    return _needed(sample, codes, classes, _settle(sample, codes, classes, solve, found.pairs), enough)


def _needed(
    sample: _Scaled,
    codes: IntArray,
    classes: int,
    found: _Found,
    enough: Callable[[_Scaled, IntArray, int], _Found | None],
) -> tuple[int, ...]:
    """The columns with weights in the direction found, without those that the others can do without."""
    assert found.direction is not None
    weight = np.abs(found.direction[:, :-1]).max(axis=0)
    columns = np.flatnonzero(weight > STRICT * weight.max())
    for j in columns if len(columns) <= PRUNED else ():
        rest = columns[columns != j]
        if enough(sample.columns(rest), codes, classes) is not None:
            columns = rest
    return tuple(columns.tolist())


def _alone(x: Any, codes: IntArray, classes: int, complete: bool) -> IntArray:
    """The columns that separate alone: some value has every class on one side of it; if complete, the ranges of the
    classes are disjoint. (As functions of one x the w_k·x + b_k are lines, and the greatest of them form a polygon.)"""
    low, high = (np.array(ends) for ends in zip(*(_ranges(x[codes == k]) for k in range(classes)), strict=True))
    order = np.lexsort((high, low), axis=0)
    low, high = (np.take_along_axis(ends, order, axis=0) for ends in (low, high))
    reached = np.maximum.accumulate(high, axis=0)[:-1]
    if complete:
        return np.flatnonzero((reached < low[1:]).all(axis=0))
    return np.flatnonzero((reached <= low[1:]).any(axis=0) & (low.min(axis=0) < high.max(axis=0)))
