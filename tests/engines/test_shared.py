"""What holds for every engine, shown with one of 37 lines: any cut of the rows gives the model of all of them."""

import inspect
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deciban as db
from deciban.data.schema import Schema
from deciban.engines.partitions import MAX_WARNINGS, PartitionResult, sum_results
from deciban.engines.prediction_columns import PredictionColumns
from tests.engines import toy
from tests.engines.data import (
    CELLS,
    CUTS,
    JOINT,
    MODELS,
    NUMBERS,
    TABLE,
    close_scatters,
    cut,
    evidence,
    of,
    rounding,
    same_probabilities,
    spoiled,
)

f = db.families
ALL = (*NUMBERS, *CELLS)


def parted(table, cuts=CUTS, weight="weight", seed=0):
    return toy.rows([[part] for part in cut(table, cuts)], "class", weight, seed)


def test_a_third_engine_is_one_small_file():
    assert len(inspect.getsource(toy).splitlines()) < 40


# Learning ------------------------------------------------------------------------------------------------------------

cuts = st.lists(st.integers(0, TABLE.num_rows), max_size=20).map(lambda c: (0, *sorted(c), TABLE.num_rows))


@pytest.mark.parametrize("kind", MODELS)
@settings(max_examples=6)
@given(cuts=cuts, weighted=st.booleans(), lot=st.randoms(use_true_random=False))
def test_any_cut_gives_the_model_of_the_table_to_the_last_bit(kind, cuts, weighted, lot):
    make, columns = MODELS[kind]
    table, weight = (of(columns), "weight") if weighted else (of(columns).drop(["weight"]), None)
    expected = make().fit(table, "class", sample_weight=weight)
    model = make().fit(parted(table, cuts, weight, lot.randrange(99)))
    assert evidence(model) == evidence(expected)
    assert model.predict_proba(table).tobytes() == expected.predict_proba(table).tobytes()
    assert model.classes_.dtype == expected.classes_.dtype
    assert str(model.summary()) == str(expected.summary())


@pytest.mark.parametrize("kind", MODELS)
@settings(max_examples=3)
@given(order=st.permutations(range(len(CUTS) - 1)))
def test_parts_may_come_in_any_order(kind, order):
    make, columns = MODELS[kind]
    expected = make().fit(of(columns), "class", sample_weight="weight")
    parts = cut(of(columns))
    assert evidence(make().fit(toy.rows([[parts[i]] for i in order], "class", "weight"))) == evidence(expected)


def test_a_part_may_come_in_several_tables():
    table = of(ALL)
    parts = [[table.slice(0, 3), table.slice(3, 0), table.slice(3, 77)], [table.slice(80, 0)], [table.slice(80)]]
    model = db.NaiveBayes().fit(toy.rows(parts, "class", "weight"))
    assert evidence(model) == evidence(db.NaiveBayes().fit(table, "class", sample_weight="weight"))


@pytest.mark.parametrize("kind", JOINT)
@settings(max_examples=6)
@given(cuts=cuts, weighted=st.booleans())
def test_covariances_agree_to_rounding(kind, cuts, weighted):
    make, columns = JOINT[kind]
    table, weight = (of(columns), "weight") if weighted else (of(columns).drop(["weight"]), None)
    expected = make().fit(table, "class", sample_weight=weight)
    model = make().fit(parted(table, cuts, weight))
    assert model.class_count_.tolist() == expected.class_count_.tolist()
    close_scatters(model, expected)
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), rounding(kind))
    assert model.predict(table).tolist() == expected.predict(table).tolist()


def test_rows_without_a_whole_one_are_read_twice():
    """Where no row is whole, columns that are never there are left out of a joint normal; that takes all parts."""
    hole = [None] * TABLE.num_rows
    table = of(("height", "wait")).append_column("never", pa.array(hole, pa.float64()))
    expected = db.GaussianDiscriminant().fit(table, "class", sample_weight="weight")
    model = db.GaussianDiscriminant().fit(parted(table))
    close_scatters(model, expected)
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), 1e-11)


