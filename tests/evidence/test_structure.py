"""Structure: which columns are read together. Tested by what is chosen, not by the numbers that it is chosen with."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from deciban.data import frame_of
from deciban.data.sampling import row_keys
from deciban.data.schema import Schema
from deciban.evidence import codings, pair_tables
from deciban.evidence.codings import LISTED, WIDEST
from deciban.evidence.forest import Forest
from deciban.evidence.joint_normals import JointNormals
from deciban.evidence.mixed_columns import MOST_CODES
from deciban.evidence.pair_tables import PAIRED
from deciban.evidence.partition_counts import Pairs
from deciban.evidence.structure import FINE, JointSettings, first_plans, joint_plans
from deciban.evidence.symmetric_trees import SymmetricTrees
from deciban.evidence.tables import RARE
from deciban.families import Bernoulli, Binned, Categorical, Gaussian, Multinomial
from tests.evidence.reference import collected, fold_of, mixed, sampled

NOT_RARE = int(np.ceil(RARE))


def planned(X, y, weights=None, pairs=None, trees=3, seed=0):
    """The joint plans of a table, by their families."""
    sample = sampled(X, y, weights)
    plans = joint_plans(collected(sample), sample, JointSettings(pairs, trees, seed))
    actual = {type(plan.family): plan for plan in plans}
    assert len(actual) == len(plans)
    return actual


def names_of(plan, X):
    return [X.columns[j] for j in plan.columns]


def pairs_of(plan, X):
    return [tuple(X.columns[plan.columns[j]] for j in pair) for pair in plan.family.pairs]


# Columns one by one --------------------------------------------------------------------------------------------------


def test_numbers_are_read_twice_and_all_else_by_its_values():
    X, _ = mixed()
    X["nothing"] = None
    plans = first_plans(Schema.of(frame_of(X)), sparse=False)
    names = {(type(p.family), p.presence): [X.columns[j] for j in p.columns] for p in plans}
    assert names == {
        (Binned, False): ["height", "width"],
        (Gaussian, False): ["height", "width"],
        (Categorical, False): ["colour", "code", "left", "right", "flag", "nothing"],
        (Bernoulli, True): ["height", "width"],
    }


def test_tables_of_one_kind_have_no_plans_of_the_others():
    X, _ = mixed()
    actual = {type(p.family) for p in first_plans(Schema.of(frame_of(X[["height"]])), sparse=False)}
    assert actual == {Binned, Gaussian, Bernoulli}
    assert {type(p.family) for p in first_plans(Schema.of(frame_of(X[["colour"]])), sparse=False)} == {Categorical}
    (plan,) = first_plans(Schema.of(frame_of(sp.csr_array(np.eye(3)))), sparse=True)
    assert isinstance(plan.family, Multinomial)
    assert plan.columns == (0, 1, 2)


# Joint normals -------------------------------------------------------------------------------------------------------


def test_a_joint_normal_has_all_columns_that_vary():
    X, y = mixed()
    X["constant"], X["nothing"], X["one"] = 3.0, np.nan, "same"
    X["identifier"] = [f"id {i}" for i in range(len(X))]
    plan = planned(X, y)[JointNormals]
    assert names_of(plan, X) == ["height", "width", "colour", "code", "left", "right", "flag"]
    reading = plan.family.reading
    assert reading.middle[0] == pytest.approx(X["height"].mean(), rel=1e-12)
    assert reading.spread[1] == pytest.approx(X["width"].std(ddof=0), rel=1e-12)
    assert set(reading.levels[2]) == {"red", "green", "blue"}  # values are missing, so there is no baseline
    assert set(reading.levels[3]) == {"u", "v", "w"}
    assert reading.baseline == (False, False, False, True, True, True, True)  # then the others imply the first value
    assert reading.owner.tolist() == [0, 1, 2, 2, 2, 3, 3, 4, 5, 6]
    assert reading.levels[:2] == (None, None)


def test_rare_values_and_more_than_a_few_have_no_entries():
    column = [f"value {i:02}" for i in range(LISTED + 4) for _ in range(NOT_RARE + i)] + ["rare"] * (NOT_RARE - 1)
    X = pd.DataFrame({"x": column})
    (levels,) = planned(X, np.arange(len(X)) % 2)[JointNormals].family.reading.levels
    assert set(levels) == {f"value {i:02}" for i in range(4, LISTED + 4)}


def test_what_is_too_wide_is_left_to_other_blocks():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    letters = {f"c{j}": rng.choice(list("uvw"), 60) for j in range(WIDEST // 2)}
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), **letters})
    assert names_of(planned(X, y, trees=0, pairs=0)[JointNormals], X) == ["a", "b"]
    wide = pd.DataFrame(rng.normal(size=(60, WIDEST + 1)))
    assert JointNormals not in planned(wide, y, trees=0, pairs=0)
    assert JointNormals in planned(wide[list(range(WIDEST))], y, trees=0, pairs=0)


def test_many_classes_allow_fewer_entries(monkeypatch):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(60, 10)))
    monkeypatch.setattr(codings, "PRODUCTS", 300)
    assert JointNormals in planned(X, np.arange(60) % 3, trees=0, pairs=0)
    assert JointNormals not in planned(X, np.arange(60) % 4, trees=0, pairs=0)


# Pairs ---------------------------------------------------------------------------------------------------------------


def xor(n=400, noise=0.1, seed=0):
    """a and b are informative only together; p is by itself, and q is noise."""
    rng = np.random.default_rng(seed)
    a, b, p = (rng.integers(0, 2, n) for _ in range(3))
    y = a ^ b ^ (rng.random(n) < noise)
    X = pd.DataFrame({"a": a.astype(str), "p": np.where(rng.random(n) < 0.8, y, p).astype(str)})
    return X.assign(q=rng.choice(list("uvw"), n), b=np.where(b, 1.0, -1.0) * rng.exponential(size=n)), y


def test_pairs_with_a_gain_over_their_features_are_selected():
    X, y = xor()
    assert pairs_of(planned(X, y)[Pairs], X) == [("a", "b")]
    assert names_of(planned(X, y)[Pairs], X) == ["a", "b"]


def test_at_most_the_given_number_of_pairs_with_a_gain_is_selected():
    X, y = mixed(400)
    everything = pairs_of(planned(X, y, pairs=1000)[Pairs], X)
    assert everything[0] == ("left", "right")
    assert len(everything) < 21  # those that gain nothing are not taken
    for expected_names in (1, 2):
        assert pairs_of(planned(X, y, pairs=expected_names)[Pairs], X) == everything[:expected_names]
    assert Pairs not in planned(X, y, pairs=0)
    best = pairs_of(planned(X, y)[Pairs], X)
    assert best == everything[: len(best)]


def test_pairs_that_the_other_folds_would_choose_have_tables_too(monkeypatch):
    """In one fold a and b say the contrary: all rows together do not select them, those of the other folds do."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("uv"), 150), "b": rng.choice(list("uv"), 150), "z": rng.normal(size=150)})
    frame = frame_of(X)
    reordered = fold_of(row_keys(frame, Schema.of(frame).column_refs(frame), 0)) == 0
    alike = (X["a"] == X["b"]).to_numpy()
    y = np.where(reordered, ~alike, alike ^ (rng.random(150) < 0.25))
    plan = planned(X, y)[Pairs]
    assert pairs_of(plan, X) == [("a", "b")]
    assert plan.family.least == pytest.approx(np.log(3) + 3.0, rel=1e-12)  # to name one of three pairs, and 3 nats
    assert planned(X, y, pairs=3)[Pairs].family.least == 0.0
    monkeypatch.setattr(pair_tables, "MOST_ROWS", 149)  # then rows are many enough to evaluate what they selected
    assert Pairs not in planned(X, y)


