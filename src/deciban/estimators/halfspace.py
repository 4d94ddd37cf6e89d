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
    """w, d with y_i (w·x_i − d) ≥ 1 for all rows, y = ±1: a linear program; infeasible if no hyperplane separates.

    The second class in order is the positive one. Rows of weight 0 are left out; other weights are ignored. Features of
    any kind are encoded as by LogisticRegression. There are no parameters.

    Attributes
    ----------
    separable_ : bool
        Whether a hyperplane separates the classes.
    coef_, intercept_ : (1, p) and (1) arrays
        w and −d: a hyperplane with margin 1, or that of least total slack if the classes are not separable.
    axis_intercepts_ : (p) array
        d/w_i, where the hyperplane meets the axes.
    certificate_ : Certificate or None
        The proof that no hyperplane separates: rows and multipliers λ ≥ 0 of a point that lies in the convex hulls of
        both classes (Farkas).
    classes_ : (2) array
    feature_names_ : names of the encoded features
    n_features_in_ : int
    feature_names_in_ : (d) array, if X had names
    label_name_ : str or None

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
        """Learn from rows X and their two classes y: an array, or the name of a column of X."""
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
        """(n) w·x − d: positive on the side of the second class."""
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
