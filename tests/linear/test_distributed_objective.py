"""Distributed rows: the same model as from rows in memory, and work and results that can be pickled."""

import pickle
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.linear_model import LogisticRegression as TheirRegression

import deciban as db
from deciban.data import Labelled, Sample, frame_of, split_column
from deciban.data.distributed import DistributedRows
from deciban.data.labels import check_weights, encode_labels
from deciban.linear.design import Design
from deciban.linear.design_rows import rows_of
from deciban.linear.distributed_objective import DistributedDesignRows, DistributedObjective
from deciban.linear.responses import Multinomial
from deciban.linear.status import FAR

KINDS = [db.LogisticRegression, db.SoftmaxRegression]


@dataclass(frozen=True)
class Pieces(DistributedRows):
    """Partitions in this process; whatever is sent to them or returned is pickled."""

    pieces: tuple[Labelled, ...]
    label: str | None = None
    label_dtype: object = None
    passes: list[int] = field(default_factory=list)  # bytes sent with each

    @property
    def frame(self):
        return self.pieces[0].frame.slice(0, 0)

    def total(self, work):
        sent = pickle.dumps(work)
        self.passes.append(len(sent))
        result = [pickle.loads(pickle.dumps(pickle.loads(sent)(piece))) for piece in self.pieces]
        result = [part for part in result if part is not None]
        return sum(result[1:], start=result[0]) if result else None

    def __reduce__(self):
        raise TypeError("the rows do not travel")


def pieces_of(x, y, weights=None, cuts=(0.1, 0.1, 0.55), numbered=False):
    """Partitions of an array or a table, one of them empty; each has only its own classes."""
    frame, labels = split_column(x, y, "label") if isinstance(y, str) else (frame_of(x), y)
    codes = encode_labels(labels)
    values = [codes.classes[i] for i in codes.codes]
    weights = check_weights(weights, frame.rows)
    ends = [0, *(int(cut * frame.rows) for cut in cuts), frame.rows]
    parts = []
    for start, stop in pairwise(ends):
        own = None if weights is None else weights[start:stop]
        numbers = np.arange(start, stop) if numbered else None
        parts.append(Sample(frame.slice(start, stop), encode_labels(values[start:stop]), own, numbers))
    dtype = y.dtype if isinstance(y, np.ndarray) else None
    return Pieces(tuple(parts), y if isinstance(y, str) else None, dtype)


def both(model, x, y, weights=None, **more):
    """The same model from distributed rows and from memory, with no additional warnings."""
    return model.fit(pieces_of(x, y, weights, **more)), type(model)(**model.get_params()).fit(x, y, weights)


def same(distributed, whole, rtol=1e-9):
    """Coefficients relative to the largest that the units of their column allow."""
    assert distributed.feature_names_ == whole.feature_names_
    assert distributed.status_ == whole.status_
    assert distributed.classes_.dtype == whole.classes_.dtype
    np.testing.assert_array_equal(distributed.classes_, whole.classes_)
    size = np.abs(whole.coef_).max(initial=0.0)
    np.testing.assert_allclose(distributed.coef_, whole.coef_, rtol=rtol, atol=1e-2 * rtol * size)
    origin = whole.predictor_.origin  # compared there, as an intercept far from the data has few digits
    scores = [
        m.predictor_.constant + m.predictor_.coefficients @ (origin - m.predictor_.origin) for m in (distributed, whole)
    ]
    np.testing.assert_allclose(*(score - score.mean() for score in scores), rtol=rtol, atol=rtol)
    assert distributed.objective_ == pytest.approx(whole.objective_, rel=1e-11, abs=1e-9)


def mixed(n=400, classes=3, seed=0):
    """Numbers and categories with missing values, booleans, an empty column, and weights."""
    rng = np.random.default_rng(seed)
    age, rich, city = rng.normal(50, 12, n), rng.random(n) < 0.4, rng.choice(["x", "Ä", "b b", "10"], n)
    score = np.stack([0.05 * age * k + rich * (k == 1) + (city == "x") * (k == 2) for k in range(classes)], axis=1)
    table = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, age),
            "rich": pd.array(rich, dtype="boolean"),
            "city": pd.Series(city, dtype=object).where(rng.random(n) < 0.9, None),
            "height": rng.normal(1.8, 0.1, n).astype(np.float32),
            "nowhere": np.full(n, np.nan),
            "children": rng.poisson(1.5, n),
            "class": np.array(["u", "v", "w"])[np.argmax(score + rng.gumbel(size=score.shape), axis=1)],
        }
    )
    table.loc[3, "rich"] = pd.NA
    return table


