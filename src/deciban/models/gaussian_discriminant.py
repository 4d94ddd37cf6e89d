"""GaussianDiscriminant: all columns jointly normal within each class."""

from __future__ import annotations

from typing import Any, Literal

from deciban.errors import DecibanError
from deciban.families import Family, Gaussian, MultivariateGaussian
from deciban.families.priors import InverseWishart
from deciban.generative import ClassPrior
from deciban.models.generative import GenerativeClassifier
from deciban.plans import Plan
from deciban.schema import Schema
from deciban.sources import Labelled
from deciban.types import FloatArray


class GaussianDiscriminant(GenerativeClassifier):
    """p(c|x) ∝ p(c) N(x; μ_c, Σ): Gaussian discriminant analysis.

    Parameters
    ----------
    covariance : "shared" (linear discriminant), "per-class" (quadratic), or "diagonal" (per class, naive Bayes)
    shrinkage : number from 0 to 1, "oas", "auto" or None
        Σ becomes (1 − s)Σ + s·(tr Σ/d)·I. "oas" chooses s from n, d and Σ. "auto" tries several, and takes the one
        under which the classes of rows, each left out in its turn, are most probable: see `shrinkage_`. That reads the
        rows of `fit` about 20 times; `partial_fit`, `forget` and `merge` keep what was chosen (of two models, that of
        more rows).
    ddof : number or "unbiased"
        Scatter is divided by n − ddof; "unbiased" is n − K for a shared covariance, n_c − 1 for the others.
    class_prior : "empirical", "laplace", "uniform", or probabilities (in order of classes_, or a dict)
    prior : deciban.priors.InverseWishart or None
        The covariance is then the posterior mode.

    Rows with a missing cell are left out of the fit (for "diagonal", only the cell is) and scored by the marginal
    density of the cells they have. `status_` is "ok", or says which columns make a covariance singular; `means_` and
    `covariance_` hold the estimates.

    Examples
    --------
    >>> import deciban as db
    >>> X = [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [5.0, 5.0], [6.0, 5.0], [6.0, 6.0]]
    >>> model = db.GaussianDiscriminant().fit(X, [0, 0, 0, 1, 1, 1])
    >>> model.predict([[1.0, 0.5], [5.0, 6.0]])
    array([0, 1])
    >>> model.n_parameters_, model.status_
    (8, 'ok')
    """

    def __init__(
        self,
        covariance: Literal["shared", "per-class", "diagonal"] = "shared",
        shrinkage: float | Literal["oas", "auto"] | None = None,
        ddof: float | Literal["unbiased"] = 0,
        class_prior: ClassPrior = "empirical",
        prior: InverseWishart | None = None,
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.ddof = ddof
        self.class_prior = class_prior
        self.prior = prior

    def _plans(self, schema: Schema, rows: Labelled) -> tuple[Plan, ...]:
        text = [name for name, kind in zip(schema.names, schema.kinds, strict=True) if kind in ("category", "text")]
        if text:
            raise DecibanError(f"column {text[0]!r} holds text; GaussianDiscriminant takes numbers: use NaiveBayes")
        if self.covariance not in ("shared", "per-class", "diagonal"):
            raise ValueError(f"no covariance called {self.covariance!r}: shared, per-class or diagonal")
        family: Family[Any, Any]
        if self.covariance == "diagonal":
            if self.shrinkage is not None or self.prior is not None:
                raise ValueError("a diagonal covariance takes no shrinkage and no InverseWishart prior")
            if isinstance(self.ddof, str) and self.ddof != "unbiased":
                raise ValueError(f"ddof must be a number or 'unbiased', not {self.ddof!r}")
            family = Gaussian(ddof=1 if self.ddof == "unbiased" else self.ddof)
        else:
            family = MultivariateGaussian(self.covariance, self.shrinkage, self.ddof, self.prior)
        return (Plan(family, tuple(range(len(schema.names)))),)

    @property
    def shrinkage_(self) -> float | Literal["oas"] | None:
        """The shrinkage in use: as given, or as chosen."""
        self._require_fitted()
        chosen = [choice.value for choice in self._shrinkages.values()]
        return chosen[0] if chosen else self.shrinkage  # type: ignore[return-value]

    @property
    def status_(self) -> str:
        """ "ok", or what is wrong with a covariance."""
        return str(getattr(self.estimate_.params[0], "status", "ok"))

    @property
    def means_(self) -> FloatArray:
        """(K, d) the mean of each class."""
        mean: FloatArray = self.estimate_.params[0].mean
        return mean

    @property
    def covariance_(self) -> FloatArray:
        """(d, d) shared, or (K, d, d) one for each class; (K, d) variances where it is diagonal."""
        params = self.estimate_.params[0]
        if self.covariance == "diagonal":
            variance: FloatArray = params.variance
            return variance
        covariance: FloatArray = params.covariance
        return covariance[0] if self.covariance == "shared" else covariance