EVIDENCE = {
    "all rows weigh": {},
    "some rows weigh": {"max_weight_rows": 100},
    "named text": {"text": ["note"]},
    "no trees": {"trees": 0, "pairs": 0},
}


@pytest.mark.parametrize(("kind", "weighted"), [*((kind, True) for kind in EVIDENCE), ("no trees", False)])
def test_an_evidence_classifier(kind, weighted):
    """Its joint normals are rounded, and the weights are found beside them; all else is equal to the last bit."""
    settings = {"trees": 8} | EVIDENCE[kind]
    table, weight = of((*ALL, "note")), "weight"
    if not weighted:
        table, weight = table.drop(["weight"]), None
    expected = db.EvidenceClassifier(**settings).fit(table, "class", sample_weight=weight)
    model = db.EvidenceClassifier(**settings).fit(parted(table, weight=weight))
    assert evidence(model, exact=True) == evidence(expected, exact=True)
    close_scatters(model, expected)
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), 1e-8)


def test_some_documents_weigh_as_they_do_in_memory():
    """Documents have no joint normal, so nothing is rounded; equal ones are taken as one, whatever part they are in."""
    table = of(("note",))
    expected = db.EvidenceClassifier(text=["note"], max_weight_rows=50).fit(table, "class", sample_weight="weight")
    model = db.EvidenceClassifier(text=["note"], max_weight_rows=50).fit(parted(table))
    assert evidence(model) == evidence(expected)
    same_probabilities(model.weights_.values, expected.weights_.values, 1e-12)


@pytest.mark.parametrize("kind", [db.LogisticRegression, db.SoftmaxRegression])
def test_linear_models(kind):
    table = without_rare(of(ALL))
    expected = kind(l2=1.0).fit(table, "class", sample_weight="weight")
    model = kind(l2=1.0).fit(parted(table, (0, 1, 30, 30, 200, table.num_rows)))
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), 1e-8)
    assert model.predict(table).tolist() == expected.predict(table).tolist()


def without_rare(table):
    return table.filter(pc.not_equal(table["class"], "rare"))


@settings(max_examples=6)
@given(cuts=cuts, weighted=st.booleans())
def test_some_of_the_rows_are_the_same_however_they_are_cut(cuts, weighted):
    """Equal rows are one with the weight of all, so no rows but these differ."""
    table, weight = (
        (of(("visits", "smoker")), "weight") if weighted else (of(("visits", "smoker")).drop(["weight"]), None)
    )

    def some(ends):
        rows = parted(table, ends, weight)
        found = rows.sample(Schema.of(rows.frame), most=12, seed=5)
        weights = np.ones(found.frame.rows) if found.weights is None else found.weights
        cells = zip(*(found.frame.table[name].to_pylist() for name in ("visits", "smoker")), strict=True)
        labels = [found.labels.classes[code] for code in found.labels.codes]
        return {(*cell, label): w for cell, label, w in zip(cells, labels, weights.tolist(), strict=True)}

    found, whole = some(cuts), some((0, TABLE.num_rows))
    assert found.keys() == whole.keys()
    for key, total in found.items():
        assert total == pytest.approx(whole[key])
        met = [r for r in table.to_pylist() if (r["visits"], r["smoker"], r["class"]) == key]
        assert total == pytest.approx(sum(r.get("weight", 1) for r in met))


# Going on ------------------------------------------------------------------------------------------------------------


NEVER_FORGET = "Uniform", "families by the data", "Binned, equal-frequency"  # extrema, and more values than the cap


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind not in NEVER_FORGET])
def test_more_rows_are_learned_and_forgotten(kind):
    make, columns = MODELS[kind]
    first, second = of(columns).slice(0, 200), of(columns).slice(200)
    model = make().fit(parted(first, (0, 50, 200)))
    alone = evidence(model)
    more = parted(second, (0, 0, 40, 140))
    model.partial_fit(more)
    assert evidence(model)[1:] == evidence(make().fit(of(columns), "class", sample_weight="weight"))[1:]
    model.forget(more)
    assert evidence(model) == alone


