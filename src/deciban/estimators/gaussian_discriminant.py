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
    """Gaussian discriminant analysis: all features are jointly normal within each class.

    p(c|x) ∝ p(c) N(x; μ_c, Σ)

    Rows with a missing value are left out of the fit (for "diagonal", only the value is) and scored by the marginal
    density of the values they have.

    Parameters
    ----------
    covariance : "shared", "per-class" or "diagonal", default "shared"
        One Σ for all classes (linear discriminant), one for each (quadratic), or variances only, for each class
        (Gaussian naive Bayes).
    shrinkage : float from 0 to 1, "oas", "auto" or None, default None
        Σ becomes (1 − s)Σ + s·(tr Σ/d)·I. "oas" chooses s from n, d and Σ. "auto" tries several, and takes the one
        that predicts the classes of left-out rows best: see `shrinkage_`. That reads the rows of `fit` about 20 times;
        `partial_fit`, `forget` and `merge` keep what was chosen (a merged model that of more rows).
    ddof : float or "unbiased", default 0
        Scatter is divided by n − ddof; "unbiased" is n − K for a shared covariance, n_c − 1 for the others.
    class_prior : "empirical", "laplace", "uniform", or probabilities, default "empirical"
        The probability of each class before any feature: the shares of the training rows; these with one more row for
        each class; equal; or given, in order of `classes_` or as {class: probability}.
    prior : deciban.priors.InverseWishart or None, default None
        With a prior, the covariance is the posterior mode.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The classes, sorted. Columns of `predict_proba` are in this order.
    class_count_ : array of shape (K,)
        The total weight of the training rows of each class. A class with few rows is estimated poorly.
    means_ : array of shape (K, d)
        The mean of each class, μ_c.
    covariance_ : array of shape (d, d), (K, d, d) or (K, d)
        Σ if shared, one for each class, or variances if diagonal.
    shrinkage_ : float, "oas" or None
        The shrinkage in use: the parameter, or what "auto" chose.
    status_ : str
        "ok", or which features make a covariance singular: drop one of them, or set `shrinkage`.
    feature_importances_ : array of shape (n_features_in_,)
        The mean absolute decibans of each feature over training rows. Use them to see which features matter.
    column_evidence_ : Table
        The same with names, the most important first, and the mean decibans for the true class, which is negative for a
        feature that misleads.
    importances_ : array of shape (n_features_in_,) or None
        `feature_importances_`, but None instead of an error where they are unknown.
    columns_without_evidence_ : dict
        The features that add nothing, and why: constant, always missing, a copy of another. They can be dropped.
    column_treatments_ : dict of int to Treatment
        What is done with each feature (by position), and why, in words. Read it to check how a column was understood.
    n_parameters_ : int
        The number of free parameters: K − 1 of an estimated class prior, the means, and the covariances.
    generative_ : Generative
        The sufficient statistics, which add and subtract: counts, sums and scatter, without shrinkage or priors.
    estimate_ : Estimate
        The parameters, estimated from the statistics with the present settings.
    scorer_ : Scorer
        What scores rows: `estimate_`.
    n_features_in_ : int
        The number of features. Arrays to predict need as many columns.
    feature_names_in_ : array of shape (n_features_in_,)
        The names of the features; only if X had names.
    label_name_ : str or None
        The column that y named, or None. Commands read the labels of other files from the column of this name.
    schema_ : Schema
        Names and kinds of the features as they were read. Look here if a column was taken for a wrong type.
    columns_ : ColumnReader
        Reads the columns of new rows as those of the fit were read. For engines and the command line.
    base_model_ : estimator
        The model itself. A `CalibratedClassifier` has the model that it corrects here.
    calibrations_ : tuple
        Empty: only a `CalibratedClassifier` has corrections.
    evidence_scale_ : float
        1.0: only a `CalibratedClassifier` rescales decibans.
    family_comparisons_ : tuple
        Empty: only `NaiveBayes(families="auto")` compares families.
    linear_fit_ : None
        Only linear models have one; `to_linear()` of a generative model makes one.

    See Also
    --------
    deciban.NaiveBayes : Text and categories, too; features independent within a class.
    deciban.LogisticRegression : Linear boundaries, too, without the assumption of normality.
    deciban.families.MultivariateGaussian : The same density for some features of a NaiveBayes.

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
            raise DecibanError(f"no covariance called {self.covariance!r}: shared, per-class or diagonal")
        family: Family[Any, Any]
        if self.covariance == "diagonal":
            if self.shrinkage is not None or self.prior is not None:
                raise DecibanError("a diagonal covariance takes no shrinkage and no InverseWishart prior")
            if isinstance(self.ddof, str) and self.ddof != "unbiased":
                raise DecibanError(f"ddof must be a number or 'unbiased', not {self.ddof!r}")
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
