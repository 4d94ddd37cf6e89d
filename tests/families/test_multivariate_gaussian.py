"""MultivariateGaussian: columns jointly normal."""

import warnings

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats
from sklearn.covariance import OAS
from sklearn.covariance import oas as sklearn_oas

from deciban.errors import DecibanWarning
from deciban.families import Context, MultivariateGaussian
from deciban.families.priors import InverseWishart
from tests.families.refits import left_out, paired, refitted
from tests.laws import family_subject, matrices, nans, tame


def close(actual, expected):
    """To 1e-9 of the size of the largest number."""
    assert actual.keys() == expected.keys()
    for key, wanted in expected.items():
        result = actual[key]
        if wanted.dtype.kind != "f":
            assert result == wanted
        else:
            np.testing.assert_allclose(
                result, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max(initial=0), err_msg=key
            )


def normals(n, d):
    return st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).normal(size=(n, d)))


def subject(kind, shrinkage, ddof):
    return family_subject(
        MultivariateGaussian(kind, shrinkage, ddof),
        normals,
        close=close,
        joint=True,
        independent_classes=kind != "shared",
        least=9,
    )


SUBJECTS = [
    family_subject(
        MultivariateGaussian(kind, prior=InverseWishart(4.0, 1.0)),
        matrices(tame | nans),
        close=close,
        joint=True,
        independent_classes=kind != "shared",
    )
    for kind in ("shared", "per-class")
] + [
    subject(kind, shrinkage, ddof)
    for kind, shrinkages in (("shared", (None, 0.3, "oas")), ("per-class", (0.3, "oas")))
    for shrinkage in shrinkages
    for ddof in (0, "unbiased")
]  # a class of few rows has a singular covariance of its own if nothing is mixed in; see "one row left out" below

BOTH = pytest.mark.parametrize("kind", ["shared", "per-class"])
RNG = np.random.default_rng(0)
MIX = np.array([[1.0, 0.0, 0.0], [0.7, 1.0, 0.0], [-2.0, 0.3, 0.5]])
LABELS = (np.arange(60) % 3).astype(np.int32)
X = (RNG.normal(size=(60, 3)) * (1 + LABELS[:, np.newaxis])) @ MIX.T + LABELS[:, np.newaxis] * [1.0, -2.0, 0.5]


def fit(family, x=X, labels=LABELS, classes=3):
    x = np.asarray(x, dtype=np.float64)
    context = Context(tuple(range(classes)), tuple("abcdefgh"[: x.shape[1]]))
    return family.estimate(family.collect(x, np.asarray(labels, np.int32), None, classes), context)


def quietly(family, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecibanWarning)
        return fit(family, *data)


def residuals(x=X, labels=LABELS):
    means = np.stack([x[labels == c].mean(axis=0) for c in range(3)])
    return x - means[labels]


def densities(params, x):
    covariances = np.broadcast_to(params.covariance, (len(params.mean), *params.covariance.shape[1:]))
    return np.stack(
        [
            np.atleast_1d(stats.multivariate_normal.logpdf(x, m, s))
            for m, s in zip(params.mean, covariances, strict=True)
        ],
        axis=1,
    )


# ---- estimates --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ddof", "lost"), [(0, 0), (1, 1), ("unbiased", 3)])
def test_shared_covariance_is_about_each_class_mean(ddof, lost):
    """Σ = Σ_i (x_i − μ_{y_i})(x_i − μ_{y_i})ᵀ / (n − ddof)."""
    params = fit(MultivariateGaussian(ddof=ddof))
    r = residuals()
    np.testing.assert_allclose(params.mean, [X[c == LABELS].mean(axis=0) for c in range(3)], rtol=1e-12)
    np.testing.assert_allclose(params.covariance[0], r.T @ r / (60 - lost), rtol=1e-12)


@pytest.mark.parametrize(("ddof", "lost"), [(0, 0), (1, 1), ("unbiased", 1)])
def test_each_class_has_its_own_covariance(ddof, lost):
    params = fit(MultivariateGaussian("per-class", ddof=ddof))
    expected = [np.cov(X[c == LABELS].T, ddof=lost) for c in range(3)]
    np.testing.assert_allclose(params.covariance, expected, rtol=1e-12)


