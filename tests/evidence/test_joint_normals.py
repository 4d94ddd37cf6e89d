"""JointNormals: encoded columns jointly normal, with one covariance and with one for each class."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deciban.evidence.joint_normals import JointNormals, log_roots
from deciban.evidence.mixed_columns import Encoding
from deciban.families import Context
from tests.families.test_multivariate_gaussian import close
from tests.laws import family_subject, matrices, rows

FAMILY = JointNormals(Encoding((0.0, None), (1.0, None), ((-8.0, 8.0), None), (None, ("u", "v"))))
encoded = st.floats(-8, 8).map(lambda x: round(x, 3)) | st.sampled_from([0.0, 1.0])
SUBJECTS = [replace(family_subject(FAMILY, matrices(encoded), close=close, joint=True), name="JointNormals")]


def covariances(x, labels, weights, classes):
    """Σ = (W + mI)/(n + m) with m = 2d/3 + n/50, and Σ_c = (W_c + d·Σ)/(n_c + d), from the rows themselves."""
    d = x.shape[1]
    weights = np.ones(len(x)) if weights is None else weights
    counts, scatters = np.zeros(classes), np.zeros((classes, d, d))
    for c in range(classes):
        own, w = x[labels == c], weights[labels == c]
        counts[c] = w.sum()
        if counts[c]:
            off = own - (w @ own) / counts[c]
            scatters[c] = (w[:, np.newaxis] * off).T @ off
    n = counts.sum()
    m = 2 * d / 3 + n / 50
    shared = (scatters.sum(axis=0) + m * np.eye(d)) / (n + m)
    own = (scatters + d * shared) / (counts + d)[:, np.newaxis, np.newaxis]
    return shared, own


@given(rows(SUBJECTS[0]))
def test_covariances_are_those_of_the_formula(drawn):
    weights = np.ones(len(drawn)) if drawn.weights is None else drawn.weights
    if not weights.sum():
        return
    shared, own = covariances(drawn.values, drawn.labels, drawn.weights, drawn.classes)
    params = FAMILY.estimate(SUBJECTS[0].of(drawn), Context(tuple(range(drawn.classes)), (0, 1)))
    for triangle, sigma in zip([*params.shared, *params.by_class], [shared, *own], strict=True):
        assert (triangle == np.tril(triangle)).all()
        np.testing.assert_allclose(triangle.T @ triangle @ sigma, np.eye(len(sigma)), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_density_is_that_of_scipy(weighted):
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(40, 3)), (np.arange(40) % 3).astype(np.int32)
    weights = rng.choice([0.5, 1.0, 2.0], 40) if weighted else None
    params = FAMILY.estimate(FAMILY.collect(x, labels, weights, 3), Context((0, 1, 2), (0, 1)))
    actual = FAMILY.log_density(params, x, 3)
    _, own = covariances(x, labels, weights, 3)
    for c in range(3):
        mean = np.average(x[labels == c], axis=0, weights=None if weights is None else weights[labels == c])
        np.testing.assert_allclose(actual[:, c], stats.multivariate_normal(mean, own[c]).logpdf(x), rtol=1e-10)
        expected = -0.5 * np.linalg.slogdet(2 * np.pi * own[c])[1]
        assert log_roots(params.by_class)[c] == pytest.approx(expected, rel=1e-12)


def test_a_class_without_rows_is_where_all_are():
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(20, 2)), np.repeat(np.array([0, 2], np.int32), [5, 15])
    params = FAMILY.estimate(FAMILY.collect(x, labels, None, 3), Context((0, 1, 2), (0, 1)))
    np.testing.assert_allclose(params.mean[1], x.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(params.by_class[1], params.shared[0], rtol=1e-12)


def test_one_row_of_each_class_is_enough():
    """No scatter at all: Σ = (m/(n + m))·I, and each class's own is drawn towards it."""
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    params = FAMILY.estimate(FAMILY.collect(x, np.array([0, 1], np.int32), None, 2), Context((0, 1), (0, 1)))
    m = 2 * 2 / 3 + 2 / 50
    shared = m / (2 + m)
    np.testing.assert_allclose(params.shared[0], np.eye(2) / np.sqrt(shared), rtol=1e-12)
    np.testing.assert_allclose(params.by_class[0], np.eye(2) / np.sqrt(shared * 2 / 3), rtol=1e-12)


def test_it_counts_means_and_covariances_of_entries():
    assert FAMILY.width(2) == 3
    params = FAMILY.estimate(FAMILY.collect(np.zeros((1, 3)), np.zeros(1, np.int32), None, 2), Context((0, 1), (0, 1)))
    assert FAMILY.n_parameters(params) == 2 * (3 + 6)
