"""Natural parameters: every family's density is η·T(x) + b, up to what is common to all classes."""

from dataclasses import replace
from fractions import Fraction
from math import log

import numpy as np
import pytest
import scipy.sparse as sp

from deciban.data.batch import MISSING, UNSEEN, Coded, Texts
from deciban.errors import BadCell, DecibanError
from deciban.evidence.forest import Forest
from deciban.evidence.joint_normals import JointNormals
from deciban.evidence.level_combinations import LevelCombinations
from deciban.evidence.partition_counts import Pairs
from deciban.evidence.symmetric_trees import SymmetricTrees
from deciban.families import (
    Bernoulli,
    Binned,
    Categorical,
    Context,
    Exponential,
    Family,
    Gaussian,
    Multinomial,
    MultivariateGaussian,
    Poisson,
    Uniform,
)
from deciban.families.natural import FEW, origins
from tests.laws import all_families, assert_laws, context, family_subjects, flattened, rows_of

SUBJECTS = family_subjects()
NOT_EXPONENTIAL = {
    LevelCombinations,
    Uniform,
    Pairs,
    SymmetricTrees,
    Forest,
    JointNormals,
}  # the last three are weighted evidence, without a linear form

pytestmark = pytest.mark.filterwarnings("ignore:singular covariance")

RNG = np.random.default_rng(0)
LABELS = (np.arange(300) % 3).astype(np.int32)


def fit(family, x, labels=LABELS, weights=None, **settings):
    """Parameters and the context they were estimated in; columns are called a, b, c, …"""
    labels = np.asarray(labels, np.int32)
    classes = int(labels.max()) + 1
    setting = Context(tuple(range(classes)), tuple("abcdefgh"[: x.shape[1]]), **settings)
    return family.estimate(family.collect(x, labels, weights, classes), setting), setting


def scores(family, params, setting, values):
    """(n, K) η·T(x) + b."""
    natural, t = family.natural(params, setting), family.sufficient(params, values)
    assert t.dtype == np.float64
    assert t.shape == (values.shape[0], len(natural.names))
    assert natural.eta.shape == (len(setting.classes), t.shape[1])
    assert natural.constant.shape == (len(setting.classes),)
    assert len(natural.columns) == len(natural.presence) == len(set(natural.names)) == t.shape[1]
    assert set(natural.columns) <= set(range(len(setting.columns)))
    return t @ natural.eta.T + natural.constant


def assert_twins(family, params, setting, values):
    """Classes differ in η·T + b as they differ in log p, to 1e-10 (of the row's largest, where that is above 1)."""
    density = family.log_density(params, values, len(setting.classes))
    result = scores(family, params, setting, values)
    size = np.abs(density).max(axis=1, keepdims=True, initial=1.0)
    error = np.abs((result - result[:, :1]) - (density - density[:, :1])) / size
    assert error.max(initial=0.0) <= 1e-10


# ---- the law ----------------------------------------------------------------------------------------------------


def whole(subject, values):
    """Rows that the twin can take: a joint Gaussian needs all cells."""
    if subject.kind is not MultivariateGaussian:
        return values
    return values[~np.isnan(values).any(axis=1)]


def in_range(family, params, values, classes):
    """Without rows so far out that squares leave the doubles."""
    density = family.log_density(params, values, classes)
    return rows_of(values, np.flatnonzero((np.abs(density) < 1e250).all(axis=1)))


def finite(params):
    if getattr(params, "certain", np.zeros(0)).any():  # a term that all documents have
        return False
    return all(not np.isneginf(a).any() for a in flattened(params).values() if a.dtype.kind == "f")


def estimated(subject, drawn):
    setting = context(drawn, **subject.settings)
    return subject.family.estimate(subject.of(drawn), setting), setting


