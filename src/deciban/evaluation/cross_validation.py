"""Evaluation of fitted models on labelled rows, and cross-validation."""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deciban.data import Labelled, Sample, frame_of, is_stream, labelled_rows, retry_with_wider_types
from deciban.data.column_reader import GivenColumns
from deciban.data.distributed import DistributedRows
from deciban.data.input_types import Classifier, Rows, SampleWeight, Target
from deciban.data.labels import Encoded, encode_labels
from deciban.data.sampling import seed_of
from deciban.data.text_columns import infer_notations
from deciban.errors import DecibanError, UnknownLabelsWarning, warn
from deciban.evaluation.distributed_folds import cross_validate_distributed, evaluate_batch
from deciban.evaluation.evaluation import Evaluation
from deciban.evaluation.evaluation_rows import EvaluationRows, classes_of, log_proba, proba, require_model
from deciban.evaluation.fitted_model import FittedModel
from deciban.evaluation.keyword_hints import hint_keywords
from deciban.evaluation.predictions import check_probabilities
from deciban.generative import held_out
from deciban.generative.held_out import OutOfFoldPredictions, rows_of_folds
from deciban.types import IntArray, Labels, Level, Levels


@hint_keywords
def evaluate(model: Classifier, X: Rows, y: Target | None, sample_weight: SampleWeight | None = None) -> Evaluation:
    """Evaluate the probabilities of a fitted model on labelled rows: accuracy, log-loss, AUC, calibration and more.

    Evaluations add: that of two files is the sum of those of each. A class that the model does not know has
    probability 0. For training rows, use `leave_one_out` or `cross_validate` instead: this would be overconfident.

    Parameters
    ----------
    model : classifier
        A fitted model of this library or another, with `predict_proba` (or `predict_log_proba`) and `classes_`.
    X : array-like, DataFrame, sparse matrix, list of documents, or scan
        The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
        texts; or a stream such as `deciban.scan(...)`, which is read in batches.
    y : array-like of shape (n,), or str
        The class of each row, or the name of the column of X that holds it. None for distributed rows.
    sample_weight : array-like of shape (n,), str or None, default None
        The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.

    Returns
    -------
    Evaluation
        Print it, or take `accuracy`, `log_loss`, `auc()`, `confusion`, ….

    Raises
    ------
    DecibanError
        If the model has no probabilities, or rows cannot be read.

    Warns
    -----
    DecibanWarning
        If no label is a class of the model.

    See Also
    --------
    deciban.cross_validate : For the rows that a model is fitted to.
    deciban.Evaluation.of : For probabilities that are there already.

    Examples
    --------
    >>> import deciban as db
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = db.NaiveBayes().fit(X[::2], y[::2])
    >>> odd, later = db.evaluate(model, X[1:100:2], y[1:100:2]), db.evaluate(model, X[101::2], y[101::2])
    >>> (odd + later).confusion
    array([[25.,  0.,  0.],
           [ 0., 24.,  1.],
           [ 0.,  2., 23.]])
    """
    require_model(model, type(model).__name__)
    if isinstance(X, DistributedRows):
        return _evaluate_batches(model, X, classes_of(model))
    if is_stream(X):
        columns = model.columns_ if isinstance(model, FittedModel) else GivenColumns(classes_of(model))
        streamed = labelled_rows(X, y, sample_weight, columns)
        return retry_with_wider_types(lambda: _evaluate_batches(model, streamed, classes_of(model)))
    rows, known = EvaluationRows.of(X, y, sample_weight), classes_of(model)
    _warn_of_unknown_labels(rows.classes, known)
    return Evaluation.of(rows.labels, proba(model, rows.x), classes=known, sample_weight=rows.weights)


def _warn_of_unknown_labels(classes: Collection[Level], known: Levels) -> None:
    if not {*known} & {*classes}:
        labels = f"the labels are {tuple(classes)[:5]}, the classes {known[:5]}"
        warn(f"no label is a class of the model: {labels}", UnknownLabelsWarning)


def _evaluate_batches(model: Any, rows: Labelled, known: Levels) -> Evaluation:
    """Evaluate rows batch by batch."""
    evaluation = rows.summed(partial(evaluate_batch, model, known), needs_small_batches=False)
    present = evaluation.confusion.sum(axis=1) > 0
    _warn_of_unknown_labels([evaluation.classes[k] for k in np.flatnonzero(present)], known)
    return evaluation


