"""Tables that are made, and evidence the slow way: from counts of the rows that are left, one row at a time."""

from dataclasses import replace

import numpy as np
import pandas as pd

from deciban.batch import Coded
from deciban.generative import Generative
from deciban.plans import is_sparse
from deciban.schema import Schema
from deciban.sources import Sample, frame_of
from deciban.sources.labels import encode_labels
from deciban.sources.sampling import row_keys
from deciban.weighing.folds import deal
from deciban.weighing.left_out import LeftOut
from deciban.weighing.readers import readers_of
from deciban.weighing.structure import first_plans, joint_plans
from tests.test_forest_kernels import reachable_leaves

CLASSES = np.array(["egg", "ham", "spam"])


def mixed(n=240, seed=0, classes=3):
    """Every kind of column, with holes, in a table; and labels that they tell of, two of them together."""
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
    prior, found = rows / rows.sum(), np.zeros((len(alike), len(rows)))
    for i in np.flatnonzero(alike.any(axis=1)):
        counts = np.bincount(labels[alike[i]], weights[alike[i]], len(rows))
        if left_out:
            y, w = labels[i], min(weights[i], 1.0)
            counts[y] = (counts[y] - w) * rows[y] / (rows[y] - w)
        found[i] = centred(np.log(counts + virtual * prior) - np.log(prior))
    return found


def unknown_of(coding, codes):
    """(n, d) the codes of missing cells, and of values in no list."""
    found = codes == 0
    for j, levels in enumerate(coding.levels):
        if levels is not None:
            found[:, j] |= codes[:, j] == len(levels) + 1
    return found


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
    """(n, n) whether rows are in leaves that each row may be in, as far as its cells are known."""
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
    return deal(keys, np.zeros(len(keys), np.int32), None).folds


def collected(sample, joint=lambda single, sample: ()):
    """Evidence of columns one by one, and of those that are read together."""
    schema = Schema.of(sample.frame)
    single = Generative.collect(sample, schema, first_plans(schema, sparse=is_sparse(sample.frame)), "category")
    plans = joint(single, sample)
    if not plans:
        return single
    more = Generative.collect(sample, schema, plans, "category")
    return replace(single, blocks=(*more.blocks, *single.blocks))


def gathered(model, sample, *, learned=True):
    """What all pieces say of rows, the pieces, and the keys of the rows."""
    return LeftOut.of(model, sample, 0, learned=learned).evidence(readers_of(model))


def together(single, sample):
    """Plans of all kinds."""
    return joint_plans(single, sample, None, 5, 0)


def learned(n=240, seed=0, classes=3, weights=None):
    """A model, and the rows that it has learned."""
    sample = sampled(*mixed(n, seed, classes), weights)
    return collected(sample, together), sample
