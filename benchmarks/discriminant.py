"""GaussianDiscriminant beside scikit-learn's linear and quadratic discriminant analysis."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

import deciban
from benchmarks import data, sizes
from benchmarks.harness import Bench, gap, job
from benchmarks.sizes import HEAD


@job("shared-covariance")
def shared_covariance(bench: Bench) -> None:
    """Compared with two solvers of the peer."""
    size, rng = bench.size(sizes.DISCRIMINANT), bench.rng()
    y = data.labels(rng, size)
    X = data.correlated(rng, size, y)

    def beside(solver: str, target: float) -> None:
        unbiased = _divides_by_n_minus_1(LinearDiscriminantAnalysis(solver=solver))
        divisor = size.rows - size.classes if unbiased else size.rows
        bench.compare(
            f"shared covariance fit, {size}, K={size.classes}",
            f"LinearDiscriminantAnalysis {solver}",
            ours=lambda: deciban.GaussianDiscriminant(covariance="shared").fit(X, y),
            peer=lambda: LinearDiscriminantAnalysis(solver=solver).fit(X, y),
            target=target,
            agreement=lambda ours, peer: gap(
                ours.predict_proba(X[:HEAD]), _posterior_over_n(peer, X[:HEAD], size.rows / divisor)
            ),
        )

    beside("svd", target=40)
    beside("lsqr", target=15)


@job("per-class-covariance")
def per_class_covariance(bench: Bench) -> None:
    """With the ddof of the installed scikit-learn."""
    size, rng = bench.size(sizes.DISCRIMINANT), bench.rng()
    y = data.labels(rng, size)
    X = data.correlated(rng, size, y)
    ddof = int(_divides_by_n_minus_1(QuadraticDiscriminantAnalysis()))
    ours, peer = bench.compare(
        f"per-class covariance fit, {size}, K={size.classes}",
        "QuadraticDiscriminantAnalysis",
        ours=lambda: deciban.GaussianDiscriminant(covariance="per-class", ddof=ddof).fit(X, y),
        peer=lambda: QuadraticDiscriminantAnalysis().fit(X, y),
        target=30,
        agreement=lambda ours, peer: gap(ours.predict_proba(X[:HEAD]), peer.predict_proba(X[:HEAD])),
    )
    bench.compare(
        f"per-class covariance predict_proba, {size}, K={size.classes}",
        "QuadraticDiscriminantAnalysis",
        ours=lambda: ours.predict_proba(X),
        peer=lambda: peer.predict_proba(X),
        target=8,
        agreement=gap,
    )


def _divides_by_n_minus_1(peer: Any) -> bool:
    """Whether ``peer`` divides scatter by n - 1 (pooled: n - K), not n: scikit-learn's versions differ."""
    peer.fit([[-1.0], [1.0], [9.0], [11.0]], [0, 0, 1, 1])  # log-odds at x: 10 (x - 5) / variance
    return bool(peer.decision_function([[6.0]])[0] < 7.5)  # 10 with variance 2/2, 5 with variance 2/1


def _posterior_over_n(lda: Any, X: data.Floats, factor: float) -> data.Floats:
    """The posterior of ``lda`` if it divided the scatter by n: its linear evidence times ``factor``."""
    log_prior = np.log(lda.priors_)
    evidence = X @ lda.coef_.T + lda.intercept_ - log_prior
    return np.asarray(softmax(log_prior + factor * evidence, axis=1))