def test_rows_that_cannot_be_forgotten_leave_the_model_as_it_is():
    table = of(ALL)
    model = db.NaiveBayes().fit(parted(table.slice(0, 100), (0, 50, 100)))
    before = evidence(model)
    with pytest.raises(db.NegativeEvidence):
        model.forget(parted(table, (0, 100, 340)))
    with pytest.raises(db.DecibanError, match="partition 1, row 4: column 'height'"):
        model.partial_fit(toy.rows([[part] for part in spoiled(cut(table), 1, "height", 4, np.inf)], "class", "weight"))
    assert evidence(model) == before


@pytest.mark.parametrize("kind", MODELS | JOINT)
def test_leave_one_out(kind):
    """Of weighted categories to rounding: how they are computed depends on how many rows come at a time."""
    make, columns = (MODELS | JOINT)[kind]
    table = of(columns)
    expected = make().fit(table, "class", sample_weight="weight")
    there = expected.leave_one_out(table, "class", sample_weight="weight")
    found = make().fit(parted(table)).leave_one_out(parted(table))
    if kind in JOINT or kind == "Categorical numbers":
        assert found.confusion.tolist() == there.confusion.tolist()
        assert found.log_loss == pytest.approx(there.log_loss, rel=1e-11)
    else:
        assert found == there


def test_an_evidence_classifier_is_weighed_again():
    table = of(("height", *CELLS))
    expected = db.EvidenceClassifier(trees=0).fit(table.slice(0, 200), "class", sample_weight="weight")
    model = db.EvidenceClassifier(trees=0).fit(parted(table.slice(0, 200), (0, 90, 200)))
    expected.partial_fit(table.slice(200), "class", sample_weight="weight")
    model.partial_fit(parted(table.slice(200), (0, 60, 140)))
    model.refit_weights(parted(table))
    expected.refit_weights(table, "class", sample_weight="weight")
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), 1e-8)
    with pytest.raises(db.DecibanError, match="cross_validate"):
        model.leave_one_out(parted(table))


# Judging -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS | JOINT)
def test_evaluate_is_that_of_all_rows(kind):
    make, columns = (MODELS | JOINT)[kind]
    table = of(columns)
    model = make().fit(without_rare(table).slice(0, 250), "class", sample_weight="weight")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)  # rows beyond a uniform's range
        found, expected = (db.evaluate(model, *x) for x in ((parted(table), None), (table, "class", "weight")))
    assert found == expected
    assert found.log_loss == expected.log_loss


@pytest.mark.parametrize("kind", MODELS | JOINT)
def test_folds_of_a_column_are_those_of_an_array(kind):
    make, columns = (MODELS | JOINT)[kind]
    table = without_rare(of(columns, TABLE, "fold"))
    ends = (0, 30, 30, 31, 200, table.num_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)
        found = db.cross_validate(make(), parted(table, ends), None, "fold")
        fold, weight = table["fold"].to_numpy(), table["weight"].to_numpy()
        expected = db.cross_validate(make(), table.drop(["fold", "weight"]), "class", fold, sample_weight=weight)
    assert len(found.parts) == len(expected.parts) == 4
    if kind in JOINT or kind == "families by the data":  # sums are rounded; or models are fitted anew
        assert found.confusion.tolist() == expected.confusion.tolist()
        assert found.log_loss == pytest.approx(expected.log_loss, rel=1e-11)
    else:
        assert found == expected
        assert list(found.parts) == list(expected.parts)


@pytest.mark.parametrize("make", [db.NaiveBayes, lambda: db.NaiveBayes("auto")])
@settings(max_examples=3)
@given(cuts=cuts)
def test_folds_do_not_depend_on_the_cut(make, cuts):
    table = of(("height", "city"))
    found = db.cross_validate(make(), parted(table, cuts), None, 5, random_state=3)
    assert found == db.cross_validate(make(), parted(table, (0, TABLE.num_rows)), None, 5, random_state=3)
    assert found.rows == pc.sum(table["weight"]).as_py()
    assert len(found.parts) == 5
    assert sum(part.rows for part in found.parts) == pytest.approx(found.rows)
    assert found != db.cross_validate(make(), parted(table, cuts), None, 5, random_state=4)