def density_is_linear_in_sufficient_statistics(subject, drawn, rng):
    """Of training rows and of others; a probability of zero has no natural parameter."""
    half = rng.permutation(len(drawn))[: max(len(drawn) // 2, subject.least)]
    for learned in (drawn, drawn.take(half)):
        params, setting = estimated(subject, learned)
        if finite(params):
            values = in_range(subject.family, params, whole(subject, drawn.values), drawn.classes)
            assert_twins(subject.family, params, setting, values)
        else:
            message = r"^column \d \(\w+\): a probability is 0, .* set smoothing above 0, in"
            with pytest.raises(DecibanError, match=message):
                subject.family.natural(params, setting)


def narrowed(values):
    """The same as float32; what it cannot hold is 1."""
    if sp.issparse(values):
        return sp.csr_array((narrowed(values.data), values.indices, values.indptr), shape=values.shape)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return np.where(np.isinf(single) | (single == 0) & (values != 0), np.float32(1), single)


def single_precision_is_exact(subject, drawn, rng):
    if subject.family.reads in ("codes", "texts"):
        return
    values = narrowed(drawn.values)
    params, setting = estimated(subject, replace(drawn, values=values.astype(np.float64)))
    if finite(params):
        assert_twins(subject.family, params, setting, whole(subject, values))


def emptied(values):
    """One row like these, with nothing in it."""
    if isinstance(values, Coded):
        return Coded(np.full((1, values.shape[1]), MISSING, np.int32), values.levels)
    if isinstance(values, Texts):
        return Texts.of(*[[None]] * values.shape[1])
    return np.full((1, values.shape[1]), np.nan)


def missing_value_adds_nothing(subject, drawn, rng):
    """Its entries are 0; for Bernoulli one entry marks it, and takes back what the constant added."""
    params, setting = estimated(subject, drawn)
    if not finite(params) or subject.kind is MultivariateGaussian:
        return
    natural, t = subject.family.natural(params, setting), subject.family.sufficient(params, emptied(drawn.values))
    if subject.kind is Bernoulli:
        assert t[0].tolist() == [float(name.endswith("is missing")) for name in natural.names]
        np.testing.assert_allclose(t @ natural.eta.T + natural.constant, 0.0, atol=1e-12)
    else:
        assert not (t.toarray() if sp.issparse(t) else t).any()
        assert not natural.constant.any()


def presence_is_one_where_nothing_is_missing(subject, drawn, rng):
    params, setting = estimated(subject, drawn)
    if not finite(params):
        return
    natural = subject.family.natural(params, setting)
    if isinstance(drawn.values, np.ndarray):
        full = drawn.values[~np.isnan(drawn.values).any(axis=1)]
        assert (subject.family.sufficient(params, full)[:, natural.presence] == 1).all()
    assert [name.endswith("is there") for name in natural.names] == natural.presence.tolist()


LAWS = [
    density_is_linear_in_sufficient_statistics,
    single_precision_is_exact,
    missing_value_adds_nothing,
    presence_is_one_where_nothing_is_missing,
]


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s.kind not in NOT_EXPONENTIAL], ids=str)
def test_laws(subject):
    assert_laws(subject, LAWS, examples=4 if subject.least else 10)


def test_families_without_natural_parameters_are_known():
    assert {member for member in all_families() if member.natural is Family.natural} == NOT_EXPONENTIAL


def test_uniform_has_no_twin():
    params, setting = fit(Uniform(), RNG.random((300, 2)))
    with pytest.raises(DecibanError, match=r"^columns 'a', 'b' \(Uniform\): this is not an exponential family"):
        Uniform().natural(params, setting)
    with pytest.raises(DecibanError, match="Uniform is not an exponential family"):
        Uniform().sufficient(params, RNG.random((3, 2)))


# ---- columns far from zero --------------------------------------------------------------------------------------

FAR = RNG.normal([1e6, -1e6, 1e8, 0.3, 5.0], [1.0, 0.01, 1e-3, 1e-4, 2.0], size=(300, 5))
FAR += (LABELS[:, np.newaxis] - 1) * [1.0, 0.02, 0.0, 1e-4, 1.0]


def assert_digits(family, x, rows=None, rtol=1e-10, atol=1e-10):
    """As `assert_twins`, but of small densities as well."""
    params, setting = fit(family, x)
    rows = x if rows is None else rows
    density, result = family.log_density(params, rows, 3), scores(family, params, setting, rows)
    np.testing.assert_allclose(result - result[:, :1], density - density[:, :1], rtol=rtol, atol=atol)


def test_far_columns_keep_their_digits():
    """Also those of a class that is narrow in a wide column: its rows are all 700 and the column's sd is 1000."""
    assert_digits(Gaussian(), FAR)
    x = np.where(LABELS == 0, 700.0, RNG.normal(0, 1000, 300))[:, np.newaxis]
    assert_digits(Gaussian(), x, np.array([[700.0], [700.01], [699.9]]))
    mix = np.array([[1, 0, 0, 0], [0, 1, 0, 0.5], [0, 0, 1, 0], [0.25, 0, 0, 1]])
    assert_digits(MultivariateGaussian("per-class"), FAR[:, [0, 1, 3, 4]] @ mix)


