"""DESIGN.md, section 8: the answer to each bad input; a call that fails leaves the model as it was."""

import re
from contextlib import contextmanager

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import deciban as db
import deciban.data.frames
from deciban import families as f
from tests.laws import flattened

TABLES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "duckdb": lambda columns: duckdb.from_arrow(pa.table(columns)),
}
INPUTS = {"array": lambda columns: np.column_stack(list(columns.values())), **TABLES}

A, B = [1.0, 2.0, 1.0, 2.0, 3.0, 1.0], [2.0, 1.0, 1.0, 2.0, 1.0, 3.0]
Y = ["n", "y", "n", "y", "n", "y"]
BAD_ROW = 3


@pytest.fixture(params=INPUTS)
def make(request):
    return INPUTS[request.param]


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param]


def each_form(columns):
    """The same columns as an array and as tables of two libraries; test_containers has all of them."""
    return [INPUTS[name](columns) for name in ("array", "pandas", "pyarrow")]


def evidence(model):
    """Everything that a model has learned, copied."""
    arrays = {"counts": model.generative_.counts.words.copy()}
    for i, block in enumerate(model.generative_.blocks):
        arrays |= {f"{i}.{name}": array.copy() for name, array in flattened(block.statistic).items()}
    facts = (model.classes_.tolist(), model.n_features_in_, model.generative_.schema, model.generative_.classes)
    return arrays, (*facts, getattr(model, "feature_names_in_", np.array([])).tolist())


@contextmanager
def refused(*models, match, error=db.DecibanError):
    """The call fails with these words, and the models are bit for bit as they were."""
    before = [evidence(model) for model in models]
    with pytest.raises(error, match=match):
        yield
    for model, (arrays, facts) in zip(models, before, strict=True):
        after, facts_after = evidence(model)
        assert facts_after == facts
        assert after.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(after[name], array, strict=True)


def with_cell(column, value):
    return [*column[:BAD_ROW], value, *column[BAD_ROW + 1 :]]


# Cells outside the domain
INFINITE = "finite"
BAD_CELLS = [
    (f.Gaussian(), np.inf, INFINITE),
    (f.Gaussian(), -np.inf, INFINITE),
    (f.MultivariateGaussian(), np.inf, INFINITE),
    (f.MultivariateGaussian("per-class"), -np.inf, INFINITE),
    (f.Uniform(), np.inf, INFINITE),
    (f.Binned(), -np.inf, INFINITE),
    (f.Categorical(), np.inf, INFINITE),
    (f.Exponential(), np.inf, INFINITE),
    (f.Exponential(), 0.0, "not above 0"),
    (f.Exponential(), -2.0, "not above 0"),
    (f.Poisson(), np.inf, INFINITE),
    (f.Poisson(), -1.0, "not a count"),
    (f.Poisson(), 0.5, "not a whole number"),
    (f.Multinomial(), np.inf, INFINITE),
    (f.Multinomial(), -1.0, "not a count"),
    (f.Bernoulli(threshold=1.5), np.inf, INFINITE),
]


@pytest.mark.parametrize("cells_per_batch", [2, 2000])
def test_a_cell_outside_the_domain_is_named_and_nothing_is_lost(make, cells_per_batch, monkeypatch):
    monkeypatch.setattr(deciban.data.frames, "CELLS_PER_BATCH", cells_per_batch)
    for family, value, words in BAD_CELLS:
        bad = make({"a": A, "b": with_cell(B, value)})
        model = db.NaiveBayes(families=family).fit(make({"a": A, "b": B}), Y)
        named = rf"column ('b'|1), row {BAD_ROW}: {value!r} .*{words}"
        for learn in (model.fit, model.partial_fit, model.forget):
            with refused(model, match=named):
                learn(bad, Y)
        for predict in (model.predict, model.predict_joint_log_proba, model.explain):
            with refused(model, match=named):
                predict(bad)


def test_a_cell_that_bernoulli_cannot_read_is_named(make):
    good, bad = make({"a": [0, 1] * 3, "b": [0, 0, 1] * 2}), make({"a": [0, 1] * 3, "b": with_cell([0, 0, 1] * 2, 2)})
    model = db.NaiveBayes(families=f.Bernoulli()).fit(good, Y)
    for call in (lambda: model.partial_fit(bad, Y), lambda: model.predict(bad)):
        with refused(model, match=r"column ('b'|1), row 3: 2(\.0)? is neither 0 nor 1"):
            call()