@BOTH
def test_estimates_far_from_zero_lose_nothing(kind):
    far = X + 2.0**30
    near = far - 2.0**30  # exactly
    a, b = fit(MultivariateGaussian(kind), far), fit(MultivariateGaussian(kind), near)
    np.testing.assert_allclose(a.covariance, b.covariance, rtol=1e-11)
    np.testing.assert_allclose(a.mean - 2.0**30, b.mean, atol=2e-7)


def test_shrinkage_mixes_in_a_sphere():
    """(1 − s)Σ + s (tr Σ/d) I."""
    for kind in ("shared", "per-class"):
        plain = fit(MultivariateGaussian(kind)).covariance
        shrunk = fit(MultivariateGaussian(kind, shrinkage=0.3)).covariance
        spheres = [np.trace(s) / 3 * np.eye(3) for s in plain]
        np.testing.assert_allclose(shrunk, 0.7 * plain + 0.3 * np.array(spheres), rtol=1e-12)


def test_oas_per_class_is_that_of_scikit_learn():
    params = fit(MultivariateGaussian("per-class", shrinkage="oas"))
    for c in range(3):
        np.testing.assert_allclose(params.covariance[c], sklearn_oas(X[c == LABELS])[0], rtol=1e-10)


def test_oas_shared_is_that_of_scikit_learn_on_residuals():
    expected = OAS(assume_centered=True).fit(residuals()).covariance_
    np.testing.assert_allclose(fit(MultivariateGaussian(shrinkage="oas")).covariance[0], expected, rtol=1e-10)


@BOTH
def test_inverse_wishart_prior(kind):
    """(Ψ + S) / (ν + n + d + 1)."""
    params = fit(MultivariateGaussian(kind, prior=InverseWishart(5.0, 0.4)))
    if kind == "shared":
        r = residuals()
        expected = [(0.4 * np.eye(3) + r.T @ r) / (5 + 60 + 3 + 1)]
    else:
        scatters = [20 * np.cov(X[c == LABELS].T, ddof=0) for c in range(3)]
        expected = [(0.4 * np.eye(3) + s) / (5 + 20 + 3 + 1) for s in scatters]
    np.testing.assert_allclose(params.covariance, expected, rtol=1e-12)


@BOTH
def test_rows_with_a_missing_value_are_left_out_and_counted(kind):
    with_missing = X.copy()
    with_missing[[4, 10], [1, 2]] = np.nan
    whole = ~np.isnan(with_missing).any(axis=1)
    params, expected = (
        fit(MultivariateGaussian(kind), with_missing),
        fit(MultivariateGaussian(kind), X[whole], LABELS[whole]),
    )
    np.testing.assert_allclose(params.covariance, expected.covariance, rtol=1e-12)
    assert params.skipped.tolist() == [0, 2, 0]
    tables = MultivariateGaussian(kind).describe(params, Context(tuple("xyz"), tuple("abc")))
    assert "missing" in tables[0].note
    assert "2" in tables[0].note


# ---- densities --------------------------------------------------------------------------------------------------


@BOTH
def test_log_density_is_that_of_scipy(kind):
    family = MultivariateGaussian(kind)
    params = fit(family)
    asked = RNG.normal(size=(30, 3)) * 3
    np.testing.assert_allclose(family.log_density(params, asked, 3), densities(params, asked), rtol=1e-12)


@BOTH
def test_one_column_is_a_gaussian(kind):
    family = MultivariateGaussian(kind)
    params = fit(family, X[:, :1])
    expected = stats.norm.logpdf(X[:, :1], params.mean[:, 0], np.sqrt(params.covariance[:, 0, 0]))
    np.testing.assert_allclose(family.log_density(params, X[:, :1], 3), expected, rtol=1e-12)


@BOTH
def test_a_row_with_a_missing_value_is_scored_by_the_marginal_of_what_it_has(kind):
    family = MultivariateGaussian(kind)
    params = fit(family)
    covariances = np.broadcast_to(params.covariance, (3, 3, 3))
    for kept in ([0], [2], [0, 1], [0, 2], [1, 2]):
        row = np.full(3, np.nan)
        row[kept] = [0.3, -1.2][: len(kept)]
        expected = [
            stats.multivariate_normal.logpdf(row[kept], params.mean[c, kept], covariances[c][np.ix_(kept, kept)])
            for c in range(3)
        ]
        around = np.stack([X[0], row, np.full(3, np.nan), X[1]])
        result = family.log_density(params, around, 3)
        np.testing.assert_allclose(result[1], expected, rtol=1e-12)
        assert result[2].tolist() == [0, 0, 0]
        np.testing.assert_allclose(result[[0, 3]], densities(params, X[:2]), rtol=1e-12)


