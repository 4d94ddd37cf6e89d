"""Why a column carries no evidence: the true reason, wherever the rows come from."""

import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban.data.intake import rows_in_memory
from deciban.data.schema import Schema
from deciban.evidence.uninformative import ColumnFacts, notes, reasons

N = 160


def facts(table, weights=None):
    sample = rows_in_memory(table, np.arange(len(table)) % 2, weights)
    return ColumnFacts.of(Schema.of(sample.frame), sample)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    port, age = rng.choice(np.array(["S", "C", "Q", None]), N), rng.normal(40, 10, N).round(3)
    towns = {"S": "Southampton", "C": "Cherbourg", "Q": "Queenstown"}
    y = age + 8 * (port == "S") + rng.normal(size=N) > 42
    return pd.DataFrame(
        {
            "port": port,
            "town": [towns.get(p) for p in port],
            "age": age,
            "age again": age,
            "ticket": [f"T{i}" for i in rng.permutation(N)],
            "same": 7.0,
            "same text": "x",
            "never": np.nan,
            "never text": None,
            "coin": rng.choice(["heads", "tails"], N),
            "y": np.where(y, "yes", "no"),
        }
    )


REASONS = {
    "town": "repeats 'port'",
    "age again": "repeats 'age'",
    "ticket": "different in every row (an identifier)",
    "same": "constant",
    "same text": "constant",
    "never": "missing in every row",
    "never text": "missing in every row",
}


@pytest.fixture(scope="module")
def model(table):
    return db.EvidenceClassifier(trees=2).fit(table, "y")


def test_every_column_without_evidence_has_its_reason(model):
    assert REASONS.items() <= model.columns_without_evidence_.items()
    assert not {"port", "age"} & {*model.columns_without_evidence_}
    assert list(notes(model.columns_without_evidence_)) == list(model.summary().notes)
    assert "no evidence from 'same', 'same text': constant" in model.summary().notes


def test_a_feature_without_another_reason_did_not_help(model):
    """Why a column has no weight; which columns have none is not asked here."""
    assert reasons(model.generative_, {"coin"}, ColumnFacts())["coin"] == "did not help on left-out rows"
    assert reasons(model.generative_, {"coin"}, None)["coin"] == "does not distinguish the classes"


def test_files_and_the_order_of_rows_and_saving_change_no_reason(model, table, tmp_path):
    table.to_csv(tmp_path / "t.csv", index=False)
    others = [table.sample(frac=1, random_state=0), db.scan(tmp_path / "t.csv")]
    for other in others:
        fitted = db.EvidenceClassifier(trees=2).fit(other, "y")
        assert fitted.columns_without_evidence_ == model.columns_without_evidence_
    model.save(tmp_path / "m.deciban")
    assert db.load(tmp_path / "m.deciban").columns_without_evidence_ == model.columns_without_evidence_


def test_what_more_rows_show_counts(model, table):
    more = table.assign(same=np.where(table.index % 2, 7.0, 8.0))
    part = model.empty_copy().partial_fit(more, "y")
    grown = (model + part).columns_without_evidence_
    assert grown["same text"] == "constant"
    assert grown["ticket"] == REASONS["ticket"]
    assert grown["same"] == "did not help on left-out rows"


def test_generative_models_name_constant_and_absent_columns(table):
    bayes = db.NaiveBayes().fit(table, "y").columns_without_evidence_
    assert bayes == {name: why for name, why in REASONS.items() if why in ("constant", "missing in every row")}
    joint = db.GaussianDiscriminant().fit(table[["age", "same", "never", "y"]], "y")
    with pytest.warns(db.DecibanWarning, match="singular"):
        assert joint.columns_without_evidence_ == {"same": "constant", "never": "missing in every row"}
    supervised = db.NaiveBayes(db.families.Binned("supervised")).fit(table[["age"]], np.arange(N) % 2)
    assert supervised.columns_without_evidence_ == {"age": "does not distinguish the classes"}


def test_numbers_and_text_with_equal_partitions_repeat_each_other():
    actual = facts(pd.DataFrame({"class": [1, 1, 2, 3] * 5, "name": ["first", "first", "second", "third"] * 5}))
    assert actual == ColumnFacts((("name", "class"),), ())


def test_features_with_distinct_values_are_no_repeats_for_that():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=30), "b": rng.normal(size=30), "c": [f"{i}" for i in range(30)]})
    assert facts(table) == ColumnFacts((), (("c", 1.0),))
    assert facts(table.assign(d=table["a"], e=table["c"])).repeats == (("d", "a"), ("e", "c"))


def test_identifiers_are_names_and_whole_numbers_not_measurements():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"number": rng.permutation(1000)[:40], "length": rng.random(40), "shared": ["a", "b"] * 20})
    assert facts(table).identifiers == (("number", 1.0),)
    nearly = table.assign(number=[*range(38), 0, 1])
    assert facts(nearly).identifiers == (("number", 38 / 40),)
    with_missing = table.assign(number=[None, *range(39)])
    assert facts(with_missing).identifiers == (("number", 1.0),)
    assert facts(table, np.repeat([1.0, 9.0], 20)).identifiers == ()  # nine rows each, or one that counts as much


def test_the_share_of_distinct_values_is_reported():
    table = pd.DataFrame({"x": np.arange(200.0), "ticket": [f"T{i % 190}" for i in range(200)]})
    model = db.EvidenceClassifier(trees=0, pairs=0).fit(table, np.arange(200) // 7 % 2)
    assert model.columns_without_evidence_["ticket"] == "different in 95 % of the rows (an identifier)"


def test_facts_that_two_models_share():
    a = ColumnFacts((("b", "a"), ("d", "c")), (("id", 1.0), ("e", 0.9)))
    b = ColumnFacts((("b", "a"), ("d", "a")), (("id", 0.95),))
    assert a.shared(b) == ColumnFacts((("b", "a"),), (("id", 0.95),))
