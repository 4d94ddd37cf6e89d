"""Files fitted apart and merged are one fit over all, also where a column is empty in some of them."""

from functools import reduce
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deciban as db
from deciban import families as f
from deciban.errors import DecibanError, NegativeEvidence
from tests.laws import assert_same_bits, flattened

# A column's name: its type, its cells, and the families that may read it; None is the family of its kind.
COLUMNS = {
    "size": (pa.float64(), st.sampled_from([0.5, 1.0, 2.75, 1e8, 1e-8]), [None, f.Gaussian(), f.Gaussian(ddof=1)]),
    "wait": (pa.float64(), st.sampled_from([0.1, 1.0, 2.3]), [None, f.Exponential(), f.Uniform(), f.Binned()]),
    "visits": (pa.int64(), st.integers(0, 5), [None, f.Poisson(), f.Categorical(), f.Multinomial()]),
    "age": (pa.int64(), st.integers(0, 5), [None, f.Bernoulli(threshold=2), f.Gaussian(ddof=1)]),
    "member": (pa.bool_(), st.booleans(), [None, f.Bernoulli(), f.Gaussian(), f.Categorical()]),
    "paid": (pa.bool_(), st.booleans(), [None]),
    "colour": (pa.string(), st.sampled_from(["red", "green", "blue"]), [None, f.Categorical(db.priors.Laplace(2))]),
    "town": (pa.string(), st.sampled_from(["here", "there"]), [None, f.Categorical()]),
}


def table_of(cells, empty=()):
    """A column of `empty` has no type and no cell."""
    columns = {
        name: pa.nulls(len(values)) if name in empty else pa.array(values, COLUMNS[name][0])
        for name, values in cells.items()
    }
    return pa.table(columns)


@st.composite
def files(draw):
    """Tables with labels and weights, and all of their rows in one: typed wherever a file is."""
    names = draw(st.permutations(list(COLUMNS)))[: draw(st.integers(1, len(COLUMNS)))]
    parts, everything, always_empty = [], {name: [] for name in names}, set(names)
    for _ in range(draw(st.integers(2, 4))):
        n = draw(st.integers(1, 4))
        empty = draw(st.sets(st.sampled_from(names)))
        always_empty &= empty
        cells = {
            name: [None] * n if name in empty else draw(st.lists(st.none() | COLUMNS[name][1], min_size=n, max_size=n))
            for name in names
        }
        labels = draw(st.lists(st.sampled_from("pqr"), min_size=n, max_size=n))
        weights = draw(st.lists(st.sampled_from([1.0, 0.1, 3.7, 1e-9]), min_size=n, max_size=n))
        parts.append((table_of(cells, empty), labels, weights))
        for name in names:
            everything[name] += cells[name]
    labels, weights = ([x for part in parts for x in part[i]] for i in (1, 2))
    return parts, (table_of(everything, always_empty), labels, weights)


@st.composite
def given_families(draw, names):
    """Of some columns, in any order."""
    chosen = {name: draw(st.sampled_from(COLUMNS[name][2])) for name in draw(st.permutations(names))}
    return {name: family for name, family in chosen.items() if family is not None}


def fitted(file, families, missing, weighted):
    table, labels, weights = file
    return db.NaiveBayes(families, missing=missing).fit(table, labels, weights if weighted else None)


def assert_one_model(a, b, rows):
    """Nobody can tell two models apart."""
    one, other = a.generative_, b.generative_
    assert (one.schema, one.classes, one.plans) == (other.schema, other.classes, other.plans)
    assert_same_bits({"counts": one.counts.words}, {"counts": other.counts.words})
    for mine, theirs in zip(one.blocks, other.blocks, strict=True):
        assert_same_bits(flattened(mine.statistic), flattened(theirs.statistic))
    scores = [model.predict_joint_log_proba(rows).tobytes() for model in (a, b)]
    assert scores[0] == scores[1]


missing_cells = pytest.mark.parametrize("missing", ["skip", "category"])


@missing_cells
@settings(max_examples=10)
@given(data=st.data())
def test_merged_files_are_one_fit_whatever_is_empty_in_them(missing, data):
    parts, whole = data.draw(files())
    families, weighted = data.draw(given_families(whole[0].column_names)), data.draw(st.booleans())
    models = [fitted(part, families, missing, weighted) for part in data.draw(st.permutations(parts))]
    joint = fitted(whole, families, missing, weighted)
    assert_one_model(reduce(lambda a, b: a + b, models), joint, whole[0])
    assert_one_model(reduce(lambda a, b: b + a, models), joint, whole[0])


