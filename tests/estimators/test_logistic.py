"""LogisticRegression and SoftmaxRegression: the maximum, whatever way the rows come, and a word where there is none."""

import warnings
from functools import cache
from itertools import cycle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy.special import expit, log_softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as TheirRegression

import deciban as db
from deciban.contributions import DECIBANS

CLOSE = 1e-6
KINDS = [db.LogisticRegression, db.SoftmaxRegression]
TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@cache
def drawn(n=200, p=3, classes=2, seed=0, strength=1.5):
    """Classes from a softmax, which no plane separates; not to be changed."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    w = rng.normal(size=(classes, p)) * strength
    return x, np.argmax(x @ w.T + rng.gumbel(size=(n, classes)), axis=1)


@cache
def penalised(classes):
    """A fit of the drawn rows, not to be changed."""
    return db.LogisticRegression(l2=1.0).fit(*drawn(classes=classes))


@cache
def plain(classes):
    """The same without a penalty."""
    return db.LogisticRegression().fit(*drawn(classes=classes))


def theirs(x, y, l2=1.0, weights=None):
    """What scikit-learn finds at the same penalty, as far as it goes."""
    return TheirRegression(C=1 / l2, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(x, y, weights)


def same_coefficients(model, other, rtol=CLOSE, share=1e-9):
    """Both coefficients and intercepts; those of a softmax up to a constant, and what is next to nothing beside the
    largest may differ by more."""
    size = np.abs(other.coef_).max()
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=rtol, atol=share * size)
    a, b = (m.intercept_ - m.intercept_.mean() if len(m.coef_) > 1 else m.intercept_ for m in (model, other))
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, np.abs(b).max()))


def objective(model, x, y, l2=0.0):
    """J by hand."""
    place = np.searchsorted(model.classes_, y)
    loss = -model.predict_log_proba(x)[np.arange(len(place)), place].sum()
    return loss + 0.5 * l2 * (model.coef_**2).sum()


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def classes(request):
    return request.param


# The same as scikit-learn
@pytest.mark.parametrize(("load", "l2"), [(load_iris, 0.01), (load_wine, 100.0), (load_breast_cancer, 1.0)])
def test_penalised_fit_is_that_of_scikit_learn(load, l2):
    x, y = load(return_X_y=True)
    model = db.LogisticRegression(l2=l2).fit(x, y)
    same_coefficients(model, theirs(x, y, l2), share=1e-7)
    assert model.objective_ == pytest.approx(objective(model, x, y, l2), rel=1e-12)
    assert model.status_ == "ok"


def test_two_classes_of_a_softmax_carry_half_the_penalty_each():
    """l2/2 (|w/2|² + |−w/2|²) = l2/4 |w|²."""
    x, y = load_breast_cancer(return_X_y=True)
    x = x[:, :10]
    model, other = db.SoftmaxRegression(l2=2.0).fit(x, y), theirs(x, y, 1.0)
    assert model.coef_.shape == (2, 10)
    np.testing.assert_allclose(model.coef_[1] - model.coef_[0], other.coef_[0], rtol=CLOSE, atol=1e-7)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(x), other.predict_proba(x), rtol=1e-5, atol=1e-9)


def test_more_classes_are_a_softmax_in_both():
    x, y = load_wine(return_X_y=True)
    one, other = (kind(l2=0.5).fit(x, y) for kind in KINDS)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.predict_proba(x), other.predict_proba(x))
    np.testing.assert_allclose(one.coef_.sum(axis=0), 0, atol=1e-12)


LAYOUTS = {
    "dense": lambda x: x,
    "columns first": np.asfortranarray,
    "every other column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "float32": lambda x: x.astype(np.float32),
    "float32, columns first": lambda x: np.asfortranarray(x.astype(np.float32)),
    "integers": lambda x: x.astype(np.int64),
    "small integers": lambda x: x.astype(np.int8),
    "csr": sp.csr_array,
    "csr matrix": sp.csr_matrix,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "csr of float32": lambda x: sp.csr_array(x.astype(np.float32)),
    "lists": lambda x: x.tolist(),
    "read only": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
}


def test_layout_of_the_rows_does_not_matter(classes):
    x, y = drawn(classes=classes)
    x = np.round(3 * x)  # whole numbers, which every type holds
    some = np.random.default_rng(1).uniform(0.1, 3.0, len(y))
    others = [(weights, theirs(x, y, weights=weights)) for weights in (None, some)]
    for (layout, form), (weights, other) in zip(LAYOUTS.items(), cycle(others), strict=False):
        model = db.LogisticRegression(l2=1.0).fit(form(x), y, sample_weight=weights)
        same_coefficients(model, other)
        for rows in (form(x), x):
            proba = model.predict_proba(rows)
            np.testing.assert_allclose(proba, other.predict_proba(x), rtol=1e-6, err_msg=layout)


@pytest.mark.parametrize("form", [lambda x: x, sp.csr_array], ids=["dense", "sparse"])
def test_many_parameters(form):
    """Beyond 1,000 of them the Hessian is not made. No optimum of a curvature of l2 is further than |∇J|/l2."""
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(300, 205)) * (rng.random((300, 205)) < 0.3), 2)
    y = np.argmax(x[:, :6] + rng.gumbel(size=(300, 6)), axis=1)  # 5 · 206 parameters
    model = db.LogisticRegression(l2=1.0, tol=1e-16).fit(form(x), y)
    residual = model.predict_proba(x) - np.eye(6)[y]
    gradient = residual.T @ x + model.coef_
    assert np.abs(gradient).max() < CLOSE * np.abs(model.coef_).max()
    assert np.abs(residual.sum(axis=0)).max() < 1e-6
    assert model.status_ == "ok"


@pytest.mark.parametrize("classes", [2, 3])
def test_more_columns_than_rows(classes):
    """Beyond 4,000 columns not even the Gram matrix is."""
    rng = np.random.default_rng(0)
    words = rng.poisson(0.02, (150, 4500)).astype(float)
    y = np.arange(150) % classes
    words[:, :30] += rng.poisson(0.5, (150, 30)) * (np.arange(30) % classes == y[:, np.newaxis])
    model = db.LogisticRegression(l2=1.0, tol=1e-16).fit(sp.csr_array(words), y)
    other = TheirRegression(tol=1e-10, max_iter=10_000).fit(sp.csr_array(words), y)
    never = int((words == 0).all(axis=0).sum())  # words that no row has
    assert model.status_.startswith("constant: columns ")
    assert model.status_.endswith(f" and {never - 10} more")
    np.testing.assert_allclose(model.predict_proba(words), other.predict_proba(words), rtol=1e-5)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=CLOSE * np.abs(other.coef_).max())
    assert objective(model, sp.csr_array(words), y, 1.0) <= objective(other, sp.csr_array(words), y, 1.0) * (1 + 1e-12)


# The descent
@pytest.mark.parametrize(("l2", "form"), [(0.0, np.asarray), (1.0, sp.csr_array)], ids=["dense", "sparse"])
def test_every_way_down_ends_at_the_same_place(classes, l2, form):
    x, y = drawn(classes=classes)
    x = x * [1.0, 100.0, 0.01] + [0.0, 5.0, -0.02]
    newton = db.LogisticRegression(l2=l2, tol=1e-16).fit(form(x), y)
    for settings in ({"solver": "gradient"}, {"init": "generative"}, {"init": "generative", "solver": "gradient"}, {}):
        model = db.LogisticRegression(l2=l2, max_iter=200_000 if "solver" in settings else None, **settings)
        model.fit(form(x), y)
        np.testing.assert_allclose(model.coef_, newton.coef_, rtol=CLOSE, err_msg=str(settings))
        np.testing.assert_allclose(model.intercept_, newton.intercept_, rtol=1e-5, atol=1e-5, err_msg=str(settings))
        assert model.objective_ == pytest.approx(newton.objective_, rel=1e-10)
        assert model.status_ == "ok"


@pytest.mark.parametrize("solver", ["newton", "gradient"])
def test_the_generative_start_saves_steps_on_gaussian_data(classes, solver):
    """There the twin is already near: in every one of four samples."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = np.arange(600) % classes
        root = np.eye(4) + 0.15 * rng.normal(size=(4, 4))
        x = (rng.normal(size=(600, 4)) + 0.8 * rng.normal(size=(classes, 4))[y]) @ root
        settings = {"solver": solver, "max_iter": 100_000, "tol": 1e-16 if solver == "newton" else 1e-20}
        zero, generative = (db.LogisticRegression(init=init, **settings).fit(x, y) for init in ("zero", "generative"))
        assert generative.n_iter_ < zero.n_iter_
        assert generative.path_.rows[0][1] < zero.path_.rows[0][1]  # the objective at the start
        np.testing.assert_allclose(generative.coef_, zero.coef_, rtol=CLOSE)


