"""Fits of a family, and leave-one-out the slow way: by a refit on the other rows, for every row."""

import numpy as np
import scipy.sparse as sp

from deciban.data.batch import Coded, Texts
from deciban.families import Context
from deciban.families.family import Fitted
from deciban.families.labelled_values import LabelledValues
from tests.laws import rows_of


def fit(family, x, labels=None, weights=None, **settings):
    """Parameters; classes and columns are called 0, 1, 2, …, and without labels two classes take turns."""
    x = x if sp.issparse(x) or isinstance(x, Coded | Texts) else np.asarray(x, np.float64)
    labels = np.arange(x.shape[0], dtype=np.int32) % 2 if labels is None else np.asarray(labels, np.int32)
    classes = int(labels.max()) + 1
    context = Context(tuple(range(classes)), tuple(range(x.shape[1])), **settings)
    return family.estimate(family.collect(x, labels, weights, classes), context)


def as_it_is(rest, whole):
    return rest


def left_out(family, values, labels, weights, context, rows=slice(None)):
    """(n, K) log p(x_i | class) of some rows from the statistic of all rows, row i taken out of it."""
    evidence = family.collect(values, labels, weights, len(context.classes))
    out = np.full((len(labels[rows]), len(context.classes)), 3.0)  # it adds to what is there
    fitted = Fitted(evidence, family.estimate(evidence, context), context)
    learned = LabelledValues(family.coded_for(evidence, values), labels, weights)
    family.leave_one_out(fitted, learned.take(rows), out)
    return out - 3.0


def refitted(family, values, labels, weights, context, after_subtraction=as_it_is, rows=slice(None)):
    """(n, K) the same, each row from an estimate that never saw it."""
    classes, rows = len(context.classes), np.arange(len(labels))[rows]
    whole = family.collect(values, labels, weights, classes)
    expected = np.empty((len(rows), classes))
    for k, i in enumerate(rows):
        others, row = np.delete(np.arange(len(labels)), i), rows_of(values, np.array([i]))
        rest_weights = None if weights is None else weights[others]
        rest = after_subtraction(family.collect(rows_of(values, others), labels[others], rest_weights, classes), whole)
        expected[k] = family.log_density(family.estimate(rest, context), family.coded_for(rest, row), classes)[0]
    return expected


def assert_left_out_is_refitted(family, values, labels, weights=None, after_subtraction=as_it_is, **settings):
    """Of more rows than the laws draw; NaN is missing, and every class has two rows or more."""
    values = np.array(values) if isinstance(values, list) else values
    labels = np.asarray(labels, np.int32)
    weights = None if weights is None else np.asarray(weights, np.float64)
    context = Context(tuple(range(labels.max() + 1)), tuple(range(values.shape[1])), **settings)
    given = family, values, labels, weights, context
    np.testing.assert_allclose(
        left_out(*given), refitted(*given, after_subtraction), rtol=1e-10, atol=1e-10, err_msg=f"{family} {settings}"
    )


def paired(first, second, third):
    """Cases in which every value of the first meets every value of the second, and the third goes round."""
    second, third = list(second), list(third)
    return [(a, b, third[(i + j) % len(third)]) for i, a in enumerate(first) for j, b in enumerate(second)]