def test_shared_covariance_makes_the_log_odds_linear():
    """w = Σ⁻¹(μ₁ − μ₀), b = −½(μ₁ᵀΣ⁻¹μ₁ − μ₀ᵀΣ⁻¹μ₀)."""
    family = MultivariateGaussian()
    params = fit(family)
    m0, m1 = params.mean[0], params.mean[1]
    inverse = np.linalg.inv(params.covariance[0])
    w, b = inverse @ (m1 - m0), -0.5 * (m1 @ inverse @ m1 - m0 @ inverse @ m0)
    result = family.log_density(params, X, 3)
    np.testing.assert_allclose(result[:, 1] - result[:, 0], X @ w + b, rtol=1e-9, atol=1e-9)


def test_single_precision_is_read_as_the_doubles_it_equals():
    family, x = MultivariateGaussian("per-class"), X.astype(np.float32)
    context = Context((0, 1, 2), tuple("abc"))
    single = family.estimate(family.collect(x, LABELS, None, 3), context)
    double = fit(family, x)
    assert np.array_equal(single.covariance, double.covariance)
    assert np.array_equal(family.log_density(single, x, 3), family.log_density(double, x.astype(np.float64), 3))


# ---- one row left out --------------------------------------------------------------------------------------------


def asked(family, x, labels, weights=None, classes=3):
    return family, x, labels, weights, Context(tuple(range(classes)), tuple(range(x.shape[1])))


def assert_left_out_is_refitted(*case, rows=slice(None), rtol=1e-10, atol=1e-10):
    result, expected = left_out(*asked(*case), rows), refitted(*asked(*case), rows=rows)
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=atol, err_msg=str(case[0]))


def refuse(self, fitted, rows, index, out):
    assert len(index) == 0, f"rows {index} have no closed form"


WISHART = InverseWishart(9.0, 0.7)
KINDS = [(kind, shrinkage) for kind in ("shared", "per-class") for shrinkage in (None, 0.3, "oas")]
SETTINGS = [(0, None), ("unbiased", None), (2.5, None), (0, WISHART)]  # ddof and prior
WEIGHTS = RNG.choice([0.3, 1.0, 2.0, 5.5], 30)
FEW, OF_FEW = X[:30], LABELS[:30]
SOME = [0, 3, 4, 8, 17, 19, 25]


def with_missing():
    x = FEW.copy()
    x[[3, 17, 20], [0, 2, 1]] = np.nan
    return x


TABLES = {  # values, labels, weights, classes
    "plain": (FEW, OF_FEW, None, 3),
    "weights": (FEW, OF_FEW, WEIGHTS, 3),
    "one class": (FEW, np.zeros(30, np.int32), WEIGHTS, 1),
    "one column": (FEW[:, [1]], OF_FEW, None, 3),
    "far from zero": (FEW + 1e6, OF_FEW, WEIGHTS, 3),
    "classes far apart": (FEW + 1e2 * OF_FEW[:, np.newaxis], OF_FEW, None, 3),
    "columns of different size": (FEW * [1e-6, 1.0, 1e6], OF_FEW, None, 3),
    "a constant column": (np.column_stack([FEW[:, 0], np.full(30, 0.1), FEW[:, 1:]]), OF_FEW, None, 3),
    "missing values": (with_missing(), OF_FEW, WEIGHTS, 3),
    "a class without rows": (FEW, OF_FEW, WEIGHTS, 4),
    "single precision": (FEW.astype(np.float32), OF_FEW, None, 3),
    "columns first": (np.asfortranarray(FEW), OF_FEW, None, 3),
    "far from its class": (FEW + 300.0 * (np.arange(30) == 4)[:, np.newaxis], OF_FEW, None, 3),
}


@pytest.mark.filterwarnings("ignore:singular covariance. columns")
def test_a_row_left_out_is_a_refit_in_closed_form(monkeypatch):
    empty = [("a class without rows", ("per-class", s), (0, WISHART)) for s in (None, 0.3)]
    for table, kind, settings in [*paired(TABLES, KINDS, SETTINGS), *empty]:
        with monkeypatch.context() as patch:
            if table != "far from its class":
                patch.setattr(MultivariateGaussian, "estimate_without", refuse)
            rounded = 1e-9 if table == "far from zero" else 1e-10  # a mean of 1e6 is known to 1e-10, also to a refit
            assert_left_out_is_refitted(MultivariateGaussian(*kind, *settings), *TABLES[table], rows=SOME, atol=rounded)