def test_the_generative_start_is_the_twin_of_a_discriminant(classes):
    x, y = drawn(classes=classes)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = db.LogisticRegression(init="generative").fit(x, y, weights)
    twin = db.GaussianDiscriminant().fit(x, y, weights).to_linear()
    loss = -(weights * twin.predict_log_proba(x)[np.arange(len(y)), y]).sum()
    assert model.path_.rows[0][1] == pytest.approx(loss, rel=1e-9)


def test_a_start_that_does_not_exist_is_none(classes):
    """Two equal columns have no covariance to invert."""
    x, y = drawn(classes=classes)
    x = np.column_stack([x, x[:, 0]])
    with pytest.warns(db.DecibanWarning, match="collinear"):
        model = db.LogisticRegression(init="generative").fit(x, y)
    with pytest.warns(db.DecibanWarning, match="collinear"):
        other = db.LogisticRegression().fit(x, y)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=CLOSE)


def test_a_fit_cut_short_says_so(classes):
    x, y = drawn(classes=classes)
    with pytest.warns(db.DecibanWarning, match="not converged after 2 iterations: raise max_iter"):
        model = db.LogisticRegression(max_iter=2).fit(x, y)
    assert model.status_ == "not converged after 2 iterations"
    assert model.n_iter_ == 2
    assert np.isfinite(model.coef_).all()
    with pytest.warns(db.DecibanWarning, match="not converged after 5 iterations"):
        db.LogisticRegression(solver="gradient", max_iter=5).fit(x, y)


def test_tol_says_how_close(classes):
    x, y = drawn(classes=classes)
    best = db.LogisticRegression(tol=1e-18).fit(x, y).objective_
    for tol in (1e-2, 1e-4, 1e-8):
        for solver in ("newton", "gradient"):
            fitted = db.LogisticRegression(tol=tol, solver=solver).fit(x, y)
            assert fitted.objective_ - best < (tol if solver == "newton" else 1e3 * tol) * best
            assert fitted.status_ == "ok"


# No maximum
def finite(model, x):
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    p = model.predict_proba(x)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)


