"""Learning curves: log-loss and error by the number of training rows."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.data.class_index import ClassIndex
from deciban.data.input_types import Classifier, Rows, SampleWeight, Target
from deciban.data.sampling import seed_of
from deciban.errors import DecibanError, capture_warnings
from deciban.evaluation.evaluation_rows import EvaluationRows, classes_of, log_proba, require_model
from deciban.evaluation.keyword_hints import hint_keywords
from deciban.table import Table, numbered
from deciban.types import IntArray, Labels

LEAST = 1e-15  # smaller probabilities are clipped, so that one row does not make the loss infinite
STEPS, FIRST = 8, 10  # of the default sizes: their number, and the smallest if classes are few

HEADER = ("model", "rows", "repeat", "log_loss", "error")


@hint_keywords
def learning_curve(
    models: Classifier | Sequence[Classifier] | Mapping[str, Classifier],
    X: Rows,
    y: Target,
    *,
    sizes: Sequence[int] | None = None,
    repeats: int = 5,
    test_size: float = 0.3,
    random_state: int | None = 0,
    sample_weight: SampleWeight | None = None,
) -> Table:
    """Compare models by the number of rows that they are fitted to.

    log_loss = −mean log p(true class | x) and error = the share classified wrongly, after fitting n rows

    A generative model is often the better one while rows are few, a discriminative one when they are many; this
    shows where they cross. In each repeat a share `test_size` of the rows is held out; the models are fitted to
    growing samples of the others, each of which contains the smaller ones. Samples and test rows are stratified, and
    every sample has a row of every class.

    A probability below 1e-15 counts as 1e-15, and so does that of a class the model has not seen. The loss is in nats,
    and repeats count from 0. The table is long, ready to plot, for example with altair::

        alt.Chart(curve.to_frame()).mark_line(point=True).encode(
            x=alt.X("rows").scale(type="log"), y="mean(log_loss)", color="model"
        )

    Parameters
    ----------
    models : classifier, list or dict
        One model, several, or names and models. They need `fit`, `predict_log_proba` or `predict_proba`, and
        `classes_`, as classifiers of scikit-learn have. Copies are fitted; the models themselves are not changed.
    X : array-like, DataFrame, sparse matrix or list of documents
        The rows; those of a stream are read into memory.
    y : array-like of shape (n,), or str
        The class of each row, or the name of the column of X that holds it.
    sizes : list of int or None, default None
        Numbers of training rows; by default about 8, from few to all that are not held out.
    repeats : int, default 5
        How often rows are split.
    test_size : float, default 0.3
        The share of the rows that is held out.
    random_state : int or None, default 0
        The seed of the splits. None: others every time.
    sample_weight : array-like of shape (n,), str or None, default None
        For the fits and for both means; rows of weight 0 are ignored.

    Returns
    -------
    Table
        A row for each model, number of rows and repeat.

    Raises
    ------
    DecibanError
        If a size is larger than the rows that are not held out, or a model fails.

    See Also
    --------
    deciban.cross_validate : One figure from all rows.

    Examples
    --------
    >>> import deciban as db
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> models = [db.NaiveBayes(), db.GaussianDiscriminant()]
    >>> db.learning_curve(models, X, y, sizes=[15, 105], repeats=1)
    learning curve
      model                 rows  repeat   log_loss      error
      NaiveBayes              15       0    6.57931   0.222222
      GaussianDiscriminant    15       0   0.233477  0.0222222
      NaiveBayes             105       0  0.0872535  0.0444444
      GaussianDiscriminant   105       0  0.0244655          0
      (on 45 held-out rows; loss in nats)
    """
    named = _named(models)
    rows = EvaluationRows.of(X, y, sample_weight)
    parts = splits(rows.codes, repeats=repeats, test_size=test_size, seed=seed_of(random_state))
    steps = _sizes(sizes, len(parts[0].pool), len(np.unique(rows.codes)))
    table = []
    for repeat, part in enumerate(parts):
        test = rows.take(part.test)
        for size in steps:
            sample = rows.take(part.pool[:size])
            for name, model in named.items():
                table.append((name, size, repeat, *_fitted_losses(name, model, sample, test)))
    return Table("learning curve", HEADER, tuple(table), f"on {len(parts[0].test)} held-out rows; loss in nats")


# Samples -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """Training and test rows. The first n rows of the pool are the sample of n rows."""

    pool: IntArray
    test: IntArray


def splits(codes: Labels, *, repeats: int, test_size: float, seed: int) -> list[Split]:
    """A stratified split for each repeat.

    >>> split, = splits(np.array([0] * 8 + [1] * 2), repeats=1, test_size=0.5, seed=0)
    >>> len(split.pool), len(split.test)
    (5, 5)
    """
    if repeats < 1:
        raise DecibanError(f"repeats is {repeats}: it must be 1 or more")
    if not 0 < test_size < 1:
        raise DecibanError(f"test_size is {test_size}: it must be a share of the rows, between 0 and 1")
    pool = len(codes) - max(1, round(test_size * len(codes)))
    rng = np.random.default_rng(seed)
    orders = [_stratified(codes, rng) for _ in range(repeats)]
    return [Split(order[:pool], order[pool:]) for order in orders]


def _stratified(codes: Labels, rng: np.random.Generator) -> IntArray:
    """A random order that starts with a row of each class, and whose every prefix has the class shares of the whole.

    Row i of a class of n rows stands at (i + ½)/n of the way; ties are broken at random.
    """
    by_class = np.lexsort((rng.random(len(codes)), codes))
    _, first, count = np.unique(codes[by_class], return_index=True, return_counts=True)
    rank = np.arange(len(codes)) - np.repeat(first, count)
    position = (rank + 0.5) / np.repeat(count, count)
    order: IntArray = by_class[np.lexsort((rng.random(len(codes)), position, rank > 0))]
    return order


def _sizes(sizes: Sequence[int] | None, pool: int, classes: int) -> list[int]:
    """The numbers of training rows: ascending and distinct."""
    if pool < classes:
        raise DecibanError(f"{pool} rows are too few to train on {classes} classes: lower test_size, or pass more rows")
    if sizes is None:
        sizes = np.geomspace(min(pool, max(2 * classes, FIRST)), pool, STEPS).round().tolist()
    array = np.atleast_1d(np.asarray(sizes))
    if array.dtype.kind not in "iuf" or not array.size or (array != np.floor(array)).any():
        raise DecibanError(f"sizes are numbers of rows, such as [20, 50, 100]; got {sizes!r}")
    if array.max() > pool:
        raise DecibanError(f"sizes has {array.max():.15g}, but there are only {pool} training rows: pass at most that")
    if array.min() < classes:
        raise DecibanError(f"a sample of {array.min():.15g} rows cannot hold a row of each of the {classes} classes")
    return sorted({int(size) for size in array})


# Models --------------------------------------------------------------------------------------------------------------


def _named(models: Any) -> dict[str, Any]:
    if hasattr(models, "fit"):
        models = [models]
    pairs = models.items() if isinstance(models, Mapping) else [(type(model).__name__, model) for model in models]
    if not pairs:
        raise DecibanError("there are no models to fit: pass at least one")
    for name, model in pairs:
        require_model(model, name)
    return dict(zip(numbered(name for name, _ in pairs), (model for _, model in pairs), strict=True))


def _fitted_losses(name: str, model: Any, sample: EvaluationRows, test: EvaluationRows) -> tuple[float, float]:
    """Log-loss and error rate of a copy that is fitted to the sample."""
    weights = {} if sample.weights is None else {"sample_weight": sample.weights}
    try:
        fresh = copy.deepcopy(model)
        with capture_warnings():  # small samples are separable and singular
            fresh.fit(sample.x, sample.labels, **weights)
        return _losses(fresh, test)
    except Exception as error:
        raise DecibanError(f"{name}, fitted to {len(sample.codes)} rows: {error}") from error


def _losses(model: Any, test: EvaluationRows) -> tuple[float, float]:
    """Log-loss and error rate of a fitted model."""
    log_p = log_proba(model, test.x)
    true = ClassIndex(classes_of(model)).recode(test.codes, test.classes)  # −1: a class it has not seen
    of_true = np.where(true < 0, -np.inf, log_p[np.arange(len(true)), true])
    loss = 0.0 - np.average(np.maximum(of_true, np.log(LEAST)), weights=test.weights)
    return float(loss), float(np.average(log_p.argmax(axis=1) != true, weights=test.weights))
