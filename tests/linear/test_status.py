"""Watch and status_of: what is asked, how often, and in which words it is said."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import deciban as db
import deciban.linear.status
from deciban.design import Design
from deciban.linear.descent import Solution, Step
from deciban.linear.objective import Objective
from deciban.linear.rows import DenseRows, SparseRows
from deciban.linear.solve import Solved
from deciban.linear.status import FAR, LARGE, LONG, Watch, status_of
from deciban.responses import Bernoulli, Exponential, Gaussian, Multinomial, Poisson
from deciban.separation import Separation
from deciban.sources import frame_of

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
    """The calls of `separating`, which answers with `asked.answer`."""

    class Calls(list):
        answer = None

        def __call__(self, *arguments):
            self.append(arguments)
            return self.answer

    calls = Calls()
    monkeypatch.setattr(deciban.linear.status, "separating", calls)
    return calls


# Watch ---------------------------------------------------------------------------------------------------------------


def test_nothing_is_asked_while_the_fit_is_short_and_near(asked, classes):
    watch = Watch(classes, penalised=False)
    near = theta_with(classes, 0.99 * FAR)
    assert not any(watch.suspects(iteration, near) for iteration in range(LONG))
    watch.look_at(near)
    assert asked == []
    assert watch.separation is None


def test_a_long_fit_is_asked_about_once_and_goes_on_if_there_is_an_end(asked, classes):
    watch = Watch(classes, penalised=False)
    theta = theta_with(classes, 1.01 * LARGE)
    assert not any(watch.suspects(iteration, theta) for iteration in range(3 * LONG))
    assert len(asked) == 1
    watch.look_at(theta_with(classes, 2 * FAR))
    assert len(asked) == 1
    assert watch.separation is None


def test_a_long_fit_of_small_log_odds_is_not_asked_about(asked, classes):
    watch = Watch(classes, penalised=False)
    assert not any(watch.suspects(iteration, theta_with(classes, 0.99 * LARGE)) for iteration in range(5 * LONG))
    assert asked == []


def test_a_long_fit_is_asked_about_as_soon_as_it_has_gone_far(asked, classes):
    asked.answer = COMPLETE
    watch = Watch(classes, penalised=False)
    assert not any(watch.suspects(iteration, theta_with(classes, 0.0)) for iteration in range(2 * LONG))
    far = theta_with(classes, 2 * FAR)
    assert any(watch.suspects(iteration, far) for iteration in range(2 * LONG, 3 * LONG))
    assert len(asked) == 1


def test_a_fit_without_end_is_stopped(asked, classes):
    asked.answer = COMPLETE
    watch = Watch(classes, penalised=False)
    theta = theta_with(classes, 1.01 * LARGE)
    assert [watch.suspects(iteration, theta) for iteration in range(LONG + 3)] == [False] * LONG + [True] * 3
    watch.look_at(theta_with(classes, 2 * FAR))
    assert len(asked) == 1
    assert watch.separation is COMPLETE


@pytest.mark.parametrize("side", [-1, 1])
def test_a_fit_that_ended_far_out_is_asked_about_once(asked, classes, side):
    asked.answer = PARTLY
    watch = Watch(classes, penalised=False)
    for _ in range(2):
        watch.look_at(theta_with(classes, side * 1.01 * FAR))
    assert len(asked) == 1
    assert watch.separation is PARTLY


def test_one_row_far_out_is_enough(asked, classes):
    theta = np.zeros(classes.shape)
    theta[-1, 0], theta[-1, -1] = FAR, -3.5 * FAR  # η = FAR·(x − 3.5): beyond FAR in the first two rows only
    Watch(classes, penalised=False).look_at(theta)
    assert len(asked) == 1


def test_what_is_asked_are_the_rows_themselves_and_their_classes(asked, classes):
    Watch(classes, penalised=False).suspects(LONG, theta_with(classes, 2 * FAR))
    ((x, codes, count),) = asked
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(codes, classes.y)
    assert codes.dtype.kind == "i"
    assert count == classes.m + 1


def test_a_penalised_fit_is_never_asked_about(asked, classes):
    asked.answer = COMPLETE
    watch = Watch(classes, penalised=True)
    assert not any(watch.suspects(iteration, theta_with(classes, 2 * FAR)) for iteration in range(3 * LONG))
    watch.look_at(theta_with(classes, 2 * FAR))
    assert asked == []


@pytest.mark.parametrize("name", NUMBERS)
def test_a_response_of_numbers_is_never_asked_about(asked, name):
    asked.answer = COMPLETE
    objective = objective_of(*NUMBERS[name])
    watch = Watch(objective, penalised=False)
    far = theta_with(objective, -2 * FAR)
    assert not any(watch.suspects(iteration, far) for iteration in range(3 * LONG))
    watch.look_at(far)
    assert asked == []


def test_models_ask_at_most_once(asked):
    """Whatever the descent does: the question is the Watch's own."""
    x, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    asked.answer = COMPLETE
    with pytest.warns(db.DecibanWarning, match="separable"):
        db.GeneralizedLinearModel("bernoulli").fit(x, y)
    assert len(asked) == 1
    db.GeneralizedLinearModel("bernoulli", l2=1.0).fit(x, y)
    db.GeneralizedLinearModel("poisson").fit(x, [1, 2, 0, 5])
    assert len(asked) == 1