def test_models_that_are_fitted_anew_for_each_fold():
    table = without_rare(of(("height", "age", *CELLS), TABLE, "fold"))
    for model in (db.EvidenceClassifier(trees=0), db.LogisticRegression(l2=1.0)):
        found = db.cross_validate(model, parted(table, (0, 100, 100, table.num_rows)), None, "fold")
        fold, weight = table["fold"].to_numpy(), table["weight"].to_numpy()
        expected = db.cross_validate(model, table.drop(["fold", "weight"]), "class", fold, sample_weight=weight)
        assert found.log_loss == pytest.approx(expected.log_loss, rel=1e-7)
        assert found.rows == expected.rows


@pytest.mark.parametrize(
    ("folds", "said"),
    [("nope", "there is no column 'nope'"), (1, "from 2"), (2.5, "from 2"), ("city", "has no fold")],
)
def test_bad_folds(folds, said):
    with pytest.raises(db.DecibanError, match=said):
        db.cross_validate(db.NaiveBayes(), parted(of(ALL)), None, folds)


def test_a_fold_column_with_one_fold_and_one_with_a_hole_are_named():
    table = of(("height",)).append_column("fold", pa.array([1] * TABLE.num_rows))
    with pytest.raises(db.DecibanError, match="one fold only"):
        db.cross_validate(db.NaiveBayes(), parted(table), None, "fold")
    parts = spoiled(cut(of(("height",), TABLE, "fold")), 6, "fold", 2, None)
    parts[6] = part_of_weight_one(parts[6])
    with pytest.raises(db.DecibanError, match=r"partition 6.*row 2.*fold"):
        db.cross_validate(db.NaiveBayes(), toy.rows([[p] for p in parts], "class", "weight"), None, "fold")


def part_of_weight_one(part):
    place = part.schema.get_field_index("weight")
    return part.set_column(place, "weight", pa.array([1.0] * part.num_rows))


def test_a_named_column_of_weights_goes_with_an_array_of_folds():
    """In memory, so that the comparison above can be written in either way."""
    table = of(("height",), TABLE, "fold")
    fold, weight = table["fold"].to_numpy(), table["weight"].to_numpy()
    expected = db.cross_validate(db.NaiveBayes(), of(("height",)).drop(["weight"]), "class", fold, sample_weight=weight)
    assert db.cross_validate(db.NaiveBayes(), of(("height",)), "class", fold, sample_weight="weight") == expected


# Bad rows ------------------------------------------------------------------------------------------------------------

