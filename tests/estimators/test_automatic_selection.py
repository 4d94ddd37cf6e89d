"""What models choose for themselves: smoothing, families and shrinkage, and what becomes of the choice."""

import copy
import os
import pickle
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import log_loss

import deciban as db
from deciban import families as fam
from tests.estimators.test_leave_one_out import left_out


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def mixed(rng, n=60, missing=0.1):
    """A table of every kind of column, and three classes."""
    y = rng.choice(["a", "b", "c"], n)
    y[:6] = list("aabbcc")
    code = np.searchsorted(["a", "b", "c"], y)
    text = np.where(rng.random(n) < missing, None, np.where(rng.random(n) < 0.6, y, rng.choice(list("bcde"), n)))
    table = pd.DataFrame(
        {
            "text": text,
            "flag": rng.random(n) < 0.2 + 0.3 * code,
            "size": np.where(rng.random(n) < missing, np.nan, rng.normal(code, 1.0)),
            "calls": rng.poisson(1.0 + 2.0 * code).astype(float),
            "wait": rng.exponential(1.0 + 4.0 * code),
            "zero-one": (rng.random(n) < 0.3 * code).astype(float),
        }
    )
    return table, y


def refitted(model, x, y, fold, weights=None):
    """(n, K) p(c|x) of each row from a model that is fitted to the other folds."""
    classes = np.unique(y)
    out = np.zeros((len(y), len(classes)))
    for f in np.unique(fold):
        mine, rest = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        take = x.iloc.__getitem__ if hasattr(x, "iloc") else x.__getitem__
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", db.DecibanWarning)
            fresh = clone(model).fit(take(rest), y[rest], None if weights is None else weights[rest])
            out[mine[:, np.newaxis], np.searchsorted(classes, fresh.classes_)] = fresh.predict_proba(take(mine))
    return out


def assert_folds_are_refits(model, x, y, weights=None):
    fold = np.arange(len(y)) % 3
    evaluation = db.cross_validate(model, x, y, fold, sample_weight=weights)
    proba = refitted(model, x, y, fold, weights)
    np.testing.assert_allclose(evaluation.log_loss, log_loss(y, proba, sample_weight=weights), rtol=1e-9)
    right = np.unique(y)[proba.argmax(axis=1)] == y
    np.testing.assert_allclose(evaluation.accuracy, np.average(right, weights=weights), rtol=1e-12)


# Smoothing
SMOOTHED = {
    "defaults": {},
    "reserve": {"unseen": "reserve"},
    "a missing cell is a value": {"missing": "category"},
    "bins": {"families": {"size": fam.Binned(), "wait": fam.Binned("equal-width", count=3)}},
    "words": {"families": {("calls", "zero-one"): fam.Multinomial()}},
}


@pytest.mark.parametrize("case", SMOOTHED)
def test_smoothing_depends_on_the_evidence_alone(rng, case):
    """Whatever the order of merges, what was learned later or forgotten: bit for bit as if fitted at once."""
    table, y = mixed(rng, 48)
    w = rng.choice([0.5, 1.0, 3.0], 48) if case in ("defaults", "bins") else np.ones(48)
    model = db.NaiveBayes(smoothing="auto", **SMOOTHED[case])
    whole = clone(model).fit(table, y, w)
    cuts = [slice(0, 10), slice(10, 11), slice(11, 48)]
    parts = [clone(model).fit(table[s], y[s], w[s]) for s in cuts]
    for i, j, k in ((0, 1, 2), (2, 0, 1)):
        assert (parts[i] + parts[j] + parts[k]).smoothing_ == whole.smoothing_
    later = clone(model).fit(table[:20], y[:20], w[:20])
    before = later.smoothing_
    later.partial_fit(table[20:], y[20:], sample_weight=w[20:])
    assert later.smoothing_ == whole.smoothing_ != before
    later.forget(table[20:], y[20:], w[20:])
    assert later.smoothing_ == before
    np.testing.assert_array_equal(
        later.predict_proba(table), clone(model).fit(table[:20], y[:20], w[:20]).predict_proba(table)
    )