def test_an_offset_far_out_is_a_reason_to_ask_but_no_separation():
    """The answer comes from the rows alone, whatever the offset."""
    x, y = np.array([[0.0], [1.0], [2.0], [3.0], [1.5]]), [0, 1, 0, 1, 0]
    model = db.GeneralizedLinearModel("bernoulli").fit(x, y, offset=[0, 0, 0, 100.0, 0])
    assert model.status_ == "ok"


# status_of -----------------------------------------------------------------------------------------------------------


def solved(*, converged=True, flat=(), iterations=3):
    """The path holds every point: one more than there are steps."""
    theta = np.zeros((1, 3))
    path = (Step(1.0, 1.0, 1.0),) * iterations + (Step(1.0, 0.0, 0.0),)
    return Solved(Solution(theta, 1.0, path, converged), tuple(flat))


def design_of(x, names):
    plain = x.toarray() if sp.issparse(x) else x
    return Design.of(frame_of(plain if names is None else pd.DataFrame(plain, columns=list(names))))


def said(found, separation=None, x=X, names=("a", "b"), design=None):
    """The status and the warnings."""
    objective = objective_of(Bernoulli(), [0, 1, 0, 1], x)
    watch = Watch(objective, penalised=False)
    watch.separation = separation
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        status = status_of(found, watch, objective, design or design_of(x, names))
    assert all(w.category is db.DecibanWarning for w in caught)
    return status, [str(w.message) for w in caught]


def test_a_sound_fit_is_ok():
    assert said(solved()) == ("ok", [])


@pytest.mark.parametrize(
    ("separation", "words"),
    [
        (COMPLETE, "separable by: columns 'a'"),
        (PARTLY, "partly separable by: columns 'b'"),
        (Separation((0, 1), complete=True), "separable by: columns 'a', 'b'"),
    ],
)
def test_separable_classes_are_said_with_their_columns(separation, words):
    status, warned = said(solved(converged=False), separation)
    assert status == words  # it did not converge, for a reason that is said
    assert len(warned) == 1
    assert warned[0].startswith(words)
    assert "l2" in warned[0]


def test_a_fit_that_did_not_converge_is_said_with_its_length():
    status, warned = said(solved(converged=False, iterations=17))
    assert status == "not converged after 17 iterations"
    assert len(warned) == 1
    assert warned[0].startswith(status)
    assert "max_iter" in warned[0]


def test_columns_that_depend_on_each_other_are_listed():
    x = np.column_stack([X[:, 0], 2 * X[:, 0], X[:, 0] ** 2])
    status, warned = said(solved(flat=(0, 1)), x=x, names=("a", "b", "c"))
    assert status == "collinear: columns 'a', 'b' are combinations of each other"
    assert len(warned) == 1
    assert warned[0].startswith(status)


def test_columns_of_an_array_are_listed_by_position():
    x = np.column_stack([X[:, 0], 2 * X[:, 0]])
    status, _ = said(solved(flat=(0, 1)), x=x, names=None)
    assert status == "collinear: columns 0, 1 are combinations of each other"
    assert said(solved(), COMPLETE, names=None)[0] == "separable by: columns 0"


def test_features_are_listed_by_their_own_names():
    """An indicator is not its column."""
    table = pd.DataFrame({"size": [1.0, np.nan, 3.0, 4.0], "colour": list("rgbr")})
    design = Design.of(frame_of(table))
    x = np.asarray(design.matrix(frame_of(table)))
    status, _ = said(solved(converged=False), Separation((1, 3), complete=False), x, design=design)
    assert status == "partly separable by: columns 'size missing', 'colour = r'"


def test_the_statistics_of_a_twin_may_depend_on_each_other():
    """All values of a category add up to 1: no news, and no warning."""
    twin = db.NaiveBayes().fit(pd.DataFrame({"g": list("uvuv"), "h": list("uuvv")}), [0, 1, 1, 0]).to_linear()
    design = twin.predictor_.design
    x = np.ones((4, len(design.names)))
    assert said(solved(flat=range(len(design.names))), x=x, design=design) == ("ok", [])
    status, warned = said(solved(flat=(0, 1), converged=False), x=x, design=design)
    assert status == "not converged after 3 iterations"
    assert len(warned) == 1


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_constant_column_is_said_without_a_warning(form):
    assert said(solved(flat=(1,)), x=form(X)) == ("constant: columns 'b'", [])


def test_a_column_of_nothing_stored_is_constant():
    x = sp.csr_array(np.column_stack([X[:, 0], np.zeros(4)]))
    assert said(solved(flat=(1,)), x=x) == ("constant: columns 'b'", [])


def test_a_sparse_column_that_is_partly_stored_is_not_constant():
    x = sp.csr_array(np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 0.0], [0.0, 1.0]]))
    status, _ = said(solved(flat=(0, 1)), x=x)
    assert status == "collinear: columns 'a', 'b' are combinations of each other"


def test_everything_that_is_wrong_is_said_in_one_line():
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


def test_a_warning_of_a_model_names_only_settings_it_has():
    """GeneralizedLinearModel has l2; firth is a setting of another, which is then named."""
    with pytest.warns(db.DecibanWarning, match="separable") as caught:
        db.GeneralizedLinearModel("bernoulli").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    (warning,) = caught
    assert "set l2" in str(warning.message)
    assert "firth" not in str(warning.message).replace("LogisticRegression(firth=True)", "")


def test_a_warning_points_at_the_line_that_called_fit():
    with pytest.warns(db.DecibanWarning, match="separable") as caught:
        db.GeneralizedLinearModel("bernoulli").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert caught[0].filename == __file__
