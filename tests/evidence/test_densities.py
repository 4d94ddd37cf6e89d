"""Evidence from densities: leave-one-out equals a refit, and shares of features sum to the evidence."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.linalg import sqrtm

from deciban.evidence.block_evidence import Rows
from deciban.evidence.densities import MOST, GaussianEvidence, JointGaussian
from deciban.evidence.joint_normals import JointNormals
from deciban.evidence.mixed_columns import Encoding
from deciban.evidence.term_evidence import TermEvidence
from deciban.families import Context, Gaussian, Multinomial
from tests.evidence.reference import centred

N = 40
weighted = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
classes = pytest.mark.parametrize("K", [2, 3])


def labels_of(K, n=N, seed=0):
    return np.random.default_rng(seed).integers(0, K, n).astype(np.int32)


def weights_of(weighted, n=N):
    return np.random.default_rng(1).choice([0.25, 1.0, 2.0, 3.0], n) if weighted else np.ones(n)


def less(weights, i):
    """The weights when row i is left out: of a row of weight 2 and more, once."""
    rest = weights.copy()
    rest[i] -= min(weights[i], 1.0)
    return rest


# Numbers one by one --------------------------------------------------------------------------------------------------


def numbers(labels, seed=2):
    """Numbers in different units, with missing values; the third is constant, the fourth always missing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(np.column_stack([labels, 1e6 + 3.0 * labels, 0 * labels, 0 * labels]), [1.0, 2.0, 0.0, 1.0])
    x[rng.random(N) < 0.15, 0] = np.nan
    x[:, 3] = np.nan
    return x


def of_normals(x, column, labels, weights, everyone, K):
    """(K) log-density by σ_c² = (Σ(x − μ_c)² + s²)/(n_c + 1), from rows with weights; s² by the weights of everyone.

    A class without rows is where everyone is.
    """
    present = ~np.isnan(column)
    middle = np.average(column[present], weights=everyone[present])
    s2 = np.average((column[present] - middle) ** 2, weights=everyone[present])
    actual = np.empty(K)
    for c in range(K):
        own = present & (labels == c) & (weights > 0)
        n = weights[own].sum()
        mean = np.average(column[own], weights=weights[own]) if n else middle
        variance = ((weights[own] * (column[own] - mean) ** 2).sum() + s2) / (n + 1)
        actual[c] = stats.norm.logpdf(x, mean, np.sqrt(variance))
    return actual


def one_by_one(columns, x, labels, weights, K, *, wide=False):
    """A source of rows; numbers count up to the ends of what was seen, or (wide) wherever they are."""
    seen = [column[~np.isnan(column)] for column in x.T.astype(np.float64)]
    ends = [(-np.inf, np.inf) if wide or not len(column) else (column.min(), column.max()) for column in seen]
    low, high = np.array(ends).T
    return GaussianEvidence(columns, Gaussian().collect(x, labels, weights, K), low, high)


@weighted
@classes
def test_normals_leave_one_out_equals_a_refit(K, weighted):
    """s², which no class has a part in, is that of all rows."""
    labels, weights = labels_of(K), weights_of(weighted)
    x = numbers(labels)
    source = one_by_one((2, 3, 4, 5), x, labels, weights, K)
    assert [piece.columns for piece in source.pieces] == [(2,), (3,)]
    left_out = source.evidence(Rows(x, labels, np.minimum(weights, 1.0)))
    new = source.evidence(Rows(x))
    most = np.log(weights.sum())
    for j in range(2):
        present = ~np.isnan(x[:, j])
        for i in range(N):
            if not present[i]:
                assert not left_out[i, j].any()
                assert not new[i, j].any()
                continue
            for actual, rest in ((new, weights), (left_out, less(weights, i))):
                expected = centred(of_normals(x[i, j], x[:, j], labels, rest, weights, K))
                np.testing.assert_allclose(actual[i, j], np.clip(expected, -most, most), rtol=1e-7, atol=1e-9)