def test_no_pair_is_chosen_in_noise():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.choice(list("uvwx"), (300, 12))).add_prefix("c")
    actual = [planned(X, np.random.default_rng(s).integers(0, 2, 300), trees=0) for s in range(10)]
    chosen = [len(plans[Pairs].family.pairs) if Pairs in plans else 0 for plans in actual]
    assert sum(chosen) <= 0.05 * 10 * 66  # except a few, by chance


def test_pairs_with_more_cells_than_rows_are_not_tried():
    """A feature of many values may predict perfectly with another, if each cell has one row."""
    rng = np.random.default_rng(3)
    a = np.repeat(np.arange(20), NOT_RARE)
    X = pd.DataFrame({"a": a.astype(str), "b": rng.permutation(a).astype(str)})
    assert Pairs not in planned(X, rng.integers(0, 2, len(a)), pairs=1000)


def test_the_most_informative_of_many_features_are_tried():
    """The class is a and b, so each is informative by itself, and both together more."""
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.choice(list("uv"), (600, PAIRED + 30))).add_prefix("n")
    X["a"], X["b"] = (rng.choice(list("uv"), 600) for _ in range(2))
    y = ((X["a"] == "u") & (X["b"] == "u")).to_numpy() ^ (rng.random(600) < 0.05)
    actual = pairs_of(planned(X, y.astype(int), pairs=1000, trees=0)[Pairs], X)
    assert actual[0] == ("a", "b")
    assert len({name for pair in actual for name in pair}) <= PAIRED