def test_an_origin_is_a_short_number_and_in_the_name():
    params, setting = fit(Gaussian(), FAR)
    names = Gaussian().natural(params, setting).names
    assert names[:3] == ("a is there", "a − 1000000", "(a − 1000000)²")
    assert names[3:6] == ("b is there", "b + 1000000", "(b + 1000000)²")
    assert names[9:12] == ("d is there", "d − 0.3", "(d − 0.3)²")
    assert names[12:] == ("e is there", "e", "e²")


def test_classes_far_apart_do_not_move_the_origin():
    """Half way between them is no better than 0: the names stay short."""
    assert origins(np.array([[0.0], [1000.0]]), np.array([[1.0]]), np.array([500.0])).tolist() == [0.0]


def test_the_shared_form_is_of_plain_x_however_far():
    """Then w·x and b are as large as the means in standard deviations, and their sum loses as many digits."""
    family = MultivariateGaussian()
    params, setting = fit(family, FAR[:, [0, 4]])
    assert family.natural(params, setting).names == ("a", "b")
    np.testing.assert_array_equal(family.sufficient(params, FAR[:, [0, 4]]), FAR[:, [0, 4]])
    assert_digits(family, FAR[:, [0, 4]], rtol=0, atol=1e6 * 1e-14)


# ---- formulas ---------------------------------------------------------------------------------------------------


def test_gaussian_is_the_textbook_form():
    """x: μ/σ²; x²: −1/2σ²; where it is there: −½ log 2πσ² − μ²/2σ²."""
    x = np.array([[1.0], [3.0], [2.0], [8.0]])  # means 2 and 5, variances 1 and 9
    params, setting = fit(Gaussian(), x, [0, 0, 1, 1])
    natural = Gaussian().natural(params, setting)
    assert natural.names == ("a is there", "a", "a²")
    assert natural.columns == (0, 0, 0)
    assert natural.presence.tolist() == [True, False, False]
    expected = [[-0.5 * log(2 * np.pi) - 2.0, 2.0, -0.5], [-0.5 * log(2 * np.pi * 9) - 25 / 18, 5 / 9, -1 / 18]]
    np.testing.assert_allclose(natural.eta, expected, rtol=1e-14)
    t = Gaussian().sufficient(params, np.array([[4.0], [np.nan]]))
    assert t.tolist() == [[1.0, 4.0, 16.0], [0.0, 0.0, 0.0]]


def test_poisson_is_log_rate_and_exponential_is_minus_rate():
    x = np.array([[1.0], [5.0], [2.0], [8.0], [8.0]])  # means 3 and 6
    for family, expected in (
        (Poisson(), [[-3.0, log(3)], [-6.0, log(6)]]),
        (Exponential(), [[-log(3), -1 / 3], [-log(6), -1 / 6]]),
    ):
        params, setting = fit(family, x, [0, 0, 1, 1, 1])
        natural = family.natural(params, setting)
        assert natural.names == ("a is there", "a")
        np.testing.assert_allclose(natural.eta, expected, rtol=1e-14)
        assert family.sufficient(params, np.array([[4.0], [np.nan]])).tolist() == [[1.0, 4.0], [0.0, 0.0]]


def test_bernoulli_is_the_log_odds():
    """φ = (k + 1)/(n + 2): 3/4 (k = 2 of 2) and 2/5 (k = 1 of 3). x: log φ/(1 − φ), b: log(1 − φ)."""
    x = np.array([[1.0, 0], [1.0, 0], [1.0, 0], [0.0, 0], [0.0, 0]])  # b is constant
    params, setting = fit(Bernoulli(), x, [0, 0, 1, 1, 1])
    natural = Bernoulli().natural(params, setting)
    assert natural.names == ("a", "a is missing")
    np.testing.assert_allclose(natural.eta, [[log(3), -log(1 / 4)], [log(2 / 3), -log(3 / 5)]], rtol=1e-14)
    np.testing.assert_allclose(natural.constant, [log(1 / 4), log(3 / 5)], rtol=1e-14)