def separable(classes, n=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, np.argmax(
        x[:, :2] @ rng.normal(size=(2, classes)) if classes > 2 else np.c_[0 * x[:, 0], x[:, 0]], axis=1
    )


@pytest.mark.parametrize(
    ("settings", "kind", "form"),
    [
        ({}, db.LogisticRegression, np.asarray),
        ({}, db.SoftmaxRegression, sp.csr_array),
        ({"init": "generative"}, db.SoftmaxRegression, np.float32),
        ({"init": "generative"}, db.LogisticRegression, sp.csr_array),
        ({"solver": "gradient"}, db.LogisticRegression, np.float32),
        ({"solver": "gradient"}, db.SoftmaxRegression, np.asarray),
    ],
    ids=str,
)
def test_separable_classes_are_said_and_stay_finite(classes, settings, kind, form):
    x, y = separable(classes)
    x = x.astype(np.float32).astype(float)
    with pytest.warns(
        db.DecibanWarning, match=r"^separable by: columns .*; without a penalty the coefficients diverge"
    ):
        model = kind(**settings).fit(form(x), y)
    assert model.status_.startswith("separable by: columns ")
    finite(model, x)
    assert model.score(x, y) > 0.9
    assert model.n_iter_ < 1000


def test_the_columns_that_separate_are_named():
    x, y = separable(2)
    table = pd.DataFrame(x, columns=["size", "noise", "other"])
    with pytest.warns(db.DecibanWarning, match=r"^separable by: columns 'size'; without"):
        model = db.LogisticRegression().fit(table, y)
    assert model.status_ == "separable by: columns 'size'"
    table["colour"] = np.where((y == 1) & (np.arange(200) % 3 == 0), "red", "blue")
    table["size"] = table["noise"][::-1].to_numpy()
    with pytest.warns(db.DecibanWarning, match=r"^partly separable by: columns 'colour = red'; without"):
        model = db.LogisticRegression().fit(table, y)
    assert model.status_ == "partly separable by: columns 'colour = red'"


@pytest.mark.parametrize("kind", KINDS)
def test_partly_separable_classes_are_said_and_the_others_fitted(classes, kind):
    """The last column is 1 in some rows of class 0 only: its coefficient runs away, all others converge to those of
    the fit in which the column takes its rows along."""
    x, y = drawn(classes=classes)
    mark = ((y == 0) & (np.arange(len(y)) % 4 == 0)).astype(float)
    marked = np.column_stack([x, mark])
    with pytest.warns(db.DecibanWarning, match=r"^partly separable by: columns '?3'?; without"):
        model = kind().fit(marked, y)
    finite(model, marked)
    assert model.score(marked, y) > 0.7
    assert (model.predict(marked[mark == 1]) == 0).all()
    assert model.predict_proba(marked[mark == 1])[:, 0].min() > 0.95
    rest = kind().fit(x[mark == 0], y[mark == 0])  # the limit
    np.testing.assert_allclose(model.predict_proba(marked)[mark == 0], rest.predict_proba(x[mark == 0]), atol=0.01)


def test_firth_of_one_group_each_adds_half_a_row():
    """Two groups of 5, one of them all ones: with Jeffreys' prior the odds are (k + ½)/(n − k + ½) in each."""
    x = np.repeat([[0.0], [1.0]], 5, axis=0)
    y = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1])
    model = db.LogisticRegression(firth=True).fit(x, y)
    odds = np.array([2.5 / 3.5, 5.5 / 0.5])
    np.testing.assert_allclose(model.intercept_, np.log(odds[0]), rtol=1e-7)
    np.testing.assert_allclose(model.coef_, np.log(odds[1] / odds[0]), rtol=1e-7)
    with pytest.warns(db.DecibanWarning, match="partly separable"):
        db.LogisticRegression().fit(x, y)
    for kind in KINDS:
        x, y = separable(3)
        model = kind(firth=True).fit(x, y)
        finite(model, x)
        assert model.status_ == "ok"
        assert model.score(x, y) > 0.95


@pytest.mark.parametrize("solver", ["newton", "gradient"])
def test_a_penalty_needs_no_warning(classes, solver):
    x, y = separable(classes)
    equal = np.column_stack([x, x[:, 0], np.ones(len(x))])
    for rows in (x, equal, np.column_stack([x, y == 0])):
        model = db.LogisticRegression(l2=1.0, solver=solver).fit(rows, y)
        finite(model, rows)
        assert model.status_ == ("constant: columns 4" if rows is equal else "ok")
        same_coefficients(model, theirs(rows, y), rtol=1e-5, share=1e-6)


# Columns that say nothing new
@pytest.mark.parametrize(
    ("form", "kind", "firth"),
    [
        (np.asarray, db.LogisticRegression, False),
        (np.asarray, db.SoftmaxRegression, True),
        (sp.csr_array, db.SoftmaxRegression, False),
        (sp.csr_array, db.LogisticRegression, True),
    ],
)
def test_equal_columns_share_the_coefficient(classes, form, kind, firth):
    x, y = drawn(classes=classes)
    twice = np.column_stack([x, x[:, 0]])
    with pytest.warns(db.DecibanWarning, match=r"^collinear: columns '?0'?, '?3'? are combinations of each other"):
        model = kind(firth=firth).fit(form(twice), y)
    once = kind(firth=firth).fit(x, y)
    np.testing.assert_allclose(model.coef_[:, 0], once.coef_[:, 0] / 2, rtol=CLOSE)
    np.testing.assert_allclose(model.coef_[:, 3], once.coef_[:, 0] / 2, rtol=CLOSE)
    np.testing.assert_allclose(model.coef_[:, 1:3], once.coef_[:, 1:], rtol=CLOSE)
    np.testing.assert_allclose(model.predict_proba(twice), once.predict_proba(x), rtol=1e-5)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_combinations_of_columns_change_no_prediction(classes, unit):
    x, y = drawn(classes=classes)
    more = np.column_stack([x, unit * (x[:, 0] - 2 * x[:, 1]) + 3 * unit])
    with pytest.warns(db.DecibanWarning, match=r"^collinear: columns '?0'?, '?1'?, '?3'? are combinations"):
        model = db.LogisticRegression().fit(more, y)
    finite(model, more)
    np.testing.assert_allclose(model.predict_proba(more), plain(classes).predict_proba(x), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("n", "value", "solver"),
    [
        *((200, value, "newton") for value in (0.0, 3.3, -1e8 / 3, 1e-300)),
        *((200, value, "gradient") for value in (0.0, -1e8 / 3)),
        (20_000, -1e8 / 3, "newton"),
        (20_000, 3.3, "gradient"),
    ],
)
def test_a_constant_column_has_no_say(classes, n, value, solver):
    x, y = drawn(n, classes=classes)
    constant = np.column_stack([x[:, :2], np.full(n, value), x[:, 2]])
    model = db.LogisticRegression(solver=solver).fit(constant, y)  # and no warning
    assert model.status_ in (
        ["constant: columns '2'", "constant: columns 2"] if solver == "newton" else [model.status_]
    )
    once = plain(classes) if (n, solver) == (200, "newton") else db.LogisticRegression(solver=solver).fit(x, y)
    np.testing.assert_allclose(model.coef_[:, [0, 1, 3]], once.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.coef_[:, 2], 0, atol=1e-9)
    other = constant + np.array([0, 0, abs(value) + 1, 0])
    np.testing.assert_allclose(model.predict_proba(other), model.predict_proba(constant), rtol=1e-6)