def test_the_only_number_of_a_class_has_the_density_of_all_rows():
    x = np.array([[0.0], [1.0], [2.0], [4.0]])
    labels = np.array([0, 0, 0, 1], np.int32)
    source = one_by_one((0,), x, labels, None, 2)
    expected = centred(of_normals(4.0, x[:, 0], labels, np.array([1.0, 1.0, 1.0, 0.0]), np.ones(4), 2))
    np.testing.assert_allclose(source.evidence(Rows(x, labels))[3, 0], np.clip(expected, -np.log(4), np.log(4)))


def test_normal_evidence_is_at_most_log_n():
    x = np.array([[0.0], [1e-6], [1.0], [1.0 + 1e-6], [1e9], [-1e9]])
    labels = np.array([0, 0, 1, 1, 0, 1], np.int32)
    source = one_by_one((0,), x[:4], labels[:4], None, 2, wide=True)
    actual = source.evidence(Rows(x))
    assert np.abs(actual).max() == pytest.approx(np.log(4), rel=1e-12)
    assert np.isfinite(actual).all()


def test_a_number_beyond_all_that_were_seen_counts_as_the_last_of_them():
    """Of a running number tomorrow's rows are all out there: who went on along the normals would be sure of them."""
    labels = labels_of(3)
    x = numbers(labels)
    source = one_by_one((0, 1, 2, 3), x, labels, None, 3)
    ends = np.array([np.nanmin(x[:, :3], axis=0), np.nanmax(x[:, :3], axis=0)])
    rows = np.column_stack([np.vstack([ends, [[-1e9], [1e9]] * np.ones((2, 3))]), np.zeros(4)])
    actual = source.evidence(Rows(rows))
    np.testing.assert_array_equal(actual[2:], actual[:2])


def test_a_class_without_numbers_has_the_density_of_all_rows():
    x = np.array([[0.0], [1.0], [np.nan]])
    source = one_by_one((0,), x, np.array([0, 0, 1], np.int32), None, 2)
    expected = centred(of_normals(1.0, x[:, 0], np.array([0, 0, 1]), np.ones(3), np.ones(3), 2))
    np.testing.assert_allclose(source.evidence(Rows(x))[1, 0], expected, rtol=1e-12)


def test_single_precision_is_read_as_the_doubles_it_holds():
    labels = labels_of(2)
    x = numbers(labels).astype(np.float32)
    source = one_by_one((0, 1, 2, 3), x, labels, None, 2)
    expected = source.evidence(Rows(x.astype(np.float64), labels))
    np.testing.assert_array_equal(source.evidence(Rows(x, labels)), expected)


# All columns jointly -------------------------------------------------------------------------------------------------

WIDE = (-100.0, 100.0)
ENCODING = Encoding((0.0, None, 0.0), (1.0, None, 1.0), (WIDE, None, WIDE), (None, ("u", "v"), None))
FAMILY = JointNormals(ENCODING)
D = 4


def encoded(labels, seed=3):
    """Entries of two numbers and of a category, that go together in each class in its own way."""
    rng = np.random.default_rng(seed)
    n = len(labels)
    x = rng.normal(size=(n, D))
    x[:, 0] += labels
    x[:, 3] += np.where(labels == 1, 1.0, -0.5) * x[:, 0]
    value = rng.integers(0, 3, n)
    x[:, 1], x[:, 2] = value == 0, value == 1
    return x


def jointly(x, labels, weights, K):
    statistic = FAMILY.collect(x, labels, weights, K)
    params = FAMILY.estimate(statistic, Context(tuple(range(K)), ("a", "b", "c")))
    return JointGaussian((1, 4, 6), FAMILY, statistic, params)


