"""NaiveBayes on arrays and sparse counts, beside scikit-learn's GaussianNB, CategoricalNB, MultinomialNB."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB

import deciban
from benchmarks import data, sizes
from benchmarks.bandwidth import read_bandwidth
from benchmarks.harness import Bench, gap, job
from benchmarks.sizes import HEAD, MISSING, READ_THREADS


@job("gaussian")
def gaussian(bench: Bench) -> None:
    """Ours has missing values; the peer, which does not support them, has the complete array."""
    size, rng = bench.size(sizes.GAUSSIAN), bench.rng()
    y = data.labels(rng, size)
    complete = data.gaussian(rng, size, y)
    incomplete = complete.copy()
    data.remove_values(rng, incomplete)
    p_incomplete = _posterior_skipping_nan(incomplete, y)
    p_complete = deciban.NaiveBayes().fit(complete, y).predict_proba(complete[:HEAD])
    ours, peer = bench.compare(
        f"Gaussian fit, {size}, K={size.classes}, {MISSING:.0%} missing",
        "GaussianNB, none missing",
        ours=lambda: deciban.NaiveBayes().fit(incomplete, y),
        peer=lambda: GaussianNB(var_smoothing=0).fit(complete, y),
        target=25,
        agreement=lambda ours, peer: max(
            gap(ours.predict_proba(incomplete[:HEAD]), p_incomplete),
            gap(p_complete, peer.predict_proba(complete[:HEAD])),
        ),
    )
    bench.compare(
        f"Gaussian fit, {size}, K={size.classes}, {MISSING:.0%} missing",
        f"plain read, {READ_THREADS} threads",
        ours=lambda: deciban.NaiveBayes().fit(incomplete, y),
        peer=lambda: read_bandwidth(incomplete, READ_THREADS),
        target=0.35,
        agreement=lambda ours, _: max(
            gap(ours.predict_proba(incomplete[:HEAD]), p_incomplete),
            gap(read_bandwidth(complete, READ_THREADS) / complete.size, complete.mean()),
        ),
        note="the ratio is the fraction of the plain read's speed",
    )
    bench.compare(
        f"Gaussian predict_proba, {size}, K={size.classes}, {MISSING:.0%} missing",
        "GaussianNB, none missing",
        ours=lambda: ours.predict_proba(incomplete),
        peer=lambda: peer.predict_proba(complete),
        target=20,
        agreement=lambda p, q: max(gap(p[:HEAD], p_incomplete), gap(p_complete, q[:HEAD])),
    )


@job("gaussian-wide")
def gaussian_wide(bench: Bench) -> None:
    """Many columns and many classes."""
    size, rng = bench.size(sizes.WIDE), bench.rng()
    y = data.labels(rng, size)
    X = data.gaussian(rng, size, y)
    ours = deciban.NaiveBayes().fit(X, y)
    peer = GaussianNB(var_smoothing=0).fit(X, y)
    bench.compare(
        f"Gaussian predict_proba, {size}, K={size.classes}",
        "GaussianNB",
        ours=lambda: ours.predict_proba(X),
        peer=lambda: peer.predict_proba(X),
        target=100,
        agreement=lambda p, q: gap(p[:HEAD], q[:HEAD]),
    )


@job("categorical")
def categorical(bench: Bench) -> None:
    """Integer codes as categories."""
    size, rng = bench.size(sizes.CODES), bench.rng()
    y = data.labels(rng, size)
    X = data.codes(rng, size, y)
    ours, peer = bench.compare(
        f"Categorical fit, {size} integer codes, K={size.classes}",
        "CategoricalNB",
        ours=lambda: deciban.NaiveBayes(families=deciban.families.Categorical()).fit(X, y),
        peer=lambda: CategoricalNB().fit(X, y),
        target=10,
        agreement=lambda ours, peer: gap(ours.predict_proba(X[:HEAD]), peer.predict_proba(X[:HEAD])),
    )
    bench.compare(
        f"Categorical predict, {size} integer codes, K={size.classes}",
        "CategoricalNB",
        ours=lambda: ours.predict(X),
        peer=lambda: peer.predict(X),
        target=10,
        agreement=lambda a, b: float(np.mean(a != b)),
        note="agreement is the fraction of rows labelled differently",
    )


@job("multinomial")
def multinomial(bench: Bench) -> None:
    """Sparse word counts."""
    size, rng = bench.size(sizes.COUNTS), bench.rng()
    y = data.labels(rng, size)
    X = data.counts(rng, size, y)
    bench.compare(
        f"Multinomial fit, CSR {size}, {sizes.COUNTS_PER_ROW} per row, K={size.classes}",
        "MultinomialNB",
        ours=lambda: deciban.NaiveBayes().fit(X, y),
        peer=lambda: MultinomialNB().fit(X, y),
        target=2,
        agreement=lambda ours, peer: gap(ours.predict_proba(X[:HEAD]), peer.predict_proba(X[:HEAD])),
    )


def _posterior_skipping_nan(X: data.Floats, y: data.Ints) -> data.Floats:
    """Posterior of the first rows in plain numpy, which ignores missing values."""
    head, log_joint = X[:HEAD], []
    for label in np.unique(y):
        of_class = X[y == label]
        mean, variance = np.nanmean(of_class, axis=0), np.nanvar(of_class, axis=0)
        log_density = -0.5 * (np.log(2 * np.pi * variance) + (head - mean) ** 2 / variance)
        log_joint.append(np.log(len(of_class) / len(X)) + np.nansum(log_density, axis=1))
    return np.asarray(softmax(np.stack(log_joint, axis=1), axis=1))
