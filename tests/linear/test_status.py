"""SeparationWatch and status_of: when separation is checked, and how it is reported."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import deciban as db
import deciban.linear.status
from deciban.data import frame_of
from deciban.linear.descent import Solution, Step
from deciban.linear.design import Design
from deciban.linear.design_rows import DenseRows, SparseRows
from deciban.linear.objective import Objective
from deciban.linear.responses import Bernoulli, Exponential, Gaussian, Multinomial, Poisson
from deciban.linear.separation import Separation
from deciban.linear.solvers import SolverResult
from deciban.linear.status import FAR, LARGE, LONG, SeparationWatch, status_of
from tests.cases import cases

X = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0], [4.0, 5.0]])
CLASSES = {"bernoulli": (Bernoulli(), [0, 1, 0, 1]), "multinomial": (Multinomial(3), [0, 1, 2, 1])}
NUMBERS = {
    "gaussian": (Gaussian(), [1, 2, 2, 1]),
    "poisson": (Poisson(), [1, 0, 2, 1]),
    "exponential": (Exponential(), [1, 3, 2, 1]),
}
COMPLETE, PARTLY = Separation((0,), complete=True), Separation((1,), complete=False)


def objective_of(response, y, x=X):
    rows = SparseRows.of(x) if sp.issparse(x) else DenseRows(x, np.zeros(x.shape[1]), np.ones(x.shape[1]))
    return Objective(rows, response, np.array(y, dtype=np.float64))


def theta_with(objective, eta):
    """θ under which η is the same in every row."""
    theta = np.zeros(objective.shape)
    theta[:, -1] = eta
    return theta


@pytest.fixture(params=CLASSES)
def classes(request):
    return objective_of(*CLASSES[request.param])


@pytest.fixture
def asked(monkeypatch):
    """The calls of `find_separation`, which returns `calls.answer`."""

    class Calls(list):
        answer = None

        def __call__(self, *arguments):
            self.append(arguments)
            return self.answer

    calls = Calls()
    monkeypatch.setattr(deciban.linear.status, "find_separation", calls)
    return calls


# Watch ---------------------------------------------------------------------------------------------------------------


def test_no_check_while_the_fit_is_short_and_near(asked, classes):
    watch = SeparationWatch(classes, penalised=False)
    near = theta_with(classes, 0.99 * FAR)
    assert not any(watch.should_stop(iteration, near) for iteration in range(LONG))
    watch.check(near)
    assert asked == []
    assert watch.separation is None


def test_a_long_fit_is_checked_once_and_continues_if_not_separable(asked, classes):
    watch = SeparationWatch(classes, penalised=False)
    theta = theta_with(classes, 1.01 * LARGE)
    assert not any(watch.should_stop(iteration, theta) for iteration in range(3 * LONG))
    assert len(asked) == 1
    watch.check(theta_with(classes, 2 * FAR))
    assert len(asked) == 1
    assert watch.separation is None


def test_a_long_fit_of_small_log_odds_is_not_checked(asked, classes):
    watch = SeparationWatch(classes, penalised=False)
    assert not any(watch.should_stop(iteration, theta_with(classes, 0.99 * LARGE)) for iteration in range(5 * LONG))
    assert asked == []


def test_a_long_fit_is_checked_once_log_odds_are_large(asked, classes):
    asked.answer = COMPLETE
    watch = SeparationWatch(classes, penalised=False)
    assert not any(watch.should_stop(iteration, theta_with(classes, 0.0)) for iteration in range(2 * LONG))
    far = theta_with(classes, 2 * FAR)
    assert any(watch.should_stop(iteration, far) for iteration in range(2 * LONG, 3 * LONG))
    assert len(asked) == 1


def test_a_diverging_fit_is_stopped(asked, classes):
    asked.answer = COMPLETE
    watch = SeparationWatch(classes, penalised=False)
    theta = theta_with(classes, 1.01 * LARGE)
    assert [watch.should_stop(iteration, theta) for iteration in range(LONG + 3)] == [False] * LONG + [True] * 3
    watch.check(theta_with(classes, 2 * FAR))
    assert len(asked) == 1
    assert watch.separation is COMPLETE


@pytest.mark.parametrize("side", [-1, 1])
def test_a_fit_that_ended_far_out_is_checked_once(asked, classes, side):
    asked.answer = PARTLY
    watch = SeparationWatch(classes, penalised=False)
    for _ in range(2):
        watch.check(theta_with(classes, side * 1.01 * FAR))
    assert len(asked) == 1
    assert watch.separation is PARTLY


def test_one_row_far_out_is_enough(asked, classes):
    theta = np.zeros(classes.shape)
    theta[-1, 0], theta[-1, -1] = FAR, -3.5 * FAR  # η = FAR·(x − 3.5): beyond FAR in the first two rows only
    SeparationWatch(classes, penalised=False).check(theta)
    assert len(asked) == 1


def test_the_check_gets_the_rows_and_their_classes(asked, classes):
    SeparationWatch(classes, penalised=False).should_stop(LONG, theta_with(classes, 2 * FAR))
    ((x, codes, count),) = asked
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(codes, classes.y)
    assert codes.dtype.kind == "i"
    assert count == classes.m + 1


def test_a_penalised_fit_is_never_checked(asked, classes):
    asked.answer = COMPLETE
    watch = SeparationWatch(classes, penalised=True)
    assert not any(watch.should_stop(iteration, theta_with(classes, 2 * FAR)) for iteration in range(3 * LONG))
    watch.check(theta_with(classes, 2 * FAR))
    assert asked == []


@pytest.mark.parametrize("name", NUMBERS)
def test_a_response_of_numbers_is_never_checked(asked, name):
    asked.answer = COMPLETE
    objective = objective_of(*NUMBERS[name])
    watch = SeparationWatch(objective, penalised=False)
    far = theta_with(objective, -2 * FAR)
    assert not any(watch.should_stop(iteration, far) for iteration in range(3 * LONG))
    watch.check(far)
    assert asked == []


def test_models_check_at_most_once(asked):
    """Independent of the descent: the watch decides when to check."""
    x, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    asked.answer = COMPLETE
    with pytest.warns(db.DecibanWarning, match="separable"):
        db.GeneralizedLinearModel("bernoulli").fit(x, y)
    assert len(asked) == 1
    db.GeneralizedLinearModel("bernoulli", l2=1.0).fit(x, y)
    db.GeneralizedLinearModel("poisson").fit(x, [1, 2, 0, 5])
    assert len(asked) == 1


def test_a_large_offset_is_checked_but_no_separation():
    """The result depends on the rows alone, not on the offset."""
    x, y = np.array([[0.0], [1.0], [2.0], [3.0], [1.5]]), [0, 1, 0, 1, 0]
    model = db.GeneralizedLinearModel("bernoulli").fit(x, y, offset=[0, 0, 0, 100.0, 0])
    assert model.status_ == "ok"


# status_of -----------------------------------------------------------------------------------------------------------


def solved(*, converged=True, flat=(), iterations=3):
    """The path has every point: one more than steps."""
    theta = np.zeros((1, 3))
    path = (Step(1.0, 1.0, 1.0),) * iterations + (Step(1.0, 0.0, 0.0),)
    return SolverResult(Solution(theta, 1.0, path, converged), tuple(flat))


def design_of(x, names):
    plain = x.toarray() if sp.issparse(x) else x
    return Design.of(frame_of(plain if names is None else pd.DataFrame(plain, columns=list(names))))


def said(result, separation=None, x=X, names=("a", "b"), design=None):
    """The status and the warnings."""
    objective = objective_of(Bernoulli(), [0, 1, 0, 1], x)
    watch = SeparationWatch(objective, penalised=False)
    watch.separation = separation
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        status = status_of(result, watch, objective, design or design_of(x, names))
    assert all(w.category is db.DecibanWarning for w in caught)
    return status, [str(w.message) for w in caught]


def test_the_status_of_a_sound_fit_is_ok():
    assert said(solved()) == ("ok", [])


@pytest.mark.parametrize(
    ("separation", "words"),
    [
        (COMPLETE, "separable by: columns 'a'"),
        (PARTLY, "partly separable by: columns 'b'"),
        (Separation((0, 1), complete=True), "separable by: columns 'a', 'b'"),
    ],
)
def test_separable_classes_are_reported_with_their_columns(separation, words):
    status, warned = said(solved(converged=False), separation)
    assert status == words  # it did not converge, for the reason given
    assert len(warned) == 1
    assert warned[0].startswith(words)
    assert "l2" in warned[0]


def test_no_convergence_is_reported_with_the_iterations():
    status, warned = said(solved(converged=False, iterations=17))
    assert status == "not converged after 17 iterations"
    assert len(warned) == 1
    assert warned[0].startswith(status)
    assert "max_iter" in warned[0]


def test_collinear_columns_are_listed():
    """By name or position; sparse columns that are partly stored are not constant."""
    x = np.column_stack([X[:, 0], 2 * X[:, 0], X[:, 0] ** 2])
    status, warned = said(solved(flat=(0, 1)), x=x, names=("a", "b", "c"))
    assert status == "collinear: columns 'a', 'b' are combinations of each other"
    assert len(warned) == 1
    assert warned[0].startswith(status)
    partly = sp.csr_array(np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 0.0], [0.0, 1.0]]))
    assert said(solved(flat=(0, 1)), x=partly)[0] == status
    by_position = "collinear: columns 0, 1 are combinations of each other"
    assert said(solved(flat=(0, 1)), x=x[:, :2], names=None)[0] == by_position
    assert said(solved(), COMPLETE, names=None)[0] == "separable by: columns 0"


def test_features_are_listed_by_their_own_names():
    """An indicator is not its column."""
    table = pd.DataFrame({"size": [1.0, np.nan, 3.0, 4.0], "colour": list("rgbr")})
    design = Design.of(frame_of(table))
    x = np.asarray(design.matrix(frame_of(table)))
    status, _ = said(solved(converged=False), Separation((1, 3), complete=False), x, design=design)
    assert status == "partly separable by: columns 'size missing', 'colour = r'"


def test_sufficient_statistics_may_be_collinear():
    """The indicators of a category sum to 1: no warning."""
    twin = db.NaiveBayes().fit(pd.DataFrame({"g": list("uvuv"), "h": list("uuvv")}), [0, 1, 1, 0]).to_linear()
    design = twin.predictor_.design
    x = np.ones((4, len(design.names)))
    assert said(solved(flat=range(len(design.names))), x=x, design=design) == ("ok", [])
    status, warned = said(solved(flat=(0, 1), converged=False), x=x, design=design)
    assert status == "not converged after 3 iterations"
    assert len(warned) == 1


@cases(
    "x",
    [X, sp.csr_array(X), sp.csr_array(np.column_stack([X[:, 0], np.zeros(4)]))],  # the last one stores no entries
)
def test_a_constant_column_is_reported_without_a_warning(x):
    assert said(solved(flat=(1,)), x=x) == ("constant: columns 'b'", [])


def test_all_problems_are_reported_in_one_line():
    x = np.column_stack([X, X[:, 0]])
    status, warned = said(solved(converged=False, flat=(0, 1, 2)), x=x, names=("a", "b", "c"))
    assert status == (
        "not converged after 3 iterations; collinear: columns 'a', 'c' are combinations of each other; "
        "constant: columns 'b'"
    )
    assert len(warned) == 2
    status, warned = said(solved(converged=False, flat=(0, 1, 2)), COMPLETE, x, ("a", "b", "c"))
    assert status.startswith("separable by: columns 'a'; collinear: columns 'a', 'c' are")
    assert len(warned) == 2


def test_a_long_list_is_cut():
    x = np.arange(4.0)[:, np.newaxis] * np.arange(1.0, 14.0)
    names = tuple(f"c{j}" for j in range(13))
    status, _ = said(solved(flat=range(13)), x=x, names=names)
    assert "'c9' and 3 more are combinations" in status
    assert "'c10'" not in status
    status, _ = said(solved(flat=range(10)), x=x, names=names)
    assert "more" not in status


def test_a_warning_names_settings_of_the_model_and_points_at_the_line_that_called_fit():
    """GeneralizedLinearModel has l2; firth belongs to another model, which is named."""
    with pytest.warns(db.DecibanWarning, match="separable") as caught:
        db.GeneralizedLinearModel("bernoulli").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    (warning,) = caught
    assert "set l2" in str(warning.message)
    assert "firth" not in str(warning.message).replace("LogisticRegression(firth=True)", "")
    assert warning.filename == __file__
