"""Leave-one-out the slow way: a family that learns all the other rows, for every row."""

import numpy as np

from deciban.families import Context
from deciban.families.family import Fitted
from deciban.families.labelled_values import LabelledValues
from tests.laws import rows_of


def as_it_is(rest, whole):
    return rest


def left_out(family, values, labels, weights, context):
    """(n, K) log p(x_i | class) from the statistic of all rows, row i taken out of it."""
    evidence = family.collect(values, labels, weights, len(context.classes))
    out = np.full((len(labels), len(context.classes)), 3.0)  # it adds to what is there
    fitted = Fitted(evidence, family.estimate(evidence, context), context)
    family.leave_one_out(fitted, LabelledValues(family.coded_for(evidence, values), labels, weights), out)
    return out - 3.0


def refitted(family, values, labels, weights, context, after_subtraction=as_it_is):
    """(n, K) the same, each row from an estimate that never saw it."""
    classes = len(context.classes)
    whole = family.collect(values, labels, weights, classes)
    found = np.empty((len(labels), classes))
    for i in range(len(labels)):
        others, row = np.delete(np.arange(len(labels)), i), rows_of(values, np.array([i]))
        rest_weights = None if weights is None else weights[others]
        rest = after_subtraction(family.collect(rows_of(values, others), labels[others], rest_weights, classes), whole)
        found[i] = family.log_density(family.estimate(rest, context), family.coded_for(rest, row), classes)[0]
    return found


def assert_left_out_is_refitted(family, values, labels, weights=None, after_subtraction=as_it_is, **settings):
    """Of more rows than the laws draw; NaN is missing, and every class has two rows or more."""
    values = np.array(values) if isinstance(values, list) else values
    labels = np.asarray(labels, np.int32)
    weights = None if weights is None else np.asarray(weights, np.float64)
    context = Context(tuple(range(labels.max() + 1)), tuple(range(values.shape[1])), **settings)
    given = family, values, labels, weights, context
    np.testing.assert_allclose(left_out(*given), refitted(*given, after_subtraction), rtol=1e-10, atol=1e-10)