@pytest.mark.parametrize("covariance", ["shared", "per-class", "diagonal"])
def test_an_infinite_cell_is_named_by_discriminants(covariance):
    for good, bad in zip(each_form({"a": A, "b": B}), each_form({"a": A, "b": with_cell(B, np.inf)}), strict=True):
        model = db.GaussianDiscriminant(covariance).fit(good, Y)
        for learn in (model.fit, model.partial_fit):
            with refused(model, match=r"column ('b'|1), row 3: inf is infinite"):
                learn(bad, Y)
        with refused(model, match=r"column ('b'|1), row 3: inf is infinite"):
            model.predict(bad)


def test_a_sparse_cell_that_is_no_count_is_named():
    model = db.NaiveBayes().fit(sp.csr_array(np.column_stack([A, B])), Y)
    for value in (-1.0, np.inf, -np.inf):
        bad = sp.csr_array(np.column_stack([A, with_cell(B, value)]))
        for call in (lambda bad=bad: model.fit(bad, Y), lambda bad=bad: model.predict(bad)):
            with refused(model, match=f"column 1, row 3: {value!r} is not a count"):
                call()


def test_a_stored_nan_in_sparse_counts_is_missing():
    with_missing = np.column_stack([A, with_cell(B, np.nan)])
    dense = db.NaiveBayes(families=f.Multinomial()).fit(with_missing, Y).predict_proba(with_missing)
    np.testing.assert_allclose(
        db.NaiveBayes().fit(sp.csr_array(with_missing), Y).predict_proba(with_missing), dense, rtol=1e-12
    )


def test_a_stored_nan_in_sparse_truth_is_named():
    with_missing = sp.csr_array(np.column_stack([[0.0, 1.0] * 3, with_cell([1.0, 1.0, 0.0] * 2, np.nan)]))
    with pytest.raises(db.DecibanError, match="column 1, row 3: nan is missing"):
        db.NaiveBayes(families=f.Bernoulli()).fit(with_missing, Y)


def test_a_number_too_large_to_be_squared_is_named():
    joint = [f.MultivariateGaussian("shared"), f.MultivariateGaussian("per-class")]
    for family in (f.Gaussian(), f.Poisson(), f.Exponential(), f.Multinomial(), *joint):
        with pytest.raises(db.DecibanError, match=r"column 1, row 3: 1e\+200 is too large"):
            db.NaiveBayes(families=family).fit(np.column_stack([A, with_cell(B, 1e200)]), Y)


def test_row_numbers_count_rows_of_weight_zero():
    weights = [0, 0, 1, 1, 1, 1]
    with pytest.raises(db.DecibanError, match="column 1, row 3: inf"):
        db.NaiveBayes().fit(np.column_stack([A, with_cell(B, np.inf)]), Y, weights)


# Missing cells
@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_cell_is_skipped_in_its_column_only(make, missing):
    model = db.NaiveBayes().fit(make({"a": A, "b": with_cell(B, missing)}), Y)
    rest = [i for i in range(6) if i != BAD_ROW]
    a = db.NaiveBayes().fit(np.array(A)[:, np.newaxis], Y)
    b = db.NaiveBayes().fit(np.array(B)[rest, np.newaxis], np.array(Y)[rest])
    evidence_of_b = b.predict_joint_log_proba([[2.0]]) - np.log([3 / 5, 2 / 5])
    expected = a.predict_joint_log_proba([[1.0]]) + evidence_of_b
    np.testing.assert_allclose(model.predict_joint_log_proba(make({"a": [1.0], "b": [2.0]})), expected, rtol=1e-12)
    alone = model.predict_joint_log_proba(make({"a": [1.0, 1.0], "b": [missing, 2.0]}))[0]
    np.testing.assert_allclose(alone, a.predict_joint_log_proba([[1.0]])[0], rtol=1e-12)


# Labels and weights
@pytest.mark.parametrize("labels", [with_cell(Y, None), with_cell([0.0, 1.0] * 3, np.nan)], ids=["None", "NaN"])
def test_a_missing_label_is_refused_by_row(labels):
    x = np.column_stack([A, B])
    for y in (labels, np.array(labels, dtype=object), pd.Series(labels), pl.Series(labels), pa.array(labels)):
        model = db.NaiveBayes().fit(x, Y)
        for learn in (model.fit, model.partial_fit, model.forget):
            with refused(model, match=r"label, row 3: .*missing"):
                learn(x, y)


