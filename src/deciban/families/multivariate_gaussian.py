"""MultivariateGaussian: several columns jointly normal, with a covariance shared by the classes or one for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.errors import TOO_LARGE, DecibanError, forbid, forbid_infinite, warn
from deciban.families.covariance import narrowest, oas, pooled_covariance, pooled_mean, whitening_triangles, widened
from deciban.families.family import FLOOR, Context, Family, Fitted, Natural, Shaped, class_rows, formulas
from deciban.families.labelled_values import LabelledValues
from deciban.families.loo.downdate import LITTLE, Basis, Downdate, Removed, Rotated, Whitened
from deciban.families.natural import LARGEST, origins, products, shifted, squarable
from deciban.families.priors import InverseWishart
from deciban.families.whitening import Whitening
from deciban.statistics.scatter import Scatter
from deciban.table import Table
from deciban.types import BoolArray, Domain, FloatArray, IntArray, Labels

if TYPE_CHECKING:
    from deciban.export.formulas import Formula

SLOW = (
    "singular covariance: leave-one-out has no closed form and estimates once for each row; use shrinkage, or drop "
    "columns that are combinations of others"
)
INCOMPLETE = "is missing: the linear form of a joint density needs complete rows; fill in the value or drop the row"


@dataclass(frozen=True)
class MultivariateGaussianParams:
    mean: FloatArray  # (K, d)
    covariance: FloatArray  # (K or 1, d, d)
    whiten: FloatArray  # (K or 1, d, d) lower-triangular T with Tᵀ T = Σ⁻¹
    constant: FloatArray  # (K or 1) −½ log |2πΣ|
    skipped: FloatArray  # (K) rows skipped because of a missing value
    status: str = "ok"
    patterns: dict[bytes, MultivariateGaussianParams] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def whitening(self) -> Whitening:
        return Whitening.of(self.covariance)


JointFitted = Fitted[Scatter, MultivariateGaussianParams]


@dataclass(frozen=True)
class MultivariateGaussian(Family[Scatter, MultivariateGaussianParams]):
    """Numbers that are jointly normal in each class, with a covariance shared by the classes or one for each.

    log p(x|c) = −½ log |2πΣ| − ½ (x − μ)ᵀ Σ⁻¹ (x − μ), with Σ = scatter/(n − ddof)

    The fit skips and counts rows with missing values; at prediction such a row is scored by the marginal density of its
    known values. Where Σ is singular its small directions are widened to 1e-9 of the columns' variances; a column that
    is constant over all rows has variance 0 and is no evidence. `status` says so, and a warning names the columns.

    Parameters
    ----------
    covariance : "shared" or "per-class", default "shared"
        One Σ from all classes, each row about its class mean (boundaries are linear); or each class its own (boundaries
        are quadratic).
    shrinkage : float from 0 to 1, "oas", "auto" or None, default None
        s gives (1 − s)Σ + s·(tr Σ/d)·I; "oas" chooses s from n, d and Σ (Chen et al. 2010), "auto" leaves it to the
        model, which selects the s that predicts left-out rows best.
    ddof : float or "unbiased", default 0
        0 is maximum likelihood, "unbiased" divides by n − K (shared) or n_c − 1 (per-class).
    prior : deciban.priors.InverseWishart or None, default None
        With a prior, Σ is the posterior mode.

    See Also
    --------
    deciban.GaussianDiscriminant : This density over all features.
    deciban.families.Gaussian : Columns that are independent.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.families import Context, MultivariateGaussian
    >>> family = MultivariateGaussian()
    >>> x, labels = np.array([[0.0, 0], [2, 0], [0, 2], [2, 2]]), np.zeros(4, np.int32)
    >>> params = family.estimate(family.collect(x, labels, None, 1), Context(("all",), ("x", "y")))
    >>> params.mean, params.covariance[0]
    (array([[1., 1.]]), array([[1., 0.],
           [0., 1.]]))
    """

    covariance: Literal["shared", "per-class"] = "shared"
    shrinkage: float | Literal["oas", "auto"] | None = None
    ddof: float | Literal["unbiased"] = 0
    prior: InverseWishart | None = None
    joint: ClassVar[bool] = True
    independent_classes: ClassVar[bool] = False  # a shared scatter has the rows of all classes

    def __post_init__(self) -> None:
        if self.covariance not in ("shared", "per-class"):
            raise DecibanError(f"covariance must be 'shared' or 'per-class', not {self.covariance!r}")
        named = isinstance(self.shrinkage, str) and self.shrinkage in ("oas", "auto")
        if not named and (isinstance(self.shrinkage, str) or not 0 <= (self.shrinkage or 0) <= 1):
            raise DecibanError(f"shrinkage must be a number from 0 to 1, 'oas', 'auto' or None, not {self.shrinkage!r}")
        if self.ddof != "unbiased" if isinstance(self.ddof, str) else not np.isfinite(self.ddof):
            raise DecibanError(f"ddof must be a number or 'unbiased', not {self.ddof!r}")

    def collect(self, values: NDArray[Any], labels: Labels, weights: FloatArray | None, classes: int) -> Scatter:
        result = Scatter.of(values, labels, weights, classes, shared=self.covariance == "shared")
        if result.skipped.value.any():  # a missing or infinite value
            forbid_infinite(values)
        if not np.isfinite(result.products).all():
            forbid(np.abs(values) > LARGEST, TOO_LARGE)
        return result

    def estimate(self, statistic: Scatter, context: Context) -> MultivariateGaussianParams:
        if self.shrinkage == "auto":
            return replace(self, shrinkage=context.shrinkage).estimate(statistic, context)
        count = statistic.count.value
        mean = np.where((count > 0)[:, np.newaxis], statistic.mean, pooled_mean(statistic))
        pooled = pooled_covariance(statistic)
        positive = [widened(s, np.diagonal(pooled)) for s in self._covariances(statistic, pooled)]
        names = sorted({j for _, columns in positive for j in columns})
        status = "ok"
        if names:
            columns = ", ".join(repr(context.columns[j]) for j in names)
            status = f"singular covariance: columns {columns} are constant or combinations of each other"
            warn(status + "; constant columns are ignored, and narrow directions of the others are widened")
        sigma = np.stack([s for s, _ in positive])
        whiten, constant = whitening_triangles(sigma)
        return MultivariateGaussianParams(mean, sigma, whiten, constant, statistic.skipped.value, status)

    def _covariances(self, statistic: Scatter, pooled: FloatArray) -> FloatArray:
        """(K or 1, d, d) with prior, divisor and shrinkage; they may be singular."""
        count, within = statistic.count.value, statistic.within
        size = np.array([count.sum()]) if statistic.shared else count
        if self.prior is not None:
            sigma = self.prior.mode(size, within)
        else:
            divisor = self._divisor(size, statistic)[:, np.newaxis, np.newaxis]
            sigma = np.divide(within, divisor, out=np.zeros_like(within), where=divisor > 0)
        sigma = np.stack([self._shrink(s, n) for s, n in zip(sigma, size, strict=True)])
        if not statistic.shared and self.prior is None:
            sigma[count == 0] = pooled  # a class without rows has that of all rows
        return sigma

    def _divisor(self, size: FloatArray, statistic: Scatter) -> FloatArray:
        """By what the scatter of rows of this weight is divided."""
        if self.prior is not None:
            return size + np.float64(self.prior.dof + statistic.origin.shape[1] + 1.0)
        ddof: Any = self.ddof
        if self.ddof == "unbiased":
            ddof = np.count_nonzero(statistic.count.value) if statistic.shared else 1
        divisor: FloatArray = size - ddof
        return divisor

    def _shrink(self, sigma: FloatArray, n: float) -> FloatArray:
        s, d = self._shrinkage(sigma, n), len(sigma)
        return sigma if self.shrinkage is None else (1 - s) * sigma + s * (np.trace(sigma) / d) * np.eye(d)

    def _shrinkage(self, sigma: FloatArray, n: float) -> float:
        return oas(sigma, n) if self.shrinkage == "oas" else float(self.shrinkage or 0.0)

    def add_log_density(self, params: MultivariateGaussianParams, values: NDArray[Any], out: FloatArray) -> None:
        for rows, known, x in _patterns(values):
            scores = out[rows]
            _add_complete(_marginal(params, known), x, scores)
            if not isinstance(rows, slice):
                out[rows] = scores

    def parts(self, params: MultivariateGaussianParams, values: NDArray[Any], classes: int) -> list[FloatArray]:
        """−½z_j² and its constant for each column j (see Whitening); 0 for a missing value."""
        out = np.zeros((*values.shape, classes))
        for rows, known, x in _patterns(values):
            marginal = _marginal(params, known)
            cells = (rows, known) if isinstance(rows, slice) else np.ix_(rows, known)
            out[cells] = marginal.whitening.shares(x.astype(np.float64), marginal.mean)
        return list(out.transpose(1, 0, 2))

    def leave_one_out(self, fitted: JointFitted, rows: LabelledValues, out: FloatArray) -> None:
        """With n′ = n − w, a = wn/n′ and δ = x − μ: μ′ = μ − wδ/n′, and the scatter loses aδδᵀ.

        So x − μ′ = (n/n′)δ, and Σ′ has one outer product less, which has a closed form (see downdate.py): with a shared
        covariance for the densities of all classes, else for that of the row's own. Parameters are estimated without
        the row where it is most of its class, of a column or of a direction, and where directions of Σ are widened.
        """
        if self.shrinkage == "auto":
            replace(self, shrinkage=fitted.context.shrinkage).leave_one_out(fitted, rows, out)
            return
        incomplete = _kernels.rows_with_nan(rows.values)
        log_p = np.zeros(out.shape)
        unchanged = np.flatnonzero(incomplete) if fitted.statistic.shared else slice(None)
        log_p[unchanged] = self.log_density(fitted.params, rows.values[unchanged], out.shape[1])
        ordinary = _LeftOut(self, fitted, rows).replace(~incomplete, log_p)
        index = np.flatnonzero(~incomplete & ~ordinary)
        log_p[index] = 0.0
        self.estimate_without(fitted, rows, index, log_p)
        out += log_p

    def natural(self, params: MultivariateGaussianParams, context: Context) -> Natural:
        """Shared: Σ⁻¹μ for T = x, and b = −½ μᵀΣ⁻¹μ. Per-class: Σ⁻¹m for x − o, −½Σ⁻¹ for its products, and b.

        m = μ − o, and o is 0 unless the means are far from it. A shared Σ needs no o, which changes all classes alike.
        """
        kept, origin, precision, distance = self._about_origin(params)
        linear = (precision @ distance[:, :, np.newaxis])[:, :, 0]
        constant = -0.5 * (linear * distance).sum(axis=1)
        columns, eta, names = kept, linear, [str(context.columns[j]) for j in kept]
        if self.covariance == "shared":
            constant -= linear @ origin
        else:
            names = shifted(names, origin) + products(names, origin)
            i, j = np.triu_indices(len(kept))
            columns = np.concatenate([kept, kept[i]])
            eta = np.hstack([linear, np.where(i == j, -0.5, -1.0) * precision[:, i, j]])
            constant += params.constant
        return Natural(tuple(names), tuple(columns.tolist()), eta, np.zeros(eta.shape[1], np.bool_), constant)

    def sufficient(self, params: MultivariateGaussianParams, values: NDArray[Any]) -> FloatArray:
        kept, origin, *_ = self._about_origin(params)
        x = squarable(values)
        forbid(np.isnan(x) & np.isin(np.arange(x.shape[1]), kept), INCOMPLETE)
        if self.covariance == "shared":
            return x[:, kept]
        x = x[:, kept] - origin
        i, j = np.triu_indices(len(kept))
        return np.hstack([x, x[:, i] * x[:, j]])

    def _about_origin(self, params: MultivariateGaussianParams) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """The columns that vary, o (d), Σ⁻¹ (K or 1, d, d) and μ − o (K, d) of them."""
        kept = np.flatnonzero(np.diagonal(params.covariance[0]))
        whiten, mean = params.whiten[:, kept][:, :, kept], params.mean[:, kept]
        precision = whiten.transpose(0, 2, 1) @ whiten
        # Σ_c Σ_c⁻¹ (o − μ_c) = 0: nearest to all means, in standard deviations
        pull = (precision @ (mean - mean[0])[:, :, np.newaxis])[:, :, 0].sum(axis=0)
        total = np.broadcast_to(precision, (len(mean), *precision.shape[1:])).sum(axis=0)
        unit = np.sqrt(np.diagonal(total))
        middle = mean[0] + np.linalg.solve(total / unit / unit[:, np.newaxis], pull / unit) / unit
        origin = origins(mean, np.sqrt(np.diagonal(precision, axis1=1, axis2=2)), middle)
        return kept, origin, precision, mean - origin

    def silent(self, params: MultivariateGaussianParams) -> Sequence[int]:
        variances = np.diagonal(params.covariance, axis1=1, axis2=2)
        return np.flatnonzero((variances == 0).all(axis=0)).tolist()

    def param_shapes(self, params: MultivariateGaussianParams, classes: int, columns: int) -> dict[str, Shaped]:
        matrices = 1 if len(params.covariance) == 1 else classes
        return {
            "mean": (params.mean, (classes, columns)),
            "skipped": (params.skipped, (classes,)),
            "constant": (params.constant, (matrices,)),
            "covariance": (params.covariance, (matrices, columns, columns)),
            "whiten": (params.whiten, (matrices, columns, columns)),
        }

    def n_parameters(self, params: MultivariateGaussianParams) -> int:
        matrices, d, _ = params.covariance.shape
        return int(params.mean.size + matrices * d * (d + 1) // 2)

    def formula(self, params: MultivariateGaussianParams) -> list[Formula]:
        """The whitening of complete rows, and Σ, for rows with missing values."""
        whitened, sigma = params.whitening.formula(), formulas.rows_of_triangle(params.covariance)
        return [formulas.Joint(tuple(range(params.mean.shape[1])), params.mean, whitened, sigma)]

    def linear_formula(self, params: MultivariateGaussianParams, weights: FloatArray) -> list[Formula]:
        """Linear in the columns and, if each class has its own covariance, in their products."""
        kept, origin, *_ = self._about_origin(params)
        columns, d = tuple(kept.tolist()), len(kept)
        whole: tuple[Domain, ...] = ("squarable", "there")
        if self.covariance == "shared":
            return [formulas.Curve(columns, slope=weights.T, domains=whole)]
        middle = np.repeat(origin[:, np.newaxis], len(weights), axis=1)
        lines = formulas.Curve(columns, middle, slope=weights[:, :d].T, domains=whole)
        return [lines, formulas.Products(columns, origin, weights[:, d:].T)]

    def describe_column(self, params: MultivariateGaussianParams, column: int) -> str:
        alone = params.mean.shape[1] == 1
        return "normal density in each class" if alone else "jointly normal in each class, with the other features"

    def describe(self, params: MultivariateGaussianParams, context: Context) -> list[Table]:
        header = ("class", *map(str, context.columns))
        skipped = params.skipped.sum()
        note = f"rows skipped because of a missing value: {skipped:g}" if skipped else ""
        tables = [Table("means (MultivariateGaussian)", header, class_rows(context, list(params.mean.T)), note)]
        owners = ["all classes"] if len(params.covariance) == 1 else context.classes
        for owner, matrix in zip(owners, params.covariance, strict=True):
            rows = tuple((str(name), *row.tolist()) for name, row in zip(context.columns, matrix, strict=True))
            tables.append(Table(f"covariance of {owner}", ("", *map(str, context.columns)), rows))
        return tables


class _LeftOut:
    """The densities that change if a row is left out, in closed form."""

    def __init__(self, family: MultivariateGaussian, fitted: JointFitted, rows: LabelledValues) -> None:
        statistic, labels = fitted.statistic, rows.labels
        weight = np.ones(len(rows)) if rows.weights is None else rows.weights
        self.family, self.statistic, self.params = family, statistic, fitted.params
        self.labels, self.weight = labels, weight
        self.count = statistic.count.value  # (K)
        self.left = statistic.count.subtract(weight, labels)  # (n) of the row's class
        self.pooled = pooled_covariance(statistic)
        self.sigma = family._covariances(statistic, self.pooled)  # not widened
        self.kept = np.flatnonzero(np.diagonal(self.pooled))  # columns that vary
        self.mean = self.params.mean[:, self.kept]
        middle, scatter = pooled_mean(statistic)[self.kept], self.count.sum() * self._block(self.pooled)
        self.removed = Removed(rows.values, self.kept, middle, scatter, float(self.count.sum()), weight)

    def replace(self, complete: BoolArray, log_p: FloatArray) -> BoolArray:
        """Writes the densities of complete rows to log_p (n, K), and returns (n) where there is a closed form."""
        if not len(self.kept):
            return complete  # constant columns are no evidence
        variances = np.diagonal(self._block(self.pooled))
        if min(narrowest(self._block(s), variances) for s in self.sigma) < 2 * FLOOR:
            if complete.any():
                warn(SLOW)
            return np.zeros_like(complete)
        shared = self._basis(0) if self.statistic.shared else None
        ordinary: BoolArray = complete & self.removed.ordinary & (self.left > LITTLE * self.count[self.labels])
        for c in np.flatnonzero(self.count).tolist():
            rows = np.flatnonzero(ordinary & (self.labels == c))
            if len(rows):
                ordinary[rows] = self._replace_class(c, rows, shared or self._basis(c), log_p)
        empty, rows = np.flatnonzero(self.count == 0), np.flatnonzero(ordinary)
        if len(empty) and len(rows) and not self.statistic.shared:
            ordinary[rows] = self._replace_empty(empty, rows, log_p)
        return ordinary

    def _replace_class(self, c: int, rows: IntArray, basis: Basis, log_p: FloatArray) -> BoolArray:
        """For rows of class c: the density of c; with a shared covariance, those of all classes."""
        left, others = self.left[rows], self.removed.others[rows]
        columns, size = np.array([c]), left
        scale = (self.count[c] / left)[:, np.newaxis]
        if self.statistic.shared:
            columns, size = np.arange(len(self.count)), others
            # a class without rows has the mean of all rows, which moves too
            elsewhere = np.where(self.count > 0, 1.0, (self.removed.count / others)[:, np.newaxis])
            scale = np.where(columns == c, scale, elsewhere)
        divisor = self.family._divisor(size, self.statistic)
        downdate = Downdate(self.weight[rows] * self.count[c] / left, size, divisor)
        offsets = self.mean[c] - self.mean[columns]
        density, safe = self.removed.log_density(rows, basis, self.mean[c], offsets, scale, downdate)
        log_p[rows[:, np.newaxis], columns] = density
        return safe

    def _replace_empty(self, classes: IntArray, rows: IntArray, log_p: FloatArray) -> BoolArray:
        """Classes without rows have the mean of all rows and, unless there is a prior, their covariance."""
        removed, others = self.removed, self.removed.others[rows]
        scale = removed.count / others
        if self.family.prior is not None:
            constant = self.params.constant[classes]
            cells = rows[:, np.newaxis], classes
            log_p[cells] = constant + scale[:, np.newaxis] ** 2 * (log_p[cells] - constant)
            return np.ones(len(rows), np.bool_)
        basis = Whitened(removed.scatter, removed.total)
        downdate = Downdate(self.weight[rows] * scale, others, others)
        offsets = np.zeros((1, len(self.kept)))
        density, safe = removed.log_density(rows, basis, removed.middle, offsets, scale[:, np.newaxis], downdate)
        log_p[rows[:, np.newaxis], classes] = density
        return safe

    def _basis(self, c: int) -> Basis:
        """The coordinates for class c, or for all classes if they share a covariance."""
        family, within = self.family, self.statistic.within[c]
        size = float(self.count.sum() if self.statistic.shared else self.count[c])
        if family.prior is not None:
            divisor = family._divisor(np.array(size), self.statistic)
            within = family.prior.mode(np.array(size), within) * divisor
        shrinkage = family._shrinkage(within, size)
        if not family.shrinkage:
            return Whitened(self._block(within), self.removed.total)
        kind: float | Literal["oas"] = "oas" if family.shrinkage == "oas" else shrinkage
        return Rotated(self._block(within), self.removed.total, within, kind, shrinkage)

    def _block(self, matrix: FloatArray) -> FloatArray:
        return matrix[np.ix_(self.kept, self.kept)]


def _add_complete(params: MultivariateGaussianParams, values: NDArray[Any], out: FloatArray) -> None:
    if len(params.whiten) > 1 or len(params.mean) == 1:
        _kernels.add_whitened(values, params.whiten, params.mean, params.constant, out)
        return
    # One Σ: whitened once, about the middle, the classes are spheres around their whitened means.
    middle = params.mean.mean(axis=0)
    means = np.ascontiguousarray((params.mean - middle) @ params.whiten[0].T)
    constant = np.zeros_like(means)
    constant[:, 0] = params.constant[0]
    step = max(1, (1 << 18) // max(1, values.shape[1]))  # so that whitened rows stay in the cache
    for start in range(0, len(values), step):
        z = _kernels.whiten(values[start : start + step], params.whiten[0], middle)
        _kernels.add_quadratic(z, means, np.full_like(means, -0.5), constant, out[start : start + step])


def _patterns(values: NDArray[Any]) -> Iterator[tuple[slice | IntArray, BoolArray, NDArray[Any]]]:
    """Rows with the same known columns, these columns, and their values; a slice of all rows if none is missing."""
    incomplete = _kernels.rows_with_nan(values)
    everything = np.ones(values.shape[1], np.bool_)
    if not incomplete.any():
        yield slice(None), everything, values
        return
    rows = np.flatnonzero(incomplete)
    patterns, pattern_of = np.unique(np.isnan(values[rows]), axis=0, return_inverse=True)
    groups = [(rows[pattern_of.reshape(-1) == i], ~missing) for i, missing in enumerate(patterns)]
    for index, known in [(np.flatnonzero(~incomplete), everything), *groups]:
        if len(index) and known.any():
            yield index, known, np.ascontiguousarray(values[np.ix_(index, known)])


def _marginal(params: MultivariateGaussianParams, kept: BoolArray) -> MultivariateGaussianParams:
    if kept.all():
        return params
    key = kept.tobytes()
    if key not in params.patterns:
        sigma = params.covariance[:, kept][:, :, kept]
        whiten, constant = whitening_triangles(sigma)
        mean = np.ascontiguousarray(params.mean[:, kept])
        params.patterns[key] = MultivariateGaussianParams(mean, sigma, whiten, constant, params.skipped)
    return params.patterns[key]
