"""LogisticRegression and SoftmaxRegression: the discriminative counterparts of generative models."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, Literal, Self

import numpy as np

from deciban.contributions import DECIBANS
from deciban.data.class_index import ClassIndex
from deciban.data.distributed import DistributedRows
from deciban.data.input_types import Rows, SampleWeight, Target
from deciban.data.intake import rows_in_memory
from deciban.data.sampling import RowSample
from deciban.display.summary import Summary, counted_word
from deciban.errors import DecibanError, capture_warnings, require
from deciban.estimators.estimator import ProbabilityClassifier, class_array, one_dimensional
from deciban.estimators.importances import RanksFeatures, distributed_row_sample, kept_rows
from deciban.estimators.linear_estimator import LinearEstimator
from deciban.evaluation.fitted_model import LinearFit
from deciban.families import Context, MultivariateGaussian
from deciban.linear.design import Design
from deciban.linear.design_rows import DesignRows, rows_of
from deciban.linear.distributed_objective import DistributedDesignRows, DistributedObjective
from deciban.linear.firth import firth
from deciban.linear.linear_state import LogisticState
from deciban.linear.objective import Criterion, Objective
from deciban.linear.predictor import Predictor
from deciban.linear.responses import Multinomial, Response
from deciban.linear.solvers import MAX_HESSIAN, gradient_descent, newton
from deciban.linear.status import SeparationWatch, require_scales, status_of
from deciban.persist.validation import labels
from deciban.table import Table
from deciban.types import FloatArray, Labels, Levels


class LogisticRegression(LogisticState, RanksFeatures, LinearEstimator, ProbabilityClassifier):
    """Logistic regression: log-odds are linear in the features, by maximum likelihood.

    log p(c|x)/p(c'|x) = (w_c − w_c')·x + b_c − b_c'

    Minimises J(w) = −Σ log p(y|x) + l2/2 Σ|w|². Two classes have one vector w, for the second class against the first;
    more have one for each, which sum to 0 (softmax).

    Text is encoded by indicators of every value except the first. A missing number is the feature's mean, with an
    indicator; missing text is a value of its own; a value never seen counts as the average row's.

    Parameters
    ----------
    solver : "newton" or "gradient", default "newton"
        "newton": w ← w − H⁻¹∇J with a line search; where H is too large or rows are many, L-BFGS preconditioned with
        the curvature of a sample or of the features. "gradient": batch gradient descent on standardised features,
        with a step below the inverse of the largest curvature.
    l2 : float, default 0.0
        Penalty on the coefficients, not on the intercepts; what scikit-learn calls 1/C. 0 is maximum likelihood.
    init : "zero" or "generative", default "zero"
        Start from the class shares alone, or from the linear form of a GaussianDiscriminant with shared covariance.
    firth : bool, default False
        Maximise the likelihood times √|information| (Firth 1993): finite on separable data, and less biased.
    tol : float or None, default None
        Stop when a step promises less than tol·J. None: 1e-10; 1e-16 for firth and 1e-20 for "gradient", which converge
        linearly.
    max_iter : int or None, default None
        The largest number of iterations. None: 100, or 10,000 for "gradient".

    Attributes
    ----------
    coef_ : array of shape (1, p) for two classes, (K, p) for more
        The coefficients of the encoded features, in nats for each unit. 10/log 10 of them are decibans.
    intercept_ : array of shape (1,) or (K,)
        The score of a row of zeros.
    classes_ : array of shape (K,)
        The classes, sorted. Columns of `predict_proba` are in this order.
    feature_names_ : tuple of str
        The names of the encoded features, such as "job = nurse": one for each coefficient.
    status_ : str
        "ok", or what is wrong: separable classes, collinear or constant columns, no convergence; a warning says what to
        do. Of collinear columns the coefficients are not unique; of separable classes they are only where the solver
        stopped.
    objective_ : float
        J at the solution.
    path_ : Table
        J, the norm of its gradient (in standardised features) and the step taken, by iteration; step 0 at the end.
        `plot_path()` draws it.
    n_iter_ : int
        The number of iterations. If it is `max_iter`, the fit did not converge: see `status_`.
    feature_importances_ : array of shape (n_features_in_,)
        The mean absolute decibans of each feature over training rows. Use them to see which features matter.
    column_evidence_ : Table
        The same with names, the most important first, and the mean decibans for the true class, which is negative for a
        feature that misleads.
    importances_ : array of shape (n_features_in_,) or None
        `feature_importances_`, but None instead of an error where they are unknown.
    column_treatments_ : dict of int to Treatment
        What is done with each feature (by position), and why, in words. Read it to check how a column was understood.
    n_parameters_ : int
        The number of free parameters, (K − 1)(p + 1).
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
    deciban.SoftmaxRegression : One vector for every class, also for two.
    deciban.GeneralizedLinearModel : Standard errors, p-values and intervals.
    deciban.GaussianDiscriminant : The generative counterpart, which needs fewer rows if features are normal.

    Examples
    --------
    >>> import deciban as db
    >>> X = [[0.5], [1.0], [1.5], [2.0], [2.5], [3.0], [3.5], [4.0]]
    >>> model = db.LogisticRegression().fit(X, [0, 0, 0, 1, 0, 1, 1, 1])
    >>> model.coef_.round(3), model.intercept_.round(3), model.status_
    (array([[2.565]]), array([-5.77]), 'ok')
    >>> model.predict_proba([[2.25]]).round(3)
    array([[0.5, 0.5]])
    """

    description = "Log-odds are linear in the features, by maximum likelihood."

    _pairwise = True  # two classes share one vector
    _state = LogisticState

    def __init__(
        self,
        solver: Literal["newton", "gradient"] = "newton",
        l2: float = 0.0,
        init: Literal["zero", "generative"] = "zero",
        firth: bool = False,
        tol: float | None = None,
        max_iter: int | None = None,
    ) -> None:
        self.solver = solver
        self.l2 = l2
        self.init = init
        self.firth = firth
        self.tol = tol
        self.max_iter = max_iter

    # Learning ------------------------------------------------------------------------------------------------------

    def fit(self, X: Rows, y: Target | None = None, sample_weight: SampleWeight | None = None) -> Self:
        """Learn from rows X with classes y.

        Rows of streams are read into memory. For distributed rows every iteration is one pass over the partitions.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str, default None
            The class of each row, or the name of the column of X that holds it. Only distributed rows, which have their
            classes with them, do without.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.

        Returns
        -------
        self : estimator
            The same model.

        Raises
        ------
        DecibanError
            If y has one class only, or rows cannot be read; the message names the column and row.

        Warns
        -----
        DecibanWarning
            If classes are separable, or features collinear: see `status_`.
        """
        self._check_settings()
        objective: Criterion
        if isinstance(X, DistributedRows):
            self._forbid_firth()
            distributed = DistributedDesignRows.of(X)
            design, classes, share = distributed.design, distributed.classes, distributed.weight
            self._require_two(classes)
            objective = self._distributed_objective(distributed)
            kept = distributed_row_sample(X, design.schema)
        else:
            data = rows_in_memory(X, one_dimensional(y), sample_weight).nonzero()
            codes, classes = data.labels.codes, data.labels.classes
            share = np.bincount(codes, weights=data.weights, minlength=len(classes)).astype(np.float64)
            self._require_two(classes)
            design = Design.of(data.frame, data.weights, data.row_numbers)
            x = design.training_matrix(data.frame, data.row_numbers)
            rows = rows_of(x, design.origin, data.weights, design.spread)
            objective = self._objective(design, rows, codes, data.weights, len(classes))
            kept = kept_rows(data, design.schema)
        start = np.zeros(objective.shape)
        start[:, -1] = np.log(share[1:] / share[0])
        if self.init == "generative":
            start = _generative_start(objective, start)
        self._note_label(X, y)
        self._solve(design, objective, start, classes)
        self._keep_rows(kept)
        return self

    def refine(self, X: Rows, y: Target | None = None, sample_weight: SampleWeight | None = None) -> Self:
        """Go on from the present coefficients, by Newton's method on the conditional likelihood of these rows.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str, default None
            The class of each row, or the name of the column of X that holds it. Only distributed rows, which have their
            classes with them, do without.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.

        Returns
        -------
        self : estimator
            The same model.

        Raises
        ------
        DecibanError
            If the rows have a class that the model does not have, or lack one of its classes.

        See Also
        --------
        deciban.NaiveBayes.to_linear : Makes a linear model to refine.
        """
        self._check_settings()
        self._require_fitted()
        design = self.predictor_.design
        objective, kept = self._again(X, y, sample_weight)
        theta = self.predictor_.theta(objective.rows)
        self._solve(design, objective, theta[1:] - theta[0], self._classes)
        self._keep_rows(kept)
        return self

    @property
    def linear_fit_(self) -> LinearFit:
        """Coefficients, penalty, status and path in one object, as reports read them."""
        return replace(super().linear_fit_, objective=lambda *rows: self._again(*rows)[0])

    def _again(self, X: Any, y: Any, sample_weight: Any) -> tuple[Criterion, RowSample]:
        """The objective of rows with the features and classes of this model, and the rows kept to rank features."""
        schema, design = self.predictor_.schema, self.predictor_.design
        if isinstance(X, DistributedRows):
            self._forbid_firth()
            schema.merge_frame(X.frame)
            distributed = DistributedDesignRows.with_design(X, design)
            self._require_same(distributed.classes)
            return self._distributed_objective(distributed.reordered(self._classes)), distributed_row_sample(X, schema)
        self._check_features(X)
        data = rows_in_memory(X, one_dimensional(y), sample_weight, self.columns_).nonzero()
        schema.merge_frame(data.frame)
        self._require_same(data.labels.classes)
        codes = ClassIndex(self._classes).recode(data.labels.codes, data.labels.classes)
        design.forbid_infinite(data.frame, 0, data.row_numbers)
        rows = rows_of(design.matrix(data.frame, rows=data.row_numbers), None, data.weights)
        objective = self._objective(design, rows, codes, data.weights, len(self._classes))
        return objective, kept_rows(data, schema)

    def _require_two(self, classes: Levels) -> None:
        if len(classes) < 2:
            raise DecibanError(f"{type(self).__name__} needs two classes; y holds one class, {classes[0]!r}")

    def _require_same(self, classes: Levels) -> None:
        unknown = [label for label in classes if label not in self._classes]
        if unknown:
            raise DecibanError(f"class {unknown[0]!r} is not one of the model's: {list(self._classes)}")
        absent = [label for label in self._classes if label not in classes]
        if absent:
            raise DecibanError(f"there is no row of class {absent[0]!r}: its score would fall without bound")

    def _forbid_firth(self) -> None:
        if self.firth:
            raise DecibanError(
                "firth=True needs the rows in memory, and these are distributed: set l2 above 0, or fit a sample"
            )

    def _check_settings(self) -> None:
        if self.solver not in ("newton", "gradient"):
            raise DecibanError(f"solver must be 'newton' or 'gradient', not {self.solver!r}")
        if self.init not in ("zero", "generative"):
            raise DecibanError(f"init must be 'zero' or 'generative', not {self.init!r}")
        if not isinstance(self.l2, Real) or not 0 <= self.l2 < np.inf:
            raise DecibanError(f"l2 must be a number of 0 or more, not {self.l2!r}")
        if self.firth and (self.l2 or self.solver != "newton"):
            raise DecibanError("firth=True is a penalty of its own: it goes with l2=0 and solver='newton'")

    def _objective(
        self, design: Design, rows: DesignRows, codes: Labels, weights: FloatArray | None, classes: int
    ) -> Objective:
        require_scales(rows, design)
        response, metric = self._response(classes)
        return Objective(rows, response, codes.astype(np.float64), weights, None, float(self.l2), metric)

    def _distributed_objective(self, distributed: DistributedDesignRows) -> DistributedObjective:
        require_scales(distributed.rows, distributed.design)
        response, metric = self._response(len(distributed.classes))
        parameters = (len(distributed.classes) - 1) * (distributed.rows.shape[1] + 1)
        return DistributedObjective(
            distributed,
            response,
            float(self.l2),
            metric,
            with_information=self.solver == "newton" and parameters <= MAX_HESSIAN,
        )

    def _response(self, classes: int) -> tuple[Response, FloatArray | None]:
        """The response of this number of classes, and the metric of the penalty."""
        pairwise = classes == 2 and self._pairwise
        metric = None if pairwise else np.eye(classes - 1) - 1.0 / classes
        return Multinomial.for_classes(classes), metric

    def _solve(self, design: Design, objective: Criterion, start: FloatArray, classes: Levels) -> None:
        first = self.solver == "gradient"
        tol = self.tol if self.tol is not None else (1e-20 if first else 1e-16 if self.firth else 1e-10)
        most = self.max_iter if self.max_iter is not None else (10_000 if first else 100)
        watch = SeparationWatch(objective, penalised=bool(self.l2) or self.firth)
        if isinstance(objective, Objective) and self.firth:
            solved = firth(objective, start, tol=tol, max_iter=most, watch=watch.should_stop)
        else:
            method = gradient_descent if first else newton
            solved = method(objective, start, tol=tol, max_iter=most, watch=watch.should_stop)
        theta = solved.solution.theta
        watch.check(theta)
        full = np.vstack([np.zeros(theta.shape[1]), theta])
        if len(classes) > 2 or not self._pairwise:
            full -= full.mean(axis=0)
        self._take(Predictor.of(design, objective.rows, full), classes)
        self.path_ = solved.solution.table(f"{self.solver} descent")
        self.n_iter_ = len(solved.solution.path) - 1
        self.objective_ = solved.solution.objective
        self.status_ = status_of(solved, watch, objective, design)

    def _take(self, predictor: Predictor, classes: Levels) -> None:
        self._note_columns(predictor.schema)
        self._classes = classes
        self.classes_ = class_array(classes, self._label_dtype)
        self.predictor_ = predictor
        self.status_ = "ok"

    def _restored(self) -> None:
        super()._restored()
        labels(self._classes, self.classes_, len(self.predictor_.constant))
        self._require_evidence_of(len(self.predictor_.schema.names))
        how = {hasattr(self, name) for name in ("path_", "n_iter_", "objective_")}  # `to_linear` used no solver
        require(len(how) == 1, "path_, n_iter_ or objective_ is missing")

    # What was learned ----------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> FloatArray:
        """(1, p) for two classes, the second against the first; (K, p) for more."""
        self._require_fitted()
        return self._of_classes(self.predictor_.coefficients)

    @property
    def intercept_(self) -> FloatArray:
        """(1) or (K) the score of a row of zeros."""
        self._require_fitted()
        return self._of_classes(self.predictor_.intercept)

    @property
    def n_parameters_(self) -> int:
        """Free parameters: (K − 1)(p + 1)."""
        self._require_fitted()
        classes, features = self.predictor_.coefficients.shape
        return int((classes - 1) * (features + 1))

    def _of_classes(self, values: FloatArray) -> FloatArray:
        if len(values) == 2 and self._pairwise:
            return values[1:] - values[:1]
        return values

    def summary(self) -> Summary:
        """What was learned, as a table.

        Returns
        -------
        Summary
            The coefficients, in decibans too for two classes, and how the solver reached them.
        """
        self._require_fitted()
        names = ("(intercept)", *self.feature_names_)
        values = np.hstack([self.intercept_[:, np.newaxis], self.coef_])
        if len(values) == 1:
            header: tuple[str, ...] = ("", "coefficient", "decibans")
            columns = [values[0], values[0] * DECIBANS]
            title = f"log-odds of {self._classes[1]} against {self._classes[0]}"
        else:
            header, columns, title = ("", *map(str, self._classes)), list(values), "scores of the classes"
        body = tuple((name, *(float(c[i]) for c in columns)) for i, name in enumerate(names))
        sizes = (len(self._classes), "class"), (len(names) - 1, "feature"), (self.n_parameters_, "parameter")
        counted = ", ".join(counted_word(n, word) for n, word in sizes)
        notes = self.schema_.notes() + ([] if self.status_ == "ok" else [self.status_])
        if hasattr(self, "path_"):
            notes.insert(0, f"{self.n_iter_} iterations, objective {self.objective_:.6g}")
        return Summary(f"{type(self).__name__}: {counted}", (Table(title, header, body),), tuple(notes))

    # Predicting ----------------------------------------------------------------------------------------------------

    def decision_function(self, X: Rows) -> FloatArray:
        """The scores of rows: log-odds for two classes.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.

        Returns
        -------
        array of shape (n,) for two classes, (n, K) for more
            Log-odds of the second class in nats, or the scores of all classes.
        """
        scores = self._scores(X, lambda joint, prior: 0)[0]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


class SoftmaxRegression(LogisticRegression):
    """Softmax regression: the score of each class is linear in the features, by maximum likelihood.

    p(c|x) = exp(w_c·x + b_c) / Σ_k exp(w_k·x + b_k)

    One vector for every class, also for two. The vectors sum to 0; l2 penalises all of them alike. In everything else
    it is LogisticRegression.

    Parameters
    ----------
    solver : "newton" or "gradient", default "newton"
        "newton": w ← w − H⁻¹∇J with a line search; where H is too large or rows are many, L-BFGS preconditioned with
        the curvature of a sample or of the features. "gradient": batch gradient descent on standardised features,
        with a step below the inverse of the largest curvature.
    l2 : float, default 0.0
        Penalty on the coefficients, not on the intercepts; what scikit-learn calls 1/C. 0 is maximum likelihood.
    init : "zero" or "generative", default "zero"
        Start from the class shares alone, or from the linear form of a GaussianDiscriminant with shared covariance.
    firth : bool, default False
        Maximise the likelihood times √|information| (Firth 1993): finite on separable data, and less biased.
    tol : float or None, default None
        Stop when a step promises less than tol·J. None: 1e-10; 1e-16 for firth and 1e-20 for "gradient", which converge
        linearly.
    max_iter : int or None, default None
        The largest number of iterations. None: 100, or 10,000 for "gradient".

    Attributes
    ----------
    coef_ : array of shape (K, p)
        The coefficients of the encoded features, in nats for each unit. 10/log 10 of them are decibans.
    intercept_ : array of shape (K,)
        The score of a row of zeros.
    classes_ : array of shape (K,)
        The classes, sorted. Columns of `predict_proba` are in this order.
    feature_names_ : tuple of str
        The names of the encoded features, such as "job = nurse": one for each coefficient.
    status_ : str
        "ok", or what is wrong: separable classes, collinear or constant columns, no convergence; a warning says what to
        do. Of collinear columns the coefficients are not unique; of separable classes they are only where the solver
        stopped.
    objective_ : float
        J at the solution.
    path_ : Table
        J, the norm of its gradient (in standardised features) and the step taken, by iteration; step 0 at the end.
        `plot_path()` draws it.
    n_iter_ : int
        The number of iterations. If it is `max_iter`, the fit did not converge: see `status_`.
    feature_importances_ : array of shape (n_features_in_,)
        The mean absolute decibans of each feature over training rows. Use them to see which features matter.
    column_evidence_ : Table
        The same with names, the most important first, and the mean decibans for the true class, which is negative for a
        feature that misleads.
    importances_ : array of shape (n_features_in_,) or None
        `feature_importances_`, but None instead of an error where they are unknown.
    column_treatments_ : dict of int to Treatment
        What is done with each feature (by position), and why, in words. Read it to check how a column was understood.
    n_parameters_ : int
        The number of free parameters, (K − 1)(p + 1).
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
    deciban.LogisticRegression : One vector for two classes.

    Examples
    --------
    >>> import deciban as db
    >>> X = [[0.0], [1.0], [2.0], [1.5], [2.5], [3.0], [2.8], [3.5], [4.0]]
    >>> model = db.SoftmaxRegression(l2=1.0).fit(X, list("aaabbbccc"))
    >>> model.coef_.shape, model.predict([[0.5], [4.0]]).tolist()
    ((3, 1), ['a', 'c'])
    """

    description = "The score of each class is linear in the features, by maximum likelihood."

    _pairwise = False


def _generative_start(objective: Criterion, otherwise: FloatArray) -> FloatArray:
    """θ of a discriminant with shared covariance: Σ⁻¹(μ_c − μ_0), and the intercepts that go with it.

    A singular covariance is no start: then it is `otherwise`.
    """
    statistic = objective.scatter()
    context = Context(tuple(range(objective.m + 1)), tuple(range(objective.rows.shape[1])))
    with capture_warnings():
        params = MultivariateGaussian().estimate(statistic, context)
    if params.status != "ok":
        return otherwise
    scale, origin = objective.rows.scale, objective.rows.origin  # about the rows' origin, in their scale
    whiten = params.whiten[0] * scale
    spheres = (params.mean - origin) / scale @ whiten.T
    theta = np.hstack([spheres @ whiten, -0.5 * (spheres**2).sum(axis=1, keepdims=True)])
    theta[:, -1] += np.log(statistic.count.value)
    result: FloatArray = theta[1:] - theta[0]
    return result
