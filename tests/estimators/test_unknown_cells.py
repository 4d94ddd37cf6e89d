"""Unknown cells of new rows, missing or with values never seen, say nothing: what is known decides."""

import numpy as np
import pandas as pd
import pytest

import deciban as db

pytestmark = pytest.mark.filterwarnings("ignore::deciban.errors.DecibanWarning")

UNKNOWN = ("zzz", None)
NEW = 50


def decibans(proba):
    """Of each class against all others."""
    return 10.0 * (np.log10(proba) - np.log10(1.0 - proba))


def apart(one, other):
    """(n) the largest difference of a row, in decibans."""
    return np.abs(decibans(one) - decibans(other)).max(axis=1)


def spread(low, high, count):
    """Whole numbers from low to high, each by the same factor larger than the one before."""
    return np.geomspace(low, high, count).round().astype(int).tolist()


# One column
def one_column(seed, levels, n, classes, missing=0.0):
    """A category and a number that are more or less informative."""
    rng = np.random.default_rng(seed)
    value = rng.integers(0, levels, n)
    tilt = np.exp(rng.normal(0, rng.choice([0.3, 1.0, 3.0]), (levels, classes)))
    y = (rng.random(n)[:, np.newaxis] > np.cumsum(tilt / tilt.sum(axis=1, keepdims=True), axis=1)[value]).sum(axis=1)
    absent = rng.random(n) < missing
    category = np.where(absent, None, np.char.add("v", value.astype(str)).astype(object))
    return category, np.where(absent, np.nan, rng.normal(y, 1.0)), y


CASES = [
    (seed, levels, n, 2 + seed % 2)
    for seed, (levels, n) in enumerate(zip(spread(2, 50, 6), [300, 40, 80, 200, 150, 400], strict=True))
]


@pytest.mark.parametrize(("seed", "levels", "n", "classes"), CASES)
def test_an_unknown_cell_of_the_only_column_leaves_the_class_prior(seed, levels, n, classes):
    category, number, y = one_column(seed, levels, n, classes)
    prior = np.unique(y, return_counts=True)[1] / n
    by_value = db.EvidenceClassifier(trees=8).fit(pd.DataFrame({"c": category}), y)
    by_size = db.EvidenceClassifier(trees=8).fit(pd.DataFrame({"c": number}), y)
    assert by_value.predict_proba(pd.DataFrame({"c": category})).std() > 0 or not by_value.weights_.values.any()
    unknown = pd.DataFrame({"c": pd.Series(UNKNOWN, dtype=object)})
    assert apart(by_value.predict_proba(unknown), prior).max() < 0.5
    assert apart(by_size.predict_proba(pd.DataFrame({"c": [np.nan]})), prior).max() < 0.5


def test_missing_cells_that_do_not_depend_on_the_class_leave_the_prior_in_the_mean():
    """Cells were missing in the fit as well, so that they are evidence, of noise: 0.5 decibans in the mean."""
    actual = []
    for seed, levels, n, classes in CASES:
        category, number, y = one_column(seed, levels, n, classes, missing=0.15)
        prior = np.unique(y, return_counts=True)[1] / n
        for column, cell in ((category, None), (number, np.nan)):
            model = db.EvidenceClassifier(trees=8).fit(pd.DataFrame({"c": column}), y)
            actual.append(apart(model.predict_proba(pd.DataFrame({"c": pd.Series([cell], dtype=column.dtype)})), prior))
        unseen = db.EvidenceClassifier(trees=8).fit(pd.DataFrame({"c": category}), y)
        assert apart(unseen.predict_proba(pd.DataFrame({"c": ["zzz"]})), prior).max() < 0.5
    assert np.mean(actual) < 0.5