def test_a_constant_column_is_not_taken_for_the_intercept_of_sparse_rows(classes):
    x, y = drawn(classes=classes)
    model = db.LogisticRegression().fit(sp.csr_array(np.column_stack([x, np.full(len(x), 7.5)])), y)
    np.testing.assert_allclose(model.coef_[:, :3], plain(classes).coef_, rtol=CLOSE)
    assert model.status_ in ("constant: columns '3'", "constant: columns 3")


def test_no_column_with_evidence_leaves_the_shares(classes):
    _, y = drawn(classes=classes)
    for rows in (np.zeros((len(y), 1)), np.ones((len(y), 2)), pd.DataFrame({"a": ["x"] * len(y)})):
        model = db.LogisticRegression().fit(rows, y)
        share = np.bincount(y) / len(y)
        np.testing.assert_allclose(model.predict_proba(rows), np.tile(share, (len(y), 1)), rtol=1e-9)


# Units
WAYS = [{}, {"solver": "gradient"}, {"init": "generative"}, {"firth": True}]


@pytest.mark.parametrize(("n", "settings"), [*((200, settings) for settings in WAYS), (20_000, {})])
def test_units_of_columns_scale_their_coefficients(classes, n, settings):
    x, y = drawn(n, classes=classes)
    units = np.array([1e12, 1.0, 1e-12])
    expected = db.LogisticRegression(**settings).fit(x, y)
    model = db.LogisticRegression(**settings).fit(x * units, y)
    np.testing.assert_allclose(model.coef_ * units, expected.coef_, rtol=CLOSE)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=CLOSE)
    np.testing.assert_allclose(model.predict_proba(x * units), expected.predict_proba(x), rtol=CLOSE)
    assert model.status_ == "ok"


@pytest.mark.parametrize("unit", [1e6, 1e12])
@pytest.mark.parametrize("solver", ["newton", "gradient"])
def test_badly_scaled_columns_under_a_penalty(classes, solver, unit):
    """The optimum, or a warning: a column in units of 1e6 feels hardly any penalty, one in 1e-6 nothing else."""
    x, y = drawn(classes=classes)
    other = theirs(x[:, 1:2], y)  # the last column is as good as not there; the first one costs nothing
    free = db.LogisticRegression(l2=1.0).fit(x[:, :2] * [unit, 1.0], y)
    x = x * [unit, 1.0, 1 / unit]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)
        model = db.LogisticRegression(l2=1.0, solver=solver).fit(x, y)
    if model.status_ == "ok":
        assert model.objective_ < objective(other, x[:, 1:2], y, 1.0)
        np.testing.assert_allclose(model.predict_proba(x), free.predict_proba(x[:, :2]), atol=1e-4)
    else:
        assert "not converged" in model.status_


def test_units_whose_squares_are_no_numbers_are_refused_by_name(classes):
    x, y = drawn(classes=classes)
    for unit in (1e200, 1e-200):
        with pytest.raises(db.DecibanError, match=r"column 1 varies by .*, whose square is out of range: rescale it"):
            db.LogisticRegression().fit(x * [1.0, unit, 1.0], y)


# Many rows
MANY = 40_000


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def many(request):
    return drawn(MANY, classes=request.param)


RARE = np.array([1, 7, 11, 203, 10_001, 20_003, 39_999])  # none of them in a sample of every fourth or ninth row


def rarely(y):
    """A column that is 1 in few rows, and labels that have every class there."""
    mark, y = np.zeros(len(y)), y.copy()
    mark[RARE] = 1.0
    y[RARE] = np.arange(len(RARE)) % (y.max() + 1)
    return mark, y


@pytest.mark.parametrize(
    ("l2", "form"), [(0.1, np.asarray), (1.0, sp.csr_array), (1.0, np.asfortranarray)], ids=["dense", "sparse", "F"]
)
def test_many_rows_as_scikit_learn_has_them(many, l2, form):
    x, y = many
    model = db.LogisticRegression(l2=l2).fit(form(x), y)
    other = theirs(x, y, l2)
    same_coefficients(model, other, share=CLOSE)
    same_coefficients(db.LogisticRegression(l2=l2, tol=1e-14).fit(form(x), y), other)
    assert model.status_ == "ok"