def test_the_smoothing_in_use_is_the_one_chosen(rng):
    table, y = mixed(rng)
    model = db.NaiveBayes(smoothing="auto").fit(table, y)
    chosen = model.smoothing_
    given = db.NaiveBayes(smoothing=chosen).fit(table, y)
    assert given.smoothing_ == chosen != 1.0
    np.testing.assert_array_equal(model.predict_log_proba(table), given.predict_log_proba(table))
    assert model.leave_one_out(table, y).log_loss == given.leave_one_out(table, y).log_loss
    assert np.abs(model.predict_proba(table) - db.NaiveBayes().fit(table, y).predict_proba(table)).max() > 1e-3
    model.smoothing = 2.0
    assert model.smoothing_ == 2.0
    model.smoothing = "auto"
    assert model.smoothing_ == chosen


def test_a_place_for_values_never_seen_is_part_of_the_choice(rng):
    table, y = mixed(rng)
    model = db.NaiveBayes(smoothing="auto").fit(table, y)
    skip = model.smoothing_
    model.unseen = "reserve"
    fresh = db.NaiveBayes(smoothing="auto", unseen="reserve").fit(table, y)
    assert model.smoothing_ == fresh.smoothing_ != skip


def test_columns_of_numbers_do_not_matter(rng):
    table, y = mixed(rng)
    few = db.NaiveBayes(smoothing="auto").fit(table[["text", "flag"]], y)
    more = db.NaiveBayes({"calls": fam.Poisson(), "wait": fam.Exponential()}, smoothing="auto").fit(
        table.drop(columns="zero-one"), y
    )
    np.testing.assert_allclose(more.smoothing_, few.smoothing_, rtol=1e-12)


@pytest.mark.parametrize("family", [None, fam.Uniform(), fam.MultivariateGaussian(), fam.Exponential()], ids=str)
def test_where_nothing_is_counted_smoothing_stays_as_it_was(rng, family):
    x, y = rng.exponential(size=(20, 2)), np.arange(20) % 2
    model = db.NaiveBayes(family, smoothing="auto").fit(x, y)
    assert model.smoothing_ == 1.0
    np.testing.assert_array_equal(model.predict_proba(x), db.NaiveBayes(family).fit(x, y).predict_proba(x))
    assert chosen_of(model)["smoothing"] == (1.0, 0.0, 1.0)


def chosen_of(model):
    """{what: (value, mean decibans, over which value)} in the summary."""
    tables = [table for table in model.summary().tables if table.title == "chosen by leave-one-out"]
    return {row[0]: tuple(row[1:]) for table in tables for row in table.rows}


def test_the_summary_tells_what_smoothing_was_chosen_and_why(rng):
    """Decibans a row: one column of text, so Σ log p(x_i|c_i) is a sum over cells of one table."""
    table, y = mixed(rng, missing=0.0)
    model = db.NaiveBayes(smoothing="auto").fit(table[["text"]], y)
    value, decibans, other = chosen_of(model)["smoothing"]
    assert (value, other) == (model.smoothing_, 1.0)

    def likelihood(alpha):
        counts = pd.crosstab(y, table["text"]).to_numpy()
        c, v = np.nonzero(counts)
        k, n = counts[c, v], counts.sum(axis=1)[c]
        assert (counts.sum(axis=0) > 1).all()
        return (k * np.log((k - 1 + alpha) / (n - 1 + alpha * counts.shape[1]))).sum()

    expected = 10 / np.log(10) * (likelihood(value) - likelihood(1.0)) / len(y)
    np.testing.assert_allclose(decibans, expected, rtol=1e-9)
    assert expected > 0
    assert f"{value:.6g}" in str(model.summary())
    assert "mean decibans" in str(model.summary())
    assert not chosen_of(db.NaiveBayes().fit(table, y))