@pytest.mark.parametrize("shrinkage", [0.0, 1e-9, 1e-3, 1.0])
@BOTH
def test_little_and_much_shrinkage_leave_columns_their_digits(monkeypatch, kind, shrinkage):
    monkeypatch.setattr(MultivariateGaussian, "estimate_without", refuse)
    assert_left_out_is_refitted(MultivariateGaussian(kind, shrinkage), X * [1e-4, 1.0, 1e4], LABELS, rows=SOME)


def test_a_row_left_out_does_not_see_its_neighbours():
    for kind in KINDS:
        for settings in SETTINGS:
            case = asked(MultivariateGaussian(*kind, *settings), FEW, OF_FEW, WEIGHTS)
            whole = left_out(*case)
            for rows in (np.arange(1), RNG.permutation(30)[:20]):
                np.testing.assert_array_equal(left_out(*case, rows), whole[rows], err_msg=str(case[0]))


@BOTH
@pytest.mark.parametrize("settings", [{"shrinkage": 0.3}, {"shrinkage": "oas"}, {"prior": WISHART}], ids=str)
@pytest.mark.filterwarnings("ignore:singular covariance. columns")
def test_a_column_that_only_one_row_varies_in_is_constant_without_it(kind, settings):
    x = np.column_stack([X, np.full(60, 0.1)])
    x[33, 3] = 0.7
    assert_left_out_is_refitted(MultivariateGaussian(kind, **settings), x, LABELS, rows=[0, 1, 32, 33, 34, 36])


@BOTH
@pytest.mark.filterwarnings("ignore:singular covariance. columns")
def test_more_columns_than_rows_are_left_out_in_closed_form_under_shrinkage(monkeypatch, kind):
    monkeypatch.setattr(MultivariateGaussian, "estimate_without", refuse)
    x, labels = RNG.normal(size=(12, 20)), (np.arange(12) % 2).astype(np.int32)
    assert_left_out_is_refitted(MultivariateGaussian(kind, 0.3), x, labels, None, 2)


@BOTH
def test_a_singular_covariance_has_no_closed_form_and_says_so(kind):
    """Its widened direction is known to 1e-7 only: 1e-16 of rounding against 1e-9 of width."""
    case = asked(MultivariateGaussian(kind), np.column_stack([X[:, 0], X[:, 1], X[:, 0] + X[:, 1]]), LABELS)
    with pytest.warns(DecibanWarning) as caught:
        result = left_out(*case)
    assert [("estimates once for each row" in str(w.message)) for w in caught] == [False, True]
    assert "shrinkage" in str(caught[1].message)
    with pytest.warns(DecibanWarning):
        expected = refitted(*case, rows=SOME)
    np.testing.assert_allclose(result[SOME], expected, rtol=1e-6, atol=1e-5)


@pytest.mark.filterwarnings("ignore:singular covariance")
@BOTH
def test_the_row_that_leaves_its_class_with_one_row_or_none(kind):
    """Class 1 has two rows, class 2 one that is whole: without the other, the floor; without any, all together."""
    case = MultivariateGaussian(kind), X, np.array([0] * 57 + [1, 1, 2], np.int32)
    assert_left_out_is_refitted(*case, rows=np.array([0, 30]), rtol=1e-6, atol=0)
    assert_left_out_is_refitted(*case, rows=np.array([57, 58, 59]), atol=0)


# ---- little data, bad data --------------------------------------------------------------------------------------


def test_a_class_with_one_row_has_the_floor_for_a_covariance():
    x, labels = np.vstack([X[:20], [[5.0, 5.0, 5.0]]]), np.array([0] * 20 + [1])
    family = MultivariateGaussian("per-class")
    with pytest.warns(DecibanWarning, match="singular covariance: columns 'a', 'b', 'c'"):
        params = fit(family, x, labels, 2)
    assert params.mean[1].tolist() == [5.0, 5.0, 5.0]
    np.testing.assert_allclose(params.covariance[1], np.diag(1e-9 * x.var(axis=0)), rtol=1e-9, atol=1e-20)
    assert np.isfinite(family.log_density(params, x, 2)).all()