@hint_keywords
def cross_validate(
    model: Classifier,
    X: Rows,
    y: Target | None,
    cv: int | ArrayLike = 10,
    *,
    random_state: int | None = 0,
    sample_weight: SampleWeight | None = None,
) -> Evaluation:
    """Evaluate every row by a model that was fitted to the other folds.

    A generative model reads the rows once, into a statistic for each fold, and adds the statistics of the other folds;
    nothing is fitted again. Other models, of this library or another, are copied and fitted once for each fold; the
    model itself is not changed.

    Parameters
    ----------
    model : classifier
        A model of this library or another, with `fit` and `predict_proba` (or `predict_log_proba`); fitted or not.
    X : array-like, DataFrame, sparse matrix, list of documents, or scan
        The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
        texts; or a stream such as `deciban.scan(...)`, which is read in batches.
    y : array-like of shape (n,), or str
        The class of each row, or the name of the column of X that holds it. None for distributed rows.
    cv : int or array-like of shape (n,), default 10
        The number of folds; or the fold of each row, as numbers or names.
    random_state : int or None, default 0
        The seed of the folds, which are random and stratified. None: other folds every time.
    sample_weight : array-like of shape (n,), str or None, default None
        The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.

    Returns
    -------
    Evaluation
        Of all rows; its `parts` are those of the folds.

    Raises
    ------
    DecibanError
        If `cv` does not fit the rows, or a model fails; the message names the fold.

    See Also
    --------
    deciban.evaluate : For rows that the model was not fitted to.
    deciban.learning_curve : How figures depend on the number of rows.

    Examples
    --------
    >>> import deciban as db
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> evaluation = db.cross_validate(db.NaiveBayes(), X, y, cv=5)
    >>> round(evaluation.accuracy, 2), len(evaluation.parts)
    (0.95, 5)
    """
    require_model(model, type(model).__name__)
    if isinstance(X, DistributedRows):
        return cross_validate_distributed(model, X, cv, seed_of(random_state))
    rows = EvaluationRows.of(X, y, sample_weight)
    fold = _folds(cv, seed_of(random_state), rows)
    parts = []
    for predicted in out_of_fold(model, rows, fold):
        weights = None if rows.weights is None else rows.weights[predicted.rows]
        p, codes = np.exp(predicted.log_p, out=predicted.log_p), rows.codes[predicted.rows]
        parts.append(Evaluation.scored(rows.classes, codes, p, weights, known=predicted.known))
    return replace(sum(parts[1:], parts[0]), parts=tuple(parts))


def out_of_fold(model: Any, rows: EvaluationRows, fold: IntArray) -> list[OutOfFoldPredictions]:
    """The predictions for each fold, by a model that was fitted to all other folds."""
    if isinstance(model, FittedModel) and model.additive:
        sample = Sample(infer_notations(frame_of(rows.x), rows.x), Encoded(rows.codes, rows.classes), rows.weights)
        fit = model.additive_fit(sample)
        summed = None if fit is None else held_out.out_of_fold(sample, fold, *vars(fit).values())
        if summed is not None:
            return summed
    predictions = []
    for f, test in enumerate(rows_of_folds(fold)):
        training = rows.take(np.flatnonzero(fold != f))
        weights = {} if training.weights is None else {"sample_weight": training.weights}
        name, step = type(model).__name__, f"fitted without fold {f} (rows count from 0 without it)"
        try:
            fresh = copy.deepcopy(model).fit(training.x, training.labels, **weights)
            step = f"predicting fold {f} (rows count from 0 within it)"
            log_p = log_proba(fresh, rows.take(test).x)
            check_probabilities(np.exp(log_p), 1e-4)
        except Exception as error:
            raise DecibanError(f"{name}, {step}: {error}") from error
        predictions.append(OutOfFoldPredictions.of(test, log_p, classes_of(fresh), rows.classes))
    return predictions


def stratified_folds(codes: Labels, folds: int, seed: int) -> IntArray:
    """(n) the fold of each row: rows sorted by class, in random order within a class, take folds 0, 1, …, 0, 1, ….

    >>> np.bincount(stratified_folds(np.array([0, 0, 0, 0, 1, 1], np.int32), 3, seed=0))
    array([2, 2, 2])
    """
    dtype = np.int32 if len(codes) < 1 << 31 else np.int64  # the shorter is shuffled faster
    order = np.random.default_rng(seed).permutation(np.arange(len(codes), dtype=dtype))
    short = codes[order].astype(np.int16 if codes.max() < 1 << 15 else np.int32)  # short integers are radix-sorted
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order[np.argsort(short, kind="stable")]] = np.arange(len(codes)) % folds
    return fold


def _folds(cv: int | ArrayLike, seed: int, rows: EvaluationRows) -> IntArray:
    n = len(rows.codes)
    if np.ndim(cv) == 0:
        if not isinstance(cv, (int, np.integer)) or not 2 <= cv <= n:
            raise DecibanError(f"cv is {cv!r}: it must be a whole number from 2 to the number of rows, {n}")
        least = int(np.bincount(rows.codes).min())
        if least < cv:
            label = rows.classes[int(np.argmin(np.bincount(rows.codes)))]
            warn(f"class {label!r} has fewer rows ({least}) than there are folds ({cv}): some folds have none of it")
        return stratified_folds(rows.codes, int(cv), seed)
    try:
        encoded = encode_labels(cv)
    except (DecibanError, ValueError) as error:
        raise DecibanError(f"cv must be a number of folds, or the fold of each row: {error}") from error
    fold = encoded.codes.astype(np.intp)
    if len(fold) == rows.passed > n:  # rows of weight 0 are left out
        fold = np.unique(fold[rows.kept], return_inverse=True)[1]
    if len(fold) != n:
        raise DecibanError(f"cv has {len(fold)} rows: pass one fold for each of the {n} rows, or a number of folds")
    if fold.max() < 1:
        raise DecibanError("cv has one fold only, so there would be no training rows: pass at least two")
    return fold
