"""What families have in common: bad cells, constant columns, empty classes, and descriptions of parameters."""

import numpy as np
import pytest
import scipy.sparse as sp

from deciban.data.batch import UNSEEN, Coded
from deciban.errors import BadCell
from deciban.families import (
    Bernoulli,
    Binned,
    Categorical,
    Context,
    Exponential,
    Gaussian,
    Multinomial,
    MultivariateGaussian,
    Poisson,
    Uniform,
)
from deciban.families.priors import Laplace, Virtual
from tests.cases import cases
from tests.families.refits import fit

INFINITE = {np.inf: "infinite", -np.inf: "infinite"}
TOO_LARGE = {1e200: "too large"}
OUTSIDE = [  # values outside the domain, and the problem that is named
    (Gaussian(), INFINITE | TOO_LARGE),
    (Uniform(), INFINITE),
    (Binned(), INFINITE),
    (Bernoulli(), {2.0: "neither 0 nor 1"}),
    (Bernoulli(threshold=0.5), INFINITE),
    (Multinomial(), {-1.0: "not a count", np.inf: "finite"} | TOO_LARGE),
    (Poisson(), {-1.0: "not a count", 0.5: "whole number", np.inf: "infinite"} | TOO_LARGE),
    (Exponential(), {0.0: "not above 0", -1.0: "not above 0", np.inf: "infinite"} | TOO_LARGE),
    (MultivariateGaussian(), INFINITE | TOO_LARGE | {1.7e308: "too large"}),
    (MultivariateGaussian("per-class"), INFINITE | TOO_LARGE | {1.7e308: "too large"}),
]


@cases("family, outside", OUTSIDE)
def test_a_cell_outside_the_domain_is_named(family, outside):
    sparse = isinstance(family, Bernoulli | Multinomial)
    for bad, problem in outside.items():
        for rows in (np.asarray, sp.csr_array) if sparse else (np.asarray,):
            with pytest.raises(BadCell, match=problem) as caught:
                fit(family, rows([[1.0, 1.0], [1.0, bad]]), [0, 0])
            assert (caught.value.row, caught.value.column) == (1, 1)


@cases("family, outside", [case for case in OUTSIDE if isinstance(case[0], Multinomial | Poisson | Exponential)])
def test_a_cell_outside_the_domain_is_named_at_prediction(family, outside):
    params = fit(family, [[1.0, 2.0], [3.0, 1.0]])
    for bad in outside.keys() - {1e200}:
        for rows in (np.asarray, sp.csr_array) if isinstance(family, Multinomial) else (np.asarray,):
            with pytest.raises(BadCell):
                family.log_density(params, rows([[1.0, bad]]), 2)


NEVER = [np.nan] * 6
SILENT = [  # columns that say nothing
    *((Gaussian(), column) for column in ([0.1] * 6, NEVER, [np.nan, 7.0, *[np.nan] * 4])),
    *((Uniform(), column) for column in ([0.1] * 6, NEVER)),
    *((Bernoulli(), column) for column in ([0.0] * 6, [1.0] * 6, NEVER)),
    *((Bernoulli(Laplace(0.0)), column) for column in ([0.0] * 6, [1.0] * 6, NEVER)),
    *((Binned(bins), column) for bins in ("supervised", "equal-frequency") for column in ([0.1] * 6, NEVER)),
    *((Binned("equal-width"), column) for column in ([0.1] * 6, NEVER)),
    *((family, column) for family in (Poisson(), Poisson(Virtual(0.3))) for column in ([3.0] * 6, [0.0] * 6, NEVER)),
    *((family, column) for family in (Exponential(), Exponential(Virtual(0.7))) for column in ([0.3] * 6, NEVER)),
]


@cases("family, column", SILENT)
def test_a_column_constant_or_never_present_is_silent(family, column):
    varies = [0.0, 1.0, 1.0, 0.0, 0.0, 0.0] if isinstance(family, Bernoulli) else np.arange(1.0, 7.0)
    params = fit(family, np.column_stack([varies, column]), [0, 1, 0, 1, 1, 1])
    assert 1 in family.silent(params)
    densities = [family.log_density(params, np.array([[1.0, value]]), 2) for value in (1.0, np.nan)]
    np.testing.assert_allclose(np.diff(densities[0]), np.diff(densities[1]), rtol=1e-14, atol=1e-15)