def test_a_missing_label_in_a_column_is_refused_by_row(table):
    with pytest.raises(db.DecibanError, match=r"label, row 3: .*missing"):
        db.NaiveBayes().fit(table({"a": A, "b": B, "y": with_cell(Y, None)}), "y")


def test_labels_that_are_no_classes_are_refused():
    x = np.column_stack([A, B])
    model = db.NaiveBayes().fit(x, Y)
    for labels, words in [
        ([0.5, 1.0] * 3, "continuous"),
        ([[0], [1]] * 3, "1d array"),
        (Y[:4], "inconsistent numbers"),
        (np.array(["2020-01-01"] * 6, dtype="datetime64[D]"), "cannot be classes"),
        (np.array(["a", 1] * 3, dtype=object), "column 'label', row .*: .* convert it to one type"),
    ]:
        with refused(model, match=words):
            model.partial_fit(x, labels)


def test_a_label_column_must_be_there(table):
    with pytest.raises(db.DecibanError, match=r"no column 'kind' to use as label; the table has .*'a'"):
        db.NaiveBayes().fit(table({"a": A, "b": B}), "kind")
    with pytest.raises(db.DecibanError, match="names a column, so X must be a table"):
        db.NaiveBayes().fit(np.column_stack([A, B]), "kind")


def test_a_misspelt_column_is_answered_with_the_nearest(table):
    rows = table({"a": A, "class": Y})
    for model, label, words in (
        (db.NaiveBayes(), "clas", "no column 'clas' to use as label (did you mean 'class'?); the table has ["),
        (db.NaiveBayes(), "CLASS", "no column 'CLASS' to use as label (did you mean 'class'?); the table has ["),
        (db.NaiveBayes({"klass": db.families.Categorical()}), Y, "column 'klass' (did you mean 'class'?); the columns"),
        (db.EvidenceClassifier(text=["klass"]), Y, "text names an unknown column 'klass' (did you mean 'class'?); the"),
    ):
        with pytest.raises(db.DecibanError, match=re.escape(words)):
            model.fit(rows, label)


def test_weights_that_are_none_are_refused(make):
    x = make({"a": A, "b": B})
    model = db.NaiveBayes().fit(x, Y)
    for weights, words in [
        (with_cell([1.0] * 6, -1.0), "sample_weight, row 3: -1 is not a weight"),
        (with_cell([1.0] * 6, np.nan), "sample_weight, row 3: nan is not a weight"),
        (with_cell([1.0] * 6, np.inf), "sample_weight, row 3: inf is not a weight"),
        ([1.0] * 5, r"sample_weight.shape == \(5,\)"),
        ([0.0] * 6, "every sample weight is zero"),
        ([1.7e308] * 6, "more than a number can hold"),
    ]:
        for learn in (model.fit, model.partial_fit, model.forget):
            with refused(model, match=words):
                learn(x, Y, sample_weight=weights)


def test_weights_that_overflow_a_sum_are_refused():
    for weights in ([1e100, 1e100, 1e100], [1e100, 2e100, 3e100]):
        with pytest.raises(db.DecibanError, match=r"column 0, row 0: 1e\+150 is too large to be squared"):
            db.NaiveBayes().fit([[1e150], [2e150], [3e150]], [0, 0, 1], weights)


# Categories never seen
COLOURS = {"colour": ["red", "red", "blue", "red", "blue", "blue"], "b": B}  # n: red blue blue, y: red red blue


def test_an_unseen_category_gives_no_evidence(table):
    model = db.NaiveBayes().fit(table(COLOURS), Y)
    asked, known = table({"colour": ["green"], "b": [1.0]}), table({"b": [1.0]})
    alone = db.NaiveBayes().fit(table({"b": B}), Y)
    np.testing.assert_array_equal(model.predict_proba(asked), alone.predict_proba(known))


def test_an_unseen_category_may_have_the_share_of_one_more(table):
    """(k + 1) / (3 + 3): every known one gives up its part of the place."""
    model = db.NaiveBayes(unseen="reserve").fit(table({"colour": COLOURS["colour"]}), Y)
    joint = model.predict_joint_log_proba(table({"colour": ["green", "red", "blue"]}))
    expected = 0.5 * np.array([[1 / 6, 1 / 6], [2 / 6, 3 / 6], [3 / 6, 2 / 6]])
    np.testing.assert_allclose(np.exp(joint), expected, rtol=1e-12)