# Several columns
def with_noise(seed, levels, n):
    """A column of noise, c, beside two or three informative ones."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    mostly = np.where(rng.random(n) < 0.5, y, rng.integers(0, 3, n))
    table = pd.DataFrame(
        {
            "x": rng.normal(y, 1.0),
            "c": np.char.add("v", rng.integers(0, levels, n).astype(str)).astype(object),
            "d": np.array(["u", "v", "w"])[mostly],
        }
    )
    return (table.assign(z=rng.normal(0.5 * y, 1.0)) if seed % 2 else table), y


@pytest.fixture(scope="module")
def fitted():
    """For each table: a model of all columns, one fitted without c, and new rows."""
    actual = []
    for seed, (levels, n) in enumerate(zip(spread(2, 50, 12)[::-1], spread(40, 600, 12), strict=True)):
        X, y = with_noise(seed, levels, n)
        whole, without = (db.EvidenceClassifier().fit(table, y) for table in (X, X.drop(columns="c")))
        actual.append((whole, without, with_noise(100 + seed, levels, NEW)[0]))
    return actual


def unknown_in(rows, cell):
    return rows.assign(c=pd.Series([cell] * len(rows), dtype=object))


@pytest.mark.parametrize("cell", UNKNOWN)
def test_rows_whose_column_of_noise_is_unknown_are_scored_as_without_it(fitted, cell):
    """In the mean, and in most tables: with the noise, cross-validation may believe other candidates.

    They are nearer to the model without the column than rows whose noise is known.
    """
    differences, known = [], []
    for whole, without, rows in fitted:
        expected = without.predict_proba(rows.drop(columns="c"))
        differences.append(apart(whole.predict_proba(unknown_in(rows, cell)), expected))
        known.append(apart(whole.predict_proba(rows), expected))
    means, largest = np.mean(differences, axis=1), np.max(differences, axis=1)
    assert means.mean() < 0.5
    assert (means < 0.5).mean() >= 0.75
    assert (largest < 2.0).mean() >= 0.75
    assert means.mean() < np.mean(known)


@pytest.mark.parametrize("cell", UNKNOWN)
def test_an_unknown_column_adds_nothing_and_lines_sum_to_the_log_odds(fitted, cell):
    for whole, _, rows in fitted:
        given = unknown_in(rows, cell)
        explained, log_proba = whole.explain(given), whole.predict_log_proba(given)
        assert not explained.nats[:, list(explained.names).index("c")].any()
        nats = explained.nats.sum(axis=1)
        np.testing.assert_allclose(nats[:, 1] - nats[:, 0], log_proba[:, 1] - log_proba[:, 0], rtol=1e-9, atol=1e-9)
        by_pair = whole.explain(given, by="pair").nats.sum(axis=1)
        np.testing.assert_allclose(by_pair[:, 1] - by_pair[:, 0], nats[:, 1] - nats[:, 0], rtol=1e-9, atol=1e-9)


def test_a_value_never_seen_is_as_a_missing_cell_where_none_was_missing(fitted):
    for whole, _, rows in fitted:
        one, other = (whole.predict_proba(unknown_in(rows, cell)) for cell in UNKNOWN)
        np.testing.assert_array_equal(one, other)


def test_rows_of_which_nothing_is_known_have_the_class_prior(fitted):
    for whole, _, rows in fitted:
        nothing = rows[:1].astype(object).mask(rows[:1].notna(), None).astype({"x": float, "c": object, "d": object})
        nothing = nothing.astype({"z": float}) if "z" in nothing else nothing
        prior = whole.generative_.counts.value / whole.generative_.counts.value.sum()
        assert apart(whole.predict_proba(nothing), prior).max() < 0.5


def test_merged_models_have_the_mean_of_the_changes_of_unknown_columns(fitted):
    """Of a model and itself, those that it has, to the last bit."""
    one, _, rows = fitted[-1]
    X, y = with_noise(51, 5, 300)
    other = one.empty_copy().partial_fit(X, y).refit_weights(X, y)
    for merged, both in ((one + one, (one, one)), (one + other, (one, other))):
        unknown = merged.weights_.unknown
        assert {*unknown.names} == {name for model in both for name in model.weights_.unknown.names}
        counts = np.array([model.generative_.counts.value for model in both])
        for c, name in enumerate(unknown.names):
            expected = np.zeros((len(merged.weights_.kinds), 2))
            for model, share in zip(both, counts / counts.sum(axis=0), strict=True):
                weights = model.weights_
                for p, key in enumerate(weights.keys) if name in weights.unknown.names else ():
                    change = weights.unknown.values[weights.unknown.names.index(name), p]
                    expected[merged.weights_.keys.index(key)] += share * change
            np.testing.assert_allclose(unknown.values[c], expected, rtol=1e-12, atol=1e-15)
    same = (one + one).weights_.unknown
    for name in ("values", "bias", "fold_values", "fold_bias"):
        assert getattr(same, name).tobytes() == getattr(one.weights_.unknown, name).tobytes()
    nothing = unknown_in(rows, None)
    np.testing.assert_allclose((one + one).predict_proba(nothing).sum(axis=1), 1.0, rtol=1e-12)


def test_the_intercept_where_one_of_several_columns_is_unknown_is_that_of_a_fit_without_it():
    """Also where this column is so informative that the others are hardly needed beside it."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 300)
    X = rng.normal(y[:, np.newaxis], [1.0, 2.0, 3.0, 5.0, 0.05])
    model = db.EvidenceClassifier(trees=8).fit(X, y)
    unknown = model.weights_.unknown
    at = unknown.names.index(4)
    rows = X[:20].copy()
    rows[:, 4] = np.nan
    explained = model.explain(rows)
    actual = explained.nats[:, list(explained.names).index("intercept")]
    expected = model.weights_.bias + unknown.bias[at]
    np.testing.assert_allclose(
        actual - actual.mean(axis=1, keepdims=True), np.tile(expected - expected.mean(), (20, 1))
    )
    assert np.abs(expected).max() > 0.01


def test_known_columns_that_repeat_an_unknown_one_take_its_weight():
    """Two columns hold the same, and one of them says as much as in a model that has only it."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    code = np.array(["u", "v", "w"])[np.where(rng.random(600) < 0.5, y, rng.integers(0, 3, 600))]
    X = pd.DataFrame({"a": code, "b": np.char.upper(code), "x": rng.normal(y, 1.5)})
    whole = db.EvidenceClassifier(trees=0).fit(X, y)
    expected = db.EvidenceClassifier(trees=0).fit(X[["b", "x"]], y).predict_proba(X[["b", "x"]])
    for given in (X, X.assign(a="zzz"), X.assign(a=None)):
        assert apart(whole.predict_proba(given), expected).mean() < 0.5