@cases("values", [["red"] * 8, [None] * 8])
def test_a_category_constant_or_never_present_is_silent(values):
    coded = Coded(np.array([[0 if v else -1] for v in values], np.int32), (("red",),))
    params = fit(Categorical(), coded)
    assert list(Categorical().silent(params)) == [0]
    asked = Coded(np.array([[0 if params.levels[0] else UNSEEN]], np.int32), params.levels)
    np.testing.assert_allclose(Categorical().log_density(params, asked, 2), [[0, 0]], atol=1e-15)


COLOURS = Coded(np.array([[1], [1], [0], [-1]], np.int32), (("blue", "red"),))
EMPTY_CLASS = [  # values of three rows of class 0 and one of class 1 without any; of rows to predict; their densities
    (Gaussian(), [[1.0], [2.0], [6.0], [np.nan]], [[3.0]], 1 / np.sqrt(2 * np.pi * 14 / 3)),
    (Uniform(Laplace(0.0)), [[1.0], [2.0], [6.0], [np.nan]], [[3.0]], 1 / 5),
    (Poisson(), [[1.0], [2.0], [6.0], [np.nan]], [[0.0]], np.exp(-3)),
    (Exponential(), [[1.0], [2.0], [6.0], [np.nan]], [[3.0]], np.exp(-1) / 3),
    (Bernoulli(), [[1.0], [1.0], [0.0], [np.nan]], [[1.0]], 2 / 3),
    (Multinomial(), [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 1.0]], 2 / 3),
    (Binned("equal-frequency", count=2), [[1.0], [1.0], [2.0], [np.nan]], [[1.0]], 2 / 3),
    (Categorical(), COLOURS, Coded(np.array([[1]], np.int32), COLOURS.levels), 2 / 3),
]


@cases("family, values, asked, density", EMPTY_CLASS)
def test_a_class_with_no_cell_is_like_all_together_without_smoothing(family, values, asked, density):
    params = fit(family, values, [0, 0, 0, 1], smoothing=0.0)
    asked = asked if isinstance(asked, Coded) else np.array(asked)
    np.testing.assert_allclose(np.exp(family.log_density(params, asked, 2)), [[density] * 2], rtol=1e-14)


DESCRIBED = [  # values of one class; parameters, header and rows of the table
    (Gaussian(), [[1.0], [3.0]], 2, ("class", "mean", "sd"), [("all", 2.0, 1.0)]),
    (Uniform(), [[1.0], [3.0], [5.0]], 2, ("class", "from", "to"), [("all", 0.0, 6.0)]),
    (Bernoulli(), [[1.0], [1.0], [0.0]], 1, ("class", "false", "true"), [("all", 0.4, 0.6)]),
    (Multinomial(), [[2.0, 0.0]], 1, ("word", "all"), [("a", 3 / 4), ("b", 1 / 4)]),
    (Poisson(), [[1.0], [3.0]], 1, ("class", "rate"), [("all", 2.0)]),
    (Exponential(), [[1.0], [3.0]], 1, ("class", "rate"), [("all", 0.5)]),
    (Binned("equal-frequency", count=2), [[1], [2], [3], [9]], 1, ("class", "< 2.5", ">= 2.5"), [("all", 0.5, 0.5)]),
    (Categorical(), COLOURS, 1, ("class", "blue", "red"), [("all", 2 / 5, 3 / 5)]),
]


@cases("family, values, parameters, header, rows", DESCRIBED)
def test_parameters_are_counted_and_described(family, values, parameters, header, rows):
    params = fit(family, values, [0] * (values.shape[0] if isinstance(values, Coded) else len(values)))
    assert family.n_parameters(params) == parameters
    (table,) = family.describe(params, Context(("all",), ("a", "b")[: len(rows)]))
    assert table.header == header
    assert [row[0] for row in table.rows] == [row[0] for row in rows]
    np.testing.assert_allclose([row[1:] for row in table.rows], [row[1:] for row in rows], rtol=1e-14)


FEW = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


@cases(
    "family, parameters",
    [
        (Gaussian(), 2 * 2 * 3),
        (Uniform(), 2 * 2 * 3),
        (Bernoulli(), 2 * 3),
        (Multinomial(), 2 * (3 - 1)),
        (Poisson(), 2 * 3),
        (Binned("equal-width", 2), 2 * 3 * (2 - 1)),
    ],
)
def test_parameters_of_two_classes_and_three_columns(family, parameters):
    assert family.n_parameters(fit(family, FEW)) == parameters