def scatter(x, labels, weights, K):
    counts, means, scatters = np.zeros(K), np.zeros((K, D)), np.zeros((K, D, D))
    for c in range(K):
        own = (labels == c) & (weights > 0)
        w = weights[own]
        counts[c] = w.sum()
        means[c] = np.average(x[own], axis=0, weights=w)
        off = x[own] - means[c]
        scatters[c] = (w[:, np.newaxis] * off).T @ off
    return counts, means, scatters


def virtual(n):
    """m of the shared covariance, of n rows: two thirds for each entry, and a fiftieth for each row."""
    return 2 * D / 3 + n / 50


def by_definition(row, x, labels, rest, weights, K):
    """(2, K): Σ = (W + mI)/(n + m), m being held; Σ_c = (W_c + d·Σ)/(n_c + d), the divisor of that Σ being held too.

    The density is that of the entries which are not NaN. In the rows that are counted, NaN is 0.
    """
    known = ~np.isnan(row)
    if not known.any():
        return np.zeros((2, K))
    row, some = row[known], np.ix_(known, known)
    counts, means, scatters = scatter(np.nan_to_num(x), labels, rest, K)
    m = virtual(weights.sum())
    shared = (scatters.sum(axis=0) + m * np.eye(D)) / (rest.sum() + m)
    drawn = (scatters.sum(axis=0) + m * np.eye(D)) / (weights.sum() + m)
    means = means[:, known]
    linear = [stats.multivariate_normal(mean, shared[some]).logpdf(row) for mean in means]
    own = [((w + D * drawn) / (n + D))[some] for w, n in zip(scatters, counts, strict=True)]
    quadratic = [stats.multivariate_normal(mean, sigma).logpdf(row) for mean, sigma in zip(means, own, strict=True)]
    return np.clip(centred(np.array([linear, quadratic])), -MOST, MOST)


def partly_known(labels, seed=3):
    """The same entries; in most rows those of one, two or all features are unknown."""
    x, rng = encoded(labels, seed), np.random.default_rng(seed + 1)
    unknown = rng.random((len(x), 3)) < 0.4
    unknown[0], unknown[1] = True, False
    x[unknown[:, ENCODING.owner]] = np.nan
    return x


def known_covariances(source):
    """Σ and Σ_c as the parameters have them: TᵀT is the inverse."""
    return [np.linalg.inv(t.T @ t) for t in (*source.params.shared, *source.params.by_class)]


@weighted
@classes
def test_unknown_entries_are_integrated_out(K, weighted):
    """Evidence of the known entries is that of scipy, with the same entries of the means and covariances."""
    labels = labels_of(K)
    x = partly_known(labels)
    source = jointly(x, labels, weights_of(weighted), K)
    actual = source.evidence(Rows(x))
    shared, *own = known_covariances(source)
    for i, row in enumerate(x):
        known = ~np.isnan(row)
        if not known.any():
            np.testing.assert_allclose(actual[i], 0.0, atol=1e-12)
            continue
        for piece, sigmas in enumerate(([shared] * K, own)):
            density = [
                stats.multivariate_normal(mean[known], sigma[np.ix_(known, known)]).logpdf(row[known])
                for mean, sigma in zip(source.params.mean, sigmas, strict=True)
            ]
            expected = np.clip(centred(np.array(density)), -MOST, MOST)
            np.testing.assert_allclose(actual[i, piece], expected, rtol=1e-8, atol=1e-9)


@weighted
@classes
def test_a_row_left_out_of_joint_normals_is_refitted_without_it(K, weighted):
    labels, weights = labels_of(K), weights_of(weighted)
    for x, patterns in ((encoded(labels), 1), (partly_known(labels), 8)):
        assert len({tuple(row) for row in np.isnan(x).tolist()}) == patterns
        source = jointly(x, labels, weights, K)
        left_out = source.evidence(Rows(x, labels, np.minimum(weights, 1.0)))
        new = source.evidence(Rows(x))
        for i in range(N):
            expected = by_definition(x[i], x, labels, less(weights, i), weights, K)
            np.testing.assert_allclose(left_out[i], expected, rtol=1e-8, atol=1e-9)
            if patterns == 1:
                expected = by_definition(x[i], x, labels, weights, weights, K)
                np.testing.assert_allclose(new[i], expected, rtol=1e-8, atol=1e-9)