def test_many_weighted_rows(many):
    x, y = many
    weights = np.random.default_rng(3).exponential(size=len(y))
    same_coefficients(db.LogisticRegression(l2=1.0).fit(x, y, weights), theirs(x, y, weights=weights), share=CLOSE)


@pytest.mark.parametrize(
    ("form", "column"),
    [
        (sp.csr_array, lambda x, mark: mark),
        (np.asarray, lambda x, mark: -1e6 * mark),
        (np.asarray, lambda x, mark: 4 * mark + 1e5),  # sparse rows are not centred: it would be the intercept there
        (np.asarray, lambda x, mark: x[:, 0] + mark),
        (sp.csr_array, lambda x, mark: 1e-3 * mark),
    ],
    ids=["rare", "rare and large", "rare, far from 0", "equal except in few rows", "rare and small"],
)
def test_what_only_a_few_rows_show_is_fitted(many, form, column):
    """Rows that no sample of a few thousand holds."""
    x, y = many
    mark, y = rarely(y)
    rows = np.column_stack([x, column(x, mark)])
    shift = 1e5 * (rows[:, 3].min() >= 1e5) * (np.arange(4) == 3)  # scikit-learn needs help there
    other = theirs(rows - shift, y)
    theirs_ = other.coef_ if len(other.coef_) == 1 else other.coef_ - other.coef_.mean(axis=0)  # they sum to 0
    same = db.LogisticRegression(l2=1.0, tol=1e-18, max_iter=1000).fit(form(rows), y)
    unit = np.ptp(rows, axis=0)
    expected = (other.coef_ if len(other.coef_) == 1 else other.coef_ - other.coef_.mean(axis=0)) * unit
    np.testing.assert_allclose(same.coef_ * unit, expected, rtol=CLOSE, atol=1e-8)
    assert same.status_ == "ok"
    quick = db.LogisticRegression(l2=1.0).fit(form(rows), y)  # J to 1e-10
    assert quick.objective_ == pytest.approx(same.objective_, rel=1e-9)
    np.testing.assert_allclose(quick.coef_[:, :3], theirs_[:, :3], rtol=1e-4)
    np.testing.assert_allclose(quick.coef_ * unit, expected, rtol=1e-2, atol=1e-3)
    assert quick.status_ == "ok"


def test_a_rare_column_that_separates_is_said(many):
    x, y = many
    mark = np.zeros(MANY)
    mark[np.flatnonzero(y == 0)[[17, 233, 4001]]] = 1.0
    with pytest.warns(db.DecibanWarning, match=r"^partly separable by: columns '?3'?; without"):
        model = db.LogisticRegression().fit(np.column_stack([x, mark]), y)
    rows = np.column_stack([x, mark])
    finite(model, rows)
    once = db.LogisticRegression().fit(x[mark == 0], y[mark == 0])
    np.testing.assert_allclose(model.predict_proba(rows)[mark == 0], once.predict_proba(x[mark == 0]), atol=0.01)


# Tables
def people(n=200, classes=2, seed=5):
    """Numbers, text and booleans, with missing values; columns for a table, and the same features by hand."""
    rng = np.random.default_rng(seed)
    age, job, member = rng.normal(40, 10, n), rng.choice(["cook", "smith", "tailor"], n), rng.random(n) < 0.4
    town = np.where(rng.random(n) < 0.15, None, rng.choice(["A", "B"], n))
    wage = np.where(rng.random(n) < 0.2, np.nan, rng.exponential(3.0, n))
    score = 0.05 * (age - 40) + (job == "smith") - member + 0.3 * np.nan_to_num(wage) + (town == "B")
    y = np.argmax(np.outer(score, np.arange(classes)) / classes + rng.gumbel(size=(n, classes)), axis=1)
    columns = {"job": job.tolist(), "age": age.tolist(), "member": member.tolist(), "town": town.tolist()}
    columns["wage"] = [None if np.isnan(v) else float(v) for v in wage]
    filled = np.where(np.isnan(wage), np.nanmean(wage), wage)
    by_hand = {
        "age": age,
        "member": member,
        "wage": filled,
        "wage missing": np.isnan(wage),
        "job = smith": job == "smith",
        "job = tailor": job == "tailor",
        "town = B": town == "B",
        "town = missing": town == None,  # noqa: E711
    }
    return columns, pd.DataFrame(by_hand).astype(float), np.array(["never", "often", "rarely"])[y]


@pytest.mark.parametrize(
    ("make", "kind"),
    [(pd.DataFrame, db.LogisticRegression), (pl.DataFrame, db.SoftmaxRegression), (pa.table, db.SoftmaxRegression)],
)
def test_table_is_read_as_it_is(classes, make, kind):
    columns, by_hand, y = people(classes=classes)
    model = kind(l2=1.0).fit(make(columns), y)
    assert model.feature_names_ == tuple(by_hand.columns)
    factor = 2.0 if classes == 2 and kind is db.SoftmaxRegression else 1.0  # each of two vectors carries half
    other = theirs(by_hand.to_numpy(), y, 1.0 / factor)
    expected = other.coef_ if len(model.coef_) == len(other.coef_) else np.vstack([-other.coef_, other.coef_]) / 2
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(model.predict_proba(make(columns)), other.predict_proba(by_hand.to_numpy()), rtol=1e-6)
    assert model.classes_.tolist() == sorted(set(y))
    assert model.feature_names_in_.tolist() == list(columns)
    assert model.n_features_in_ == 5


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_labels_and_columns_are_matched_by_name(make):
    columns, _, y = people()
    model = db.LogisticRegression(l2=1.0).fit(make(columns), y)
    table = make(columns | {"how often": y.tolist()})
    inside = db.LogisticRegression(l2=1.0).fit(table, "how often")
    np.testing.assert_array_equal(inside.coef_, model.coef_)
    assert inside.score(table, "how often") == model.score(make(columns), y)
    np.testing.assert_array_equal(inside.predict_proba(table), model.predict_proba(make(columns)))
    turned = {name: columns[name] for name in reversed(columns)} | {"more": list(range(len(y)))}
    np.testing.assert_array_equal(model.predict_proba(make(turned)), model.predict_proba(make(columns)))
    lacking = {name: cells for name, cells in columns.items() if name != "town"}
    for ask in (model.predict, model.predict_proba, model.decision_function, model.explain):
        with pytest.raises(db.DecibanError, match="the table lacks column 'town'; it has columns 'job'"):
            ask(make(lacking))


