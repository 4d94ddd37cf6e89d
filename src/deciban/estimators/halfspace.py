"""Halfspace: a hyperplane between two classes, by linear programming."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from deciban.data.input_types import Rows, SampleWeight, Target
from deciban.data.intake import label_name, rows_in_memory
from deciban.errors import DecibanError, require
from deciban.estimators.estimator import ScoringClassifier, class_array, one_dimensional
from deciban.estimators.linear_estimator import LinearEstimator
from deciban.linear.design import Design
from deciban.linear.distributed_objective import forbid_distributed
from deciban.linear.linear_state import HalfspaceState
from deciban.linear.predictor import Predictor
from deciban.linear.separation import Certificate, Hyperplane, halfspace, least_slack
from deciban.persist.validation import labels
from deciban.types import FloatArray, IntArray


class Halfspace(HalfspaceState, LinearEstimator, ScoringClassifier):
    """Halfspaces: a hyperplane between two classes, or the proof that there is none, by linear programming.

    w, d with y_i (w·x_i − d) ≥ 1 for all rows, y = ±1

    The linear program is infeasible if no hyperplane separates. The second class in order is the positive one. Rows of
    weight 0 are left out; other weights are ignored. Features of any kind are encoded as by LogisticRegression. There
    are no parameters, and no probabilities.

    Attributes
    ----------
    separable_ : bool
        Whether a hyperplane separates the classes. If so, the likelihood of a LogisticRegression has no maximum: use
        `l2`.
    coef_ : array of shape (1, p)
        w: of a hyperplane with margin 1, or that of least total slack if the classes are not separable.
    intercept_ : array of shape (1,)
        −d.
    axis_intercepts_ : array of shape (p,)
        d/w_i, where the hyperplane meets the axes.
    certificate_ : Certificate or None
        The proof that no hyperplane separates: `rows` and `multipliers` λ ≥ 0 of a point that lies in the convex hulls
        of both classes (Farkas). None if one does.
    classes_ : array of shape (2,)
        The classes, sorted; the second is the positive one.
    feature_names_ : tuple of str
        The names of the encoded features, such as "job = nurse": one for each coefficient.
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
        Without probabilities there are no decibans.
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
    deciban.LogisticRegression : Probabilities, and classes that overlap.

    Examples
    --------
    >>> import deciban as db
    >>> corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> both = db.Halfspace().fit(corners, [False, False, False, True])
    >>> both.separable_, both.coef_, both.intercept_, both.axis_intercepts_
    (True, array([[2., 2.]]), array([-3.]), array([1.5, 1.5]))
    >>> either = db.Halfspace().fit(corners, [False, True, True, False])
    >>> either.separable_, either.certificate_.rows.tolist(), either.certificate_.multipliers.round(9).tolist()
    (False, [0, 1, 2, 3], [0.25, 0.25, 0.25, 0.25])
    """

    _state = HalfspaceState

    def fit(self, X: Rows, y: Target | None = None, sample_weight: SampleWeight | None = None) -> Self:
        """Learn from rows X with two classes y.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str, default None
            The class of each row, or the name of the column of X that holds it.
        sample_weight : array-like of shape (n,), str or None, default None
            Rows of weight 0 are left out; other weights are ignored.

        Returns
        -------
        self : estimator
            The same model.

        Raises
        ------
        DecibanError
            If y has not exactly two classes, or the rows are distributed.
        """
        forbid_distributed(X, self)
        data = rows_in_memory(X, one_dimensional(y), sample_weight).nonzero()
        classes, numbers = data.labels.classes, data.row_numbers
        if len(classes) != 2:
            count = "1 class" if len(classes) == 1 else f"{len(classes)} classes"
            raise DecibanError(
                f"a halfspace separates two classes; y holds {count}: {list(classes)[:10]}. "
                "Only binary classification is supported."
            )
        design = Design.of(data.frame, data.weights, numbers)
        x = design.matrix(data.frame, rows=numbers)
        x = x if x.dtype == np.float64 else x.astype(np.float64)
        sign = np.where(data.labels.codes == 1, 1.0, -1.0)
        varies = _varying(x)  # a constant feature is not distinguishable from the offset
        solution = halfspace(x[:, varies], sign)
        plane = solution if isinstance(solution, Hyperplane) else least_slack(x[:, varies], sign)
        weights = np.zeros(x.shape[1])
        weights[varies] = plane.weights
        plane = Hyperplane(weights, plane.offset)
        self._note_columns(design.schema)
        self._label_name = label_name(X, y)
        self.classes_ = class_array(classes, getattr(y, "dtype", None) if isinstance(y, np.ndarray) else None)
        self.separable_ = isinstance(solution, Hyperplane)
        self.certificate_ = None if isinstance(solution, Hyperplane) else _numbered(solution, numbers)
        w = np.stack([np.zeros_like(plane.weights), plane.weights])
        self.predictor_ = Predictor(design, w, np.array([0.0, -plane.offset]), np.zeros(w.shape[1]))
        self.axis_intercepts_ = plane.axis_intercepts
        return self

    def _restored(self) -> None:
        super()._restored()
        labels(tuple(self.classes_.tolist()), self.classes_, len(self.predictor_.constant))
        require(self.axis_intercepts_.shape == self.predictor_.origin.shape, "axis_intercepts_ of other features")

    @property
    def coef_(self) -> FloatArray:
        """(1, p) w."""
        self._require_fitted()
        return self.predictor_.coefficients[1:]

    @property
    def intercept_(self) -> FloatArray:
        """(1) −d."""
        self._require_fitted()
        return self.predictor_.intercept[1:]

    def decision_function(self, X: Rows) -> FloatArray:
        """w·x − d: positive on the side of the second class.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.

        Returns
        -------
        array of shape (n,)
            1 and −1 are the margins of separable classes.
        """
        return self._scores(X, lambda scores, prior: 0)[0][:, 1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _varying(x: Any) -> IntArray:
    low, high = x.min(axis=0), x.max(axis=0)
    if sp.issparse(x):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return np.flatnonzero(low < high)


def _numbered(certificate: Certificate, rows: IntArray) -> Certificate:
    """The certificate with rows numbered as they were passed."""
    return Certificate(rows[certificate.rows], certificate.multipliers)
