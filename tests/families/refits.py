"""Leave-one-out the slow way: a family that learns all the other rows, for every row."""

import numpy as np

from deciban.families import Context


def assert_left_out_is_refitted(family, x, labels, weights=None, smoothing=1.0, as_forgotten=lambda rest, whole: rest):
    """Of more rows than the laws draw; NaN in x is missing, and every class has two rows or more."""
    x, labels = np.asarray(x, np.float64), np.asarray(labels, np.int32)
    weights = None if weights is None else np.asarray(weights, np.float64)
    classes = int(labels.max()) + 1
    context = Context(tuple(range(classes)), tuple(range(x.shape[1])), smoothing)
    whole = family.collect(x, labels, weights, classes)
    expected = np.empty((len(x), classes))
    for i in range(len(x)):
        others = np.delete(np.arange(len(x)), i)
        rest = family.collect(x[others], labels[others], None if weights is None else weights[others], classes)
        params = family.estimate(as_forgotten(rest, whole), context)
        expected[i] = family.log_density(params, x[[i]], classes)[0]
    found = np.full(expected.shape, 3.0)
    family.leave_one_out(whole, family.estimate(whole, context), context, x, labels, weights, found)
    np.testing.assert_allclose(found - 3.0, expected, rtol=1e-10, atol=1e-10)