def test_a_value_never_seen_is_the_average_row_of_its_column(classes):
    columns, _, y = people(classes=classes)
    table = pd.DataFrame(columns)
    model = db.LogisticRegression(l2=1.0).fit(table, y)
    row = table.iloc[[0]].assign(job="priest")
    shares = table["job"].value_counts(normalize=True)
    scores = pd.Series({job: model.predict_log_proba(row.assign(job=job))[0] for job in shares.index})
    expected = sum(shares[job] * scores[job] for job in shares.index)
    np.testing.assert_allclose(model.predict_log_proba(row)[0], log_softmax(expected), rtol=1e-9)
    alone = model.explain(row)
    np.testing.assert_allclose(alone.decibans()[0, alone.names.index("job")], 0, atol=1e-9)


def test_labels_of_any_type(classes):
    x, y = drawn(classes=classes)
    reference = penalised(classes)
    forms = [y.astype(np.int8), y.astype(np.uint64), y.tolist(), pd.Series(y), pl.Series(y), pa.array(y), y * 10 - 5]
    forms += [np.array(["a", "b", "c"])[y], np.array(["a", "b", "c"], dtype=object)[y], y[:, np.newaxis][:, 0]]
    for labels in forms + ([y == 1] if classes == 2 else []):
        model = db.LogisticRegression(l2=1.0).fit(x, labels)
        np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-12)
        assert set(model.predict(x).tolist()) == set(np.asarray(labels).tolist())
        if isinstance(labels, np.ndarray) and labels.dtype != object:
            assert model.predict(x).dtype == labels.dtype


def test_predictions_are_consistent(classes):
    x, _ = drawn(classes=classes)
    model = penalised(classes)
    logs, scores = model.predict_log_proba(x), model.decision_function(x)
    expected = x @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(scores, expected[:, 0] if classes == 2 else expected, rtol=1e-9, atol=1e-12)
    full = np.column_stack([np.zeros(len(x)), expected[:, 0]]) if classes == 2 else expected
    np.testing.assert_allclose(logs, log_softmax(full, axis=1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(x), np.exp(logs), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(x), model.classes_[full.argmax(axis=1)])
    single = model.predict_proba(x.astype(np.float32))
    np.testing.assert_allclose(single, model.predict_proba(x.astype(np.float32).astype(float)), rtol=1e-12)
    np.testing.assert_array_equal(model.predict_proba(x)[7:9], model.predict_proba(x[7:9]))  # rows alone


def test_far_rows_do_not_overflow(classes):
    x, _ = drawn(classes=classes)
    finite(penalised(classes), x * 1e300)
    assert np.isfinite(penalised(classes).predict_log_proba(x * 1e6)).all()


# Weights
@pytest.mark.parametrize(
    ("settings", "form"),
    [
        ({"l2": 1.0}, sp.csr_array),
        ({}, np.asarray),
        ({"firth": True}, sp.csr_array),
        ({"solver": "gradient"}, np.asarray),
        ({"init": "generative"}, np.asarray),
    ],
    ids=str,
)
def test_a_weight_of_two_is_the_row_twice(classes, settings, form):
    x, y = drawn(classes=classes)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    settings = {"tol": 1e-18, **settings} if "solver" not in settings else settings
    weighted = db.LogisticRegression(**settings).fit(form(x), y, sample_weight=weights)
    twice = np.repeat(np.arange(len(y)), weights)
    repeated = db.LogisticRegression(**settings).fit(form(x[twice]), y[twice])
    close = 1e-8 if "solver" not in settings else 1e-6
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=close)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=close, atol=close)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)


def test_a_weight_of_zero_is_no_row():
    """Neither its class, nor its values, nor its missing values."""
    columns, _, y = people()
    table = pd.DataFrame(columns)
    odd = table.iloc[:3].assign(job=["priest", "cook", None], age=[np.nan, 1e9, -1e9], town="Z")
    both = pd.concat([table, odd], ignore_index=True)
    labels = np.concatenate([y, ["sometimes", "always", "never"]])
    weights = np.r_[np.ones(len(y)), 0, 0, 0]
    with_them = db.LogisticRegression(l2=1.0).fit(both, labels, sample_weight=weights)
    without = db.LogisticRegression(l2=1.0).fit(table, y)
    assert with_them.classes_.tolist() == without.classes_.tolist()
    assert with_them.feature_names_ == without.feature_names_
    np.testing.assert_allclose(with_them.coef_, without.coef_, rtol=1e-9)


def test_a_class_whose_rows_weigh_nothing_is_not_there():
    x, y = drawn(classes=3)
    model = db.LogisticRegression(l2=1.0).fit(x, y, sample_weight=(y != 1).astype(float))
    assert model.classes_.tolist() == [0, 2]
    same_coefficients(model, theirs(x[y != 1], y[y != 1]))
    with pytest.raises(db.DecibanError, match="needs two classes; y holds one class, 2"):
        db.LogisticRegression().fit(x, y, sample_weight=(y == 2).astype(float))