@weighted
def test_entries_of_hidden_columns_are_unknown(weighted):
    """The row that is left out was counted with all of its entries."""
    labels, weights = labels_of(3), weights_of(weighted)
    x = encoded(labels)
    source = jointly(x, labels, weights, 3)
    for hidden in ({4}, {1, 6}, {1, 4, 6}, {0, 2}):
        part = x.copy()
        part[:, np.isin(np.array(source.columns)[ENCODING.owner], [*hidden])] = np.nan
        actual = source.evidence(Rows(x, hidden=frozenset(hidden)))
        np.testing.assert_allclose(actual, source.evidence(Rows(part)), rtol=1e-11, atol=1e-12)
        left_out = source.evidence(Rows(x, labels, np.minimum(weights, 1.0), frozenset(hidden)))
        for i in range(0, N, 7):
            expected = by_definition(part[i], x, labels, less(weights, i), weights, 3)
            np.testing.assert_allclose(left_out[i], expected, rtol=1e-8, atol=1e-9)


@classes
def test_unknown_columns_have_no_share_and_the_others_share_by_the_entries_that_are_known(K):
    """As where all is known, by the square root of the correlations of the known entries alone."""
    labels = labels_of(K)
    x = 0.5 * partly_known(labels)
    source = jointly(x, labels, None, K)
    shares = np.zeros((N, 7, K))
    source.share_scorer()(x, np.array([[1.0] * K, [0.0] * K]), shares)
    sigma = known_covariances(source)[0]
    for i, row in enumerate(x):
        known = np.flatnonzero(~np.isnan(row))
        terms = np.zeros((D, K))
        if len(known):
            some = sigma[np.ix_(known, known)]
            sd = np.sqrt(np.diagonal(some))
            root = np.linalg.inv(sqrtm(some / np.outer(sd, sd)))
            z, zeta = row[known] / sd @ root, source.params.mean[:, known] / sd @ root
            terms[known] = centred(zeta.T * (z[:, np.newaxis] - 0.5 * zeta.T))
        for column, entries in ((1, [0]), (4, [1, 2]), (6, [3])):
            np.testing.assert_allclose(shares[i, column], terms[entries].sum(axis=0), rtol=1e-7, atol=1e-9)
            assert not np.isnan(row[entries]).any() or not shares[i, column].any()


def test_no_weights_are_weights_of_one():
    labels = labels_of(3)
    x = encoded(labels)
    source = jointly(x, labels, None, 3)
    np.testing.assert_array_equal(source.evidence(Rows(x, labels)), source.evidence(Rows(x, labels, np.ones(N))))


def test_more_columns_than_rows_left_out_stay_honest():
    """Normals of 30 entries fit 40 rows of noise perfectly; of each row the others know nothing."""
    rng = np.random.default_rng(4)
    x, labels = rng.normal(size=(40, 30)), labels_of(2, 40)
    family = JointNormals(Encoding((0.0,) * 30, (1.0,) * 30, (WIDE,) * 30, (None,) * 30))
    statistic = family.collect(x, labels, None, 2)
    params = family.estimate(statistic, Context((0, 1), tuple(range(30))))
    source = JointGaussian(tuple(range(30)), family, statistic, params)
    right = np.arange(40), slice(None), labels
    assert (source.evidence(Rows(x))[right] > 0).mean() > 0.9
    honest = source.evidence(Rows(x, labels))
    assert 0.2 < (honest[right][:, 0] > 0).mean() < 0.8
    assert np.isfinite(honest).all()