@BOTH
def test_a_class_with_no_row_is_like_all_together(kind):
    x, labels = np.vstack([X[:40], [[5.0, np.nan, 5.0]]]), np.array([*LABELS[:40] % 2, 2])
    params = fit(MultivariateGaussian(kind), x, labels, 3)
    np.testing.assert_allclose(params.mean[2], X[:40].mean(axis=0), rtol=1e-12)
    if kind == "per-class":
        np.testing.assert_allclose(params.covariance[2], np.cov(X[:40].T, ddof=0), rtol=1e-12)


@BOTH
def test_columns_that_are_combinations_of_others_are_named(kind):
    family = MultivariateGaussian(kind)
    x = np.column_stack([X[:, 0], X[:, 1], X[:, 0] - 2 * X[:, 1], RNG.normal(size=60)])
    with pytest.warns(DecibanWarning, match="columns 'a', 'b', 'c' are") as caught:
        params = fit(family, x)
    assert len(caught) == 1
    assert "singular" in params.status
    assert np.isfinite(family.log_density(params, x, 3)).all()
    assert np.isfinite(family.log_density(params, np.where(RNG.random(x.shape) < 0.3, np.nan, x), 3)).all()


@BOTH
@pytest.mark.parametrize("value", [0.1, 1e8 + 0.1, 5.0])
def test_a_constant_column_is_named_and_gives_no_evidence(kind, value):
    """Though what rounding leaves of it might look like a variance."""
    family = MultivariateGaussian(kind)
    labels = RNG.integers(0, 3, 60)  # classes of different size
    with pytest.warns(DecibanWarning, match="columns 'b' are constant"):
        params = fit(family, np.column_stack([X[:, 0], np.full(60, value), X[:, 1]]), labels)
    assert list(family.silent(params)) == [1]
    without = family.log_density(fit(family, X[:, :2], labels), X[:, :2], 3)
    for asked in (value, 1e6, np.nan):
        result = family.log_density(params, np.column_stack([X[:, 0], np.full(60, asked), X[:, 1]]), 3)
        np.testing.assert_allclose(result, without, rtol=1e-12)


@BOTH
@pytest.mark.parametrize("settings", [{"shrinkage": 0.2}, {"prior": InverseWishart(6.0, 1.0)}], ids=str)
def test_a_constant_column_gives_no_evidence_whatever_is_mixed_in(kind, settings):
    family = MultivariateGaussian(kind, **settings)
    params = quietly(family, np.column_stack([X[:, 0], np.full(60, 0.1), X[:, 1]]), RNG.integers(0, 3, 60))
    rows = np.column_stack([X[:, 0], np.full(60, 3.0), X[:, 1]])
    with_missing = np.column_stack([X[:, 0], np.full(60, np.nan), X[:, 1]])
    np.testing.assert_allclose(
        family.log_density(params, rows, 3), family.log_density(params, with_missing, 3), rtol=1e-12
    )


def test_a_sound_covariance_has_an_ok_status():
    assert fit(MultivariateGaussian()).status == "ok"


@BOTH
def test_nothing_at_all_is_no_nan(kind):
    family = MultivariateGaussian(kind)
    params = quietly(family, np.full((3, 2), np.nan), [0, 1, 2])
    assert np.isfinite(family.log_density(params, np.ones((1, 2)), 3)).all()


@pytest.mark.parametrize(
    "settings",
    [{"covariance": "round"}, {"shrinkage": "ledoit"}, {"shrinkage": 1.5}, {"shrinkage": -0.1}, {"ddof": "biased"}],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match=r"covariance|shrinkage|ddof"):
        MultivariateGaussian(**settings)


@pytest.mark.parametrize(("kind", "expected"), [("shared", 3 * 3 + 3 * 4 // 2), ("per-class", 3 * 3 + 3 * 3 * 4 // 2)])
def test_the_number_of_parameters(kind, expected):
    family = MultivariateGaussian(kind)
    assert family.n_parameters(fit(family)) == expected


@BOTH
def test_the_tables_show_means_and_covariances(kind):
    family = MultivariateGaussian(kind)
    tables = family.describe(fit(family), Context(tuple("xyz"), tuple("abc")))
    assert tables[0].header == ("class", "a", "b", "c")
    assert [row[0] for row in tables[0].rows] == ["x", "y", "z"]
    assert len(tables) == (2 if kind == "shared" else 4)
