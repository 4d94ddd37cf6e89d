"""Halfspace: the linear program of the lectures, its hyperplane, and the proof that there is none."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError

import deciban as db

CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def apart(iris):
    """Setosa and versicolor, which a plane separates."""
    x, y = iris
    return x[:100], y[:100]


@pytest.fixture(scope="module")
def mingled(iris):
    """Versicolor and virginica in tenths of a centimetre: whole numbers, which no plane separates."""
    x, y = iris
    return np.rint(10 * x[50:]).astype(int), y[50:]


def signs(y):
    return np.where(y == np.unique(y)[1], 1.0, -1.0)


# Separable
def test_every_row_has_a_margin_of_1(apart):
    """y_i (w·x_i − d) ≥ 1, summed by us and by numpy."""
    x, y = apart
    model = db.Halfspace().fit(x, y)
    assert model.separable_
    assert model.certificate_ is None
    assert (signs(y) * (x @ model.coef_[0] + model.intercept_[0]) >= 1).all()
    assert (signs(y) * model.decision_function(x) >= 1).all()
    assert model.score(x, y) == 1


def test_every_row_has_a_margin_of_1_in_exact_arithmetic(iris):
    """Whole numbers: the weights are doubles, and so fractions."""
    x, y = np.rint(10 * iris[0][:100]).astype(int), iris[1][:100]
    model = db.Halfspace().fit(x, y)
    w, b = [Fraction(v) for v in model.coef_[0]], Fraction(model.intercept_[0])
    for row, sign in zip(x.tolist(), signs(y).tolist(), strict=True):
        assert int(sign) * (sum(wi * xi for wi, xi in zip(w, row, strict=True)) + b) >= 1


@pytest.mark.parametrize("pair", [(0, 1), (0, 2)])
def test_the_second_class_in_order_is_the_positive_one(iris, pair):
    x, y = (part[np.isin(iris[1], pair)] for part in iris)
    names = np.array(["zebra", "ant", "bee"])[y]  # setosa, the first of the flowers, is last of the names
    model = db.Halfspace().fit(x, names)
    assert model.classes_.tolist() == sorted(np.unique(names))
    assert ((model.decision_function(x) > 0) == (names == "zebra")).all()
    assert model.predict(x).tolist() == names.tolist()


def test_the_hyperplane_meets_the_axes_where_it_is_said_to(apart):
    model = db.Halfspace().fit(*apart)
    np.testing.assert_allclose(model.axis_intercepts_, -model.intercept_[0] / model.coef_[0], rtol=1e-15)
    for j, place in enumerate(model.axis_intercepts_):
        point = np.zeros((1, 4))
        point[0, j] = place
        # d/w_j is rounded, and so is w_j times it
        assert model.decision_function(point)[0] == pytest.approx(0, abs=1e-14 * abs(model.intercept_[0]))
        point[0, j] = 1.01 * place
        further = model.decision_function(point)[0]
        point[0, j] = 0.99 * place
        assert further * model.decision_function(point)[0] < 0


def test_a_constant_column_has_no_weight():
    """Any weight would do on these rows; it gives no evidence, so it should have no say on others."""
    model = db.Halfspace().fit([[0.0, 7.0], [1.0, 7.0], [4.0, 7.0]], [0, 0, 1])
    assert model.predict([[0.0, 100.0], [4.0, -100.0], [4.0, 100.0]]).tolist() == [0, 1, 1]
    assert model.coef_[0, 1] == 0


def test_the_corners_of_the_lecture():
    """AND and OR are halfspaces, with the widest margin there is; XOR is none."""
    for labels, intercepts in (([0, 0, 0, 1], [1.5, 1.5]), ([0, 1, 1, 1], [0.5, 0.5])):
        model = db.Halfspace().fit(CORNERS, labels)
        np.testing.assert_allclose(model.axis_intercepts_, intercepts, rtol=1e-12)
        assert (signs(np.array(labels)) * model.decision_function(CORNERS) >= 1).all()
    assert not db.Halfspace().fit(CORNERS, [0, 1, 1, 0]).separable_


def test_breast_cancer_is_separable_by_its_thirty_columns():
    """A known fact of these data; scales of columns differ by a factor of 1e6."""
    x, y = load_breast_cancer(return_X_y=True)
    model = db.Halfspace().fit(x, y)
    assert model.separable_
    assert (signs(y) * model.decision_function(x) >= 1).all()


def test_one_row_of_each_class_is_enough():
    model = db.Halfspace().fit([[3.0, 1.0], [3.0, 2.0]], ["a", "b"])
    assert model.separable_
    np.testing.assert_allclose(np.abs(model.decision_function([[3.0, 1.0], [3.0, 2.0]])), 1, rtol=1e-12)


# Not separable
def solution(equations):
    """The only solution of equations (rows of fractions, the last being the right side), by elimination."""
    rows, width = [list(map(Fraction, row)) for row in equations], len(equations[0]) - 1
    for j in range(width):
        pivot = next(i for i in range(j, len(rows)) if rows[i][j])
        rows[j], rows[pivot] = rows[pivot], rows[j]
        rows[j] = [v / rows[j][j] for v in rows[j]]
        for i in range(len(rows)):
            if i != j:
                rows[i] = [a - rows[i][j] * b for a, b in zip(rows[i], rows[j], strict=True)]
    assert not any(row[-1] for row in rows[width:])  # the equations that are left hold, too
    return [row[-1] for row in rows[:width]]


def verify(certificate, x, y):
    """λ ≥ 0 with Σ λ sign x = 0, Σ λ sign = 0, Σ λ = 1 exist exactly on the rows named, and those given are they.

    The rows are whole numbers, so λ is found as fractions: no rounding is left to be trusted.
    """
    rows = certificate.rows
    assert len(rows) == len(set(rows.tolist())) == len(certificate.multipliers)
    assert len(rows) <= x.shape[1] + 2
    assert (certificate.multipliers > 0).all()
    sign = signs(y).astype(int)
    sums = [[int(sign[i]) * int(x[i, j]) for i in rows] + [0] for j in range(x.shape[1])]
    sums += [[int(sign[i]) for i in rows] + [0], [1 for _ in rows] + [1]]
    exact = solution(sums)
    assert all(v >= 0 for v in exact)
    np.testing.assert_allclose(certificate.multipliers, [float(v) for v in exact], rtol=1e-9)


def test_the_certificate_is_a_proof(mingled):
    x, y = mingled
    model = db.Halfspace().fit(x, y)
    assert not model.separable_
    verify(model.certificate_, x, y)


def test_the_certificate_gives_a_point_of_both_hulls(mingled):
    x, y = mingled
    proof = db.Halfspace().fit(x, y).certificate_
    mine = y[proof.rows] == 2
    one, other = (proof.multipliers[side] @ x[proof.rows[side]] for side in (mine, ~mine))
    np.testing.assert_allclose(one, other, rtol=1e-12)
    assert proof.multipliers[mine].sum() == pytest.approx(0.5, rel=1e-12)


def test_rows_of_the_certificate_are_numbered_as_passed(mingled):
    """Rows of weight 0 are left out, and the others keep their numbers."""
    x, y = mingled
    rng = np.random.default_rng(0)
    absent = rng.integers(-100, 100, (300, 4))
    place = np.sort(rng.choice(400, 100, replace=False))
    all_x, all_y, weights = np.empty((400, 4), int), rng.integers(1, 3, 400), np.zeros(400)
    all_x[np.setdiff1d(np.arange(400), place)] = absent
    all_x[place], all_y[place], weights[place] = x, y, rng.uniform(0.5, 3, 100)
    model = db.Halfspace().fit(all_x, all_y, sample_weight=weights)
    assert not model.separable_
    assert set(model.certificate_.rows.tolist()) <= set(place.tolist())
    verify(model.certificate_, all_x, all_y)


def test_rows_of_weight_0_are_not_there(apart):
    """Turned labels would make it inseparable."""
    x, y = apart
    weights = np.repeat([2.0, 0.0], 100)
    model = db.Halfspace().fit(np.vstack([x, x]), np.concatenate([y, 1 - y]), sample_weight=weights)
    alone = db.Halfspace().fit(x, y)
    assert model.separable_
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    np.testing.assert_array_equal(model.intercept_, alone.intercept_)


def test_a_class_of_weight_0_only_is_no_class(apart):
    x, y = apart
    with pytest.raises(db.DecibanError, match="1 class"):
        db.Halfspace().fit(x, y, sample_weight=(y == 0).astype(float))


def test_without_a_hyperplane_predictions_are_still_sensible(mingled):
    x, y = mingled
    assert db.Halfspace().fit(x, y).score(x, y) > 0.95
    x, y = load_breast_cancer(return_X_y=True)
    x = x[:, :10]  # all thirty columns would separate
    model = db.Halfspace().fit(x, y)
    assert not model.separable_
    assert model.certificate_ is not None
    assert model.score(x, y) > 0.9
    assert np.isfinite(model.coef_).all()
    np.testing.assert_array_equal(model.predict(x), (model.decision_function(x) > 0).astype(int))


# What is taken
def test_text_is_taken_as_indicators():
    table = pd.DataFrame({"size": [1.0, 2, 3, 9], "colour": ["red", "red", "blue", "blue"], "y": list("nnyy")})
    model = db.Halfspace().fit(table, "y")
    assert model.feature_names_ == ("size", "colour = red")
    indicators = np.column_stack([table["size"], table["colour"] == "red"])
    sign = signs(table["y"].to_numpy())
    assert (sign * (indicators @ model.coef_[0] + model.intercept_[0]) >= 1).all()
    assert (sign * model.decision_function(table) >= 1).all()
    assert model.predict(table).tolist() == list("nnyy")
    assert model.score(table, "y") == 1
    assert model.feature_names_in_.tolist() == ["size", "colour"]
    turned = table[["y", "colour", "size"]]
    np.testing.assert_array_equal(model.decision_function(turned), model.decision_function(table))


def test_text_alone_may_not_be_enough_and_the_proof_says_why():
    table = pd.DataFrame({"colour": list("rgbrgb")})
    model = db.Halfspace().fit(table, list("nnynyy"))
    assert not model.separable_
    assert model.certificate_.rows.tolist() == [1, 4]  # g and g


def test_missing_cells_are_the_mean_beside_an_indicator():
    x = np.array([[1.0], [np.nan], [3.0], [np.nan]])
    model = db.Halfspace().fit(x, [0, 1, 0, 1])
    assert model.separable_
    assert model.feature_names_ == ("0", "0 missing")
    assert model.predict(x).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("case", ["apart", "mingled"])
def test_the_form_of_the_rows_does_not_matter(request, case):
    x, y = request.getfixturevalue(case)
    x = np.rint(10 * x) if case == "apart" else x.astype(float)
    plain = db.Halfspace().fit(x, y)
    strided, named = np.repeat(x, 2, axis=1)[:, ::2], pl.DataFrame(x, schema=list("abcd"))
    arrays = [x.astype(np.float32), x.astype(np.int16), np.asfortranarray(x), strided, x.tolist()]
    for form in (*arrays, sp.csr_array(x), sp.csc_matrix(x), pd.DataFrame(x), named):
        model = db.Halfspace().fit(form, y)
        assert model.separable_ is plain.separable_ is (case == "apart")
        if case == "apart":
            assert (signs(y) * model.decision_function(form) >= 1).all()
        else:
            verify(model.certificate_, x.astype(int), y)
        assert model.coef_.dtype == np.float64
        np.testing.assert_array_equal(model.predict(form), plain.predict(x))


def test_float32_is_read_as_the_numbers_it_holds(apart):
    """Not as the tenths that they were written from: the margin holds for float32's own values."""
    x, y = apart[0].astype(np.float32), apart[1]
    model = db.Halfspace().fit(x, y)
    assert (signs(y) * (x.astype(np.float64) @ model.coef_[0] + model.intercept_[0]) >= 1).all()


