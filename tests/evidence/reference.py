"""Tables that are made, and evidence the slow way: from counts of the rows that are left, one row at a time."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from deciban.data import Sample, frame_of
from deciban.data.batch import Coded
from deciban.data.labels import encode_labels
from deciban.data.sampling import row_keys
from deciban.data.schema import Schema
from deciban.evidence.evidence_by_block import evidence_by_block
from deciban.evidence.evidence_rows import EvidenceRows
from deciban.evidence.folds import assign_folds
from deciban.evidence.structure import JointSettings, first_plans, joint_plans
from deciban.evidence.weights import Weights
from deciban.generative.model import Generative
from deciban.generative.plan import is_sparse
from tests.kernels.test_forest_kernels import reachable_leaves

CLASSES = np.array(["egg", "ham", "spam"])


def mixed(n=160, seed=0, classes=3):
    """A table with every kind of feature and missing values, and labels; two features are informative only together."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    swap = rng.random(n) < 0.5
    table = pd.DataFrame(
        {
            "height": np.where(rng.random(n) < 0.1, np.nan, rng.normal(y, 1.5)),
            "width": rng.normal(0.5 * y, 2.0).round(1),
            "colour": np.where(rng.random(n) < 0.1, None, rng.choice(["red", "green", "blue"], n)),
            "code": np.array(["u", "v", "w"])[(y + (rng.random(n) < 0.4)) % 3],
            "left": np.where(swap, "a", "b"),
            "right": np.where(swap ^ (y == 0) ^ (rng.random(n) < 0.15), "a", "b"),
            "flag": rng.random(n) < 0.3 + 0.2 * y,
        }
    )
    return table, CLASSES[y]


def class_rows(labels, weights=None, classes=None):
    """(K) n_c: the rows of each class."""
    return np.bincount(labels, weights, classes or 0).astype(float)


def centred(evidence):
    return evidence - evidence.mean(axis=-1, keepdims=True)


def of_cells(codes, labels, weights, rows, virtual, *, left_out):
    """(n, K) log (N_c(v) + sπ_c) − log π_c, centred, with or without the row itself; code −1 has no evidence.

    Without the row, N_y(v) is counted among n_y − w rows of its class, and is taken in proportion to n_y.
    """
    alike = (codes[:, np.newaxis] == codes) & (codes >= 0)
    return of_rows_alike(alike, labels, weights, rows, virtual, left_out=left_out)


def of_rows_alike(alike, labels, weights, rows, virtual, *, left_out):
    """(n, K) the same, where N_c counts the rows that are like each row, alike (n, n); zero where none is."""
    weights = np.ones(len(alike)) if weights is None else weights
    prior, actual = rows / rows.sum(), np.zeros((len(alike), len(rows)))
    for i in np.flatnonzero(alike.any(axis=1)):
        counts = np.bincount(labels[alike[i]], weights[alike[i]], len(rows))
        if left_out:
            y, w = labels[i], min(weights[i], 1.0)
            counts[y] = (counts[y] - w) * rows[y] / (rows[y] - w)
        actual[i] = centred(np.log(counts + virtual * prior) - np.log(prior))
    return actual


def unknown_of(coding, codes):
    """(n, d) the codes of missing cells, and of values in no list."""
    actual = codes == 0
    for j, levels in enumerate(coding.levels):
        if levels is not None:
            actual[:, j] |= codes[:, j] == len(levels) + 1
    return actual


def alike_in_pair(codes, unknown, pair):
    """(n, n) whether rows have the codes of each row in those of two columns that are known in it; none if neither."""
    a, b = pair
    equal = codes[:, np.newaxis] == codes
    return np.where(
        (unknown[:, a] & unknown[:, b])[:, np.newaxis],
        False,
        (equal[:, :, a] | unknown[:, [a]]) & (equal[:, :, b] | unknown[:, [b]]),
    )


def alike_in_tree(forest, codes, unknown, tree):
    """(n, n) whether rows are in leaves that each row may be in, as far as its values are known."""
    nodes = forest.starts, forest.column, forest.code, forest.left, forest.reading.ordered
    nothing = np.zeros(codes.shape[1], np.bool_)
    own = np.array([reachable_leaves(row, nothing, *nodes, tree)[0] for row in codes])
    return np.array(
        [np.isin(own, reachable_leaves(row, mask, *nodes, tree)) for row, mask in zip(codes, unknown, strict=True)]
    )


def coded(columns, levels):
    """Columns of values as a Coded; None has no place unless it is listed."""
    places = [{value: i for i, value in enumerate(column)} for column in levels]
    codes = [[place.get(value, -1) for value in column] for place, column in zip(places, columns, strict=True)]
    return Coded(np.array(codes, np.int32).T.copy(), tuple(map(tuple, levels)))


def sampled(X, y, weights=None):
    """Rows as a model gets them."""
    weights = None if weights is None else np.asarray(weights, np.float64)
    return Sample(frame_of(X), encode_labels(y), weights)


def keys_of(X):
    return row_keys(frame_of(X), range(len(X.columns)), 0)


def fold_of(keys):
    """(n) the fold of each of different rows."""
    return assign_folds(keys, np.zeros(len(keys), np.int32), None).folds


def collected(sample, joint=lambda single, sample: ()):
    """Evidence of columns one by one, and of those that are read together."""
    schema = Schema.of(sample.frame)
    single = Generative.collect(sample, schema, first_plans(schema, sparse=is_sparse(sample.frame)), "category")
    plans = joint(single, sample)
    if not plans:
        return single
    more = Generative.collect(sample, schema, plans, "category")
    return replace(single, blocks=(*more.blocks, *single.blocks))


def gathered(model, sample, *, held_out=False):
    """The evidence of all pieces for rows, the pieces, and the keys of the rows."""
    rows_of = EvidenceRows.held_out if held_out else EvidenceRows.of_training
    return rows_of(model, sample, 0).evidence(evidence_by_block(model))


FITTED = {}


def fit_weights(model, sample):
    """The weights of training rows, fitted once for each model and sample."""
    key = id(model), id(sample)  # both are kept, so that no other has their id
    if key not in FITTED:
        FITTED[key] = model, sample, Weights.fit(EvidenceRows.of_training(model, sample, 0), evidence_by_block(model))
    return FITTED[key][-1]


def left_out(weighted, sample):
    """Leave-one-out predictions of training rows."""
    return weighted.leave_one_out(EvidenceRows.of_training(weighted.evidence, sample, 0))


def together(single, sample):
    """Plans of all kinds."""
    return joint_plans(single, sample, JointSettings(None, 5, 0))


def learned(n=160, seed=0, classes=3, weights=None):
    """A model, and its training rows."""
    if weights is None:
        return unweighted(n, seed, classes)
    sample = sampled(*mixed(n, seed, classes), weights)
    return collected(sample, together), sample


@cache
def unweighted(n, seed, classes):
    sample = sampled(*mixed(n, seed, classes))
    return collected(sample, together), sample