# What the rows are like ----------------------------------------------------------------------------------------------


def whole_of(x, y, weights=None):
    sample = pieces_of(x, y, weights, cuts=()).pieces[0]
    kept = np.flatnonzero(np.ones(sample.frame.rows) if sample.weights is None else sample.weights)
    frame, weights = sample.frame.take(kept), None if sample.weights is None else sample.weights[kept]
    design = Design.of(frame, weights)
    return design, rows_of(design.matrix(frame), design.origin, weights, design.spread)


def tables():
    table, (x, y) = mixed(), load_iris(return_X_y=True)
    rng = np.random.default_rng(1)
    yield "iris", x, y, None
    yield "far away", 1e8 + x, y, None
    yield "weights", x, y, np.where(rng.random(150) < 0.2, 0.0, rng.random(150))
    yield "mixed", table, "class", None
    yield "mixed and weights", table, "class", rng.integers(0, 3, len(table)).astype(float)
    yield "booleans", x > x.mean(axis=0), y, None
    yield "floats", x.astype(np.float32), y, None
    yield "integers", np.round(10 * x).astype(int), y, None
    yield "sparse", sp.csr_array(np.where(x < 1.5, 0.0, x)), y, None
    many = pd.DataFrame({"a": np.arange(1200) % 600, "b": rng.normal(2.0, 1.0, 1200)}).astype({"a": str})
    yield "many categories", many.assign(b=many["b"].where(many["b"] > 0)), rng.integers(0, 2, 1200), None


@pytest.mark.parametrize(("x", "y", "weights"), [pytest.param(*case, id=name) for name, *case in tables()])
def test_the_design_is_that_of_all_rows(x, y, weights):
    parts = pieces_of(x, y, weights)
    result, (design, rows) = DistributedDesignRows.of(parts), whole_of(x, y, weights)
    assert len(parts.passes) == (2 if sp.issparse(x) else 1)
    assert result.design.names == design.names
    assert result.design.schema == design.schema
    assert [part.columns for part in result.design.parts] == [part.columns for part in design.parts]
    for mine, theirs in zip(result.design.parts, design.parts, strict=True):
        assert type(mine.encoder) is type(theirs.encoder)
        assert getattr(mine.encoder, "levels", None) == getattr(theirs.encoder, "levels", None)
        for name in ("fill", "share", "spread"):
            a, b = getattr(mine.encoder, name, None), getattr(theirs.encoder, name, None)
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a, b, rtol=1e-7 if name == "spread" else 1e-13)
    np.testing.assert_allclose(result.design.origin, design.origin, rtol=1e-13)
    assert type(result.rows) is type(rows)
    assert result.rows.shape == (0, rows.shape[1])
    np.testing.assert_allclose(result.rows.origin, rows.origin, rtol=1e-13)
    np.testing.assert_allclose(result.rows.scale, rows.scale, rtol=1e-7)
    np.testing.assert_array_equal(result.rows.varies, rows.varies)


def test_the_moments_of_the_features_are_exact_where_columns_are_far_away():
    """Integers about 1e8, whose spread is exact in fractions."""
    low = np.array([[0], [1], [5], [5], [9]], dtype=float)
    result = DistributedDesignRows.of(pieces_of(1e8 + low, [0, 1, 0, 1, 0]))
    assert result.rows.origin[0] == 1e8 + 4
    assert result.rows.scale[0] == pytest.approx(np.sqrt(52 / 5), rel=1e-15)


