"""GeneralizedLinearModel: y from an exponential family whose natural parameter is linear in x."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if

from deciban.data import is_table, slices
from deciban.data.arrow import TableFrame
from deciban.data.batch import Frame
from deciban.data.input_types import PerRow, Rows, SampleWeight, Target
from deciban.data.intake import InputColumns, input_columns, label_name, require_as_many, require_rows
from deciban.data.labels import check_weights
from deciban.display.summary import Summary, counted_word
from deciban.errors import DecibanError, require, require_scores, warn
from deciban.estimators.estimator import class_array, one_dimensional
from deciban.estimators.glm_tables import coefficient_table, inference_notes, owners_of
from deciban.estimators.linear_estimator import LinearEstimator
from deciban.evaluation.fitted_model import KINDS, LinearFit, Treatment
from deciban.export.scorer import Scorer
from deciban.linear.design import Design
from deciban.linear.design_rows import rows_of
from deciban.linear.distributed_objective import forbid_distributed
from deciban.linear.inference import Inference, null_deviance
from deciban.linear.linear_state import GeneralizedLinearState
from deciban.linear.objective import Objective
from deciban.linear.offsets import names_of, offset_of
from deciban.linear.predictor import Predictor
from deciban.linear.responses import RESPONSES, Response
from deciban.linear.solvers import newton
from deciban.linear.status import SeparationWatch, require_scales, status_of
from deciban.persist.validation import labels
from deciban.types import FloatArray, IntArray, Levels

if TYPE_CHECKING:
    from deciban.report import Report


@dataclass(frozen=True)
class Sample:
    """Rows to learn from, those of weight 0 left out."""

    frame: Frame
    response: Response
    y: FloatArray  # (n) numbers, or places of classes
    weights: FloatArray | None
    rows: IntArray  # (n) their numbers among the rows that were passed
    classes: Levels


class GeneralizedLinearModel(GeneralizedLinearState, LinearEstimator):
    """Generalized linear model: the mean of a response, through a link, is linear in the features.

    y|x ~ b(y) exp(η·T(y) − a(η)) with η = w·x + b; predicts E[T(y)|x] = a′(η)

    `summary()` has coefficients, standard errors, z (t for gaussian), p-values and Wald intervals, deviance and AIC.
    Weights count rows: a weight of 2 is the row twice. Columns of any kind are taken as by LogisticRegression. For
    classes `predict` gives labels and `predict_mean` the probabilities of all classes but the first; coefficients are
    those of each class against the first.

    Parameters
    ----------
    family : "gaussian", "bernoulli", "multinomial", "poisson" or "exponential", default "gaussian"
        The response. Links are canonical: identity, logit, log φ_k/φ_0, log, and −1/μ.
    l2 : float, default 0.0
        Penalty l2/2 |w|², not on intercepts. With one there are no standard errors.
    tol : float, default 1e-12
        Newton's method (here: iteratively reweighted least squares) ends when a step promises less than tol·J.
    max_iter : int, default 100
        The largest number of iterations.

    Attributes
    ----------
    coef_ : array of shape (p,), or (K − 1, p) for more than two classes
        The coefficients of the encoded features, on the scale of η.
    intercept_ : float, or array of shape (K − 1,)
        η of a row of zeros.
    feature_names_ : tuple of str
        The names of the encoded features, such as "job = nurse": one for each coefficient.
    inference_ : Inference
        What `summary()` prints, as arrays and numbers: `estimates`, `standard_errors`, `statistics`, `p_values`,
        `intervals(level)`, `covariance`, `deviance`, `null_deviance`, `log_likelihood`, `aic`, `dispersion`.
    status_ : str
        "ok", or what is wrong: separable classes, collinear or constant columns, no convergence; a warning says what to
        do. Of collinear columns the coefficients are not unique; of separable classes they are only where the solver
        stopped.
    classes_ : array of shape (K,)
        The classes, sorted; only if the response has classes. Coefficients compare with the first.
    response_ : Response
        The distribution of y, with its link.
    path_ : Table
        The objective, the norm of its gradient and the step taken, by iteration. `plot_path()` draws it.
    n_iter_ : int
        The number of iterations.
    n_parameters_ : int
        The number of coefficients that the data determine.
    column_treatments_ : dict of int to Treatment
        What is done with each feature (by position), and why, in words. Read it to check how a column was understood.
    linear_fit_ : LinearFit
        Coefficients, penalty, status and path in one object, as reports read them.
    predictor_ : Predictor
        What scores rows: how features are encoded, and their coefficients.
    scorer_ : Scorer
        The same, under the name that all models have.
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
    columns_without_evidence_ : dict
        Empty: linear models use all features that vary.
    class_count_ : None
        Not known to a linear model.
    importances_ : None
        Only classifiers with evidence have importances.
    base_model_ : estimator
        The model itself. A `CalibratedClassifier` has the model that it corrects here.
    calibrations_ : tuple
        Empty: only a `CalibratedClassifier` has corrections.
    evidence_scale_ : float
        1.0: only a `CalibratedClassifier` rescales decibans.
    family_comparisons_ : tuple
        Empty: only `NaiveBayes(families="auto")` compares families.

    See Also
    --------
    deciban.LogisticRegression : Classes only; faster, with explanations in decibans.

    Examples
    --------
    >>> import deciban as db
    >>> X, years, claims = [[0], [0], [1], [1]], [10.0, 30.0, 20.0, 20.0], [1, 3, 4, 6]
    >>> model = db.GeneralizedLinearModel("poisson").fit(X, claims, exposure=years)
    >>> model.predict([[0], [1]]).round(3)
    array([0.1 , 0.25])
    >>> print(model.summary())
    GeneralizedLinearModel: poisson response, log link, 4 rows, 2 parameters
    <BLANKLINE>
    coefficients
                   estimate  std. error         z            p     2.5 %   97.5 %
      (intercept)  -2.30259         0.5  -4.60517  4.12129e-06  -3.28257  -1.3226
      0            0.916291    0.591608   1.54881     0.121426  -0.24324  2.07582
    <BLANKLINE>
    note: deviance 0.40271 on 2 degrees of freedom, null deviance 3.05928
    <BLANKLINE>
    note: log-likelihood -6.15885, AIC 16.3177
    """

    response_: Response
    _state = GeneralizedLinearState

    def __init__(
        self,
        family: str = "gaussian",
        l2: float = 0.0,
        tol: float = 1e-12,
        max_iter: int = 100,
    ) -> None:
        self.family = family
        self.l2 = l2
        self.tol = tol
        self.max_iter = max_iter

    # Learning ------------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Rows,
        y: Target | None = None,
        sample_weight: SampleWeight | None = None,
        offset: PerRow | None = None,
        exposure: PerRow | None = None,
    ) -> Self:
        """Fit to rows X and responses y, by maximum likelihood.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str, default None
            The response of each row, or the name of the column of X that holds it.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.
        offset : array-like of shape (n,), str or None, default None
            Added to η of each row; or the name of a column of X.
        exposure : array-like of shape (n,), str or None, default None
            What rates are counted by (poisson only): the same as an offset of its logarithm. Or the name of a column of
            X.

        Returns
        -------
        self : estimator
            The same model.

        Raises
        ------
        DecibanError
            If a response is outside the family's domain, or the rows are distributed; the message names the row.

        Warns
        -----
        DecibanWarning
            If classes are separable, or features collinear: see `status_`.
        """
        self._check_settings()
        forbid_distributed(X, self)
        columns = input_columns(X, one_dimensional(y), sample_weight)
        shift, frame = offset_of(self.family, columns.frame, offset, exposure), columns.frame
        for name in {*names_of(offset, exposure)}:
            assert isinstance(frame, TableFrame)  # or there would be no such name
            frame = frame.drop(list(frame.names).index(name))
        sample = self._sample(replace(columns, frame=frame))
        design = Design.of(sample.frame, sample.weights, sample.rows)
        features = rows_of(
            design.training_matrix(sample.frame, sample.rows), design.origin, sample.weights, design.spread
        )
        require_scales(features, design)
        k = len(sample.classes)
        metric = np.eye(k - 1) - 1.0 / k if k > 2 else None
        shift = None if shift is None else shift[sample.rows]
        objective = Objective(features, sample.response, sample.y, sample.weights, shift, float(self.l2), metric)
        watch = SeparationWatch(objective, penalised=bool(self.l2))
        solved = newton(
            objective, objective.null_start(), tol=self.tol, max_iter=self.max_iter, watch=watch.should_stop
        )
        theta = solved.solution.theta
        watch.check(theta)
        inference = Inference.of(objective, theta)
        self._note_columns(design.schema)
        self._label_name = label_name(X, y)
        if k:
            dtype = getattr(y, "dtype", None) if isinstance(y, np.ndarray) else None
            self._classes, self.classes_ = sample.classes, class_array(sample.classes, dtype)
        self.response_, self.inference_ = objective.response, inference
        self.predictor_ = Predictor.of(design, features, theta)
        self.path_ = solved.solution.table("newton descent")
        self.n_iter_ = len(solved.solution.path) - 1
        self.status_ = status_of(solved, watch, objective, design)
        return self

    def _sample(self, columns: InputColumns) -> Sample:
        frame = columns.frame
        require_rows(frame)
        if self._predicts_classes:
            data = columns.sample().nonzero()
            codes, classes = data.labels.codes, data.labels.classes
            self._check_classes(classes)
            response = RESPONSES[self.family].for_classes(len(classes))
            return Sample(data.frame, response, codes.astype(np.float64), data.weights, data.row_numbers, classes)
        response = RESPONSES[self.family].for_classes(0)
        numbers, weights = response.check(columns.labels), check_weights(columns.weights, frame.rows)
        require_as_many(frame.rows, len(numbers))
        rows = np.arange(frame.rows) if weights is None else np.flatnonzero(weights)
        if len(rows) < frame.rows and weights is not None:
            frame, numbers, weights = frame.take(rows), numbers[rows], weights[rows]
        return Sample(frame, response, numbers, weights, rows, ())

    def _check_settings(self) -> None:
        if self.family not in RESPONSES:
            raise DecibanError(f"family must be one of {', '.join(RESPONSES)}, not {self.family!r}")
        if not isinstance(self.l2, Real) or not 0 <= self.l2 < np.inf:
            raise DecibanError(f"l2 must be a number of 0 or more, not {self.l2!r}")

    @property
    def _predicts_classes(self) -> bool:
        return RESPONSES.get(self.family, Response).max_classes > 0

    def _check_classes(self, classes: Levels) -> None:
        count = "1 class" if len(classes) == 1 else f"{len(classes)} classes"
        if len(classes) == 1:
            raise DecibanError(f"a {self.family} response needs two classes; y holds {count}: {list(classes)}")
        if len(classes) > RESPONSES[self.family].max_classes:
            raise DecibanError(
                f"a {self.family} response has two classes; y holds {count}: {list(classes)[:10]}. Only binary "
                "classification is supported; use family='multinomial'"
            )

    def _restored(self) -> None:
        super()._restored()
        classes, scores = self._classes, len(self.predictor_.constant)
        require(self.family in RESPONSES, f"there is no {self.family} response")
        require(bool(classes) == self._predicts_classes, f"a {self.family} response with {len(classes)} classes")
        if classes:
            labels(classes, self.classes_, 1 + scores)
        require(classes or scores == 1, f"{scores} predictors of one response")
        shape = (scores, 1 + len(self.predictor_.origin))
        require(self.inference_.estimates.shape == shape, f"estimates are not of shape {shape}")
        self.response_ = RESPONSES[self.family].for_classes(len(classes))

    # What was learned ----------------------------------------------------------------------------------------------

    @property
    def description(self) -> str:
        """One sentence on what the model is."""
        link = RESPONSES[self.family].link if self.response_ is None else self.response_.link
        return f"A {self.family} response: its mean, through the {link} link, is linear in the features."

    @property
    def task(self) -> Literal["classification", "regression"]:
        """ "classification" for a response of classes, "regression" for one of numbers."""
        return "classification" if self._predicts_classes else "regression"

    @property
    def scorer_(self) -> Scorer:
        """What scores rows: a score for each class, or the linear predictor of a number."""
        return self.predictor_.with_reference() if self._predicts_classes else self.predictor_

    @property
    def column_treatments_(self) -> dict[int, Treatment]:
        """What is done with each feature (by position), and why."""
        treatments = super().column_treatments_
        if self._predicts_classes:
            return treatments
        empty = {j: Treatment("left out: it is empty", KINDS[kind]) for j, kind in enumerate(self.schema_.kinds)}
        return empty | treatments

    @property
    def linear_fit_(self) -> LinearFit:
        """Coefficients, standard errors, penalty, status and path in one object, as reports read them."""
        return replace(super().linear_fit_, estimates=self.inference_.estimates, inference=self.inference_)

    @property
    def coef_(self) -> FloatArray:
        """(p), or (K − 1, p) for more than two classes."""
        self._require_fitted()
        w = self.predictor_.coefficients
        return w[0] if len(w) == 1 else w

    @property
    def intercept_(self) -> Any:
        """A number, or (K − 1)."""
        self._require_fitted()
        b = self.predictor_.intercept
        return float(b[0]) if len(b) == 1 else b

    @property
    def n_parameters_(self) -> int:
        """Free parameters of the linear predictors: as many as the data determine."""
        self._require_fitted()
        return self.inference_.rank

    def summary(self, level: float = 0.95) -> Summary:
        """What was learned, as tables.

        Parameters
        ----------
        level : float, default 0.95
            The probability of the intervals.

        Returns
        -------
        Summary
            Coefficients with standard errors, tests and intervals; the deviance and other statistics of the fit.
        """
        self._require_fitted()
        inference = self.inference_
        tables = tuple(
            coefficient_table(inference, k, owner, self.feature_names_, level, penalised=bool(self.l2))
            for k, owner in enumerate(owners_of(self._classes))
        )
        title = f"{type(self).__name__}: {self.family} response, {self.response_.link} link"
        counted = f"{counted_word(inference.n, 'row')}, {counted_word(self.n_parameters_, 'parameter')}"
        notes = inference_notes(inference, self.l2) + self.schema_.notes()
        notes += [] if self.status_ == "ok" else [self.status_]
        return Summary(f"{title}, {counted}", tables, tuple(notes))

    def _coefficient_tables(self) -> list[tuple[str, list[str], FloatArray, FloatArray | None]]:
        inference, names = self.inference_, ["(intercept)", *self.feature_names_]
        classes = self._classes  # none for a response of numbers
        owners = [f" of {label} against {classes[0]}" for label in classes[1:]] or [""]
        intervals = [None] * len(owners) if self.l2 else list(inference.intervals(0.95))
        parts = zip(owners, inference.estimates, intervals, strict=True)
        return [(f"coefficients{owner}", names, row, interval) for owner, row, interval in parts]

    # Predicting ----------------------------------------------------------------------------------------------------

    def predict_mean(self, X: Rows, offset: PerRow | None = None, exposure: PerRow | None = None) -> FloatArray:
        """The mean response of each row, E[T(y)|x] = a′(η).

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.
        offset : array-like of shape (n,), str or None, default None
            Added to η of each row; or the name of a column of X.
        exposure : array-like of shape (n,), str or None, default None
            What rates are counted by (poisson only): the same as an offset of its logarithm. Or the name of a column of
            X.

        Returns
        -------
        array of shape (n,), or (n, K − 1) for more than two classes
            Means; for classes, the probabilities of all but the first.
        """
        eta = self._eta(X, offset, exposure)
        mean = _probabilities(eta)[:, 1:] if self._predicts_classes else self.response_.mean(eta)
        if np.isinf(mean).any():
            warn("some rows have no finite mean: their linear predictor is outside the response's domain")
        return mean[:, 0] if mean.shape[1] == 1 else mean

    def predict(self, X: Rows, offset: PerRow | None = None, exposure: PerRow | None = None) -> NDArray[Any]:
        """Predict the mean response of each row; for classes the most probable one.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.
        offset : array-like of shape (n,), str or None, default None
            Added to η of each row; or the name of a column of X.
        exposure : array-like of shape (n,), str or None, default None
            What rates are counted by (poisson only): the same as an offset of its logarithm. Or the name of a column of
            X.

        Returns
        -------
        array of shape (n,)
            Numbers, or labels as in `classes_`.
        """
        if not self._predicts_classes:
            return self.predict_mean(X, offset, exposure)
        scores = self._eta(X, offset, exposure)
        chosen: NDArray[Any] = self.classes_[np.hstack([np.zeros((len(scores), 1)), scores]).argmax(axis=1)]
        return chosen

    @available_if(lambda self: self._predicts_classes)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Rows, offset: PerRow | None = None) -> FloatArray:
        """The probability of each class, if the response has classes.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.
        offset : array-like of shape (n,), str or None, default None
            Added to η of each row; or the name of a column of X.

        Returns
        -------
        array of shape (n, K)
            Rows sum to 1; columns in the order of `classes_`.
        """
        return _probabilities(self._eta(X, offset, None))

    def score(
        self,
        X: Rows,
        y: Target,
        sample_weight: SampleWeight | None = None,
        offset: PerRow | None = None,
        exposure: PerRow | None = None,
    ) -> float:
        """The share of the deviance that is explained (R² for gaussian); for classes the accuracy.

        1 − deviance / deviance of the mean alone

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str
            The response of each row, or the name of the column of X that holds it.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.
        offset : array-like of shape (n,), str or None, default None
            Added to η of each row; or the name of a column of X.
        exposure : array-like of shape (n,), str or None, default None
            What rates are counted by (poisson only): the same as an offset of its logarithm. Or the name of a column of
            X.

        Returns
        -------
        float
            At most 1; negative if the model is worse than the mean.
        """
        self._require_fitted()
        self._check_features(X)
        columns = input_columns(X, one_dimensional(y), sample_weight, self.columns_, names_of(offset, exposure))
        frame, true = columns.frame, columns.labels
        X = frame if is_table(X) else X
        true = true.to_pylist() if hasattr(true, "to_pylist") else true
        weights = check_weights(columns.weights, frame.rows)
        w = np.ones(frame.rows) if weights is None else weights
        if self._predicts_classes:
            require_as_many(frame.rows, len(true))
            return float(np.average(self.predict(X, offset) == np.asarray(true), weights=w))
        numbers, shift = self.response_.check(true), offset_of(self.family, frame, offset, exposure)
        require_as_many(frame.rows, len(numbers))
        eta = self._eta(X, offset, exposure)
        null = Objective(rows_of(np.zeros((len(w), 0)), None, w), self.response_, numbers, w, shift)
        deviance, worst = 2.0 * float(w @ self.response_.loss(null.statistic, eta)), null_deviance(null)
        if worst > 0:
            return 1.0 - deviance / worst
        return 1.0 if deviance <= 1e-20 * float(w @ numbers**2) else 0.0  # y is constant: predicted or not

    def _eta(self, X: Rows, offset: PerRow | None, exposure: PerRow | None) -> FloatArray:
        frame = self._frame_to_score(X, names_of(offset, exposure))
        eta = np.empty((frame.rows, len(self.predictor_.constant)))
        for first, part in slices(frame, needs_small_batches=self.predictor_.needs_small_batches(frame)):
            self.predictor_.joint(part, eta[first : first + part.rows], first)
        require_scores(eta)
        shift = offset_of(self.family, frame, offset, exposure)
        return eta if shift is None else eta + shift[:, np.newaxis]

    def report(
        self,
        X: Rows,
        y: Target | None = None,
        *,
        sample_weight: SampleWeight | None = None,
        held_out: bool = True,
        rows: int = 200,
        random_state: int | None = 0,
        offset: PerRow | None = None,
        exposure: PerRow | None = None,
    ) -> Report:
        """Report in one HTML page: the model, how well it predicts these rows, its features, and single predictions.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str, default None
            The response of each row, or the name of the column of X that holds it.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.
        held_out : bool, default True
            False for training rows; the page then says that its figures are optimistic.
        rows : int, default 200
            How many of the rows are kept in the page for "one prediction"; 0 for none.
        random_state : int or None, default 0
            The seed that chooses these rows.
        offset : array-like of shape (n,), str or None, default None
            Added to η of each row; or the name of a column of X.
        exposure : array-like of shape (n,), str or None, default None
            What rates are counted by (poisson only): the same as an offset of its logarithm. Or the name of a column of
            X.

        Returns
        -------
        Report
            `report.save("report.html")` writes one file that needs no network. Needs `pip install 'deciban[plot]'`.

        See Also
        --------
        deciban.report.Report : What is returned.
        """
        from deciban.report import report_of

        shift = {"offset": offset, "exposure": exposure}
        return report_of(
            self, X, y, sample_weight=sample_weight, held_out=held_out, rows=rows, random_state=random_state, **shift
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self._predicts_classes:
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=RESPONSES[self.family].max_classes > 2)
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
            tags.target_tags.positive_only = RESPONSES.get(self.family, Response).positive
        return tags


def _probabilities(eta: FloatArray) -> FloatArray:
    """(n, K) softmax; the first class is the one that η compares with."""
    result: FloatArray = softmax(np.hstack([np.zeros((len(eta), 1)), eta]), axis=1)
    return result