def test_weights_of_any_size(classes):
    """Without a penalty only their ratios count."""
    x, y = drawn(classes=classes)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    expected = db.LogisticRegression().fit(x, y, weights).coef_
    for factor in (1e-12, 1e12):
        model = db.LogisticRegression().fit(x, y, factor * weights)
        np.testing.assert_allclose(model.coef_, expected, rtol=1e-6)
        assert model.status_ == "ok"


# Words
@pytest.mark.parametrize("kind", KINDS)
def test_explanation_sums_to_the_log_odds(classes, kind):
    columns, _, y = people(classes=classes)
    table = pd.DataFrame(columns)
    model = kind(l2=1.0).fit(table, y)
    explained = model.explain(table)
    assert explained.names[0] == "average row"
    assert set(explained.names[1:]) == set(table.columns)  # a missing value counts for its column
    logs = model.predict_log_proba(table)
    for i, target in enumerate(model.classes_.tolist()):
        for j, against in enumerate(model.classes_.tolist()):
            if i != j:
                expected = (logs[:, i] - logs[:, j]) * DECIBANS
                np.testing.assert_allclose(explained.log_odds(target, against), expected, rtol=1e-9, atol=1e-9)
                parts = explained.decibans(target, against)
                np.testing.assert_allclose(parts.sum(axis=1), expected, rtol=1e-9, atol=1e-9)
    if classes == 2:
        in_nats = explained.log_odds("often", "never") / DECIBANS
        np.testing.assert_allclose(in_nats, model.decision_function(table), rtol=1e-9, atol=1e-9)


def test_explanation_says_what_each_column_adds():
    x, y = drawn()
    model = db.LogisticRegression(l2=1.0).fit(pd.DataFrame(x, columns=["a", "b", "c"]), y)
    rows = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "c"])
    explained = model.explain(rows)
    parts = dict(zip(explained.names, explained.decibans(1, 0)[0].tolist(), strict=True))
    mean, w = x.mean(axis=0), model.coef_[0]
    for j, name in enumerate("abc"):
        assert parts[name] == pytest.approx(DECIBANS * w[j] * (rows[name][0] - mean[j]), rel=1e-9)
    assert parts["average row"] == pytest.approx(DECIBANS * (model.intercept_[0] + w @ mean), rel=1e-9)
    text = str(explained)
    assert "row 0: " in text
    assert "average row" in text
    assert "log-odds" in text


def test_explanation_of_sparse_rows_counts_from_nothing(classes):
    x, y = drawn(classes=classes)
    rows = sp.csr_array(np.round(x))
    model = db.LogisticRegression(l2=1.0).fit(rows, y)
    explained = model.explain(rows)
    assert explained.names == ("intercept", "0", "1", "2")
    logs = model.predict_log_proba(rows)
    np.testing.assert_allclose(explained.log_odds(1, 0), (logs[:, 1] - logs[:, 0]) * DECIBANS, rtol=1e-9, atol=1e-9)


def test_summary_of_two_classes():
    columns, _, y = people()
    model = db.LogisticRegression(l2=1.0).fit(pd.DataFrame(columns), y)
    summary = model.summary()
    (table,) = summary.tables
    assert table.title == "log-odds of often against never"
    assert table.header == ("", "coefficient", "decibans")
    assert [row[0] for row in table.rows] == ["(intercept)", *model.feature_names_]
    values = np.array([row[1] for row in table.rows])
    np.testing.assert_array_equal(values, np.r_[model.intercept_, model.coef_[0]])
    np.testing.assert_allclose([row[2] for row in table.rows], values * DECIBANS, rtol=1e-12)
    assert summary.title == "LogisticRegression: 2 classes, 8 features, 9 parameters"
    assert f"note: {model.n_iter_} iterations, objective {model.objective_:.6g}" in str(summary)


def test_summary_of_three_classes_and_of_trouble():
    columns, _, y = people(classes=3)
    model = db.SoftmaxRegression(l2=1.0).fit(pd.DataFrame(columns), y)
    (table,) = model.summary().tables
    assert table.header == ("", "never", "often", "rarely")
    np.testing.assert_array_equal([row[1:] for row in table.rows], np.c_[model.intercept_, model.coef_].T)
    assert "SoftmaxRegression: 3 classes, 8 features, 18 parameters" in str(model.summary())
    x, y = separable(2)
    with pytest.warns(db.DecibanWarning):
        text = str(db.LogisticRegression().fit(x, y).summary())
    assert "note: separable by: columns" in text


def test_two_classes_by_hand():
    """The maximum for two points of each of two values: the log-odds of the shares."""
    x, y = [[0.0], [0.0], [0.0], [1.0], [1.0], [1.0], [1.0]], [0, 0, 1, 0, 1, 1, 1]
    model = db.LogisticRegression().fit(x, y)
    assert model.intercept_[0] == pytest.approx(np.log(1 / 2), rel=1e-9)
    assert model.coef_[0, 0] == pytest.approx(np.log(3) - np.log(1 / 2), rel=1e-9)
    np.testing.assert_allclose(model.predict_proba([[0.0], [1.0]])[:, 1], [1 / 3, 3 / 4], rtol=1e-9)
    assert model.decision_function([[0.5]])[0] == pytest.approx((np.log(1 / 2) + np.log(3)) / 2, rel=1e-9)
    assert expit(model.decision_function([[1.0]]))[0] == pytest.approx(3 / 4, rel=1e-9)


# What is refused
A, B, Y = [1.0, 2.0, 1.5, 2.5, 3.0, 0.5], [2.0, 1.0, 1.0, 2.0, 1.0, 3.0], ["n", "y", "n", "y", "n", "y"]