@pytest.mark.parametrize("twin", [False, True])
def test_a_known_design_is_measured(twin):
    x, y = load_iris(return_X_y=True)
    model = db.NaiveBayes().fit(x, y).to_linear() if twin else db.LogisticRegression(l2=1.0).fit(x, y)
    design = model.predictor_.design
    result, cells = DistributedDesignRows.with_design(pieces_of(x, y), design), np.asarray(design.matrix(frame_of(x)))
    np.testing.assert_allclose(result.rows.origin, cells.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(result.rows.scale, np.where(result.rows.varies, cells.std(axis=0), 1.0), rtol=1e-10)


# The objective -------------------------------------------------------------------------------------------------------


def test_a_point_costs_one_pass_with_its_gradient_and_hessian():
    x, y = load_iris(return_X_y=True)
    parts = pieces_of(x, y)
    objective = DistributedObjective(DistributedDesignRows.of(parts), Multinomial(3), 2.5, None, with_information=True)
    theta = np.random.default_rng(0).normal(size=objective.shape)
    before = len(parts.passes)
    first = objective.hessian(theta), *objective.evaluate(theta)
    np.testing.assert_array_equal(objective.hessian(theta), first[0])  # the cache is not changed
    assert len(parts.passes) == before + 1
    objective.evaluate(theta + 1.0)
    assert len(parts.passes) == before + 2
    flat = replace(objective, with_information=False, _last=[])
    assert flat.evaluate(theta)[0] == pytest.approx(first[1], rel=1e-14)
    assert len(parts.passes) == before + 3
    np.testing.assert_allclose(flat.hessian(theta), first[0], rtol=1e-13)
    z = np.hstack([(x - x.mean(axis=0)) / x.std(axis=0), np.ones((150, 1))])
    scores = np.hstack([np.zeros((150, 1)), z @ theta.T])
    coefficients = theta[:, :-1] / x.std(axis=0)
    loss = -log_softmax(scores, axis=1)[np.arange(150), y].sum()
    assert first[1] == pytest.approx(loss + 1.25 * (coefficients**2).sum(), rel=1e-12)


def test_only_what_a_step_needs_is_sent():
    """θ and the design are sent, and no rows: the size does not depend on their number."""
    sizes = []
    for n in (300, 10_000):
        table = mixed(n)
        parts = pieces_of(table, "class")
        db.LogisticRegression(l2=1.0).fit(parts)
        sizes.append(max(parts.passes))
    assert sizes[1] < 1.1 * sizes[0] < 20_000


# The same model ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", [{"l2": 0.0}, {"l2": 1.5}, {"l2": 0.3, "init": "generative"}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_iris(kind, settings, classes):
    x, y = load_iris(return_X_y=True)
    y = np.where(np.arange(150) % 9 == 0, 1, y)  # no class is separable
    rows = y > 2 - classes
    distributed, whole = both(kind(**settings), x[rows], np.array(["a", "b", "c"])[y[rows]])
    same(distributed, whole)
    assert distributed.status_ == "ok"
    if "init" not in settings:  # a far start, from which paths differ
        assert distributed.n_iter_ == whole.n_iter_
        paths = [np.array([row[1:] for row in model.path_.rows]) for model in (distributed, whole)]
        np.testing.assert_allclose(paths[0], paths[1], rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_mixed_table(kind, weighted):
    table = mixed()
    weights = np.random.default_rng(0).integers(0, 3, len(table)).astype(float) if weighted else None
    distributed, whole = both(kind(l2=0.1), table, "class", weights)
    same(distributed, whole)
    assert "constant: columns 'nowhere'" in distributed.status_
    assert distributed.label_name_ == "class"
    np.testing.assert_allclose(distributed.predict_proba(table), whole.predict_proba(table), atol=1e-10)


def test_weights_are_rows():
    x, y = load_breast_cancer(return_X_y=True)
    x = x[:, :4]
    times = np.random.default_rng(0).integers(0, 4, len(y))
    distributed = db.LogisticRegression().fit(pieces_of(x, y, times.astype(float)))
    same(distributed, db.LogisticRegression().fit(np.repeat(x, times, axis=0), np.repeat(y, times)))


def test_rows_of_weight_zero_may_be_all_of_a_class_or_of_a_part():
    x, y = load_iris(return_X_y=True)
    weights = np.ones(150)
    weights[(y == 0) | (np.arange(150) < 90)] = 0.0
    distributed, whole = both(db.LogisticRegression(l2=1.0), x, y, weights)
    same(distributed, whole)
    assert distributed.classes_.tolist() == [1, 2]


def test_a_class_that_only_one_part_has_and_empty_parts():
    x, y = load_iris(return_X_y=True)  # sorted by class
    distributed, whole = both(db.SoftmaxRegression(l2=1.0), x, y, cuts=(0.0, 0.3, 0.3, 0.5, 0.9, 1.0))
    same(distributed, whole)


def test_many_categories():
    """Sparse features, too wide for a full Hessian."""
    rng = np.random.default_rng(0)
    city = rng.integers(0, 700, 3000)
    effect, size = rng.normal(size=700), rng.normal(3.0, 1.0, 3000)
    table = pd.DataFrame({"city": city.astype(str), "size": np.where(rng.random(3000) < 0.1, np.nan, size)})
    y = rng.random(3000) < 1 / (1 + np.exp(-effect[city] - 0.5 * (size - 3)))
    for classes in (y, y + 2 * (rng.random(3000) < 0.3)):
        distributed, whole = both(db.LogisticRegression(l2=3.0, tol=1e-18), table, classes)
        assert sp.issparse(distributed.predictor_.design.matrix(frame_of(table)))
        same(distributed, whole, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows(kind):
    x, y = (a[:400] for a in load_digits(return_X_y=True))
    x, y = x[:, :20], np.minimum(y, 2)
    distributed, whole = both(kind(l2=1.0), sp.csr_array(x), y)
    same(distributed, whole)
    assert distributed.status_ == f"constant: columns {', '.join(map(str, np.flatnonzero(np.ptp(x, axis=0) == 0)))}"
    few = sp.csr_array(x[:, [10]] / 16)
    same(*both(kind(solver="gradient", l2=100.0, tol=1e-17), few, y), rtol=1e-6)


@pytest.mark.parametrize("init", ["zero", "generative"])
def test_gradient_descent(init):
    table = mixed(150)[["rich", "children", "class"]]
    distributed, whole = both(db.LogisticRegression(solver="gradient", l2=20.0, init=init, tol=1e-9), table, "class")
    same(distributed, whole, rtol=1e-7)
    assert distributed.status_ == "ok"


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_generative_start_is_that_of_all_rows(form):
    x, y = load_iris(return_X_y=True)
    distributed, whole = both(db.LogisticRegression(init="generative", l2=1.0, max_iter=1, tol=1.0), form(x), y)
    assert distributed.path_.rows[0][1] == pytest.approx(whole.path_.rows[0][1], rel=1e-11)
    assert distributed.path_.rows[0][1] != pytest.approx(150 * np.log(3), rel=0.1)  # the null start


@pytest.mark.parametrize("shift", [1e6, 1e8])
def test_columns_far_from_zero(shift):
    x, y = load_iris(return_X_y=True)
    x = np.round((x - x.mean(axis=0)) * 2**10) / 2**10
    distributed, whole = both(db.LogisticRegression(l2=0.1), shift + x, y)
    same(distributed, whole, rtol=1e-7)
    near = db.LogisticRegression(l2=0.1).fit(x, y)
    np.testing.assert_allclose(distributed.coef_, near.coef_, rtol=1e-7)
    np.testing.assert_allclose(distributed.predict_proba(shift + x), near.predict_proba(x), atol=1e-9)


def test_more_parameters_than_newton_takes():
    """Ten classes: the curvature is V ⊗ G."""
    x, y = (a[:500] for a in load_digits(return_X_y=True))
    x = np.hstack([x, np.sqrt(x)])
    distributed, whole = both(db.LogisticRegression(l2=30.0, tol=1e-14), x, y)
    same(distributed, whole, rtol=1e-4)  # both stop by tolerance


def test_wider_than_a_gram_matrix(monkeypatch):
    """The diagonal alone."""
    monkeypatch.setattr("deciban.linear.solvers.MAX_GRAM", 1000)
    rng = np.random.default_rng(0)
    x = sp.random_array((100, 1050), density=0.01, random_state=rng, format="csr")
    y = rng.integers(0, 2, 100)
    for solver in ("newton", "gradient"):
        distributed, whole = both(db.LogisticRegression(solver=solver, l2=5.0, tol=1e-13), x, y)
        same(distributed, whole, rtol=1e-5)


def test_scikit_learn_agrees():
    x, y = load_breast_cancer(return_X_y=True)
    theirs = TheirRegression(C=0.5, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(x, y)
    mine = db.LogisticRegression(l2=2.0).fit(pieces_of(x, y))
    np.testing.assert_allclose(mine.coef_, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(mine.predict_proba(x), theirs.predict_proba(x), atol=1e-8)


def test_a_general_optimiser_agrees_on_a_table_with_missing_values():
    """The features by hand: imputed means, missing indicators, and an indicator for each level except the first."""
    table = mixed(classes=2)
    age, city = table["age"].to_numpy(), table["city"].fillna("ß").to_numpy()  # missing text comes last
    missing = np.isnan(age)
    z = np.column_stack(
        [np.where(missing, age[~missing].mean(), age), missing, *((city == value) for value in sorted(set(city))[1:])]
    ).astype(float)
    y = (table["class"] == "v").to_numpy().astype(int)

    def lost(theta):
        eta = z @ theta[1:] + theta[0]
        residual = 1 / (1 + np.exp(-eta)) - y
        value = (np.logaddexp(0.0, eta) - y * eta).sum() + 0.5 * (theta[1:] ** 2).sum()
        return value, np.append(residual.sum(), z.T @ residual + theta[1:])

    best = minimize(lost, np.zeros(z.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 9999})
    mine = db.LogisticRegression(l2=1.0).fit(pieces_of(table[["age", "city", "class"]], "class"))
    assert mine.objective_ == pytest.approx(best.fun, rel=1e-12)
    np.testing.assert_allclose(mine.coef_[0], best.x[1:], rtol=1e-5, atol=1e-6)


# Status and errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "gradient"])
@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_are_detected_and_the_fit_ends(solver, classes):
    x, y = load_iris(return_X_y=True)
    if classes == 3:  # three distant clusters
        x[y == 2] = x[y == 2] * 0.5 + 9.0
    else:
        y = (y == 0).astype(int)
    with pytest.warns(db.DecibanWarning, match="separable by"):
        model = db.LogisticRegression(solver=solver, tol=1e-30).fit(pieces_of(x, y))
    assert model.status_.startswith("separable by: columns ")
    assert model.n_iter_ < 1000
    assert model.score(x, y) == 1.0
    assert db.LogisticRegression(l2=1.0).fit(pieces_of(x, y)).status_ == "ok"


def test_partly_separable_classes_are_uncertain():
    """One level has rows of one class only; that the other rows are not separable takes a linear program."""
    table = mixed(classes=2)
    table.loc[table["city"] == "x", "class"] = "u"
    with pytest.warns(db.DecibanWarning, match="may have been stopped"):
        model = db.LogisticRegression().fit(pieces_of(table[["age", "city", "class"]], "class"))
    assert model.status_ == "perhaps separable: some log-odds are very large, and distributed rows are not checked"


def test_large_log_odds_during_the_descent_are_no_warning():
    """Log-odds beyond 8 but not beyond 15: a fit that converges."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 2))
    y = (rng.random(1000) < 1 / (1 + np.exp(-4 * x[:, 0]))).astype(int)
    distributed, whole = both(db.LogisticRegression(solver="gradient"), x, y)
    assert np.abs(distributed.decision_function(x)).max() > 8
    same(distributed, whole, rtol=1e-7)
    assert distributed.status_ == "ok"


@pytest.mark.parametrize("solver", ["newton", "gradient"])
def test_collinear_and_constant_columns(solver):
    x, y = load_iris(return_X_y=True)
    x = np.column_stack([x[:, 1], 2 * x[:, 1] + 1, np.full(150, 0.1), x[:, 0]])
    with pytest.warns(db.DecibanWarning, match="collinear"):
        distributed, whole = both(db.LogisticRegression(solver=solver), x, y > 1)
    same(distributed, whole, rtol=1e-7)
    assert distributed.status_ == ("collinear: columns 0, 1 are combinations of each other; constant: columns 2")


def test_a_constant_column_of_sparse_rows():
    x, y = load_iris(return_X_y=True)
    x = sp.csr_array(np.column_stack([x[:, 1], np.full(150, 3.0), np.zeros(150)]))
    distributed, whole = both(db.LogisticRegression(), x, y > 1)
    same(distributed, whole)
    assert distributed.status_ == "constant: columns 1, 2"


@pytest.mark.parametrize("numbered", [False, True])
def test_an_infinite_cell_is_named(numbered):
    x, y = load_iris(return_X_y=True)
    x[120, 2] = np.inf
    weights = np.where(np.arange(150) % 7 == 0, 0.0, 1.0)
    parts = pieces_of(x, y, weights, numbered=numbered)
    row = 120 if numbered else 120 - int(0.55 * 150)
    for model in (db.LogisticRegression(), db.LogisticRegression(l2=1.0).fit(*load_iris(return_X_y=True))):
        with pytest.raises(db.RowError, match=f"column 2, row {row}: inf is infinite"):
            model.refine(parts) if hasattr(model, "predictor_") else model.fit(parts)


def test_numbers_whose_squares_overflow_are_refused():
    x, y = load_iris(return_X_y=True)
    with pytest.raises(db.DecibanError, match="column 0 varies by 6e-200, whose square is out of range"):
        db.LogisticRegression().fit(pieces_of(x * 1e-200, y))
    with pytest.raises(db.RowError, match=r"column 0, row 0: .*e\+200 is too large to be squared"):
        db.LogisticRegression().fit(pieces_of(x * 1e200, y))
    with pytest.raises(db.RowError, match=r"column '0', row 0: .*e\+200 is too large to be squared"):
        db.LogisticRegression(l2=1.0).fit(x, y).refine(pieces_of(x * 1e200, y))


def test_documents_one_class_and_no_rows_are_refused():
    x, y = load_iris(return_X_y=True)
    with pytest.raises(db.DecibanError, match="not documents"):
        db.LogisticRegression().fit(Pieces((Sample(frame_of(["buy a book"]), encode_labels(["a"]), None),)))
    with pytest.raises(db.DecibanError, match="LogisticRegression needs two classes; y holds one class, 0"):
        db.LogisticRegression().fit(pieces_of(x[:50], y[:50]))
    with pytest.raises(db.DecibanError, match="no rows to learn from"):
        db.LogisticRegression().fit(nothing(x, y))


def nothing(x, y):
    parts = pieces_of(x, y)
    return replace(parts, pieces=(parts.pieces[1],))  # the empty one


def test_firth_needs_the_rows():
    parts = pieces_of(*load_iris(return_X_y=True))
    with pytest.raises(db.DecibanError, match=r"firth=True needs the rows in memory.* set l2 above 0"):
        db.LogisticRegression(firth=True).fit(parts)
    assert parts.passes == []


@pytest.mark.parametrize("model", [db.GeneralizedLinearModel("bernoulli"), db.Halfspace(), db.CalibratedClassifier()])
def test_models_that_need_all_rows_refuse_distributed_rows(model):
    with pytest.raises(db.DecibanError, match=f"{type(model).__name__} needs the rows in memory"):
        model.fit(pieces_of(*load_iris(return_X_y=True)))
    assert not hasattr(model, "status_")


# What is left of a fit -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_complete_and_can_be_saved(kind, tmp_path):
    table = mixed()
    distributed, whole = both(kind(l2=1.0), table, "class")
    assert vars(distributed).keys() == vars(whole).keys()
    distributed.save(tmp_path / "model.db")
    loaded = db.load(tmp_path / "model.db")
    np.testing.assert_array_equal(loaded.predict_proba(table), distributed.predict_proba(table))
    assert str(loaded.summary()) == str(distributed.summary())
    assert repr(distributed.explain(table[:1])) == repr(whole.explain(table[:1]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_refine_continues_the_descent(form):
    x, y = load_iris(return_X_y=True)
    rough = [db.LogisticRegression(l2=1.0, max_iter=2, tol=1.0).fit(form(x[::2]), y[::2]) for _ in range(2)]
    for model in rough:
        model.set_params(max_iter=None, tol=None)
    same(rough[0].refine(pieces_of(form(x), y)), rough[1].refine(form(x), y))
    same(rough[0], db.LogisticRegression(l2=1.0).fit(form(x), y))


def test_refine_of_a_converted_model():
    table = mixed().drop(columns="nowhere")
    x, y = table.drop(columns="class"), table["class"].to_numpy()
    twins = [db.NaiveBayes().fit(x, y).to_linear() for _ in range(2)]
    for twin in twins:
        twin.set_params(l2=1.0)
    same(twins[0].refine(pieces_of(x, y)), twins[1].refine(x, y), rtol=1e-7)


def test_refine_requires_the_same_classes():
    x, y = load_iris(return_X_y=True)
    model = db.LogisticRegression(l2=1.0).fit(x, y)
    with pytest.raises(db.DecibanError, match="there is no row of class 2"):
        model.refine(pieces_of(x[:100], y[:100]))
    with pytest.raises(db.DecibanError, match="class 3 is not one of the model's"):
        model.refine(pieces_of(x, y + 1))


def test_the_order_of_parts_does_not_matter_much():
    table = mixed()
    parts = pieces_of(table, "class")
    turned = replace(parts, pieces=parts.pieces[::-1])
    same(db.LogisticRegression(l2=1.0).fit(turned), db.LogisticRegression(l2=1.0).fit(parts))


def test_a_minimum_is_distinguished_from_divergence():
    """Unpenalised and far out: only the first surely has a minimum, by the length of a step there."""
    x, y = load_breast_cancer(return_X_y=True)
    distributed, whole = both(db.LogisticRegression(), x[:, :4], y)
    assert np.abs(distributed.decision_function(x[:, :4])).max() > FAR
    same(distributed, whole)
    assert distributed.status_ == "ok"
