"""NaiveBayes on arrays and sparse counts, beside scikit-learn's GaussianNB, CategoricalNB, MultinomialNB."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB

import deciban
from benchmarks import data, sizes
from benchmarks.harness import Bench, gap, job
from benchmarks.sizes import HEAD, MISSING, READ_THREADS
from deciban import _kernels


@job("gaussian")
def gaussian(bench: Bench) -> None:
    """Ours has missing cells; the peer cannot, and gets the same array without them."""
    size, rng = bench.size(sizes.GAUSSIAN), bench.rng()
    y = data.labels(rng, size)
    whole = data.gaussian(rng, size, y)
    holes = whole.copy()
    data.punch_holes(rng, holes)
    of_holes = _posterior_skipping_nan(holes, y)
    of_whole = deciban.NaiveBayes().fit(whole, y).predict_proba(whole[:HEAD])
    ours, peer = bench.compare(
        f"Gaussian fit, {size}, K={size.classes}, {MISSING:.0%} missing",
        "GaussianNB, none missing",
        ours=lambda: deciban.NaiveBayes().fit(holes, y),
        peer=lambda: GaussianNB(var_smoothing=0).fit(whole, y),
        target=25,
        agreement=lambda ours, peer: max(
            gap(ours.predict_proba(holes[:HEAD]), of_holes), gap(of_whole, peer.predict_proba(whole[:HEAD]))
        ),
    )
    bench.compare(
        f"Gaussian fit, {size}, K={size.classes}, {MISSING:.0%} missing",
        f"plain read, {READ_THREADS} threads",
        ours=lambda: deciban.NaiveBayes().fit(holes, y),
        peer=lambda: _kernels.read_bandwidth(holes, READ_THREADS),
        target=0.35,
        agreement=lambda ours, _: max(
            gap(ours.predict_proba(holes[:HEAD]), of_holes),
            gap(_kernels.read_bandwidth(whole, READ_THREADS) / whole.size, whole.mean()),
        ),
        note="the ratio is the fraction of the plain read's speed",
    )
    bench.compare(
        f"Gaussian predict_proba, {size}, K={size.classes}, {MISSING:.0%} missing",
        "GaussianNB, none missing",
        ours=lambda: ours.predict_proba(holes),
        peer=lambda: peer.predict_proba(whole),
        target=20,
        agreement=lambda p, q: max(gap(p[:HEAD], of_holes), gap(of_whole, q[:HEAD])),
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
    """Posterior of the first rows by plain numpy, a missing cell dropping out of fit and prediction."""
    head, log_joint = X[:HEAD], []
    for label in np.unique(y):
        own = X[y == label]
        mean, variance = np.nanmean(own, axis=0), np.nanvar(own, axis=0)
        log_density = -0.5 * (np.log(2 * np.pi * variance) + (head - mean) ** 2 / variance)
        log_joint.append(np.log(len(own) / len(X)) + np.nansum(log_density, axis=1))
    return np.asarray(softmax(np.stack(log_joint, axis=1), axis=1))