@pytest.mark.parametrize("make", [lambda c: np.column_stack([*c.values()]), *TABLES.values()], ids=["array", *TABLES])
def test_an_infinite_cell_is_named(make):
    model = db.LogisticRegression(l2=1.0).fit(make({"a": A, "b": B}), Y)
    before = model.coef_.copy()
    for value in (np.inf, -np.inf):
        bad = make({"a": A, "b": [*B[:3], value, *B[4:]]})
        named = rf"column ('b'|1), row 3: {value!r} is infinite"
        for learn in (model.fit, model.refine):
            with pytest.raises(db.DecibanError, match=named):
                learn(bad, Y)
        np.testing.assert_array_equal(model.coef_, before)
        for ask in (model.predict, model.predict_proba, model.decision_function, model.explain):
            with pytest.raises(db.DecibanError, match=named):
                ask(bad)


def test_row_numbers_count_rows_of_weight_zero():
    bad = np.column_stack([A, [*B[:3], np.inf, *B[4:]]])
    with pytest.raises(db.DecibanError, match="column 1, row 3: inf"):
        db.LogisticRegression(l2=1.0).fit(bad, Y, [0, 0, 1, 1, 1, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_one_class_is_not_enough(kind):
    for y in (["n"] * 6, np.ones(6, int)):
        with pytest.raises(db.DecibanError, match=rf"{kind.__name__} needs two classes; y holds one class"):
            kind().fit(np.column_stack([A, B]), y)


def test_labels_that_are_no_classes_are_refused():
    x = np.column_stack([A, B])
    model = db.LogisticRegression(l2=1.0).fit(x, Y)
    before = model.coef_.copy(), model.classes_.tolist()
    for labels, words in [
        ([*Y[:3], None, *Y[4:]], "label, row 3: the label is missing"),
        (np.array([0.0, 1.0, 0.0, np.nan, 0.0, 1.0]), "label, row 3: the label is missing"),
        ([0.5, 1.0] * 3, "continuous"),
        (Y[:4], "inconsistent numbers of samples"),
        ([[0], [1]] * 3, "1d array"),
        (None, "requires y to be passed"),
        ("kind", "names a column, so X must be a table"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.fit(x, labels)
        np.testing.assert_array_equal(model.coef_, before[0])
        assert model.classes_.tolist() == before[1]


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_checked(kind):
    x = np.column_stack([A, B])
    for settings, words in [
        ({"solver": "sgd"}, "solver must be 'newton' or 'gradient', not 'sgd'"),
        ({"init": "random"}, "init must be 'zero' or 'generative', not 'random'"),
        ({"l2": -1.0}, "l2 must be a number of 0 or more, not -1.0"),
        ({"l2": np.nan}, "l2 must be a number of 0 or more"),
        ({"l2": np.inf}, "l2 must be a number of 0 or more"),
        ({"firth": True, "l2": 1.0}, "firth=True is a penalty of its own"),
        ({"firth": True, "solver": "gradient"}, "firth=True is a penalty of its own"),
    ]:
        with pytest.raises(ValueError, match=words):
            kind(**settings).fit(x, Y)
        model = kind(l2=1.0).fit(x, Y)
        with pytest.raises(ValueError, match=words):
            model.set_params(**{"l2": 0.0, **settings}).refine(x, Y)


def test_weights_that_are_none_are_refused():
    for weights, words in [
        ([1.0, 1.0, 1.0, -1.0, 1.0, 1.0], "sample_weight, row 3: -1 is not a weight"),
        ([1.0, 1.0, 1.0, np.nan, 1.0, 1.0], "sample_weight, row 3: nan is not a weight"),
        ([1.0] * 5, r"sample_weight.shape == \(5,\)"),
        ([0.0] * 6, "every sample weight is zero"),
    ]:
        with pytest.raises(db.DecibanError, match=words):
            db.LogisticRegression(l2=1.0).fit(np.column_stack([A, B]), Y, sample_weight=weights)


def test_other_columns_are_refused():
    x = np.column_stack([A, B])
    model = db.LogisticRegression(l2=1.0).fit(x, Y)
    with pytest.raises(ValueError, match="X has 1 features, but LogisticRegression is expecting 2 features"):
        model.predict(x[:, :1])
    table = pd.DataFrame({"a": A, "b": B})
    model = db.LogisticRegression(l2=1.0).fit(table, Y)
    with pytest.raises(db.DecibanError, match="column 'b' held numbers so far and holds text now"):
        model.predict(table.assign(b="x"))
    with pytest.raises(db.DecibanError, match="no column 'kind' to use as label"):
        model.fit(table, "kind")


def test_nothing_can_be_asked_before_the_fit():
    model = db.LogisticRegression()
    x = np.column_stack([A, B])
    for ask in (model.predict, model.predict_proba, model.predict_log_proba, model.decision_function, model.explain):
        with pytest.raises(NotFittedError, match="not fitted"):
            ask(x)
    with pytest.raises(NotFittedError):
        model.summary()
    for name in ("coef_", "intercept_", "feature_names_", "n_parameters_"):
        with pytest.raises(NotFittedError):
            getattr(model, name)


def test_no_rows_teach_nothing():
    for x in (np.empty((0, 2)), pd.DataFrame({"a": [], "b": []})):
        with pytest.raises(ValueError, match="0 sample"):
            db.LogisticRegression().fit(x, [])


def test_a_new_fit_forgets_the_old_one():
    columns, _, y = people(classes=3)
    model = db.LogisticRegression(l2=1.0).fit(pd.DataFrame(columns), y)
    x, labels = drawn()
    model.fit(x, labels)
    fresh = clone(model).fit(x, labels)
    np.testing.assert_array_equal(model.coef_, fresh.coef_)
    assert model.classes_.tolist() == [0, 1]
    assert not hasattr(model, "feature_names_in_")