def test_bernoulli_of_sparse_rows_stays_sparse():
    x = (RNG.random((300, 8)) < 0.05 * (1 + LABELS[:, np.newaxis])).astype(np.float64)
    params, setting = fit(Bernoulli(), sp.csr_array(x))
    t = Bernoulli().sufficient(params, sp.csr_array(x))
    assert isinstance(t, sp.csr_array)
    assert t.nnz == x.sum()
    np.testing.assert_array_equal(t.toarray(), Bernoulli().sufficient(params, x))
    assert_twins(Bernoulli(), params, setting, sp.csr_array(x))


def test_bernoulli_names_its_threshold():
    family = Bernoulli(threshold=2.5)
    params, setting = fit(family, np.array([[1.0], [3.0], [4.0]]), [0, 0, 1])
    assert family.natural(params, setting).names == ("a > 2.5", "a is missing")
    assert family.sufficient(params, np.array([[2.5], [2.6], [np.nan]])).tolist() == [[0, 0], [1, 0], [0, 1]]


COLOURS = Coded(np.array([[0], [2], [2], [0], [1], [2], [2]], np.int32), (("blue", "green", "red"),))
COLOURS_OF = [0, 0, 0, 1, 1, 1, 1]


def test_categorical_is_the_log_of_smoothed_frequencies():
    """(k + 1)/(n + 3) with counts 1, 0, 2 of 3 and 1, 1, 2 of 4."""
    params, setting = fit(Categorical(), COLOURS, COLOURS_OF)
    natural = Categorical().natural(params, setting)
    assert natural.names == ("a = blue", "a = green", "a = red")
    np.testing.assert_allclose(natural.eta, np.log([[2 / 6, 1 / 6, 3 / 6], [2 / 7, 2 / 7, 3 / 7]]), rtol=1e-14)
    new = Coded(np.array([[2], [MISSING], [UNSEEN]], np.int32), COLOURS.levels)
    assert Categorical().sufficient(params, new).tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_categorical_has_an_entry_for_what_was_never_seen():
    """With a place kept for it: (0 + 1)/(n + 4)."""
    params, setting = fit(Categorical(), COLOURS, COLOURS_OF, reserve=True)
    natural = Categorical().natural(params, setting)
    assert natural.names[3] == "a = (unseen)"
    np.testing.assert_allclose(natural.eta[:, 3], np.log([1 / 7, 1 / 8]), rtol=1e-14)
    new = Coded(np.array([[2], [MISSING], [UNSEEN]], np.int32), COLOURS.levels)
    assert Categorical().sufficient(params, new).tolist() == [[0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]


def test_a_missing_cell_that_counts_as_a_value_is_called_missing():
    values = Coded(np.array([[0], [1], [0]], np.int32), (("x", None),))
    params, setting = fit(Categorical(), values, [0, 0, 1])
    assert Categorical().natural(params, setting).names == ("a = x", "a is missing")


def test_columns_of_one_value_have_no_entry():
    values = Coded(np.array([[0, 0, 1], [0, 1, 0], [0, 1, 1]], np.int32), (("x",), ("no", "yes"), ("no", "yes")))
    params, setting = fit(Categorical(), values, [0, 0, 1])
    natural = Categorical().natural(params, setting)
    assert natural.names == ("b = no", "b = yes", "c = no", "c = yes")
    assert natural.columns == (1, 1, 2, 2)
    assert Categorical().sufficient(params, values).tolist() == [[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]


def test_many_values_are_sparse_and_few_are_dense():
    for size, kind in ((FEW, np.ndarray), (FEW + 1, sp.csr_array)):
        codes = np.arange(300, dtype=np.int32)[:, np.newaxis] % size
        codes[5], values = MISSING, Coded(codes, (tuple(range(size)),))
        params, setting = fit(Categorical(), values)
        assert isinstance(Categorical().sufficient(params, values), kind)
        assert_twins(Categorical(), params, setting, values)


def test_binned_has_an_entry_for_each_bin():
    """Two bins of two rows: (2 + 1)/(2 + 2) and (0 + 1)/(2 + 2)."""
    family, x = Binned("equal-frequency", count=2), np.array([[1.0, 1], [2.0, 1], [3.0, 1], [9.0, 1]])
    params, setting = fit(family, x, [0, 0, 1, 1])
    natural = family.natural(params, setting)
    assert natural.names == ("a < 2.5", "a ≥ 2.5")
    np.testing.assert_allclose(natural.eta, np.log([[3 / 4, 1 / 4], [1 / 4, 3 / 4]]), rtol=1e-14)
    assert family.sufficient(params, np.array([[2.5, 0], [np.nan, 0], [-1, 0]])).tolist() == [[0, 1], [0, 0], [1, 0]]


def test_bins_close_together_have_different_names():
    family, x = Binned("equal-frequency", count=4), 1e8 + np.arange(4.0)[:, np.newaxis]
    params, setting = fit(family, x, [0, 0, 1, 1])
    cuts = ("100000000.5", "100000001.5", "100000002.5")
    names = family.natural(params, setting).names
    assert names == (f"a < {cuts[0]}", f"{cuts[0]} ≤ a < {cuts[1]}", f"{cuts[1]} ≤ a < {cuts[2]}", f"a ≥ {cuts[2]}")


def test_multinomial_is_the_log_of_word_frequencies():
    """θ_v = (k_v + 1)/(words + 3)."""
    x = np.array([[2.0, 0, 1], [1, 0, 0], [0, 4, 1]])
    expected = np.log([[4 / 7, 1 / 7, 2 / 7], [1 / 8, 5 / 8, 2 / 8]])
    for values in (x, sp.csr_array(x)):
        params, setting = fit(Multinomial(), values, [0, 0, 1])
        natural = Multinomial().natural(params, setting)
        assert natural.names == ("a", "b", "c")
        np.testing.assert_allclose(natural.eta, expected, rtol=1e-14)
        t = Multinomial().sufficient(params, values)
        assert sp.issparse(t) == sp.issparse(values)
        np.testing.assert_array_equal(t.toarray() if sp.issparse(t) else t, x)


# ---- the joint Gaussian -----------------------------------------------------------------------------------------

# Two classes of whole numbers; the means are (1, 1) and (4, 3).
JOINT = np.array([[0.0, 0], [2, 0], [0, 1], [2, 3], [3, 2], [5, 5], [4, 2]])
JOINT_OF = [0, 0, 0, 0, 1, 1, 1]


def exact_moments(c):
    points = [[Fraction(int(v)) for v in row] for row, label in zip(JOINT, JOINT_OF, strict=True) if label == c]
    n = len(points)
    mean = [sum(p[j] for p in points) / n for j in range(2)]
    scatter = [[sum((p[i] - mean[i]) * (p[j] - mean[j]) for p in points) for j in range(2)] for i in range(2)]
    return n, mean, scatter


def inverse(m):
    det = m[0][0] * m[1][1] - m[0][1] * m[1][0]
    return [[m[1][1] / det, -m[0][1] / det], [-m[1][0] / det, m[0][0] / det]], det


def times(m, v):
    return [sum(a * b for a, b in zip(row, v, strict=True)) for row in m]


def dot(u, v):
    return sum(a * b for a, b in zip(u, v, strict=True))


def test_the_shared_covariance_gives_the_textbook_line():
    """w = Σ⁻¹(μ₁ − μ₀), b = −½(μ₁ᵀΣ⁻¹μ₁ − μ₀ᵀΣ⁻¹μ₀), in fractions."""
    (n0, mu0, s0), (n1, mu1, s1) = exact_moments(0), exact_moments(1)
    sigma = [[(s0[i][j] + s1[i][j]) / (n0 + n1) for j in range(2)] for i in range(2)]
    precision, _ = inverse(sigma)
    w = times(precision, [b - a for a, b in zip(mu0, mu1, strict=True)])
    b = -(dot(mu1, times(precision, mu1)) - dot(mu0, times(precision, mu0))) / 2
    params, setting = fit(MultivariateGaussian(), JOINT, JOINT_OF)
    natural = MultivariateGaussian().natural(params, setting)
    assert natural.names == ("a", "b")
    assert natural.columns == (0, 1)
    np.testing.assert_allclose(natural.eta[1] - natural.eta[0], [float(v) for v in w], rtol=1e-13)
    assert natural.constant[1] - natural.constant[0] == pytest.approx(float(b), rel=1e-13)
    np.testing.assert_array_equal(MultivariateGaussian().sufficient(params, JOINT), JOINT)


def test_a_covariance_for_each_class_gives_the_textbook_parabola():
    """x: Σ⁻¹μ; x_j²: −½(Σ⁻¹)_jj; x_i·x_j: −(Σ⁻¹)_ij; b = −½ log |2πΣ| − ½ μᵀΣ⁻¹μ, in fractions."""
    family = MultivariateGaussian("per-class")
    params, setting = fit(family, JOINT, JOINT_OF)
    natural = family.natural(params, setting)
    assert natural.names == ("a", "b", "a²", "a·b", "b²")
    assert natural.columns == (0, 1, 0, 0, 1)
    for c in range(2):
        n, mu, scatter = exact_moments(c)
        precision, det = inverse([[s / n for s in row] for row in scatter])
        linear = times(precision, mu)
        expected = [*linear, -precision[0][0] / 2, -precision[0][1], -precision[1][1] / 2]
        np.testing.assert_allclose(natural.eta[c], [float(v) for v in expected], rtol=1e-12)
        constant = -log(2 * np.pi) - 0.5 * log(det) - 0.5 * float(dot(mu, linear))
        assert natural.constant[c] == pytest.approx(constant, rel=1e-12)
    assert family.sufficient(params, np.array([[2.0, 3.0]])).tolist() == [[2.0, 3.0, 4.0, 6.0, 9.0]]


@pytest.mark.parametrize("kind", ["shared", "per-class"])
def test_a_missing_value_in_a_joint_block_has_no_twin(kind):
    params, _ = fit(MultivariateGaussian(kind), JOINT, JOINT_OF)
    with pytest.raises(BadCell) as caught:
        MultivariateGaussian(kind).sufficient(params, np.array([[1.0, 2.0], [3.0, np.nan]]))
    assert (caught.value.row, caught.value.column) == (1, 1)
    assert caught.value.problem.startswith("is missing: the linear form of a joint density needs complete rows")


@pytest.mark.parametrize("kind", ["shared", "per-class"])
def test_a_constant_column_of_a_joint_block_has_no_entry(kind):
    family = MultivariateGaussian(kind)
    x = np.insert(JOINT, 1, 5.0, axis=1)
    params, setting = fit(family, x, JOINT_OF)
    natural = family.natural(params, setting)
    assert set(natural.columns) == {0, 2}
    assert natural.names == (("a", "c") if kind == "shared" else ("a", "c", "a²", "a·c", "c²"))
    x[0, 1] = np.nan  # it says nothing, so it may be missing
    assert_twins(family, params, setting, x)


# ---- cells outside the domain, and probabilities of zero --------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "cell"),
    [
        (Gaussian(), np.inf),
        (Gaussian(), 1e200),
        (Poisson(), -1.0),
        (Exponential(), 0.0),
        (Bernoulli(), 2.0),
        (Binned(), np.inf),
        (Multinomial(), -1.0),
        (MultivariateGaussian(), np.inf),
        (MultivariateGaussian("per-class"), 1e200),
    ],
    ids=str,
)
def test_a_bad_cell_is_named(family, cell):
    x = np.array([[1.0, 0], [0, 1], [1, 1], [0, 0], [0, 1], [1, 0]]) + (0.5 if isinstance(family, Exponential) else 0)
    params, _ = fit(family, x, [0, 1, 0, 1, 0, 1])
    x[3, 1] = cell
    with pytest.raises(BadCell) as caught:
        family.sufficient(params, x)
    assert (caught.value.row, caught.value.column) == (3, 1)


@pytest.mark.parametrize(
    ("family", "values"),
    [
        (Bernoulli(), np.array([[0.0, 1], [1, 1], [0, 0], [1, 0]])),
        (Bernoulli(), sp.csr_array(np.array([[0.0, 1], [1, 1], [0, 0], [1, 0]]))),
        (Multinomial(), np.array([[1.0, 1], [1, 1], [1, 0], [2, 0]])),
        (Binned("equal-width", count=2), np.array([[0.0, 1], [1, 1], [0, 0], [1, 0]])),
        (Categorical(), Coded(np.array([[0, 1], [1, 1], [0, 0], [1, 0]], np.int32), (("n", "y"),) * 2)),
    ],
    ids=str,
)
def test_without_smoothing_a_zero_is_named_and_without_a_zero_there_is_a_twin(family, values):
    """Column b is 1 in class 0 only; with the labels the other way, every class has all."""
    params, setting = fit(family, values, [0, 0, 1, 1], smoothing=0.0)
    with pytest.raises(DecibanError, match=r"^column 'b' \(\w+\): a probability is 0"):
        family.natural(params, setting)
    params, setting = fit(family, values, [0, 1, 1, 0], smoothing=0.0)
    assert_twins(family, params, setting, values)