def test_an_unseen_category_may_be_refused(table, monkeypatch):
    monkeypatch.setattr(deciban.data.frames, "CELLS_PER_BATCH", 2)
    model = db.NaiveBayes(unseen="error").fit(table(COLOURS), Y)
    asked = table({"colour": ["red", "blue", "green"], "b": [1.0, 2.0, 3.0]})
    for predict in (model.predict_proba, model.explain):
        with refused(model, match="column 'colour', row 2: 'green' was never seen.*'blue', 'red'"):
            predict(asked)
    model.partial_fit(table({"colour": ["green"], "b": [1.0]}), ["y"])
    assert np.isfinite(model.predict_log_proba(asked)).all()


def test_settings_are_checked():
    x = np.column_stack([A, B])
    for settings in ({"unseen": "drop"}, {"missing": "mean"}, {"smoothing": -1}, {"smoothing": np.nan}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            db.NaiveBayes(**settings).fit(x, Y).predict(x)
    for prior in ("even", [0.5, 0.6], [1.0], {"n": 1.0}, [-0.5, 1.5]):
        with pytest.raises(db.DecibanError, match="class_prior"):
            db.NaiveBayes(class_prior=prior).fit(x, Y).predict(x)
    twice = [{0: f.Gaussian(), (0, 1): f.Poisson()}, {(1, 1): f.MultivariateGaussian()}]
    for families in ({"c": f.Gaussian()}, {5: f.Gaussian()}, {0: "Gaussian"}, *twice):
        with pytest.raises(db.DecibanError, match="families"):
            db.NaiveBayes(families).fit(x, Y)


# Columns
MIXED = {"a": A, "b": B, "colour": COLOURS["colour"]}
TURNED = {name: MIXED[name] for name in ("colour", "b", "a")}


def test_columns_are_matched_by_name(table):
    model = db.NaiveBayes().fit(table(MIXED), Y)
    np.testing.assert_array_equal(model.predict_proba(table(TURNED)), model.predict_proba(table(MIXED)))
    before, _ = evidence(model)
    model.partial_fit(table(TURNED), Y).forget(table(TURNED), Y)
    for name, array in evidence(model)[0].items():
        np.testing.assert_array_equal(array, before[name])


def test_an_extra_column_is_ignored_after_the_fit(table):
    model = db.NaiveBayes().fit(table(MIXED), Y)
    more = table({"id": list("uvwxyz"), **MIXED})
    np.testing.assert_array_equal(model.predict_proba(more), model.predict_proba(table(MIXED)))
    model.partial_fit(more, Y).forget(more, Y)


def test_a_lacking_column_is_named(table):
    model = db.NaiveBayes().fit(table(MIXED), Y)
    less = table({"a": A, "colour": COLOURS["colour"]})
    for call in (lambda: model.predict(less), lambda: model.partial_fit(less, Y), lambda: model.forget(less, Y)):
        with refused(model, match="lacks column 'b'; it has columns 'a', 'colour'"):
            call()


def test_a_renamed_column_is_seen_among_many(table):
    """Names that the model knows are no answer, however near they are."""
    columns = {f"column {i}": A for i in range(20)}
    model = db.NaiveBayes().fit(table(columns | {"age": A, "sex": B}), Y)
    with refused(model, match=r"lacks columns 'age', 'sex' \(did you mean 'Age', 'Sex'\?\); it has .* and 12 more"):
        model.predict(table(columns | {"Age": A, "Sex": B}))
    with refused(model, match=r"lacks columns 'column 7', 'sex'; it has"):
        model.predict(table({name: cells for name, cells in columns.items() if name != "column 7"} | {"age": A}))


def test_a_lacking_position_is_counted():
    model = db.NaiveBayes().fit(np.column_stack([A, B]), Y)
    for call in (lambda x: model.predict(x), lambda x: model.partial_fit(x, Y), lambda x: model.forget(x, Y)):
        with refused(model, match="X has 1 features, but .* is expecting 2 features", error=ValueError):
            call(np.array(A)[:, np.newaxis])


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])  # the others cannot hold one
def test_a_doubled_column_is_named(kind):
    def double(columns):
        if kind == "pyarrow":
            return pa.table([pa.array(v) for v in columns.values()], names=["a", "b", "b"])
        return pd.DataFrame(columns).set_axis(["a", "b", "b"], axis=1)

    doubled = double({"a": A, "b": B, "c": B})
    model = db.NaiveBayes().fit(TABLES[kind]({"a": A, "b": B}), Y)
    for call in (lambda: model.fit(doubled, Y), lambda: model.partial_fit(doubled, Y), lambda: model.predict(doubled)):
        with refused(model, match="column 'b' occurs more than once"):
            call()


