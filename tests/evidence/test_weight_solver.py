"""Weights of evidence: the minimum of J, found from every side, and what must not harm it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from deciban.evidence import weight_solver as module
from deciban.evidence.weight_solver import Evidence, log_losses, solve

columns = pytest.mark.parametrize("C", [1, 3, 7])


def made(n, P, C, *, seed=0, noise=1.0, adverse=0.1):
    """Similar pieces: a common signal times a slope of each, and noise; some have the wrong sign."""
    rng = np.random.default_rng(seed)
    K = max(C, 2)
    labels = rng.integers(0, K, n).astype(np.int32)
    signal = 1.5 * rng.standard_normal((n, K))
    signal[np.arange(n), labels] += 2.0
    slope = rng.gamma(2.0, 0.7, P) * np.where(rng.random(P) < adverse, -0.3, 1.0)
    own = noise * rng.gamma(2.0, 0.5, P) * rng.standard_normal((K, n, P))
    values = signal.T[:, :, np.newaxis] * slope + own
    values -= values.mean(axis=0)
    groups = np.arange(P) % 3 if P >= 3 else np.zeros(P, np.intp)
    if C == 1:
        values = values[1:] - values[:1]
    offset = rng.normal(0.0, 0.5, (n, C))
    return Evidence(np.ascontiguousarray(values), offset, labels, None, groups)


def scores(evidence, solution):
    return (evidence.offset + solution.bias + np.einsum("cnp,pc->nc", evidence.values, solution.weights)).T


def log_loss(evidence, solution):
    """The mean of −log p of the true classes; 0 where no row has weight."""
    omega = np.ones(len(evidence.labels)) if evidence.weights is None else evidence.weights
    return float(omega @ log_losses(scores(evidence, solution), evidence.labels)) / max(float(omega.sum()), 1e-300)


def held(omega):
    """μ and ε of so many rows: 120/n within 0.3 and 6, and a third of it."""
    mu = np.clip(120.0 / max(omega.sum(), 1e-300), 0.3, 6.0)
    return mu, mu / 3.0


def objective(evidence, penalty, bias, weights, levels):
    """J and its gradients by b, w and g, term by term as it is written."""
    C, n, P = evidence.values.shape
    omega = np.ones(n) if evidence.weights is None else evidence.weights
    z = evidence.offset + bias + np.einsum("cnp,pc->nc", evidence.values, weights)
    two = np.column_stack([np.zeros(n), z]) if C == 1 else z
    loss = -(omega * log_softmax(two, axis=1)[np.arange(n), evidence.labels]).sum()
    mean = weights.mean(axis=1)
    apart, level = weights - mean[:, np.newaxis], mean - levels[evidence.groups]
    t, (mu, epsilon) = max(P, evidence.tried, 1) ** -0.5, held(omega)
    value = loss + penalty * ((apart**2).sum() + (level**2).sum())
    value += mu * ((levels - t) ** 2).sum() + epsilon * (bias**2).sum()
    surplus = omega[:, np.newaxis] * (softmax(two, axis=1) - np.eye(two.shape[1])[evidence.labels])[:, -C:]
    by_weights = np.einsum("cnp,nc->pc", evidence.values, surplus)
    by_weights += 2.0 * penalty * (apart + level[:, np.newaxis] / C)
    by_levels = 2.0 * mu * (levels - t)
    np.add.at(by_levels, evidence.groups, -2.0 * penalty * level)
    return value, surplus.sum(axis=0) + 2.0 * epsilon * bias, by_weights, by_levels


def at(evidence, penalty, solution):
    return objective(evidence, penalty, solution.bias, solution.weights, solution.levels)


def assert_optimal(evidence, penalty, solution, atol=1e-5):
    """The conditions of Karush, Kuhn and Tucker, and that J is the reported objective."""
    value, by_bias, by_weights, by_levels = at(evidence, penalty, solution)
    assert solution.converged
    assert solution.objective == pytest.approx(value, rel=1e-11, abs=1e-12)
    assert (solution.weights >= 0).all()
    assert (solution.levels >= 0).all()
    inside = solution.weights > 0
    np.testing.assert_allclose(by_bias, 0.0, atol=atol)
    np.testing.assert_allclose(by_levels, 0.0, atol=1e-9)
    np.testing.assert_allclose(by_weights[inside], 0.0, atol=atol)
    assert (by_weights[~inside] >= -atol).all()


def by_scipy(evidence, penalty):
    """The least J that L-BFGS-B finds, from an unlike start and with the levels as variables of their own."""
    C, _, P = evidence.values.shape
    G = int(evidence.groups.max()) + 1

    def parts(x):
        return x[:C], x[C : C + P * C].reshape(P, C), x[C + P * C :]

    def both(x):
        value, *gradients = objective(evidence, penalty, *parts(x))
        return value, np.concatenate([gradient.ravel() for gradient in gradients])

    bounds = [(None, None)] * C + [(0.0, None)] * (P * C + G)
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-8, "maxcor": 50}
    actual = minimize(both, np.full(len(bounds), 0.05), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return actual.fun, parts(actual.x)


# The minimum ---------------------------------------------------------------------------------------------------------


@columns
def test_no_weight_can_move_to_lower_j(C):
    evidence = made(300, 12, C)
    for penalty in (300.0, 3.0, 0.3):
        assert_optimal(evidence, penalty, solve(evidence, penalty))


@columns
def test_pieces_that_were_chosen_from_more_are_held_lower(C):
    """t = P^(-1/2) with P all that were tried: one chosen from many is less informative than it seems."""
    evidence = made(300, 12, C)
    few = replace(evidence, tried=1200)
    solution = solve(few, 300.0)
    assert_optimal(few, 300.0, solution)
    assert (solution.levels < solve(evidence, 300.0).levels).all()
    nothing = solve(replace(few, weights=np.zeros(300)), 300.0)
    np.testing.assert_allclose(nothing.weights, 1200**-0.5, rtol=1e-9)


@pytest.mark.parametrize(("C", "penalty"), [(1, 0.3), (1, 300.0), (3, 3.0)])
def test_j_is_as_low_as_l_bfgs_finds_it(C, penalty):
    evidence = replace(made(200, 6, C, seed=1), weights=np.random.default_rng(2).exponential(1.0, 200))
    solution = solve(evidence, penalty)
    value, (bias, weights, levels) = by_scipy(evidence, penalty)
    assert solution.objective == pytest.approx(value, rel=1e-6)
    assert solution.objective <= value + 1e-9 * (1.0 + value)
    for ours, other_rows in ((solution.bias, bias), (solution.weights, weights), (solution.levels, levels)):
        np.testing.assert_allclose(ours, other_rows, atol=2e-3)


@columns
def test_rows_that_t_predicts_leave_all_weights_at_t(C):
    # each row once for each class, weighing what w = t says of it: nothing is then left to learn
    evidence = made(40, 8, C)
    z = evidence.offset + evidence.values.sum(axis=2).T * 8**-0.5
    p = np.column_stack([expit(-z), expit(z)]) if C == 1 else softmax(z, axis=1)
    K = p.shape[1]
    every = evidence.take(np.repeat(np.arange(40), K))
    every = replace(every, labels=np.tile(np.arange(K, dtype=np.int32), 40), weights=p.ravel())
    solution = solve(every, 3.0)
    np.testing.assert_allclose(solution.weights, 8**-0.5, atol=1e-7)
    np.testing.assert_allclose(solution.levels, 8**-0.5, atol=1e-7)
    np.testing.assert_allclose(solution.bias, 0.0, atol=1e-6)
    assert solution.objective == pytest.approx(-(p * np.log(p)).sum(), rel=1e-9)


@pytest.mark.parametrize(("log_odds", "expected"), [(1.0, [0.5**0.5 + 0.5, 0.5**0.5 - 0.5]), (2.0, [2.0, 0.0])])
def test_two_pieces_by_hand(log_odds, expected):
    # One piece says ±1, the other the contrary, and the first is right with known odds: w_1 − w_2 is their logarithm.
    # All but without a penalty, both are then as near to t = 1/√2 as that and w ≥ 0 let them be.
    said, right = np.array([1.0, 1.0, -1.0, -1.0]), 1e6 * expit(log_odds)
    evidence = Evidence(
        np.stack([said, -said], axis=1)[np.newaxis],
        np.zeros((4, 1)),
        np.array([1, 0, 0, 1], np.int32),
        np.array([right, 1e6 - right, right, 1e6 - right]),
        np.array([0, 1]),
    )
    solution = solve(evidence, 0.1, tol=1e-13)
    np.testing.assert_allclose(solution.weights[:, 0], expected, atol=1e-5)  # a penalty is felt a little
    np.testing.assert_allclose(solution.levels, (0.1 * np.array(expected) + 0.3 * 0.5**0.5) / 0.4, atol=1e-5)
    assert (solution.weights[1, 0] == 0.0) == (expected[1] == 0.0)
    assert solution.bias == pytest.approx(0.0, abs=1e-9)


@columns
def test_pieces_that_point_the_wrong_way_have_weight_zero(C):
    evidence, wrong = made(2000, 10, C), [2, 5, 7]
    noise = np.random.default_rng(5).standard_normal((C, 2000, 3))
    values = evidence.values.copy()
    values[:, :, wrong] = noise - noise.mean(axis=0) * (C > 1) - 0.2 * separating(evidence, 1.0).values[:, :, :3]
    solution = solve(replace(evidence, values=values), 3.0)
    assert (solution.weights[wrong] == 0.0).all()
    assert (solution.weights > 0.0).any()


@columns
def test_pieces_that_repeat_each_other_share_the_weight(C):
    one = made(300, 1, C)
    evidence = replace(one, values=np.repeat(one.values, 20, axis=2), groups=np.zeros(20, np.intp))
    solution = solve(evidence, 300.0)
    assert_optimal(evidence, 300.0, solution)
    np.testing.assert_allclose(solution.weights, np.broadcast_to(solution.weights[:1], (20, C)), rtol=1e-6)


@columns
def test_repeated_pieces_in_groups_end_at_the_minimum(C):
    # whole faces are cut off too boldly here, and the careful way must take over
    one = made(300, 1, C)
    evidence = replace(one, values=np.repeat(one.values, 20, axis=2), groups=np.arange(20) % 4)
    for penalty in (300.0, 3.0):
        assert_optimal(evidence, penalty, solve(evidence, penalty))


@columns
def test_the_diagonal_ends_where_the_blocks_do(C, monkeypatch):
    evidence = made(200, 10, C)
    blocks = solve(evidence, 3.0)
    monkeypatch.setattr(module, "WIDE", 5)
    diagonal = solve(evidence, 3.0)
    assert_optimal(evidence, 3.0, diagonal, atol=1e-4)
    assert diagonal.objective == pytest.approx(blocks.objective, rel=1e-9)
    np.testing.assert_allclose(diagonal.weights, blocks.weights, atol=1e-5)


@columns
def test_every_start_ends_at_the_same_place(C):
    evidence = made(300, 12, C)
    cold = solve(evidence, 3.0)
    other = replace(cold, weights=np.full((12, C), 4.0), bias=np.full(C, -2.0))
    for start in (cold, other, solve(evidence, 300.0)):
        warm = solve(evidence, 3.0, start)
        assert warm.converged
        assert warm.objective == pytest.approx(cold.objective, rel=1e-9)
        np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-6)
        np.testing.assert_allclose(warm.bias, cold.bias, atol=1e-6)
    assert solve(evidence, 3.0, cold).steps <= 1


@columns
def test_a_start_close_to_the_end_does_not_end_early(C):
    """Near the minimum a rough step promises little; the weights must be those of a search from afar all the same."""
    evidence = made(300, 12, C, seed=9)
    far = solve(evidence, 300.0, tol=1e-12)
    for rough in (1e-4, 1e-6, 1e-10):
        near = solve(evidence, 300.0, solve(evidence, 300.0, tol=rough), tol=1e-12)
        np.testing.assert_allclose(near.weights, far.weights, rtol=0, atol=2e-9)


def test_tolerance_and_steps_are_kept(monkeypatch):
    evidence = made(300, 12, 3)
    exact = solve(evidence, 3.0, tol=0.0)  # as low as rounding lets it be seen, and then an end
    assert exact.converged
    assert exact.steps < 30
    for tol in (1e-3, 1e-5, 1e-7):
        rough = solve(evidence, 3.0, tol=tol)
        above = at(evidence, 3.0, rough)[0] - at(evidence, 3.0, exact)[0]
        assert -1e-10 <= above <= tol * (1.0 + rough.objective)
    monkeypatch.setattr(module, "STEPS", 1)
    assert not solve(evidence, 3.0).converged


# Rows ----------------------------------------------------------------------------------------------------------------


def assert_alike(first, second, atol=1e-9):
    assert first.objective == pytest.approx(second.objective, rel=1e-12)
    for name in ("bias", "weights", "levels"):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), atol=atol)


@columns
def test_order_of_rows_does_not_matter(C):
    evidence = made(500, 20, C)
    order = np.random.default_rng(1).permutation(500)
    solution = solve(evidence, 3.0)
    assert_alike(solve(evidence.take(order), 3.0), solution)
    assert solve(made(500, 20, C), 3.0).weights.tobytes() == solution.weights.tobytes()  # the same rows, the same bits


@columns
def test_weight_two_is_a_row_twice_and_weight_nought_none(C):
    evidence = made(200, 8, C)
    weights = np.arange(200) % 3.0
    weighted = replace(evidence, weights=weights)
    repeated = evidence.take(np.repeat(np.arange(200), weights.astype(int)))
    first, second = solve(weighted, 3.0), solve(repeated, 3.0)
    assert_alike(first, second)
    assert log_loss(weighted, first) == pytest.approx(log_loss(repeated, second), rel=1e-12)


@columns
def test_scores_and_log_loss_are_those_of_the_formula(C):
    evidence = replace(made(50, 5, C), weights=np.random.default_rng(1).random(50))
    solution = solve(evidence, 3.0)
    z = evidence.offset + solution.bias + np.einsum("cnp,pc->nc", evidence.values, solution.weights)
    np.testing.assert_allclose(scores(evidence, solution).T, z, rtol=1e-12, atol=1e-12)
    p = np.column_stack([expit(-z), expit(z)]) if C == 1 else softmax(z, axis=1)
    losses = -np.log(p[np.arange(50), evidence.labels])
    assert log_loss(evidence, solution) == pytest.approx(np.average(losses, weights=evidence.weights), rel=1e-12)


def test_rows_are_taken_by_index():
    evidence = replace(made(6, 4, 3), weights=np.arange(6.0))
    some = evidence.take(np.array([0, 2, 3]))
    np.testing.assert_array_equal(some.values, evidence.values[:, [0, 2, 3]])
    assert some.values.flags.c_contiguous
    assert some.weights.tolist() == [0.0, 2.0, 3.0]
    assert some.labels.tolist() == evidence.labels[[0, 2, 3]].tolist()
    np.testing.assert_array_equal(some.offset, evidence.offset[[0, 2, 3]])


# What must do no harm ------------------------------------------------------------------------------------------------


def separating(evidence, nats):
    """Evidence that is always right."""
    C, _, P = evidence.values.shape
    right = (
        2.0 * evidence.labels[np.newaxis] - 1.0 if C == 1 else (np.arange(C)[:, np.newaxis] == evidence.labels) - 1 / C
    )
    return replace(evidence, values=np.repeat(nats * right[:, :, np.newaxis], P, axis=2))


def huge(evidence, sign=1.0):
    return replace(evidence, values=sign * 60.0 * evidence.values / np.abs(evidence.values).max())


CASES = {
    "no piece": lambda C: made(50, 0, C),
    "one piece": lambda C: made(50, 1, C),
    "one row": lambda C: made(1, 5, C),
    "no row": lambda C: made(5, 5, C).take(np.zeros(0, np.intp)),
    "more pieces than rows": lambda C: made(10, 30, C),
    "no evidence": lambda C: replace(made(100, 5, C), values=np.zeros((C, 100, 5))),
    "separating": lambda C: separating(made(100, 5, C), 3.0),
    "separating, huge": lambda C: separating(made(100, 5, C), 60.0),
    "huge": lambda C: huge(made(100, 5, C)),
    "huge and wrong": lambda C: huge(made(100, 5, C), -1.0),
    "huge offset": lambda C: replace(made(100, 5, C), offset=60.0 * made(100, 5, C, seed=1).offset),
    "one class only": lambda C: replace(made(100, 5, C), labels=np.zeros(100, np.int32)),
    "no weight": lambda C: replace(made(100, 5, C), weights=np.zeros(100)),
    "much weight": lambda C: replace(made(100, 5, C), weights=np.full(100, 1e4)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_odd_evidence_has_a_minimum_too(case):
    for C, penalty in ((1, 300.0), (1, 0.3), (3, 3.0), (7, 300.0), (7, 0.3)):
        evidence = case(C)
        solution = solve(evidence, penalty)
        omega = 1.0 if evidence.weights is None else evidence.weights.max(initial=1.0)
        assert_optimal(evidence, penalty, solution, atol=1e-4 * max(1.0, omega))
        assert np.isfinite(log_loss(evidence, solution))
        assert solution.steps < 60


def test_without_weight_everything_stays_at_t():
    evidence = replace(made(100, 4, 3), weights=np.zeros(100))
    solution = solve(evidence, 3.0)
    np.testing.assert_allclose(solution.weights, 0.5, rtol=1e-12)
    assert log_loss(evidence, solution) == 0.0


def test_a_class_that_its_prior_rules_out_stays_out():
    evidence = made(200, 6, 3)
    offset = evidence.offset.copy()
    offset[:, 2] = -np.inf
    solution = solve(replace(evidence, offset=offset, labels=np.minimum(evidence.labels, 1)), 3.0)
    assert solution.converged
    assert np.isfinite(solution.weights).all()
    assert np.isfinite(solution.objective)
