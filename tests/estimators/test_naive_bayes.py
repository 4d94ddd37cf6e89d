"""NaiveBayes over mixed tables: every way of feeding the same rows gives the same model."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax, logsumexp
from scipy.stats import bernoulli, expon, multivariate_normal, norm, poisson

import deciban as db
import deciban.data.frames
from deciban import families as f
from tests.laws import flattened

EXACT = 1e-12
N, K = 60, 3


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture
def people(rng):
    """Every kind of column, with missing values."""
    labels = np.repeat(["ham", "spam", "eggs"], N // 3)
    shift = np.repeat([0.0, 1.5, 3.0], N // 3)
    table = pd.DataFrame(
        {
            "height": rng.normal(shift),
            "weight": rng.normal(2 * shift, 2.0),
            "colour": rng.choice(["red", "green", "blue"], N),
            "rank": rng.integers(1, 5, N),
            "member": rng.random(N) < 0.3 + 0.1 * shift,
            "visits": rng.poisson(1 + shift),
            "wait": rng.exponential(1 + shift),
            "spread": rng.uniform(0, 1 + shift),
            "label": labels,
        }
    )
    table["colour"] = table["colour"].mask(rng.random(N) < 0.1)
    table["weight"] = table["weight"].mask(rng.random(N) < 0.1)
    return table.sample(frac=1, random_state=3, ignore_index=True)


FAMILIES = {
    "rank": f.Categorical(),
    "visits": f.Poisson(),
    "wait": f.Exponential(),
    "spread": f.Binned("equal-frequency", count=4),
}


@pytest.fixture
def mixed():
    return db.NaiveBayes(FAMILIES)


def same_bits(a, b, rows):
    """Two models that nobody can tell apart."""
    assert a.classes_.tolist() == b.classes_.tolist()
    np.testing.assert_array_equal(a.class_count_, b.class_count_)
    for one, other in zip(a.generative_.blocks, b.generative_.blocks, strict=True):
        arrays = flattened(other.statistic)
        for name, array in flattened(one.statistic).items():
            np.testing.assert_array_equal(array, arrays[name], strict=True)
    np.testing.assert_array_equal(a.predict_proba(rows), b.predict_proba(rows))


# What the model says
def test_joint_is_the_sum_of_textbook_log_densities(mixed, people):
    """Each density by scipy, each estimate by pandas, one column at a time."""
    mixed.set_params(families=FAMILIES | {"spread": f.Gaussian(ddof=1)}).fit(people, "label")
    rows, expected = people.head(20), []
    for label in mixed.classes_:
        of = people[people["label"] == label]
        total = np.full(20, np.log(len(of) / N))
        total += norm.logpdf(rows["height"], of["height"].mean(), of["height"].std(ddof=0))
        total += np.nan_to_num(norm.logpdf(rows["weight"], of["weight"].mean(), of["weight"].std(ddof=0)))
        total += norm.logpdf(rows["spread"], of["spread"].mean(), of["spread"].std(ddof=1))
        total += poisson.logpmf(rows["visits"], of["visits"].mean())
        total += expon.logpdf(rows["wait"], scale=of["wait"].mean())
        total += bernoulli.logpmf(rows["member"], (of["member"].sum() + 1) / (len(of) + 2))
        for name in ("colour", "rank"):
            values = people[name].dropna().unique()
            share = (of[name].value_counts().reindex(values, fill_value=0) + 1) / (of[name].count() + len(values))
            total += np.nan_to_num(np.log(rows[name].map(share).astype(float)))
        expected.append(total)
    expected = np.transpose(expected)
    np.testing.assert_allclose(mixed.predict_joint_log_proba(rows), expected, rtol=EXACT)
    np.testing.assert_allclose(mixed.predict_log_proba(rows), log_softmax(expected, axis=1), rtol=1e-11, atol=1e-13)


def test_predictions_agree_with_each_other(mixed, people):
    mixed.fit(people, "label")
    joint, logs = mixed.predict_joint_log_proba(people), mixed.predict_log_proba(people)
    np.testing.assert_allclose(logs, joint - logsumexp(joint, axis=1, keepdims=True), rtol=EXACT, atol=1e-14)
    np.testing.assert_allclose(mixed.predict_proba(people), np.exp(logs), rtol=EXACT)
    np.testing.assert_array_equal(mixed.predict(people), mixed.classes_[joint.argmax(axis=1)])


def test_columns_not_named_are_typed(people):
    model = db.NaiveBayes().fit(people, "label")
    titles = [table.title for table in model.summary().tables[2:]]
    kinds = {title.split(" (")[0]: title.split(" (")[1].rstrip(")") for title in titles}
    assert kinds == {
        "height": "Gaussian",
        "weight": "Gaussian",
        "colour": "Categorical",
        "rank": "Gaussian",
        "member": "Bernoulli",
        "visits": "Gaussian",
        "wait": "Gaussian",
        "spread": "Gaussian",
    }


def test_keys_of_families_are_names_positions_or_tuples_of_them(people):
    x = people[["height", "wait", "visits"]]
    pair, poisson_ = f.MultivariateGaussian(), f.Poisson()
    by_name = db.NaiveBayes({("height", "wait"): pair, "visits": poisson_}).fit(x, people["label"])
    by_place = db.NaiveBayes({(0, 1): pair, -1: poisson_}).fit(x, people["label"])
    array = db.NaiveBayes({(0, 1): pair, 2: poisson_}).fit(x.to_numpy(), people["label"])
    same_bits(by_name, by_place, x)
    np.testing.assert_array_equal(by_name.predict_proba(x), array.predict_proba(x.to_numpy()))


def test_equal_families_with_other_tables_of_virtual_examples_stay_apart():
    x = pd.DataFrame({"a": list("uvuv"), "b": list("uvuv")})
    one, other = [[0.5, 0.0], [0.0, 0.5]], [[0.0, 0.5], [0.5, 0.0]]
    families = {name: f.Categorical(db.priors.Virtual(2, q)) for name, q in (("a", one), ("b", other))}
    a, b = db.NaiveBayes(families).fit(x, [0, 1, 0, 1]).summary().tables[2:]
    assert a.rows != b.rows


# Labels
def test_labels_of_any_type_are_learned_and_predicted():
    for labels, classes in [
        (["b", "a"] * 3, ["a", "b"]),
        (np.array(["b", "a"] * 3), ["a", "b"]),
        (np.array(["b", "a"] * 3, dtype=object), ["a", "b"]),
        ([7, -3] * 3, [-3, 7]),
        (np.array([7, 3] * 3, dtype=np.uint8), [3, 7]),
        ([2**40, 3] * 3, [3, 2**40]),
        ([True, False] * 3, [False, True]),
        (np.array([2.0, 1.0] * 3), [1.0, 2.0]),
        ([2.0, 1.0] * 3, [1, 2]),
        (pd.Series(["b", "a"] * 3, index=list("uvwxyz")), ["a", "b"]),
        (pd.Series([2.0, 1.0] * 3), [1, 2]),
        (pd.Categorical(["b", "a"] * 3, categories=["c", "b", "a"]), ["a", "b"]),
        (pd.Series([2, 1] * 3, dtype="Int64"), [1, 2]),
        (pl.Series(["b", "a"] * 3), ["a", "b"]),
        (pl.Series(["b", "a"] * 3, dtype=pl.Categorical), ["a", "b"]),
        (pl.Series(["b", "a"] * 3, dtype=pl.Enum(["b", "c", "a"])), ["a", "b"]),
        (pl.Series([True, False] * 3), [False, True]),
        (pa.array(["b", "a"] * 3).dictionary_encode(), ["a", "b"]),
        (pa.chunked_array([["b", "a"], ["b", "a", "b", "a"]]), ["a", "b"]),
    ]:
        model = db.NaiveBayes().fit([[1.0], [0.0]] * 3, labels)
        assert model.classes_.tolist() == classes
        assert model.predict([[1.0], [0.0]]).tolist() == classes[::-1]
        assert model.score([[1.0], [0.0]] * 3, labels) == 1


def test_a_label_column_is_the_same_as_an_array(mixed, people):
    x, y = people.drop(columns="label"), people["label"].to_numpy()
    by_array = db.NaiveBayes(FAMILIES).fit(x, y)
    for table in (people, pl.from_pandas(people), pa.Table.from_pandas(people)):
        same_bits(mixed.fit(table, "label"), by_array, x)
        assert mixed.feature_names_in_.tolist() == x.columns.tolist()


def test_classes_keep_the_type_of_the_first_labels_while_it_holds_them():
    model = db.NaiveBayes().fit([[0.0], [1.0]], np.array([1, 2], dtype=np.int8))
    assert model.classes_.dtype == np.int8
    assert model.partial_fit([[2.0]], [300]).classes_.tolist() == [1, 2, 300]
    assert model.partial_fit([[2.0]], ["new"]).classes_.tolist() == [1, 2, 300, "new"]


# Rows in other forms
FORMS = {
    "float32": lambda x: x.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "read-only": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
    "every other row and column": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed twice": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda x: x.astype(">f8"),
    "float16": lambda x: x.astype(np.float16),
    "longdouble": lambda x: x.astype(np.longdouble),
    "integers": lambda x: x.astype(np.int64),
    "short integers": lambda x: x.astype(np.uint16),
    "list": lambda x: x.tolist(),
    "object": lambda x: x.astype(object),
    "sparse": sp.csr_array,
    "sparse matrix, by column": sp.csc_matrix,
    "pandas": pd.DataFrame,
    "polars": lambda x: pl.DataFrame({str(j): x[:, j] for j in range(x.shape[1])}),
}


@pytest.mark.parametrize(
    "family",
    [
        f.Gaussian(),
        f.Poisson(),
        f.Binned("equal-width"),
        f.Categorical(),
        f.Bernoulli(threshold=2.5),
        f.Multinomial(),
        f.MultivariateGaussian("shared"),
        f.MultivariateGaussian("per-class"),
    ],
    ids=str,
)
def test_the_form_of_the_array_does_not_matter(rng, family):
    x = rng.integers(0, 6, (30, 4)).astype(float)
    y = np.arange(30) % K
    expected = db.NaiveBayes(family).fit(x, y).predict_proba(x)
    for name, form in FORMS.items():
        posterior = db.NaiveBayes(family).fit(form(x), y).predict_proba(form(x))
        np.testing.assert_allclose(posterior, expected, rtol=1e-10, atol=1e-13, err_msg=name)


def test_float32_is_read_as_the_doubles_it_holds(rng):
    x = rng.normal(size=(50, 3)).astype(np.float32)
    y, doubles = np.arange(50) % K, x.astype(np.float64)
    for family in (f.Gaussian(), f.Categorical(), f.MultivariateGaussian()):
        expected = db.NaiveBayes(family).fit(doubles, y).predict_proba(doubles)
        np.testing.assert_allclose(db.NaiveBayes(family).fit(x, y).predict_proba(x), expected, rtol=1e-12)


# Weights, batches, merging, forgetting
def test_weights_equal_repeated_rows(mixed, people):
    times = np.arange(N) % 4
    repeated = db.NaiveBayes(FAMILIES).fit(people.loc[people.index.repeat(times)], "label")
    same_bits(mixed.fit(people, "label", sample_weight=times), repeated, people)


def test_rows_of_weight_zero_are_absent(mixed, people):
    weights = (people["label"] != "ham").astype(float)
    present = db.NaiveBayes(FAMILIES).fit(people[people["label"] != "ham"], "label")
    same_bits(mixed.fit(people, "label", sample_weight=weights), present, people)


def test_a_whole_batch_of_weight_zero_is_absent(monkeypatch, rng):
    monkeypatch.setattr(deciban.data.frames, "CELLS_PER_BATCH", 8)
    x, y, weights = rng.integers(1, 4, (12, 2)) * 1.0, np.arange(12) % K, np.repeat([1.0, 0.0, 1.0], 4)
    kept = weights > 0
    for family in (f.Gaussian(), f.Categorical(), f.Binned(), f.Uniform()):
        same_bits(db.NaiveBayes(family).fit(x, y, weights), db.NaiveBayes(family).fit(x[kept], y[kept]), x)


@pytest.mark.parametrize("size", [1, 7, 59])
def test_partial_fits_equal_one_fit_whatever_the_batches(people, size):
    model = db.NaiveBayes(FAMILIES)
    for start in range(0, N, size):
        model.partial_fit(people[start : start + size], "label")
    same_bits(model, db.NaiveBayes(FAMILIES).fit(people, "label"), people)


def test_new_classes_and_categories_are_welcome(mixed, people):
    by_class = people.sort_values("label", ignore_index=True)
    first, rest = by_class[:25], by_class[25:]
    assert set(rest["label"]) - set(first["label"])
    first, rest = first[first["colour"] != "red"], rest[rest["colour"] == "red"]
    mixed.fit(first, "label").partial_fit(rest, "label")
    assert mixed.classes_.tolist() == ["eggs", "ham", "spam"]
    same_bits(mixed, db.NaiveBayes(FAMILIES).fit(pd.concat([first, rest]), "label"), people)


def test_partial_fit_takes_the_classes_that_scikit_learn_gives(people):
    model = db.NaiveBayes().partial_fit(people.drop(columns="label"), people["label"], classes=["eggs", "ham", "spam"])
    same_bits(model, db.NaiveBayes().fit(people, "label"), people)


def test_merged_models_equal_one_fit_in_either_order(people):
    parts = [people[people["label"] == label] for label in ("ham", "eggs", "spam")]
    a, b, c = (db.NaiveBayes(FAMILIES).fit(part, "label") for part in parts)
    whole = db.NaiveBayes(FAMILIES).fit(people, "label")
    for merged in (a + b + c, c + b + a, a + (b + c), b.merge(c).merge(a)):
        same_bits(merged, whole, people)
    assert (a.classes_.tolist(), b.classes_.tolist()) == (["ham"], ["eggs"])
    assert (a + b).feature_names_in_.tolist() == whole.feature_names_in_.tolist()
    assert (a + b).get_params() == a.get_params()


def test_forgotten_rows_were_never_learned(mixed, people):
    kept = people[people["label"] != "eggs"][:30]
    gone = people.drop(index=kept.index)
    mixed.fit(people, "label").forget(gone, "label")
    same_bits(mixed, db.NaiveBayes(FAMILIES).fit(kept, "label"), people)


def test_rows_learned_twice_are_forgotten_once(mixed, people):
    mixed.fit(people, "label").partial_fit(people, "label").forget(people, "label")
    same_bits(mixed, db.NaiveBayes(FAMILIES).fit(people, "label"), people)


def test_weighted_rows_are_forgotten_with_their_weights(mixed, people, rng):
    weights = rng.random(N)
    mixed.fit(people, "label", sample_weight=weights)
    mixed.forget(people[:20], "label", sample_weight=weights[:20])
    same_bits(mixed, db.NaiveBayes(FAMILIES).fit(people[20:], "label", sample_weight=weights[20:]), people)


@pytest.mark.parametrize("cells", [9, 100])
def test_batch_boundaries_change_no_bit(monkeypatch, mixed, people, cells):
    mixed.set_params(families=FAMILIES | {"spread": f.Uniform()}).fit(people, "label")
    expected = [mixed.predict_proba(people), mixed.predict_log_proba(people), mixed.predict_joint_log_proba(people)]
    labels = mixed.predict(people)
    monkeypatch.setattr(deciban.data.frames, "CELLS_PER_BATCH", cells)
    same_bits(db.NaiveBayes(mixed.families).fit(people, "label"), mixed, people)
    got = [mixed.predict_proba(people), mixed.predict_log_proba(people), mixed.predict_joint_log_proba(people)]
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(mixed.predict(people), labels)


@pytest.mark.parametrize("order", ["C", "F"])
def test_batch_boundaries_change_no_bit_of_an_array(monkeypatch, rng, order):
    x = np.asarray(rng.integers(0, 9, (120, 5)) * 1.0, order=order)
    x[rng.random(x.shape) < 0.05] = np.nan
    y = rng.integers(0, 7, 120)
    families = [f.Gaussian(), f.Categorical(), f.Bernoulli(threshold=2), f.Poisson(), f.Binned(), f.Multinomial()]
    models = [db.NaiveBayes(family).fit(x, y) for family in families]
    expected = [model.predict_proba(x) for model in models]
    monkeypatch.setattr(deciban.data.frames, "CELLS_PER_BATCH", 5 * 17)
    for family, model, proba in zip(families, models, expected, strict=True):
        np.testing.assert_array_equal(model.predict_proba(x), proba)
        same_bits(db.NaiveBayes(family).fit(x, y), model, x)


# Settings that may change after the fit
def test_a_setting_changed_after_the_fit_acts_without_data(people):
    people = people[people["colour"].notna()]
    for change in [
        {"smoothing": 0.0},
        {"smoothing": 5.0},
        {"class_prior": "laplace"},
        {"class_prior": "uniform"},
        {"class_prior": [0.2, 0.3, 0.5]},
        {"class_prior": np.array([0.2, 0.3, 0.5])},
        {"class_prior": {"spam": 0.5, "ham": 0.3, "eggs": 0.2}},
        {"unseen": "reserve"},
    ]:
        model = db.NaiveBayes().fit(people, "label")
        before = model.predict_proba(people)
        fresh = db.NaiveBayes(**change).fit(people, "label")
        np.testing.assert_array_equal(model.set_params(**change).predict_proba(people), fresh.predict_proba(people))
        assert model.n_parameters_ == fresh.n_parameters_
        assert not np.array_equal(model.predict_proba(people), before), change


# Missing as a value
def test_absence_may_be_a_value_of_its_own():
    """a: (u, u, None), (v, None, None); (k + 1)/(3 + 3) each. b: present 3 of 3 and 1 of 3; (k + 1)/(3 + 2)."""
    table = pd.DataFrame({"a": ["u", "u", None, "v", None, None], "b": [1.0, 2.0, 3.0, 2.0, None, None]})
    model = db.NaiveBayes(missing="category").fit(table, list("nnnyyy"))
    asked = pd.DataFrame({"a": [None, "u"], "b": [None, None]}).astype({"a": object, "b": float})
    a = np.array([[2 / 6, 3 / 6], [3 / 6, 1 / 6]])
    b = np.array([1 / 5, 3 / 5])
    np.testing.assert_allclose(np.exp(model.predict_joint_log_proba(asked)), 0.5 * a * b, rtol=EXACT)
    titles = [t.title for t in model.summary().tables]
    assert "b is missing (Bernoulli)" in titles
    assert "missing" in next(t for t in model.summary().tables if t.title == "a (Categorical)").header


def test_absence_never_learned_is_an_unseen_category():
    table = pd.DataFrame({"a": list("uuvuvv")})
    model = db.NaiveBayes(missing="category").fit(table, list("nnnyyy"))
    np.testing.assert_allclose(model.predict_proba(pd.DataFrame({"a": [None]}, dtype=object)), [[0.5, 0.5]])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_absence_as_a_value_adds_up_over_batches(make):
    columns = {"a": ["u", None, "v", "u", None, "v"], "b": [None, 1.0, 2.0, 3.0, None, 5.0]}
    y = list("nynyny")
    whole = db.NaiveBayes(missing="category").fit(make(columns), y)
    model = db.NaiveBayes(missing="category")
    for i in range(0, 6, 2):
        model.partial_fit(make({name: values[i : i + 2] for name, values in columns.items()}), y[i : i + 2])
    same_bits(model, whole, make(columns))


# Wide rows, long documents
@pytest.mark.parametrize("family", [f.Gaussian(), f.Bernoulli()], ids=str)
def test_8192_columns_and_10_classes_stay_finite(rng, family):
    y = np.arange(40) % 10
    x = (rng.random((40, 8_192)) < 0.02 + 0.01 * y[:, np.newaxis]).astype(np.float32)
    model = db.NaiveBayes(family).fit(x, y)
    for logs in (model.predict_log_proba(x), model.predict_joint_log_proba(x)):
        assert np.isfinite(logs).all()
    posterior = model.predict_proba(x)
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)
    assert model.score(x, y) == 1


@pytest.mark.parametrize("as_form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_documents_of_20000_words_stay_finite(rng, as_form):
    y = np.arange(12) % 3
    share = rng.dirichlet(np.ones(1_000), 3)
    x = np.stack([rng.multinomial(20_000, share[c]) for c in y]).astype(float)
    model = db.NaiveBayes(f.Multinomial()).fit(as_form(x), y)
    logs = model.predict_log_proba(as_form(x))
    assert np.isfinite(logs).all()
    assert logs.min() < -1000
    np.testing.assert_allclose(model.predict_proba(as_form(x)).sum(axis=1), 1, rtol=1e-12)
    assert model.score(as_form(x), y) == 1


def test_doubled_entries_of_sparse_rows_add():
    doubled = sp.coo_array((np.ones(4), (np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]))), shape=(2, 2))
    plain = db.NaiveBayes(f.Multinomial()).fit(doubled.toarray(), [0, 1])
    same_bits(db.NaiveBayes().fit(doubled, [0, 1]), plain, np.eye(2))


# Joint blocks
@pytest.fixture
def block(people):
    return db.NaiveBayes({("height", "weight"): f.MultivariateGaussian("per-class", ddof=1)}).fit(people, "label")


def test_a_joint_block_learns_from_complete_rows_and_reports_the_others(block, people):
    missing = int(people["weight"].isna().sum())
    assert missing > 0
    means = next(t for t in block.summary().tables if t.title == "means (MultivariateGaussian)")
    assert re.search(rf"\b{missing}\b", means.note)
    assert "missing value" in means.note
    complete = people.dropna(subset=["height", "weight"])
    expected = complete.groupby("label")[["height", "weight"]].mean()
    np.testing.assert_allclose([row[1:] for row in means.rows], expected.to_numpy(), rtol=EXACT)
    assert means.note in str(block.summary())


def test_a_joint_block_scores_an_incomplete_row_by_the_marginal(people):
    x, y = people[["height", "weight", "wait"]], people["label"]
    columns = ["height", "weight", "wait"]
    complete = x.dropna()
    asked = x.head(8).copy()
    asked.loc[0, "height"] = np.nan
    asked.loc[1, ["height", "wait"]] = np.nan
    asked.loc[2, columns] = np.nan
    for covariance in ("shared", "per-class"):
        model = db.NaiveBayes({tuple(columns): f.MultivariateGaussian(covariance)}).fit(x, y)
        centred = complete - complete.groupby(y).transform("mean")
        for c, label in enumerate(model.classes_):
            of = complete[y[complete.index] == label]
            spread = centred if covariance == "shared" else of - of.mean()
            sigma = spread.T.dot(spread).to_numpy() / len(spread)
            for i, row in enumerate(asked.to_numpy()):
                has = ~np.isnan(row)
                marginal = (
                    multivariate_normal(of.mean().to_numpy()[has], sigma[np.ix_(has, has)]).logpdf(row[has])
                    if has.any()
                    else 0.0
                )
                joint = model.predict_joint_log_proba(asked)[i, c]
                assert joint == pytest.approx(np.log((y == label).mean()) + marginal, rel=1e-11)


def test_a_joint_block_stands_beside_other_columns(block, people):
    alone = db.NaiveBayes({("height", "weight"): f.MultivariateGaussian("per-class", ddof=1)})
    alone.fit(people[["height", "weight", "label"]], "label")
    others = db.NaiveBayes().fit(people.drop(columns=["height", "weight"]), "label")
    expected = (
        alone.predict_joint_log_proba(people) + others.predict_joint_log_proba(people) - np.log(block.class_count_ / N)
    )
    np.testing.assert_allclose(block.predict_joint_log_proba(people), expected, rtol=1e-11)


def test_models_merge_by_the_names_of_their_columns():
    x = pd.DataFrame({"a": list("uvuvw"), "b": [1.0, 2.0, 4.0, np.nan, 8.0], "c": [True, False, True, True, False]})
    y = ["p", "q", "p", "q", "p"]
    whole = db.NaiveBayes({"b": f.Exponential()}).fit(x, y)
    first = db.NaiveBayes({"b": f.Exponential()}).fit(x[:3], y[:3])
    second = db.NaiveBayes({"b": f.Exponential()}).fit(x[["c", "b", "a"]][3:], y[3:])
    for merged in (first + second, second + first):
        np.testing.assert_array_equal(merged.predict_joint_log_proba(x), whole.predict_joint_log_proba(x))


def test_joint_blocks_merge_by_the_names_of_their_columns(rng):
    x = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    y = np.arange(40) % 2
    whole = db.GaussianDiscriminant("per-class").fit(x, y)
    first = db.GaussianDiscriminant("per-class").fit(x[:25], y[:25])
    second = db.GaussianDiscriminant("per-class").fit(x[["c", "a", "b"]][25:], y[25:])
    np.testing.assert_allclose((first + second).predict_proba(x), whole.predict_proba(x), rtol=1e-10)


def test_models_are_summed():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    for kind in (db.NaiveBayes, db.GaussianDiscriminant):
        parts = [kind().fit(X[i::3], y[i::3]) for i in range(3)]
        total = sum(parts)
        np.testing.assert_allclose(total.predict_proba(X), kind().fit(X, y).predict_proba(X), rtol=1e-12)
        alone = sum(parts[:1])
        alone.partial_fit(X, y)
        assert parts[0].class_count_.sum() == 20
        for other in (1, 0.5, "0"):
            with pytest.raises(TypeError):
                other + parts[0]


def test_a_blank_learns_as_the_model_did():
    X, y = np.array([[1.0, "a"], [2.0, "b"], [3.5, "a"], [None, "c"]], dtype=object), np.array(["x", "y", "x", "y"])
    model = db.NaiveBayes({0: db.families.Poisson()}, smoothing=0.5, missing="category")
    with pytest.raises(ValueError, match="fit"):
        model.empty_copy()
    X[2, 0] = 3.0
    model.fit(X, y)
    part = model.empty_copy()
    assert part.get_params() == model.get_params()
    assert part.class_count_.tolist() == []
    part.partial_fit(X[:2], y[:2])
    whole = part + model.empty_copy().partial_fit(X[2:], y[2:])
    np.testing.assert_array_equal(whole.predict_proba(X), model.predict_proba(X))