def test_integers_widen_to_floats(make):
    whole = make({"a": [int(v) for v in A], "b": [int(v) for v in B]})
    broken = make({"a": [v + 0.5 for v in A], "b": B})
    both = make({"a": A + [v + 0.5 for v in A], "b": B + B})
    model = db.NaiveBayes().fit(whole, Y).partial_fit(broken, Y)
    np.testing.assert_array_equal(model.predict_proba(both), db.NaiveBayes().fit(both, Y + Y).predict_proba(both))


def test_text_where_numbers_were_is_refused_by_name(table):
    number, text = table({"a": A, "b": B}), table({"a": A, "b": list("uvuvuv")})
    for first, then, words in ((number, text, "held numbers .* text now"), (text, number, "held text .* numbers now")):
        model = db.NaiveBayes().fit(first, Y)
        for learn in (model.partial_fit, model.forget):
            with refused(model, match=f"column 'b' {words}"):
                learn(then, Y)
        with refused(model, match=f"column 'b' {words}"):
            model.predict(then)


def test_text_where_a_family_needs_numbers_is_refused_by_name(table):
    with pytest.raises(db.DecibanError, match="column 'colour' holds text"):
        db.NaiveBayes({"colour": f.Gaussian()}).fit(table(MIXED), Y)
    with pytest.raises(db.DecibanError, match="column 'colour' holds text; GaussianDiscriminant takes numbers"):
        db.GaussianDiscriminant().fit(table(MIXED), Y)


def test_a_column_of_mixed_types_is_refused_by_name():
    for x in (pd.DataFrame({"a": A, "mix": ["u", 1] * 3}), np.array([[1, "u"], [2, 3]] * 3, dtype=object)):
        with pytest.raises(db.DecibanError, match=r"column ('mix'|1), row 1: . is not text"):
            db.NaiveBayes().fit(x, Y)


# Columns without evidence
def assert_without_evidence(family, cells, asked, reason):
    """A column of these cells, beside another, adds nothing to a model, which says why."""
    forms = [each_form(columns) for columns in ({"a": A, "extra": cells}, {"a": A}, {"a": A, "extra": asked})]
    for rows, alone, new in zip(*forms, strict=True):
        model, less = (db.NaiveBayes(families=family).fit(x, Y) for x in (rows, alone))
        np.testing.assert_allclose(model.predict_proba(new), less.predict_proba(alone), rtol=1e-12, err_msg=str(family))
        name = model.generative_.schema.names[1]
        assert model.columns_without_evidence_[name] == reason
        assert f"no evidence from {name!r}: {reason}" in model.summary().notes


def test_a_column_that_is_missing_or_constant_gives_no_evidence_and_is_listed():
    both = [f.Gaussian(), f.Poisson(), f.Exponential(), f.Uniform(), f.Binned(), f.Categorical()]
    for family in (*both, f.Gaussian(ddof=1)):
        assert_without_evidence(family, [np.nan] * 6, [1.0, 2.0] * 3, "missing in every row")
    for family in (*both, f.Binned("equal-width"), f.Bernoulli(threshold=1)):
        assert_without_evidence(family, [2.0] * 6, [1.0, 2.0] * 3, "constant")


def test_an_empty_column_of_a_table_is_listed_whatever_its_type(table):
    for empty in ([None] * 6, [np.nan] * 6):
        model = db.NaiveBayes().fit(table({"a": A, "hollow": empty}), Y)
        assert any("no evidence" in note and "'hollow'" in note for note in model.summary().notes)


@pytest.mark.filterwarnings("ignore:singular covariance")
@pytest.mark.parametrize("covariance", ["shared", "per-class"])
def test_a_column_without_evidence_does_not_change_a_joint_density(covariance):
    x = np.column_stack([A, B])
    family = f.MultivariateGaussian(covariance)
    expected = db.NaiveBayes(family).fit(x, Y).predict_proba(x)
    for extra, asked in (([5.0] * 6, 1e6), ([np.nan] * 6, np.nan)):
        model = db.NaiveBayes(family).fit(np.column_stack([A, B, extra]), Y)
        np.testing.assert_allclose(model.predict_proba(np.column_stack([A, B, [asked] * 6])), expected, atol=1e-6)