def test_no_joint_evidence_is_above_the_bound():
    labels = labels_of(3)
    x = encoded(labels)
    source = jointly(x, labels, None, 3)
    far = np.vstack([100.0 * x, x])
    actual = source.evidence(Rows(far))
    assert np.abs(actual[:N]).max() == MOST
    shares = np.zeros((len(far), 7, 3))
    source.share_scorer()(far, np.ones((2, 3)), shares)
    np.testing.assert_allclose(shares.sum(axis=1), actual.sum(axis=1), rtol=1e-9, atol=1e-9)


@weighted
@classes
def test_joint_normals_are_shared_by_their_whitened_entries(K, weighted):
    """With one Σ: a column has Σ over its entries of ζ_cj(z_j − ½ζ_cj), z = R^(−½)x/σ and ζ_c the same of μ_c."""
    labels, weights = labels_of(K), weights_of(weighted)
    x = 0.5 * encoded(labels)
    shares = np.zeros((N, 7, K))
    jointly(x, labels, weights, K).share_scorer()(x, np.array([[1.0] * K, [0.0] * K]), shares)
    _, means, scatters = scatter(x, labels, weights, K)
    n = weights.sum()
    shared = (scatters.sum(axis=0) + virtual(n) * np.eye(D)) / (n + virtual(n))
    sd = np.sqrt(np.diagonal(shared))
    root = np.linalg.inv(sqrtm(shared / np.outer(sd, sd)))
    z, zeta = x / sd @ root, means / sd @ root
    terms = centred(zeta.T * (z[:, :, np.newaxis] - 0.5 * zeta.T))
    for column, entries in ((1, [0]), (4, [1, 2]), (6, [3])):
        np.testing.assert_allclose(shares[:, column], terms[:, entries].sum(axis=1), rtol=1e-7, atol=1e-9)


# Words ---------------------------------------------------------------------------------------------------------------


def words(labels, seed=5):
    rng = np.random.default_rng(seed)
    return rng.poisson(0.3 + 0.3 * (np.arange(12) % 3 == labels[:, np.newaxis])).astype(float)


def of_words(x, labels, weights, K):
    family, context = Multinomial(), Context(tuple(range(K)), tuple(range(12)))
    return TermEvidence(tuple(range(12)), family, family.collect(x, labels, weights, K), context)


@weighted
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@classes
def test_words_leave_one_out_equals_a_refit(K, form, weighted):
    """log p(x|c) = Σ_v x_v log θ_cv with θ_cv = (N_c(v) + 1)/(N_c + V)."""
    labels, weights = labels_of(K), weights_of(weighted)
    x = words(labels)
    source = of_words(form(x), labels, weights, K)
    left_out = source.evidence(Rows(form(x), labels, np.minimum(weights, 1.0)))[:, 0]
    new = source.evidence(Rows(form(x)))[:, 0]
    for i in range(N):
        for actual, rest in ((new, weights), (left_out, less(weights, i))):
            counts = np.array([(rest[labels == c] @ x[labels == c]) for c in range(K)])
            share = (counts + 1) / (counts + 1).sum(axis=1, keepdims=True)
            np.testing.assert_allclose(actual[i], centred(np.log(share) @ x[i]), rtol=1e-9, atol=1e-10)


# Sources of all kinds, for tests that they share --------------------------------------------------------------------


def sources():
    labels = labels_of(3)
    x = numbers(labels)
    yield "normal", one_by_one((0, 2, 3, 4), x, labels, None, 3), x
    yield "jointly", jointly(encoded(labels), labels, None, 3), encoded(labels)
    yield "jointly, unknown entries", jointly(partly_known(labels), labels, None, 3), partly_known(labels)
    counts = words(labels)
    yield "words", of_words(counts, labels, None, 3), counts
    yield "sparse words", of_words(sp.csr_array(counts), labels, None, 3), sp.csr_array(counts)


CASES = {name: (source, values) for name, source, values in sources()}
