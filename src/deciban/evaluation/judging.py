"""Judging models: on given rows, and by folds."""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import DecibanError, warn
from deciban.evaluation.evaluation import Evaluation
from deciban.evaluation.parted import cross_validate_parts, judged
from deciban.evaluation.predictions import check_probabilities
from deciban.evaluation.rows import Rows, classes_of, labelled, log_proba, proba, require_model, weights_given
from deciban.held_out import Foretold, rows_of_folds
from deciban.sources import Labelled, is_stream, settled, stream_of
from deciban.sources.intake import LabelledInput
from deciban.sources.labels import Encoded, encode_labels
from deciban.sources.parted import Parted
from deciban.sources.sampling import seed_of
from deciban.types import IntArray, Labels, Level, Levels


def evaluate(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Evaluation:
    """How good a fitted model's probabilities are on rows with known classes: accuracy, log-loss, AUC, calibration, ….

    - `model`: anything with `predict_proba` (or `predict_log_proba`) and `classes_`, of this library or another.
    - `X`, `y`: as for `fit`; y may be the name of a column of X. A stream, such as `deciban.scan`, is judged batch by
      batch.

    Evaluations add: that of two files is the sum of those of each. A class that the model does not know has
    probability 0. On the rows that the model learned from, `leave_one_out` and `cross_validate` are honest; this is
    not.

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
    if isinstance(X, Parted):
        return _of_batches(model, X, classes_of(model))
    if is_stream(X):
        return _of_stream(model, LabelledInput.of(X, y, sample_weight))
    rows, known = labelled(X, y, sample_weight), classes_of(model)
    _warn_of_strangers(rows.classes, known)
    return Evaluation.of(rows.labels, proba(model, rows.x), classes=known, sample_weight=rows.weights)


def _warn_of_strangers(classes: Collection[Level], known: Levels) -> None:
    if not {*known} & {*classes}:
        warn(f"no label is among the classes that the model knows: {tuple(classes)[:5]} are not {known[:5]}")


def _of_stream(model: Any, given: LabelledInput) -> Evaluation:
    """The sum of the evaluations of all batches."""
    own = hasattr(model, "_stream")
    stream = model._stream(given.x, first=False, also=given.named) if own else stream_of(given.x).knowing(given.named)
    rows, known = given.streamed(stream, classes_of(model)), classes_of(model)
    return settled(lambda: _of_batches(model, rows, known))


def _of_batches(model: Any, rows: Labelled, known: Levels) -> Evaluation:
    """The sum of the evaluations of all batches."""
    found = rows.summed(partial(judged, model, known), converts=False)
    met = found.confusion.sum(axis=1) > 0
    _warn_of_strangers([label for label, any_row in zip(found.classes, met, strict=True) if any_row], known)
    return found


def cross_validate(
    model: Any, X: Any, y: Any, cv: int | ArrayLike = 10, *, random_state: int | None = 0, sample_weight: Any = None
) -> Evaluation:
    """Every row judged by a model that has learned the other folds.

    A generative model reads the rows once, into a statistic for each fold, and learns "the others" by adding
    statistics; nothing is fitted again. Other models, of this library or another, are fitted once for each fold, as
    copies; the model itself stays as it is.

    - `cv`: how many folds; or the fold of each row, as an array of numbers or names.
    - `random_state`: rows are dealt to the folds at random, class by class, so that all folds have the classes' shares.

    The evaluation of all rows; its `parts` are those of the folds.

    >>> import deciban as db
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = db.cross_validate(db.NaiveBayes(), X, y, cv=5)
    >>> round(found.accuracy, 2), len(found.parts)
    (0.95, 5)
    """
    require_model(model, type(model).__name__)
    if isinstance(X, Parted):
        return cross_validate_parts(model, X, cv, seed_of(random_state))
    rows = labelled(X, y, sample_weight)
    given = weights_given(X, sample_weight)
    fold = _dealt(cv, seed_of(random_state), rows, given)
    parts = []
    for found in out_of_fold(model, rows, fold):
        weights = None if rows.weights is None else rows.weights[found.rows]
        p, codes = np.exp(found.log_p, out=found.log_p), rows.codes[found.rows]
        parts.append(Evaluation.scored(rows.classes, codes, p, weights, known=found.known))
    return replace(sum(parts[1:], parts[0]), parts=tuple(parts))


def out_of_fold(model: Any, rows: Rows, fold: IntArray) -> list[Foretold]:
    """Every fold foretold by a model that has learned the rows of all others."""
    if hasattr(model, "_out_of_fold"):
        labels = Encoded(rows.codes, rows.classes)
        done: list[Foretold] | None = copy.copy(model)._out_of_fold(rows.x, labels, rows.weights, fold)
        if done is not None:
            return done
    found = []
    for f, mine in enumerate(rows_of_folds(fold)):
        learned = rows.take(np.flatnonzero(fold != f))
        weights = {} if learned.weights is None else {"sample_weight": learned.weights}
        name, doing = type(model).__name__, f"fitted without fold {f} (rows count from 0 without it)"
        try:
            fresh = copy.deepcopy(model).fit(learned.x, learned.labels, **weights)
            doing = f"judging fold {f} (rows count from 0 within it)"
            log_p = log_proba(fresh, rows.take(mine).x)
            check_probabilities(np.exp(log_p), 1e-4)
        except Exception as error:
            raise DecibanError(f"{name}, {doing}: {error}") from error
        found.append(Foretold.of(mine, log_p, classes_of(fresh), rows.classes))
    return found


def deal(codes: Labels, folds: int, seed: int) -> IntArray:
    """(n) the fold of each row: rows of a class in random order, dealt like cards, one class after the other.

    >>> np.bincount(deal(np.array([0, 0, 0, 0, 1, 1], np.int32), 3, seed=0))
    array([2, 2, 2])
    """
    kind = np.int32 if len(codes) < 1 << 31 else np.int64  # the short one is shuffled faster
    order = np.random.default_rng(seed).permutation(np.arange(len(codes), dtype=kind))
    short = codes[order].astype(np.int16 if codes.max() < 1 << 15 else np.int32)  # which are sorted by radix
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order[np.argsort(short, kind="stable")]] = np.arange(len(codes)) % folds
    return fold


def _dealt(cv: int | ArrayLike, seed: int, rows: Rows, sample_weight: Any) -> IntArray:
    n = len(rows.codes)
    if np.ndim(cv) == 0:
        if not isinstance(cv, (int, np.integer)) or not 2 <= cv <= n:
            raise DecibanError(f"cv is {cv!r}: it must be a whole number from 2 to the number of rows, {n}")
        least = int(np.bincount(rows.codes).min())
        if least < cv:
            label = rows.classes[int(np.argmin(np.bincount(rows.codes)))]
            warn(f"class {label!r} has fewer rows ({least}) than there are folds ({cv}): some folds have none of it")
        return deal(rows.codes, int(cv), seed)
    try:
        named = encode_labels(cv)
    except (DecibanError, ValueError) as error:
        raise DecibanError(f"cv must name the fold of each row, by a number or a text: {error}") from error
    fold = named.codes.astype(np.intp)
    if sample_weight is not None and len(fold) == np.size(sample_weight):  # rows of weight 0 are gone
        fold = np.unique(fold[np.asarray(sample_weight) != 0], return_inverse=True)[1]
    if len(fold) != n:
        raise DecibanError(f"cv names {len(fold)} rows: give one fold for each of the {n} rows, or a number of folds")
    if fold.max() < 1:
        raise DecibanError("cv has one fold only: without it there would be no rows to learn from")
    return fold