# Few rows, impossible rows, singular covariances
FAMILIES = [
    f.Gaussian(),
    f.Gaussian(ddof=1),
    f.Bernoulli(threshold=1.5),
    f.Binned(),
    f.Binned("equal-frequency"),
    f.Categorical(),
    f.Exponential(),
    f.Multinomial(),
    f.MultivariateGaussian("shared"),
    f.MultivariateGaussian("shared", ddof="unbiased"),
    f.MultivariateGaussian("per-class"),
    f.MultivariateGaussian("per-class", ddof="unbiased"),
    f.MultivariateGaussian("per-class", shrinkage="oas"),
    f.Poisson(),
    f.Uniform(),
]


@pytest.mark.filterwarnings("ignore:singular covariance")
@pytest.mark.parametrize("smoothing", [0, 1])
def test_a_class_with_one_row_or_without_a_cell_never_makes_nan(smoothing):
    x = np.column_stack([A, B])
    without = np.where((np.arange(6) % 2 == 1)[:, np.newaxis] & [False, True], np.nan, x)
    for family in FAMILIES:
        model = db.NaiveBayes(families=family, smoothing=smoothing).fit(x, [0, 0, 0, 0, 0, 1])
        posterior = model.predict_proba(x)
        assert np.isfinite(posterior).all(), family
        np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)
        assert not np.isnan(model.predict_joint_log_proba(x)).any(), family
        posterior = db.NaiveBayes(families=family).fit(without, Y).predict_proba(x)
        np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("family", "columns", "row"),
    [
        (f.Categorical(), {"a": list("uuvuvv"), "b": list("uvuvuv")}, {"a": ["u", "u"], "b": ["u", "w"]}),
        (f.Uniform(), {"a": A, "b": B}, {"a": [1.0, 2.0], "b": [9.0, 2.0]}),
        (f.Bernoulli(), {"a": [0, 1] * 3, "b": [1, 0] * 3}, {"a": [1, 0], "b": [1, 1]}),
    ],
    ids=["Categorical", "Uniform", "Bernoulli"],
)
def test_a_row_impossible_under_every_class_gets_the_prior_with_a_warning(table, family, columns, row):
    labels = ["n", "y", "n", "y", "n", "n"] if isinstance(family, f.Categorical) else Y
    model = db.NaiveBayes(families=family, smoothing=0, class_prior=[0.3, 0.7]).fit(table(columns), labels)
    if isinstance(family, f.Categorical):  # u and u: not y by b; make it not n by a
        model = model.forget(table({"a": ["u"], "b": ["u"]}), ["n"])
    asked = table(row)
    assert np.isneginf(model.predict_joint_log_proba(asked)[0]).all()
    with pytest.warns(db.DecibanWarning, match="1 row is impossible under every class"):
        posterior = model.predict_proba(asked)
    np.testing.assert_allclose(posterior[0], [0.3, 0.7], rtol=1e-15)
    with pytest.warns(db.DecibanWarning, match="impossible"):
        np.testing.assert_allclose(model.predict_log_proba(asked)[0], np.log([0.3, 0.7]), rtol=1e-15)
    with pytest.warns(db.DecibanWarning, match="impossible"):
        assert model.predict(asked)[0] == "y"
    assert not np.isnan(model.explain(asked).log_odds()).any()


SINGULAR = {
    "copied": ([[a, b, 2 * a - b] for a, b in zip(A, B, strict=True)], ["a", "b", "c"]),
    "constant": ([[a, b, 5.0] for a, b in zip(A, B, strict=True)], ["c"]),
    "more columns than rows": (np.eye(6, 9).tolist(), []),
}


@pytest.mark.parametrize("covariance", ["shared", "per-class"])
@pytest.mark.parametrize("case", SINGULAR)
def test_a_singular_covariance_is_said_and_never_makes_nan(covariance, case):
    rows, columns = SINGULAR[case]
    x = pd.DataFrame(rows, columns=list("abcdefghi")[: len(rows[0])])
    model = db.GaussianDiscriminant(covariance).fit(x, Y)
    with pytest.warns(db.DecibanWarning, match="singular covariance: columns .*'c'"):
        posterior = model.predict_proba(x)
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)
    assert model.status_.startswith("singular covariance")
    assert all(repr(name) in model.status_ for name in columns)
    assert model.status_ in model.summary().notes