@pytest.mark.parametrize(
    "model",
    [
        db.NaiveBayes("auto", smoothing="auto"),
        db.NaiveBayes({("size", "wait"): fam.MultivariateGaussian(shrinkage="auto")}, smoothing="auto"),
    ],
    ids=["families", "shrinkage"],
)
def test_models_that_choose_are_cloned_copied_and_pickled(rng, model):
    table, y = mixed(rng)
    fitted = clone(model).fit(table, y)
    assert clone(fitted).get_params() == model.get_params() == fitted.get_params()
    for again in (copy.copy(fitted), copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        assert str(again.summary()) == str(fitted.summary())
        assert again.smoothing_ == fitted.smoothing_
        np.testing.assert_array_equal(again.predict_proba(table), fitted.predict_proba(table))
        again.partial_fit(table[:30], y[:30])
        assert again.smoothing_ != fitted.smoothing_


@pytest.mark.parametrize("case", SMOOTHED)
def test_each_fold_chooses_its_smoothing(rng, case):
    table, y = mixed(rng)
    assert_folds_are_refits(db.NaiveBayes(smoothing="auto", **SMOOTHED[case]), table, y)


def test_each_fold_chooses_its_smoothing_with_weights(rng):
    table, y = mixed(rng)
    assert_folds_are_refits(db.NaiveBayes(smoothing="auto"), table, y, rng.choice([0.5, 1.0, 2.0], len(y)))


def test_smoothing_of_sparse_rows(rng):
    y = np.arange(40) % 3
    counts = rng.poisson(0.2 + 0.5 * (np.arange(25) % 3 == y[:, np.newaxis])).astype(float)
    sparse, dense = sp.csr_array(counts), db.NaiveBayes(fam.Multinomial(), smoothing="auto").fit(counts, y)
    model = db.NaiveBayes(smoothing="auto").fit(sparse, y)
    assert model.smoothing_ == dense.smoothing_
    assert_folds_are_refits(db.NaiveBayes(smoothing="auto"), sparse, y)


def test_a_fitted_model_stays_as_it_is_when_it_is_judged(rng):
    table, y = mixed(rng)
    model = db.NaiveBayes("auto", smoothing="auto").fit(table, y)
    before = str(model.summary())
    db.cross_validate(model, table[:40], y[:40], cv=2)
    assert str(model.summary()) == before


def test_after_everything_is_forgotten_smoothing_is_chosen_again(rng):
    table, y = mixed(rng)
    model = db.NaiveBayes(smoothing="auto").fit(table, y)
    chosen = model.smoothing_
    model.forget(table, y)
    assert model.smoothing_ == 1.0
    assert model.partial_fit(table, y).smoothing_ == chosen


# Families
def test_each_column_of_numbers_has_the_family_it_was_drawn_from():
    """Text and truth are not asked; the only question with zeros and ones is how often."""
    table, y = mixed(np.random.default_rng(0), 1000)
    model = db.NaiveBayes("auto").fit(table, y)
    assert {column: type(family) for column, family in model.families_.items()} == {
        "text": fam.Categorical,
        "flag": fam.Bernoulli,
        "size": fam.Gaussian,
        "calls": fam.Poisson,
        "wait": fam.Exponential,
        "zero-one": fam.Bernoulli,
    }
    given = db.NaiveBayes(model.families_).fit(table, y)
    np.testing.assert_array_equal(given.predict_log_proba(table), model.predict_log_proba(table))
    assert given.families_ == model.families_
    shuffled = table[table.columns[::-1]]
    np.testing.assert_allclose(
        db.NaiveBayes(model.families_).fit(shuffled, y).predict_proba(table), model.predict_proba(table), rtol=1e-9
    )


def test_the_families_of_every_kind_of_table_are_the_same(rng):
    table, y = mixed(rng, missing=0.0)
    numbers = table[["size", "calls", "wait", "zero-one"]]
    wanted = list(db.NaiveBayes("auto").fit(numbers, y).families_.values())
    array = db.NaiveBayes("auto").fit(numbers.to_numpy(), y)
    for x in (pl.from_pandas(numbers), pa.Table.from_pandas(numbers), np.asfortranarray(numbers)):
        assert list(db.NaiveBayes("auto").fit(x, y).families_.values()) == wanted
    assert list(array.families_) != list(numbers.columns)
    assert {array.families_[j] for j in range(4)} == set(wanted)
    again = db.NaiveBayes(array.families_).fit(numbers.to_numpy(), y)
    np.testing.assert_array_equal(again.predict_proba(numbers.to_numpy()), array.predict_proba(numbers.to_numpy()))


def test_sparse_rows_are_words_whatever_is_asked():
    x, y = sp.csr_array(np.eye(6)), [0, 1] * 3
    model = db.NaiveBayes("auto").fit(x, y)
    assert list(model.families_.values()) == [fam.Multinomial()]
    np.testing.assert_array_equal(model.predict_proba(x), db.NaiveBayes().fit(x, y).predict_proba(x))
    assert "families chosen" not in str(model.summary())


@pytest.mark.parametrize("weighted", [False, True])
def test_each_fold_chooses_its_families(rng, weighted):
    table, y = mixed(rng, 80)
    weights = rng.choice([0.5, 1.0, 2.0], 80) if weighted else None
    assert_folds_are_refits(db.NaiveBayes("auto", smoothing="auto", missing="category"), table, y, weights)


def test_learning_more_and_forgetting_keep_the_families(rng):
    table, y = mixed(rng)
    model = db.NaiveBayes("auto").fit(table, y)
    families, before = model.families_, model.predict_proba(table)
    odd = table.assign(size=np.round(np.exp(table["size"])), wait=table["wait"] + 5)
    model.partial_fit(odd, y)
    assert model.families_ == families
    assert np.abs(model.predict_proba(table) - before).max() > 1e-3
    model.forget(odd, y)
    np.testing.assert_array_equal(model.predict_proba(table), before)


def test_models_that_chose_alike_merge_and_others_do_not(rng):
    y = np.arange(200) % 2
    normal = rng.normal(2.0 * y, 1.0)[:, np.newaxis]
    a, b = (db.NaiveBayes("auto").fit(normal[half], y[half]) for half in (slice(0, 100), slice(100, 200)))
    assert a.families_ == b.families_ == {0: fam.Gaussian()}
    whole = db.NaiveBayes("auto").fit(normal, y)
    np.testing.assert_array_equal((a + b).predict_proba(normal), whole.predict_proba(normal))
    other = db.NaiveBayes("auto").fit((normal > 1).astype(float), y)
    before = a.predict_proba(normal)
    with pytest.raises(db.DecibanError, match="different families"):
        a.merge(other)
    np.testing.assert_array_equal(a.predict_proba(normal), before)


@pytest.mark.parametrize("cell", [np.inf, -np.inf])
def test_an_infinite_cell_is_named(rng, cell):
    table, y = mixed(rng)
    table.loc[17, "wait"] = cell
    with pytest.raises(db.DecibanError, match=r"column 'wait', row 17: .*inf.* NaN for a missing value"):
        db.NaiveBayes("auto").fit(table, y)
    weights = np.ones(len(y))
    weights[:5] = 0  # rows count as in the table that was passed
    with pytest.raises(db.DecibanError, match=r"column 'wait', row 17"):
        db.NaiveBayes("auto").fit(table, y, weights)


def test_odd_columns_beside_others_give_probabilities(rng):
    y = np.arange(12) % 2
    plain = rng.normal(size=12)
    columns = [[7.0] * 12, [-7.5] * 12, [1.0, 0.0] * 6, [True, False] * 6, [np.nan] * 9 + [3.0, 1.0, 2.0]]
    columns += [[other, 2.0] * 6 for other in (1.0, -1.5, np.nan)]
    for column, how in product(columns, ("skip", "category")):
        table = pd.DataFrame({"odd": column, "plain": plain})
        model = db.NaiveBayes("auto", smoothing="auto", missing=how).fit(table, y)
        given = db.NaiveBayes(model.families_, smoothing="auto", missing=how).fit(table, y)
        proba = model.predict_proba(table)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_array_equal(proba, given.predict_proba(table))


def test_a_class_of_one_row_does_not_hinder_families(rng):
    y = np.r_[np.arange(30) % 2, 2]
    x = np.r_[rng.normal(3.0 * y[:30], 1.0), 99.0][:, np.newaxis]
    model = db.NaiveBayes("auto").fit(x, y)
    assert model.families_ == db.NaiveBayes("auto").fit(x[:30], y[:30]).families_
    assert model.predict([[99.0]]) == 2


def test_one_class_has_no_contest_to_win():
    model = db.NaiveBayes("auto", smoothing="auto").fit([[1.5], [2.5]], ["a", "a"])
    assert model.families_ == {0: fam.Gaussian()}
    assert model.predict_proba([[2.0]]) == 1


def test_the_summary_tells_how_families_fared():
    table, y = mixed(np.random.default_rng(0), 200)
    model = db.NaiveBayes("auto").fit(table, y)
    (actual,) = (t for t in model.summary().tables if t.title == "families chosen by leave-one-out")
    listed = {row[0]: row[1:] for row in actual.rows}
    assert list(listed) == ["size", "calls", "wait", "zero-one"]
    for column, (family, decibans, second, less) in listed.items():
        assert family == type(model.families_[column]).__name__
        if column == "zero-one":
            assert (second, less) == ("", None)
            continue
        for name, shown in ((family, decibans), (second, less)):
            there = table[column].notna().to_numpy()
            alone = db.NaiveBayes(getattr(fam, name)()).fit(table.loc[there, [column]], y[there])
            evaluation = alone.leave_one_out(table.loc[there, [column]], y[there])
            np.testing.assert_allclose(shown, -10 / np.log(10) * evaluation.log_loss, rtol=1e-9)
        assert decibans >= less


@pytest.mark.skipif("DECIBAN_DATA" not in os.environ, reason="real tables: set DECIBAN_DATA")
@pytest.mark.parametrize("name", ["credit_g", "page_blocks", "spambase"])
def test_chosen_families_predict_better_than_normal_ones(name):
    table = pd.read_csv(Path(os.environ["DECIBAN_DATA"]) / "tables" / f"{name}.csv")[::4]
    normal, chosen = (
        db.cross_validate(db.NaiveBayes(families), table, "class", cv=4).log_loss for families in (None, "auto")
    )
    assert chosen < 0.95 * normal


def test_families_of_few_cells(rng):
    for y in (["a"], ["a", "b", "c"]):
        x = np.array([[1.5], [2.5], [4.0]])[: len(y)]
        np.testing.assert_allclose(db.NaiveBayes("auto").fit(x, y).predict_proba(x).sum(axis=1), 1.0)
    for cells in (np.full(12, np.nan), np.r_[3.5, np.full(11, np.nan)]):
        x = np.c_[cells, rng.normal(size=12)]
        model = db.NaiveBayes("auto").fit(x, np.arange(12) % 2)
        assert np.isfinite(model.predict_proba(x)).all()
        model.partial_fit([[3.7, 1.0], [2.5, 0.0]], [0, 1])


def test_families_can_read_the_only_row_of_a_class():
    for odd in (7.0, -1.0, 0.5):
        x = np.r_[np.random.default_rng(0).integers(0, 2, 60), odd][:, np.newaxis]
        model = db.NaiveBayes("auto").fit(x, np.r_[np.arange(60) % 2, 2])
        assert np.isfinite(model.predict_proba(x)).all()


def test_a_family_that_cannot_square_a_cell_loses():
    model = db.NaiveBayes("auto").fit([[1.0], [2.5], [1e300], [4.0]], [0, 1, 0, 1])
    assert model.families_ == {0: db.families.Binned()}


def test_a_fit_with_given_families_forgets_the_contests(rng):
    table, y = mixed(rng)
    model = db.NaiveBayes("auto").fit(table, y).set_params(families=None).fit(table, y)
    assert "families chosen" not in str(model.summary())


def test_a_value_that_only_one_fold_has_is_judged():
    x = np.r_[np.tile([0.0, 1.0], 20), 2.0, 2.0][:, np.newaxis]
    y = np.r_[np.tile([0, 1, 1, 0], 10), 0, 1]
    assert np.isfinite(db.cross_validate(db.NaiveBayes("auto"), x, y, np.r_[np.arange(40) % 2, 2, 2]).log_loss)


def _without(model, table, y, column):
    """The same model of all other columns."""
    families = {name: family for name, family in model.families_.items() if name != column}
    return db.NaiveBayes(families).fit(table.drop(columns=column), y)


OUTSIDE = {"zero-one": [2.0, -1.0, 0.5], "calls": [1.5, -1.0], "wait": [0.0, -3.0]}


@pytest.mark.parametrize("column", OUTSIDE)
@pytest.mark.parametrize("how", ["skip", "category"])
def test_a_number_that_a_chosen_family_cannot_have_is_no_evidence(column, how):
    """As if its cell were missing: in predictions, in what is learned later and in what is forgotten."""
    table, y = mixed(np.random.default_rng(0), 300, missing=0.0)
    model = db.NaiveBayes("auto", missing=how).fit(table, y)
    assert isinstance(model.families_[column], (fam.Bernoulli, fam.Poisson, fam.Exponential))
    silent = _without(model, table, y, column) if how == "skip" else None
    before = model.predict_proba(table)
    for number in OUTSIDE[column]:
        odd = table[:9].assign(**{column: number})
        proba = model.predict_proba(odd)
        if silent is not None:
            np.testing.assert_allclose(proba, silent.predict_proba(odd), rtol=1e-9)
            assert np.abs(proba - before[:9]).max() > 1e-6
        model.partial_fit(odd, y[:9])
        assert np.isfinite(model.leave_one_out(odd, y[:9]).log_loss)
        model.forget(odd, y[:9])
        np.testing.assert_array_equal(model.predict_proba(table), before)
    with pytest.raises(db.DecibanError, match=f"column '{column}', row 4: .*inf"):
        model.predict(table.assign(**{column: np.where(np.arange(300) == 4, np.inf, 1.0)}))
    with pytest.raises(db.DecibanError, match=f"column '{column}', row 0"):  # given families are meant
        db.NaiveBayes(model.families_).fit(table, y).predict(table.assign(**{column: -1.0}))


# Shrinkage
JOINT = fam.MultivariateGaussian("per-class", shrinkage="auto")


def clouds(rng, n=32, d=4):
    y = np.array(["no", "yes"])[np.arange(n) % 2]
    x = rng.normal(size=(n, d)) @ (np.eye(d) + 0.2 * rng.normal(size=(d, d)))
    return x + 0.7 * (y == "yes")[:, np.newaxis], y


@pytest.mark.parametrize("covariance", ["shared", "per-class"])
def test_the_shrinkage_in_use_is_the_one_chosen(rng, covariance):
    """In predictions, and for all rows in leave-one-out: those refits that keep the number, not those that choose."""
    x, y = clouds(rng)
    w = rng.choice([0.5, 1.0, 2.0], len(y)) if covariance == "shared" else None
    model = db.GaussianDiscriminant(covariance, shrinkage="auto").fit(x, y, w)
    s = model.shrinkage_
    assert 0 < s <= 1
    given = db.GaussianDiscriminant(covariance, shrinkage=s).fit(x, y, w)
    np.testing.assert_array_equal(model.predict_log_proba(x), given.predict_log_proba(x))
    kept = refitted(db.GaussianDiscriminant(covariance, shrinkage=s), x, y, np.arange(len(y)), w)
    np.testing.assert_allclose(left_out(model, x, y, w), kept, rtol=1e-9, atol=1e-12)
    assert model.leave_one_out(x, y, w).log_loss == pytest.approx(log_loss(y, kept, sample_weight=w), rel=1e-9)


def test_a_shrinkage_that_is_given_is_the_shrinkage_in_use(rng):
    x, y = clouds(rng)
    for given in (None, 0.3, "oas"):
        model = db.GaussianDiscriminant(shrinkage=given).fit(x, y)
        assert model.shrinkage_ == given
        assert not chosen_of(model)


@pytest.mark.parametrize("covariance", ["shared", "per-class"])
def test_fewer_rows_than_columns_are_no_trouble(rng, covariance):
    x, y = clouds(rng, 8, 12)
    model = db.GaussianDiscriminant(covariance, shrinkage="auto").fit(x, y)
    assert model.status_ == "ok"
    assert np.isfinite(model.predict_log_proba(x)).all()


@pytest.mark.parametrize("covariance", ["shared", "per-class"])
def test_each_fold_chooses_its_shrinkage(rng, covariance):
    x, y = clouds(rng, 32, 2)
    x[3, 1] = np.nan
    weights = rng.choice([0.5, 1.0, 2.0], len(y)) if covariance == "shared" else None
    assert_folds_are_refits(db.GaussianDiscriminant(covariance, shrinkage="auto"), x, y, weights)


def test_the_summary_tells_what_shrinkage_was_chosen_and_why(rng):
    x, y = clouds(rng)
    model = db.GaussianDiscriminant("per-class", shrinkage="auto").fit(x, y)
    value, decibans, other = chosen_of(model)["shrinkage"]
    assert value == model.shrinkage_
    assert other < 1e-3
    kept = [
        refitted(db.GaussianDiscriminant("per-class", shrinkage=s), x, y, np.arange(len(y))) for s in (value, other)
    ]
    gained = 10 / np.log(10) * (log_loss(y, kept[1]) - log_loss(y, kept[0]))
    np.testing.assert_allclose(decibans, gained, rtol=1e-7)
    assert gained > 0


def test_learning_more_and_forgetting_keep_the_shrinkage(rng):
    x, y = clouds(rng)
    model = db.GaussianDiscriminant("per-class", shrinkage="auto").fit(x[:14], y[:14])
    s = model.shrinkage_
    model.partial_fit(x[14:], y[14:])
    assert model.shrinkage_ == s != db.GaussianDiscriminant("per-class", shrinkage="auto").fit(x, y).shrinkage_
    given = db.GaussianDiscriminant("per-class", shrinkage=s).fit(x, y)
    np.testing.assert_allclose(model.predict_proba(x), given.predict_proba(x), rtol=1e-9)
    model.forget(x[14:], y[14:])
    assert model.shrinkage_ == s


def test_of_two_models_the_larger_has_the_shrinkage(rng):
    x, y = clouds(rng)
    few, many = (db.GaussianDiscriminant(shrinkage="auto").fit(x[s], y[s]) for s in (slice(0, 12), slice(12, 32)))
    assert few.shrinkage_ != many.shrinkage_
    assert (few + many).shrinkage_ == (many + few).shrinkage_ == many.shrinkage_
    heavy = db.GaussianDiscriminant(shrinkage="auto").fit(x[:12], y[:12], np.full(12, 100.0))
    assert (heavy + many).shrinkage_ == heavy.shrinkage_
    given = db.GaussianDiscriminant(shrinkage=many.shrinkage_).fit(x, y)
    np.testing.assert_allclose((few + many).predict_proba(x), given.predict_proba(x), rtol=1e-9)


def test_a_joint_block_beside_others(rng):
    """Its own columns choose its shrinkage: the same as when they are alone, whatever else is in the table."""
    table, y = mixed(rng, missing=0.0)
    alone = db.GaussianDiscriminant("per-class", shrinkage="auto").fit(table[["size", "wait"]], y)
    model = db.NaiveBayes({("size", "wait"): JOINT}, smoothing="auto").fit(table, y)
    assert chosen_of(model)["shrinkage"][0] == alone.shrinkage_
    assert chosen_of(model)["smoothing"][0] == model.smoothing_
    fixed = {("size", "wait"): fam.MultivariateGaussian("per-class", shrinkage=alone.shrinkage_)}
    given = db.NaiveBayes(fixed, smoothing="auto").fit(table, y)
    np.testing.assert_array_equal(model.predict_log_proba(table), given.predict_log_proba(table))
    assert model.leave_one_out(table, y).log_loss == given.leave_one_out(table, y).log_loss


def test_a_column_that_is_never_there_leaves_the_choice_to_the_others(rng):
    x, y = clouds(rng)
    alone = db.GaussianDiscriminant(shrinkage="auto").fit(x, y)
    model = db.GaussianDiscriminant(shrinkage="auto").fit(np.c_[np.full(len(y), np.nan), x], y)
    assert model.shrinkage_ == pytest.approx(alone.shrinkage_, abs=1e-6)


def test_one_class_has_nothing_to_predict(rng):
    x, _ = clouds(rng)
    model = db.GaussianDiscriminant(shrinkage="auto").fit(x, ["all"] * len(x))
    assert 0 <= model.shrinkage_ <= 1
    assert (model.predict_proba(x) == 1).all()


def test_a_class_without_weight_is_not_there(rng):
    x, y = clouds(rng)
    third = np.where(np.arange(len(y)) < 6, "never", y)
    model = db.GaussianDiscriminant(shrinkage="auto").fit(x, third, (third != "never").astype(float))
    assert model.shrinkage_ == db.GaussianDiscriminant(shrinkage="auto").fit(x[6:], y[6:]).shrinkage_


@pytest.mark.parametrize("fitted", [False, True])
def test_each_fold_chooses_the_shrinkage_of_a_block(rng, fitted):
    x, y = clouds(rng, 24, 2)
    model = db.NaiveBayes(JOINT)
    assert_folds_are_refits(model.fit(x, y) if fitted else model, x, y)


def test_merged_blocks_keep_their_own_shrinkage(rng):
    x, y = clouds(rng)
    table = pd.DataFrame(x, columns=list("abcd"))
    families = {("a", "b"): JOINT, ("c", "d"): fam.MultivariateGaussian(shrinkage="auto")}
    few = db.NaiveBayes(families).fit(table[:12], y[:12])
    many = db.NaiveBayes(dict(reversed(families.items()))).fit(table, y)
    np.testing.assert_allclose((few + many).predict_proba(table), (many + few).predict_proba(table), rtol=1e-9)


def test_the_shrinkage_of_one_row():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)
        model = db.GaussianDiscriminant(shrinkage="auto").fit([[1.0, 2.0]], ["a"])
        assert model.predict_proba([[1.0, 2.0]]) == 1


