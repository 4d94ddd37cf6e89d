"""GaussianDiscriminant: all features jointly normal within each class."""

from __future__ import annotations

from typing import Any, Literal

from deciban.data import Labelled
from deciban.data.schema import Schema
from deciban.errors import DecibanError
from deciban.estimators.generative_classifier import GenerativeClassifier
from deciban.families import Family, Gaussian, MultivariateGaussian
from deciban.generative.classifier_state import GaussianDiscriminantSettings
from deciban.generative.plan import Plan
from deciban.types import FloatArray

DESCRIPTIONS = {
    "shared": "All features together are normal in each class, with one covariance for all classes.",
    "per-class": "All features together are normal in each class, with a covariance of its own.",
    "diagonal": "Each feature is normal in each class, independently of the others.",
}


class GaussianDiscriminant(GaussianDiscriminantSettings, GenerativeClassifier):  # type: ignore[misc]
    """p(c|x) ∝ p(c) N(x; μ_c, Σ): Gaussian discriminant analysis.

    Parameters
    ----------
    covariance : "shared" (linear discriminant), "per-class" (quadratic), or "diagonal" (per class, naive Bayes)
    shrinkage : number from 0 to 1, "oas", "auto" or None
        Σ becomes (1 − s)Σ + s·(tr Σ/d)·I. "oas" chooses s from n, d and Σ. "auto" tries several, and takes the one
        that predicts the classes of left-out rows best: see `shrinkage_`. That reads the rows of `fit` about 20 times;
        `partial_fit`, `forget` and `merge` keep what was chosen (a merged model that of more rows).
    ddof : number or "unbiased"
        Scatter is divided by n − ddof; "unbiased" is n − K for a shared covariance, n_c − 1 for the others.
    class_prior : "empirical", "laplace", "uniform", or probabilities (in order of classes_, or a dict)
    prior : deciban.priors.InverseWishart or None
        The covariance is then the posterior mode.

    Rows with a missing value are left out of the fit (for "diagonal", only the value is) and scored by the marginal
    density of the values they have.

    Attributes
    ----------
    classes_ : (K) array of the classes, sorted
    class_count_ : (K) array of the total weight of each class
    means_ : (K, d) array
    covariance_ : (d, d) array if shared, (K, d, d) per class, (K, d) variances if diagonal
    shrinkage_ : float, "oas" or None, the shrinkage in use
    status_ : "ok", or which features make a covariance singular
    generative_ : Generative, the sufficient statistics
    estimate_ : Estimate, the parameters
    feature_importances_ : (d) array of mean absolute decibans
    column_evidence_ : Table of the features and their decibans
    columns_without_evidence_ : dict of the features that carry no evidence, and why
    n_parameters_ : int
    n_features_in_ : int
    feature_names_in_ : (d) array, if X had names
    label_name_ : str or None

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
        """The shrinkage in use: the parameter, or what was chosen."""
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
    def description(self) -> str:
        """One sentence on what the model is."""
        return DESCRIPTIONS[self.covariance]

    @property
    def covariance_(self) -> FloatArray:
        """(d, d) shared, or (K, d, d) one for each class; (K, d) variances where it is diagonal."""
        params = self.estimate_.params[0]
        if self.covariance == "diagonal":
            variance: FloatArray = params.variance
            return variance
        covariance: FloatArray = params.covariance
        return covariance[0] if self.covariance == "shared" else covariance