@missing_cells
@settings(max_examples=10)
@given(data=st.data())
def test_partial_fits_are_one_fit_whatever_is_empty_in_them(missing, data):
    parts, whole = data.draw(files())
    families, weighted = data.draw(given_families(whole[0].column_names)), data.draw(st.booleans())
    model = db.NaiveBayes(families, missing=missing)
    for table, labels, weights in data.draw(st.permutations(parts)):
        model.partial_fit(table, labels, sample_weight=weights if weighted else None)
    assert_one_model(model, fitted(whole, families, missing, weighted), whole[0])


@missing_cells
@settings(max_examples=10)
@given(data=st.data())
def test_a_file_with_empty_columns_can_be_forgotten(missing, data):
    parts, whole = data.draw(files())
    families = data.draw(given_families(whole[0].column_names))
    families = {name: family for name, family in families.items() if not isinstance(family, f.Uniform)}
    model = fitted(whole, families, missing, weighted=True)
    kept, gone = parts[:-1], parts[-1]
    model.forget(gone[0], gone[1], gone[2])
    rest = reduce(lambda a, b: a + b, [fitted(part, families, missing, weighted=True) for part in kept])
    assert model.classes_.tolist() == rest.classes_.tolist()
    # what was forgotten has left types behind, and no evidence
    scores = [m.predict_joint_log_proba(whole[0]) for m in (model, rest)]
    np.testing.assert_allclose(*scores, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("turned", [False, True])
def test_cells_that_are_empty_count_as_missing_ones(turned):
    """x of p: 1, 3 and three missing; of q: 2, 4, 6 and one missing. Absent: (3 + 1)/(5 + 2) and (1 + 1)/(4 + 2)."""
    first = db.NaiveBayes(missing="category").fit(pa.table({"x": pa.nulls(3)}), list("ppq"))
    second = db.NaiveBayes(missing="category").fit(pa.table({"x": [1.0, None, 3.0, 2.0, 4.0, 6.0]}), list("pppqqq"))
    merged = second + first if turned else first + second

    def normal(x, mean, variance):
        return np.exp(-((x - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)

    present = [5 / 9 * normal(2.5, 2, 1) * 3 / 7, 4 / 9 * normal(2.5, 4, 8 / 3) * 4 / 6]
    absent = [5 / 9 * 4 / 7, 4 / 9 * 2 / 6]
    asked = pa.table({"x": [2.5, None]})
    np.testing.assert_allclose(np.exp(merged.predict_joint_log_proba(asked)), [present, absent], rtol=1e-12)


def test_an_empty_column_takes_the_kind_that_it_turns_out_to_have():
    model = db.NaiveBayes().fit(pa.table({"x": pa.nulls(2), "y": [1.0, 2.0]}), list("pq"))
    assert model.generative_.schema.kinds == ("empty", "number")
    model.partial_fit(pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0]}), list("pq"))
    assert model.generative_.schema.kinds == ("number", "number")
    assert model.families_ == {"x": f.Gaussian(), "y": f.Gaussian()}
    model.partial_fit(pa.table({"x": pa.nulls(2), "y": [1.0, 2.0]}), list("pq"))
    assert model.generative_.schema.kinds == ("number", "number")


def test_an_empty_column_keeps_the_family_that_it_was_given():
    for family in (f.Categorical(), f.Poisson()):
        model = db.NaiveBayes({"x": family}).fit(pa.table({"x": pa.nulls(2)}), list("pq"))
        assert model.partial_fit(pa.table({"x": [1.0, 2.0]}), list("pq")).families_ == {"x": family}


def test_a_column_that_a_chosen_family_meets_later_is_read_leniently():
    model = db.NaiveBayes("auto").fit(pa.table({"x": pa.nulls(4), "y": [1.5, 2.5, 3.5, 9.5]}), list("ppqq"))
    model.partial_fit(pa.table({"x": [1.0, 2.0], "y": [1.5, 2.5]}), list("pq"))
    assert model.families_["x"] == f.Gaussian()
    assert all(plan.lenient for plan in model.generative_.plans)


def test_an_empty_column_says_nothing_of_the_cells_that_come_later():
    model = db.NaiveBayes().fit(pa.table({"x": pa.nulls(3)}), list("ppq"))
    np.testing.assert_allclose(model.predict_proba(pa.table({"x": [1.0, None]})), [[2 / 3, 1 / 3]] * 2)


def test_what_an_empty_column_never_held_cannot_be_forgotten():
    model = db.NaiveBayes().fit(pa.table({"x": pa.nulls(2)}), list("pq"))
    before = model.generative_
    with pytest.raises(NegativeEvidence, match="the model is unchanged"):
        model.forget(pa.table({"x": [1.0]}), ["p"])
    assert model.generative_ is before
    model.forget(pa.table({"x": pa.array([None], pa.float64())}), ["p"])
    assert model.classes_.tolist() == ["q"]
    assert (model.generative_.schema.kinds, model.families_) == (("number",), {"x": f.Gaussian()})