# Wrong settings
def test_smoothing_must_be_a_number_or_auto(rng):
    table, y = mixed(rng)
    for smoothing in ("best", "", -1, -1e-9, float("nan")):
        with pytest.raises(ValueError, match="smoothing must be 'auto', or a number of 0 or more, not "):
            db.NaiveBayes(smoothing=smoothing).fit(table, y).predict(table)
        with pytest.raises(ValueError, match="smoothing must be 'auto'"):
            db.cross_validate(db.NaiveBayes(smoothing=smoothing), table, y, cv=2)


def test_families_must_be_families_or_auto(rng):
    table, y = mixed(rng)
    with pytest.raises(ValueError, match=r"families must be 'auto', a family or a dict .* not 'magic'"):
        db.NaiveBayes("magic").fit(table, y)


def test_shrinkage_must_be_a_share_or_a_way_to_choose_it(rng):
    x, y = clouds(rng)
    for shrinkage in ("x", -0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="shrinkage must be a number from 0 to 1, 'oas', 'auto' or None, not "):
            db.GaussianDiscriminant(shrinkage=shrinkage).fit(x, y)
        with pytest.raises(ValueError, match="shrinkage must be"):
            fam.MultivariateGaussian(shrinkage=shrinkage)


def test_a_diagonal_covariance_takes_no_shrinkage(rng):
    x, y = clouds(rng)
    with pytest.raises(ValueError, match="a diagonal covariance takes no shrinkage"):
        db.GaussianDiscriminant("diagonal", shrinkage="auto").fit(x, y)