@pytest.mark.parametrize("covariance", ["shared", "per-class"])
def test_shrinkage_mends_a_singular_covariance(covariance):
    x = SINGULAR["copied"][0]
    model = db.GaussianDiscriminant(covariance, shrinkage=0.1).fit(x, Y)
    assert model.status_ == "ok"
    assert np.isfinite(model.predict_log_proba(x)).all()


# Forgetting and merging
def test_forgetting_what_was_never_learned_is_refused():
    """A class, rows of a class, weights and values."""
    values = (f.Gaussian(), f.Poisson(), f.Exponential(), f.Categorical(), f.Binned(), f.MultivariateGaussian())
    for family in (family for family in FAMILIES if not isinstance(family, f.Uniform)):
        for x, other in zip(each_form({"a": A, "b": B}), each_form({"a": [50.0], "b": [90.0]}), strict=True):
            model = db.NaiveBayes(families=family).fit(x, Y)
            with refused(model, match="class 'z' was never learned", error=db.NegativeEvidence):
                model.forget(x, ["z"] * 6)
            with refused(model, match="never learned", error=db.NegativeEvidence):
                model.forget(x, ["y"] * 6)
            with refused(model, match="never learned", error=db.NegativeEvidence):
                model.forget(x, Y, sample_weight=[1, 1, 1, 1, 1, 1.5])
            if family in values:
                with refused(model, match="never learned", error=db.NegativeEvidence):
                    model.forget(other, ["n"])


def test_forgetting_words_never_learned_is_refused():
    model = db.NaiveBayes().fit(sp.csr_array([[1, 0], [0, 3]]), [0, 1])
    with refused(model, match="never learned", error=db.NegativeEvidence):
        model.forget(sp.csr_array([[0, 1]]), [0])


def test_extremes_cannot_be_forgotten(make):
    x = make({"a": A, "b": B})
    model = db.NaiveBayes(families={"a" if not isinstance(x, np.ndarray) else 0: f.Uniform()}).fit(x, Y)
    with refused(model, match="fit again without these rows", error=db.NotInvertible):
        model.forget(x, Y)


def test_forgetting_everything_leaves_a_model_that_says_so_and_learns_again(make):
    x = make({"a": A, "b": B})
    model = db.NaiveBayes().fit(x, Y).forget(x, Y)
    for use in (lambda: model.predict(x), lambda: model.explain(x), lambda: model.summary()):
        with pytest.raises(db.DecibanError, match="every row was forgotten"):
            use()
    expected = db.NaiveBayes().fit(x, Y).predict_proba(x)
    np.testing.assert_array_equal(model.partial_fit(x, Y).predict_proba(x), expected)


def test_models_that_do_not_fit_together_are_not_merged():
    x = pd.DataFrame({"a": A, "b": B})
    model = db.NaiveBayes().fit(x, Y)
    others = [
        (db.NaiveBayes(f.Poisson()).fit(x, Y), "different families"),
        (db.NaiveBayes(missing="category").fit(x, Y), "different families"),
        (db.NaiveBayes().fit(x.rename(columns={"b": "c"}), Y), "columns differ: columns 'a', 'b' and columns 'a', 'c'"),
        (db.NaiveBayes().fit(x.assign(b=list("uvuvuv")), Y), "column 'b' held numbers"),
        (db.GaussianDiscriminant().fit(x, Y), "cannot be merged"),
    ]
    for other, words in others:
        with refused(model, other, match=words):
            model.merge(other)
        with refused(model, other, match="cannot be|columns differ|column 'b' held"):
            other + model


def test_nothing_is_learned_from_no_rows(table):
    model = db.NaiveBayes().fit(table({"a": A, "b": B}), Y)
    nothing = table({"a": pa.array([], pa.float64()).to_numpy(), "b": pa.array([], pa.float64()).to_numpy()})
    with refused(model, match="no rows to learn from"):
        model.fit(nothing, [])
    before = model.generative_
    for change in (model.partial_fit, model.forget):
        assert change(nothing, []) is model
        assert model.generative_ is before
        with refused(model, match="'b'"):
            change(table({"a": pa.array([], pa.float64()).to_numpy()}), [])
    assert model.predict_proba(nothing).shape == (0, 2)
    assert len(model.predict(nothing)) == 0