def test_bad_input_is_named():
    with pytest.raises(db.DecibanError, match=r"two classes; y holds 3 classes: \['a', 'b', 'c'\]"):
        db.Halfspace().fit(CORNERS, ["a", "b", "c", "a"])
    with pytest.raises(db.DecibanError, match=r"two classes; y holds 1 class: \[1\]"):
        db.Halfspace().fit(CORNERS, [1, 1, 1, 1])
    with pytest.raises(db.DecibanError, match="column 1, row 2: inf is infinite"):
        db.Halfspace().fit([[0, 0], [1, 1], [2, np.inf]], [0, 1, 0])
    with pytest.raises(db.DecibanError, match="label, row 1"):
        db.Halfspace().fit(CORNERS, ["a", None, "b", "a"])
    with pytest.raises(db.DecibanError, match="4 rows, 3 labels"):
        db.Halfspace().fit(CORNERS, [0, 1, 0])
    with pytest.raises(ValueError, match="requires y"):
        db.Halfspace().fit(CORNERS)
    with pytest.raises(db.DecibanError, match="column 0, row 2: inf"):
        db.Halfspace().fit([[0.0], [1.0], [np.inf], [2.0]], [0, 1, 0, 1], sample_weight=[0, 1, 1, 1])


def test_a_fit_that_fails_leaves_the_model_as_it_was(apart):
    x, y = apart
    model = db.Halfspace().fit(x, y)
    before = model.decision_function(x)
    for bad in (lambda: model.fit(CORNERS, list("abca")), lambda: model.fit([[np.inf], [1.0]], list("ab"))):
        with pytest.raises(db.DecibanError):
            bad()
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.decision_function(x), before)


def test_asking_before_the_fit_is_an_error():
    model = db.Halfspace()
    for ask in (
        lambda: model.predict(CORNERS),
        lambda: model.decision_function(CORNERS),
        lambda: model.coef_,
        lambda: model.intercept_,
        lambda: model.feature_names_,
    ):
        with pytest.raises(NotFittedError):
            ask()


def test_shapes_and_weighted_score(apart):
    x, y = apart
    model = db.Halfspace().fit(x, y)
    assert model.n_features_in_ == 4
    assert model.coef_.shape == (1, 4)
    assert model.intercept_.shape == (1,)
    right = model.predict(x) == y
    assert model.score(x, y, sample_weight=np.where(y == 0, 1.0, 0.0)) == right[y == 0].mean()