def test_weights_count_as_rows():
    X, y = xor(300, seed=5)
    times = np.random.default_rng(6).integers(0, 3, 300)
    again = np.random.default_rng(7).permutation(np.repeat(np.arange(300), times))
    kept = np.flatnonzero(times)
    weighted = planned(X.iloc[kept], y[kept], times[kept], pairs=3)
    repeated = planned(X.iloc[again], y[again], pairs=3)
    assert {kind: plan.columns for kind, plan in weighted.items()} == {k: p.columns for k, p in repeated.items()}
    assert weighted[Pairs] == repeated[Pairs]
    assert weighted[Forest].family == repeated[Forest].family
    a, b = (plans[JointNormals].family.reading for plans in (weighted, repeated))
    np.testing.assert_allclose([*a.middle[3:], *a.spread[3:]], [*b.middle[3:], *b.spread[3:]], rtol=1e-12)


# Trees ---------------------------------------------------------------------------------------------------------------


def test_trees_see_all_columns_that_vary():
    X, y = mixed()
    X["constant"], X["nothing"] = 3.0, np.nan
    X["identifier"] = [f"id {i}" for i in range(len(X))]
    plan = planned(X, y)[Forest]
    assert names_of(plan, X) == ["height", "width", "colour", "code", "left", "right", "flag"]
    assert len(plan.family.starts) == 4
    assert plan.family.seed == 0
    reading = plan.family.reading
    assert all(len(cuts or ()) <= FINE for cuts in reading.cuts)
    assert (reading.sizes <= MOST_CODES).all()
    assert set(reading.levels[2]) == {"red", "green", "blue"}


def test_few_values_have_a_bin_each():
    x = np.repeat(np.arange(20.0), 5)
    X = pd.DataFrame({"x": x, "z": x[::-1].copy()})
    reading = planned(X, (x > 9).astype(int))[Forest].family.reading
    np.testing.assert_array_equal(reading.cuts[0], np.arange(19) + 0.5)


def test_there_are_no_trees_for_one_feature_or_class():
    X, y = mixed()
    for kind in (Forest, SymmetricTrees):
        assert kind not in planned(X, y, trees=0)
        assert kind not in planned(X, ["same"] * len(X))
        assert kind not in planned(X[["height"]], y)


def test_without_features_nothing_is_read_jointly():
    X = pd.DataFrame({"a": [None] * 6, "b": [1.0] * 6, "c": ["u"] * 6})
    actual = planned(X, [0, 1] * 3)
    assert {kind: plan.columns for kind, plan in actual.items() if kind is not Forest} == {}


# All ---------------------------------------------------------------------------------------------------------------


def test_what_is_chosen_does_not_depend_on_the_order_of_rows():
    X, y = mixed()
    order = np.random.default_rng(8).permutation(len(X))
    one, other = planned(X, y), planned(X.iloc[order], y[order])
    assert one.keys() == other.keys() == {JointNormals, Pairs, Forest, SymmetricTrees}
    for kind in (Pairs, Forest, SymmetricTrees):
        assert one[kind] == other[kind]
    assert one[JointNormals] == other[JointNormals]  # sums of columns are exact


def test_a_feature_that_repeats_another_is_skipped():
    X, y = mixed()
    twice = pd.concat([X, X.add_suffix(" again")], axis=1)
    one, two = planned(X, y), planned(twice, y)
    assert one.keys() == two.keys()
    for kind, plan in one.items():
        assert plan == two[kind]


def test_columns_of_the_sample_may_stand_in_another_order():
    X, y = mixed()
    single = collected(sampled(X, y))
    one, other = (
        joint_plans(single, sampled(x, y), JointSettings(None, 3, 0)) for x in (X, X[X.columns[::-1]].assign(more=1.0))
    )
    assert one == other