def test_an_empty_column_does_not_let_text_and_numbers_mix():
    empty, text, numbers = (
        db.NaiveBayes().fit(pa.table({"x": cells}), list("pq")) for cells in (pa.nulls(2), ["a", "b"], [1.0, 2.0])
    )
    with pytest.raises(DecibanError, match="column 'x' held text so far and holds numbers now"):
        empty + text + numbers


def test_columns_that_hold_something_keep_models_of_other_families_apart():
    x, y = pa.table({"x": [1.0, 2.0], "hollow": pa.nulls(2)}), list("pq")
    models = [db.NaiveBayes({"x": family}).fit(x, y) for family in (f.Poisson(), f.Gaussian(), f.Categorical())]
    for a, b in permutations(models, 2):
        with pytest.raises(DecibanError, match="different families"):
            a + b


# Joint blocks --------------------------------------------------------------------------------------------------------

SEVERAL = list("abc")


def discriminant(x, labels, absent=()):
    """Columns of `absent` are empty: without a type, or numbers of which there are none."""
    hollow = {"null": pa.nulls(len(x)), "numbers": pa.array([None] * len(x), pa.float64())}
    columns = {name: hollow[absent[name]] if name in absent else x[:, j] for j, name in enumerate(SEVERAL)}
    return db.GaussianDiscriminant().fit(pa.table(columns), labels)


@pytest.mark.parametrize(
    ("absent", "kind"), [(["a"], "null"), (["b"], "numbers"), (["a", "c"], "null"), (["a", "b", "c"], "numbers")]
)
def test_rows_without_a_column_are_left_out_of_a_joint_block_as_in_one_fit(absent, kind):
    x, labels = np.random.default_rng(5).normal(size=(60, 3)), np.arange(60) % 3
    absent_columns = dict.fromkeys(absent, kind)
    whole, incomplete = discriminant(x[:40], labels[:40]), discriminant(x[40:], labels[40:], absent_columns)
    cells = np.where(np.isin(SEVERAL, absent) & (np.arange(60) >= 40)[:, np.newaxis], np.nan, x)
    joint = db.GaussianDiscriminant().fit(pa.table(dict(zip(SEVERAL, cells.T, strict=True))), labels)
    for merged in (whole + incomplete, incomplete + whole, incomplete + whole + incomplete):
        assert merged.generative_.plans == joint.generative_.plans
        twice = merged.class_count_.sum() > 60
        statistic, expected = (model.generative_.blocks[0].statistic for model in (merged, joint))
        assert statistic.skipped.value.sum() == 20 * (1 + twice)
        np.testing.assert_array_equal(statistic.count.value, expected.count.value)
        np.testing.assert_allclose(statistic.within, expected.within, rtol=1e-12)
        np.testing.assert_allclose(merged.means_, joint.means_, rtol=1e-12)


def test_joint_blocks_of_which_each_lacks_a_column_have_no_row_in_common():
    x, labels = np.random.default_rng(5).normal(size=(30, 3)), np.arange(30) % 3
    a, b = (discriminant(x, labels, {name: "null"}) for name in "ab")
    for one, other in ((a, b), (b, a)):
        with pytest.raises(DecibanError, match="different families"):
            one + other


@missing_cells
def test_a_joint_block_stands_beside_columns_that_turn_out_to_hold_something(missing):
    rng = np.random.default_rng(7)
    x, labels = rng.normal(size=(40, 4)), np.arange(40) % 2
    families = {("b", "d"): f.MultivariateGaussian("per-class")}

    def table(rows, *empty):
        return pa.table({n: pa.nulls(len(rows)) if n in empty else rows[:, j] for j, n in enumerate("abcd")})

    def model(rows, y, *empty):
        return db.NaiveBayes(families, missing=missing).fit(table(rows, *empty), y)

    incomplete = x.copy()
    incomplete[25:, [0, 1]] = np.nan
    whole = db.NaiveBayes(families, missing=missing).fit(table(incomplete), labels)
    for merged in (
        model(x[:25], labels[:25]) + model(x[25:], labels[25:], "a", "b"),
        model(x[25:], labels[25:], "a", "b") + model(x[:25], labels[:25]),
    ):
        assert merged.generative_.plans == whole.generative_.plans
        np.testing.assert_allclose(merged.predict_proba(table(x)), whole.predict_proba(table(x)), rtol=1e-10)
