"""LogisticRegression and SoftmaxRegression beside scikit-learn's solvers and glum: time to the optimum.

All minimise J = −Σ log p(y|x) + l2/2 Σ|w|², the intercepts free: two classes with one vector w, more with one each.
Ours runs at its default tolerance, a peer at the loosest that brings it within LIMIT of the best J of all solvers:
1, 2 or 5 times a power of ten (from one power to the next saga takes up to six times as long). The search for it is not
timed. The agreement of a row is the larger of the two distances, (J − best) / best, with J computed here from `coef_`
and `intercept_`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

import deciban
from benchmarks import data, sizes
from benchmarks.harness import Bench, job, timed

LIMIT = 1e-8  # relative distance from the best objective at which a fit may end
TOLERANCES = tuple(10.0**-k for k in range(1, 10))
LONG = 10_000  # max_iter: no peer reaches it
EPOCHS = 1_000  # max_iter of saga, whose epochs on text take a third of a second

Rows = Any  # an array, or CSR
Fit = Callable[[float], Any]  # tolerance → fitted model


@job("logistic")
def logistic(bench: Bench) -> None:
    """Two classes."""
    size, rng = bench.size(sizes.LOGISTIC), bench.rng()
    y = data.labels(rng, size)
    X = data.correlated(rng, size, y)
    data.standardise(X)
    problem = Problem(X, y, l2=1, ours=deciban.LogisticRegression)
    for solver, target in (("lbfgs", 1.5), ("newton-cholesky", 10)):
        problem.race(bench, f"logistic fit, {size}", solver, problem.scikit_learn(solver), target)
    fit = problem.glum()
    problem.race(bench, f"logistic fit, {size}", "glum", fit, 5, "in column-major order, with which it is faster; ")


@job("softmax")
def softmax(bench: Bench) -> None:
    """Five classes."""
    size, rng = bench.size(sizes.SOFTMAX), bench.rng()
    y = data.labels(rng, size)
    X = data.correlated(rng, size, y)
    data.standardise(X)
    problem = Problem(X, y, l2=1, ours=deciban.SoftmaxRegression)
    for solver, target in (("lbfgs", 2), ("newton-cholesky", 20)):
        title = f"softmax fit, {size}, K={size.classes}"
        problem.race(bench, title, solver, problem.scikit_learn(solver), target)


@job("digits")
def digits(bench: Bench) -> None:
    """Ten classes of pictures. With l2 = 10, which generalises better than 1, lbfgs takes 300 to 400 iterations."""
    size, rng = bench.size(sizes.DIGITS), bench.rng()
    y = data.labels(rng, size)
    problem = Problem(data.digits(rng, size, y), y, l2=10, ours=deciban.SoftmaxRegression)
    title = f"softmax fit, {size} digits, K={size.classes}"
    problem.race(bench, title, "lbfgs", problem.scikit_learn("lbfgs"), 1.5)


@job("sparse-logistic")
def sparse_logistic(bench: Bench) -> None:
    """tf-idf of words in rows of norm 1, which suit saga best."""
    size = bench.size(sizes.TEXT)
    X, y = data.text(bench.rng(), size)
    problem = Problem(X, y, l2=1, ours=deciban.LogisticRegression)
    for solver, target in (("lbfgs", 1), ("saga", 3)):
        title = f"logistic fit, CSR {size}, {sizes.WORDS_PER_ROW} per row"
        problem.race(bench, title, solver, problem.scikit_learn(solver), target)


class Problem:
    """Rows, labels 0..K-1 and a penalty; the best objective of all solvers."""

    def __init__(self, X: Rows, y: data.Ints, *, l2: float, ours: Callable[..., Any]) -> None:
        self.X, self.y, self.l2, self.ours = X, y, l2, ours
        self.best = np.inf
        reference = ours(l2=l2, tol=1e-16).fit(X, y)
        self.excess(reference)
        bound = self.suboptimality_bound(reference)
        print(f"  best objective {self.best:.6f}, at most {bound:.0e} (relatively) above the optimum", flush=True)
        if not bound <= LIMIT / 10:
            raise RuntimeError("the optimum is not known precisely enough to compare solvers")

    def race(self, bench: Bench, title: str, name: str, fit: Fit, target: float, note: str = "") -> None:
        """Add the row that compares ours with the peer ``fit``."""
        tol = self.loosest(name, fit)
        bench.compare(
            title,
            name,
            ours=lambda: self.ours(l2=self.l2).fit(self.X, self.y),
            peer=lambda: fit(tol),
            target=target,
            agreement=lambda ours, peer: max(self.excess(ours), self.excess(peer)),
            note=f"{note}tol={tol:.0e} is the loosest that brings it within {LIMIT:.0e} of the best",
            within=LIMIT,
        )

    def loosest(self, name: str, fit: Fit) -> float:
        """The first of TOLERANCES that brings ``fit`` within LIMIT, or five times or twice that if it does too.

        If none does, the last one, and the row is invalid.
        """
        reached = next((tol for tol in TOLERANCES if self.reached(name, fit, tol)), TOLERANCES[-1])
        return next((tol for tol in (5 * reached, 2 * reached) if self.reached(name, fit, tol)), reached)

    def reached(self, name: str, fit: Fit, tol: float) -> bool:
        seconds, model = timed(lambda: fit(tol))
        excess = self.excess(model)
        iterations = np.max(model.n_iter_)
        print(
            f"  {name} tol={tol:.0e}: {excess:.1e} above the best, {iterations} iterations, {seconds:.1f} s", flush=True
        )
        return excess <= LIMIT

    # The peers -----------------------------------------------------------------------------------------------------

    def scikit_learn(self, solver: str) -> Fit:
        settings = {"C": 1 / self.l2, "solver": solver, "max_iter": EPOCHS if solver == "saga" else LONG}
        return lambda tol: LogisticRegression(**settings, tol=tol, random_state=sizes.SEED).fit(self.X, self.y)

    def glum(self) -> Fit:
        """glum minimises the mean of −log p + alpha/2 |w|²."""
        from glum import GeneralizedLinearRegressor  # type: ignore # no types; without glum only this row fails

        X: data.Floats = np.asfortranarray(self.X)
        settings = {"family": "binomial", "alpha": self.l2 / len(self.y), "max_iter": LONG}
        return lambda tol: GeneralizedLinearRegressor(**settings, gradient_tol=tol).fit(X, self.y)

    # The objective, in plain numpy ---------------------------------------------------------------------------------

    def excess(self, model: Any) -> float:
        """(J − best) / best; a J below the best becomes the best."""
        weights, intercepts = _parameters(model)
        value = 0.5 * self.l2 * float((weights**2).sum())
        for rows in data.blocks(len(self.y)):
            value -= float(_log_likelihood(self.X[rows], self.y[rows], weights, intercepts)[0])
        self.best = min(self.best, value)
        return (value - self.best) / self.best

    def suboptimality_bound(self, model: Any) -> float:
        """A bound on (J − min J) / J, from the gradient alone.

        J is l2-strongly convex in w, so moving w lowers it by at most |∂J/∂w|²/2l2; moving an intercept lowers it by at
        most gradient times distance, and the distance is assumed to be 0.1 or less.
        """
        weights, intercepts = _parameters(model)
        value, by_weight, by_intercept = (
            0.5 * self.l2 * float((weights**2).sum()),
            self.l2 * weights,
            np.zeros(len(weights)),
        )
        for rows in data.blocks(len(self.y)):
            likelihood, residual = _log_likelihood(self.X[rows], self.y[rows], weights, intercepts)
            value -= likelihood
            by_weight = by_weight - residual.T @ self.X[rows]
            by_intercept = by_intercept - residual.sum(axis=0)
        return float((0.5 / self.l2 * (by_weight**2).sum() + 0.1 * np.abs(by_intercept).sum()) / value)


def _parameters(model: Any) -> tuple[data.Floats, data.Floats]:
    """(K, p) weights and (K) intercepts; K is 1 for two classes that share a vector."""
    return np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)


def _log_likelihood(X: Rows, y: data.Ints, weights: data.Floats, intercepts: data.Floats) -> tuple[Any, data.Floats]:
    """Σ log p(y|x), and its derivative by the scores, (n, K)."""
    scores = X @ weights.T + intercepts
    binary = len(weights) == 1
    if binary:
        scores = np.hstack([np.zeros_like(scores), scores])
    log_p = scores - logsumexp(scores, axis=1, keepdims=True)
    true_class = np.arange(len(y)), y
    value, residual = log_p[true_class].sum(), -np.exp(log_p)
    residual[true_class] += 1
    return value, residual[:, 1:] if binary else residual