BAD = {
    "infinite": ("height", np.inf, db.NaiveBayes, "column 'height': inf is infinite"),
    "infinite, joint": ("height", np.inf, db.GaussianDiscriminant, "column 'height': inf is infinite"),
    "infinite, weighed": ("height", np.inf, db.EvidenceClassifier, "column 'height': inf is infinite"),
    "infinite, linear": ("height", np.inf, db.LogisticRegression, "column 'height': inf is infinite"),
    "no label": ("class", None, db.NaiveBayes, "the label is missing"),
    "negative weight": ("weight", -1.0, db.NaiveBayes, "-1 is not a weight"),
    "no weight": ("weight", None, db.NaiveBayes, "is not a weight"),
    "no waiting time": ("wait", 0.0, lambda: db.NaiveBayes({"wait": f.Exponential()}), "column 'wait': 0.0 is not ab"),
    "negative count": ("visits", -1, lambda: db.NaiveBayes({"visits": f.Poisson()}), "column 'visits': -1 is not a c"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_are_named(kind):
    column, value, make, said = BAD[kind]
    parts = spoiled(cut(of(("height", "wait", "visits"))), 5, column, 3, value)
    parts = spoiled(parts, 12, column, 1, value)
    with pytest.raises(db.DecibanError, match="partition 5, row 3: ") as caught:
        make().fit(toy.rows([[part] for part in parts], "class", "weight"))
    assert said in str(caught.value)


def test_the_first_bad_part_is_named_whoever_was_first():
    parts = spoiled(spoiled(cut(of(ALL)), 12, "height", 0, np.inf), 3, "wait", 1, np.inf)
    for seed in range(5):
        with pytest.raises(db.DecibanError, match="partition 3, row 1: column 'wait'"):
            db.NaiveBayes().fit(toy.rows([[part] for part in parts], "class", "weight", seed))


def test_a_part_that_lacks_a_column_is_named():
    parts = [[part] for part in cut(of(ALL))]
    whole = toy.rows(parts, "class", "weight")
    parts[7] = [parts[7][0].drop(["age"])]
    with pytest.raises(db.DecibanError, match=r"partition 7: .*lacks.*'age'"):
        db.NaiveBayes().fit(replace(whole, parts=tuple(map(tuple, parts))))
    parts[7] = [parts[7][0].append_column("age", pa.array(["old"] * parts[7][0].num_rows))]
    with pytest.raises(db.DecibanError, match=r"partition 7: .*'age'.*text"):
        db.NaiveBayes().fit(replace(whole, parts=tuple(map(tuple, parts))))


def test_columns_of_a_part_are_matched_by_name():
    table = of(ALL)
    parts = cut(table)
    parts[3] = parts[3].select(parts[3].column_names[::-1])
    whole = toy.rows([[part] for part in cut(table)], "class", "weight")
    model = db.NaiveBayes().fit(replace(whole, parts=tuple((part,) for part in parts)))
    assert evidence(model) == evidence(db.NaiveBayes().fit(table, "class", sample_weight="weight"))


def test_no_rows_at_all():
    nothing = of(ALL).slice(0, 0)
    for model in (db.NaiveBayes(), db.EvidenceClassifier(), db.LogisticRegression(), db.NaiveBayes("auto")):
        with pytest.raises(db.DecibanError, match="no rows"):
            model.fit(parted(nothing, (0, 0, 0)))
    model = db.NaiveBayes().fit(of(ALL), "class", sample_weight="weight")
    with pytest.raises(db.DecibanError, match="no rows"):
        db.evaluate(model, parted(nothing, (0, 0, 0)), None)
    with pytest.raises(db.DecibanError, match="no rows"):
        db.cross_validate(model, parted(nothing, (0, 0, 0)), None, 2)


def test_rows_without_weight_are_said_to_be_so():
    table = part_of_weight_one(of(ALL))
    table = table.set_column(table.schema.get_field_index("weight"), "weight", pc.multiply(table["weight"], 0.0))
    with pytest.raises(db.DecibanError, match="weight"):
        db.NaiveBayes().fit(parted(table))


@pytest.mark.parametrize(
    ("label", "weight", "said"),
    [
        ("nope", None, "no column 'nope' to use as label"),
        ("class", "nope", "no column 'nope' to use as weight"),
        ("class", "class", "same column"),
        (0, None, "label must be the name of a column"),
        ("class", [1.0], "sample_weight must be the name of a column"),
    ],
)
def test_label_and_weight_are_columns(label, weight, said):
    with pytest.raises(db.DecibanError, match=said):
        toy.rows([[of(ALL)]], label, weight)


def test_a_warning_of_several_parts_arrives_once():
    table = pa.table({"x": [float(i % 10) for i in range(60)], "class": ["a", "b"] * 30})
    model = db.NaiveBayes(f.Uniform()).fit(table, "class")
    x = [50.0 if i in (12, 25, 47) else float(i % 10) for i in range(60)]
    far = table.set_column(0, "x", pa.array(x))
    with pytest.warns(db.DecibanWarning) as caught:
        db.evaluate(model, parted(far, (0, 10, 20, 30, 40, 60), None), None)
    (told,) = [str(w.message) for w in caught]
    assert told.startswith("3 rows are impossible under every class")
    assert caught[0].filename == __file__


def test_a_warning_that_differs_by_a_number_arrives_once():
    """As it does of the same rows in memory."""
    table = pa.table({"x": [float(i % 10) for i in range(60)], "class": ["a", "b"] * 30})
    model = db.NaiveBayes(f.Uniform()).fit(table, "class")
    x = [50.0 if i in (12, 25, 26, 47, 48, 49) else float(i % 10) for i in range(60)]
    with pytest.warns(db.DecibanWarning) as caught:
        db.evaluate(model, parted(table.set_column(0, "x", pa.array(x)), (0, 10, 20, 30, 40, 60), None), None)
    assert len(caught) == 1


# What comes back -----------------------------------------------------------------------------------------------------


def test_outcomes_add_in_any_grouping():
    def outcomes():
        for number in range(40):
            if number % 7 == 3:
                yield PartitionResult()
            else:
                warned = (("odd", number, 1),) if number % 2 else ()
                yield PartitionResult(np.array([1 << number]), None, warned)

    whole = sum_results(outcomes())
    pieces = [*outcomes()]
    last = sum_results([sum_results(pieces[5:6]), sum_results(pieces[6:])])
    other = sum_results([sum_results(pieces[:5]), sum_results([]), last])
    assert whole.value.tolist() == other.value.tolist() == [sum(1 << n for n in range(40) if n % 7 != 3)]
    odd = [n for n in range(40) if n % 2 and n % 7 != 3]
    assert whole.warnings == other.warnings == (("odd", odd[0], len(odd)),)
    assert sum_results([]).empty
    assert sum_results([]).unwrap() is None


def test_of_errors_the_first_part_is_told_and_nothing_else():
    def fails(number):
        def work():
            raise db.RowError("column 'x'", number, "is bad")

        return PartitionResult.of(number, work)

    total = sum_results([PartitionResult(1), fails(9), fails(4), PartitionResult(2)])
    assert total.value is None
    with pytest.raises(db.DecibanError, match=r"partition 4.*column 'x'"):
        total.unwrap()


@pytest.mark.parametrize(
    "error",
    [db.DecibanError("a"), db.NotInvertible("a"), db.NegativeEvidence("a"), db.RowError("column 'x'", 3, "bad")],
)
def test_errors_travel(error):
    there = pickle.loads(pickle.dumps(error))
    assert type(there) is type(error)
    assert str(there) == str(error)
    assert getattr(there, "row", None) == getattr(error, "row", None)


def test_other_errors_are_not_ours_to_keep():
    with pytest.raises(ZeroDivisionError):
        PartitionResult.of(0, lambda: 1 // 0)


def test_not_too_many_warnings_are_told():
    total = sum_results(PartitionResult(1, None, ((f"warning {number}", number, 1),)) for number in range(50))
    with pytest.warns(db.DecibanWarning) as caught:
        assert total.unwrap() == 50
    assert len(caught) == MAX_WARNINGS


# Answers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [["no", "yes"], [3, 7], [False, True]])
def test_answers_keep_the_type_of_labels(labels):
    model = db.NaiveBayes().fit(np.arange(6.0).reshape(6, 1), np.array(labels * 3))
    answers = PredictionColumns(model)
    rows = np.array([[0.0], [5.0]])
    said, *p = answers.predict(rows)
    assert said.to_pylist() == model.predict(rows).tolist()
    assert [column.to_pylist() for column in p] == model.predict_proba(rows).T.tolist()
    assert [column.type for column in (said, *p)] == answers.types
    assert [column.type for column in answers.empty()] == answers.types
    assert answers.names == ("prediction", *(f"proba_{label}" for label in model.classes_.tolist()))


def test_answers_get_a_number_where_a_name_is_taken():
    model = db.NaiveBayes().fit([[0.0], [1.0]], ["a", "b"])
    taken = ["x", "prediction", "proba_a"]
    names = PredictionColumns(model).free_names(taken)
    assert len({*taken, *names}) == 6
    assert names[2] == "proba_b"
    assert all(name.startswith(("prediction", "proba_a")) for name in names[:2])


def test_answers_without_probabilities():
    model = db.NaiveBayes().fit([[0.0], [1.0]], ["a", "b"])
    assert PredictionColumns(model, probabilities=False).names == ("prediction",)
    assert len(PredictionColumns(model, probabilities=False).predict(np.array([[0.0]]))) == 1
