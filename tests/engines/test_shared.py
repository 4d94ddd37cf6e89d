"""What holds for every engine, shown with one of 35 lines: any partition of the rows gives the model of all of them."""

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
    ALL,
    CELLS,
    CUTS,
    JOINT,
    MODELS,
    PLAIN,
    TABLE,
    assert_close,
    assert_same_bits,
    close_scatters,
    cut,
    evidence,
    impossible_rows,
    in_memory,
    of,
    replace_cell,
    rounding,
    same_probabilities,
    selected,
    two_classes,
)

f = db.families


def distributed(table, cuts=CUTS, weight="weight", seed=0):
    return rows_of(cut(table, cuts), weight, seed)


def rows_of(parts, weight="weight", seed=0):
    return toy.rows([[part] for part in parts], "class", weight, seed)


def test_a_third_engine_is_one_small_file():
    assert len(inspect.getsource(toy).splitlines()) < 40


# Fitting -------------------------------------------------------------------------------------------------------------

cuts = st.lists(st.integers(0, TABLE.num_rows), max_size=10).map(lambda c: (0, *sorted(c), TABLE.num_rows))


@pytest.mark.parametrize("kind", MODELS)
@settings(max_examples=3)
@given(cuts=cuts, weighted=st.booleans(), lot=st.randoms(use_true_random=False))
def test_any_partition_in_any_order_gives_the_model_of_the_table_to_the_last_bit(kind, cuts, weighted, lot):
    make, table, weight = selected(kind, weighted)
    parts = cut(table, cuts)
    model = make().fit(rows_of(lot.sample(parts, len(parts)), weight, lot.randrange(99)))
    assert_same_bits(model, in_memory(kind, weighted), table)
    assert str(model.summary()) == str(in_memory(kind, weighted).summary())


def test_a_partition_may_come_in_several_tables():
    table = of(ALL)
    parts = [[table.slice(0, 3), table.slice(3, 0), table.slice(3, 77)], [table.slice(80, 0)], [table.slice(80)]]
    model = db.NaiveBayes().fit(toy.rows(parts, "class", "weight"))
    assert_same_bits(model, in_memory(PLAIN), table)


@pytest.mark.parametrize("kind", JOINT)
@settings(max_examples=3)
@given(cuts=cuts, weighted=st.booleans())
def test_covariances_agree_to_rounding(kind, cuts, weighted):
    make, table, weight = selected(kind, weighted)
    model = make().fit(distributed(table, cuts, weight))
    assert_close(model, in_memory(kind, weighted), table, rounding(kind))


def test_rows_without_a_whole_one_are_read_twice():
    """Where no row is whole, columns that are always missing are left out of a joint normal; that takes all parts."""
    table = of(("height", "wait")).append_column("never", pa.nulls(TABLE.num_rows, pa.float64()))
    expected = db.GaussianDiscriminant().fit(table, "class", sample_weight="weight")
    model = db.GaussianDiscriminant().fit(distributed(table))
    close_scatters(model, expected)
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), 1e-11)


@pytest.mark.parametrize(
    ("settings", "weight"),
    [
        ({"trees": 4, "pairs": 1, "text": ["note"]}, "weight"),
        ({"trees": 0, "pairs": 0, "max_weight_rows": 60}, "weight"),
        ({"trees": 0, "pairs": 0}, None),
    ],
    ids=["all rows", "a sample", "no weights"],
)
def test_an_evidence_classifier(settings, weight):
    """Its joint normals are rounded, and so are the weights beside them; all else is equal to the last bit."""
    table, cuts = two_classes(("height", "city", "note"))
    table = table if weight else table.drop(["weight", "note"])
    expected = db.EvidenceClassifier(**settings).fit(table, "class", sample_weight=weight)
    model = db.EvidenceClassifier(**settings).fit(distributed(table, cuts, weight))
    assert_close(model, expected, table, 1e-8)


def test_the_weights_of_a_sample_of_documents_are_those_of_one_process():
    """Documents have no joint normal, so nothing is rounded; equal ones are taken as one, whatever part they are in."""
    table = of(("note",))
    expected = db.EvidenceClassifier(text=["note"], max_weight_rows=50).fit(table, "class", sample_weight="weight")
    model = db.EvidenceClassifier(text=["note"], max_weight_rows=50).fit(distributed(table))
    assert evidence(model) == evidence(expected)
    same_probabilities(model.weights_.values, expected.weights_.values, 1e-12)


@pytest.mark.parametrize("kind", [db.LogisticRegression, db.SoftmaxRegression])
def test_linear_models(kind):
    table = without_rare(of(("height", *CELLS)))
    expected = kind(l2=1.0).fit(table, "class", sample_weight="weight")
    model = kind(l2=1.0).fit(distributed(table, (0, 1, 30, 30, 200, table.num_rows)))
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), 1e-8)
    assert model.predict(table).tolist() == expected.predict(table).tolist()


def without_rare(table):
    return table.filter(pc.not_equal(table["class"], "rare"))


@settings(max_examples=4)
@given(cuts=cuts, weighted=st.booleans())
def test_a_sample_of_the_rows_does_not_depend_on_the_partitions(cuts, weighted):
    """Equal rows are one with the weight of all, so all rows of the sample differ."""
    table, weight = of(("visits", "smoker")), "weight" if weighted else None
    table = table if weighted else table.drop(["weight"])

    def sample(ends):
        rows = distributed(table, ends, weight)
        sample = rows.sample(Schema.of(rows.frame), most=12, seed=5)
        weights = np.ones(sample.frame.rows) if sample.weights is None else sample.weights
        cells = zip(*(sample.frame.table[name].to_pylist() for name in ("visits", "smoker")), strict=True)
        labels = [sample.labels.classes[code] for code in sample.labels.codes]
        return {(*cell, label): w for cell, label, w in zip(cells, labels, weights.tolist(), strict=True)}

    actual, whole = sample(cuts), sample((0, TABLE.num_rows))
    assert actual == pytest.approx(whole)
    for key, total in actual.items():
        equal = [r for r in table.to_pylist() if (r["visits"], r["smoker"], r["class"]) == key]
        assert total == pytest.approx(sum(r.get("weight", 1) for r in equal))


# More rows -----------------------------------------------------------------------------------------------------------

NOT_INVERTIBLE = "Uniform", "selected families", "Binned, equal-frequency"  # extrema, and more values than the cap


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind not in NOT_INVERTIBLE])
def test_more_rows_are_added_and_forgotten(kind):
    make, table, _ = selected(kind)
    model = make().fit(distributed(table.slice(0, 200), (0, 50, 200)))
    alone = evidence(model)
    more = distributed(table.slice(200), (0, 0, 40, 140))
    model.partial_fit(more)
    assert evidence(model)[1:] == evidence(in_memory(kind))[1:]
    model.forget(more)
    assert evidence(model) == alone


def test_rows_that_cannot_be_forgotten_leave_the_model_as_it_is():
    table = of(ALL)
    model = db.NaiveBayes().fit(distributed(table.slice(0, 100), (0, 50, 100)))
    before = evidence(model)
    with pytest.raises(db.NegativeEvidence):
        model.forget(distributed(table, (0, 100, 340)))
    with pytest.raises(db.DecibanError, match="partition 1, row 4: column 'height'"):
        model.partial_fit(rows_of(replace_cell(cut(table), 1, "height", 4, np.inf)))
    assert evidence(model) == before


def test_the_weights_of_an_evidence_classifier_are_fitted_again():
    table, _ = two_classes(("height", "city"))
    expected, model = (db.EvidenceClassifier(trees=0, pairs=0) for _ in range(2))
    expected.fit(table.slice(0, 100), "class", sample_weight="weight")
    model.fit(distributed(table.slice(0, 100), (0, 40, 100)))
    expected.partial_fit(table.slice(100), "class", sample_weight="weight")
    model.partial_fit(distributed(table.slice(100), (0, 30, 50)))
    model.refit_weights(distributed(table, (0, 70, 150)))
    expected.refit_weights(table, "class", sample_weight="weight")
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), 1e-8)
    with pytest.raises(db.DecibanError, match="cross_validate"):
        model.leave_one_out(distributed(table, (0, 150)))


# Evaluating ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS | JOINT)
def test_evaluation_leave_one_out_and_folds_are_those_of_all_rows(kind):
    """With the folds of a column, which are those of an array."""
    make, table, _ = selected(kind)
    model, joint = in_memory(kind), kind in JOINT
    with_folds = without_rare(of(KEPT[kind], TABLE, "fold"))
    fold, weight = with_folds["fold"].to_numpy(), with_folds["weight"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)  # rows beyond a uniform's range
        of_some = make().fit(without_rare(table).slice(0, 250), "class", sample_weight="weight")
        one, other = (db.evaluate(of_some, *x) for x in ((distributed(table), None), (table, "class", "weight")))
        assert one == other
        assert one.log_loss == other.log_loss
        expected = model.leave_one_out(table, "class", sample_weight="weight")
        # of weighted categories to rounding: how they are computed depends on how many rows come at a time
        assert_same_figures(model.leave_one_out(distributed(table)), expected, joint or kind == "Categorical numbers")
        ends = (0, 30, 30, 31, 200, with_folds.num_rows)
        actual = db.cross_validate(make(), distributed(with_folds, ends), None, "fold")
        plain = with_folds.drop(["fold", "weight"])
        expected = db.cross_validate(make(), plain, "class", fold, sample_weight=weight)
    assert len(actual.parts) == len(expected.parts) == 4
    assert_same_figures(actual, expected, joint or kind == "selected families")  # which are fitted for each fold


KEPT = {kind: columns for kind, (_, columns) in (MODELS | JOINT).items()}


def assert_same_figures(actual, expected, rounded):
    if rounded:
        assert actual.confusion.tolist() == expected.confusion.tolist()
        assert actual.log_loss == pytest.approx(expected.log_loss, rel=1e-11)
    else:
        assert actual == expected
        assert list(actual.parts) == list(expected.parts)


@pytest.mark.parametrize(
    ("make", "columns"),
    [(db.NaiveBayes, ("height", "city")), (lambda: db.NaiveBayes("auto"), ("height",))],
    ids=["plain", "auto"],
)
@settings(max_examples=2)
@given(cuts=cuts)
def test_folds_do_not_depend_on_the_partitions(make, columns, cuts):
    table = of(columns)
    actual = db.cross_validate(make(), distributed(table, cuts), None, 5, random_state=3)
    assert actual == db.cross_validate(make(), distributed(table, (0, TABLE.num_rows)), None, 5, random_state=3)
    assert actual.rows == pc.sum(table["weight"]).as_py()
    assert len(actual.parts) == 5
    assert sum(part.rows for part in actual.parts) == pytest.approx(actual.rows)
    assert actual != db.cross_validate(make(), distributed(table, cuts), None, 5, random_state=4)


@pytest.mark.parametrize(
    "model", [db.EvidenceClassifier(trees=0, pairs=0), db.LogisticRegression(l2=1.0)], ids=["evidence", "linear"]
)
def test_models_that_are_fitted_for_each_fold(model):
    table, cuts = two_classes(("height", "city"), "fold")
    actual = db.cross_validate(model, distributed(table, cuts), None, "fold")
    fold, weight = table["fold"].to_numpy(), table["weight"].to_numpy()
    expected = db.cross_validate(model, table.drop(["fold", "weight"]), "class", fold, sample_weight=weight)
    assert actual.log_loss == pytest.approx(expected.log_loss, rel=1e-7)
    assert actual.rows == expected.rows


def test_bad_folds_are_named():
    one_fold = of(("height",)).append_column("fold", pa.array([1] * TABLE.num_rows))
    missing = replace_cell(cut(of(("height",), TABLE, "fold")), 6, "fold", 2, None)
    missing[6] = with_weight(missing[6], 1.0)
    for rows, folds, message in (
        (distributed(of(ALL)), "nope", "there is no column 'nope'"),
        (distributed(of(ALL)), 1, "from 2"),
        (distributed(of(ALL)), 2.5, "from 2"),
        (distributed(of(ALL)), "city", "has no fold"),
        (distributed(one_fold), "fold", "one fold only"),
        (rows_of(missing), "fold", r"partition 6.*row 2.*fold"),
    ):
        with pytest.raises(db.DecibanError, match=message):
            db.cross_validate(db.NaiveBayes(), rows, None, folds)


def with_weight(part, weight):
    return part.set_column(part.schema.get_field_index("weight"), "weight", pa.array([weight] * part.num_rows))


def test_a_named_column_of_weights_goes_with_an_array_of_folds():
    """In memory, so that the comparison above can be written in either way."""
    table = of(("height",), TABLE, "fold")
    fold, weight = table["fold"].to_numpy(), table["weight"].to_numpy()
    expected = db.cross_validate(db.NaiveBayes(), of(("height",)).drop(["weight"]), "class", fold, sample_weight=weight)
    assert db.cross_validate(db.NaiveBayes(), of(("height",)), "class", fold, sample_weight="weight") == expected


# Bad rows ------------------------------------------------------------------------------------------------------------

INFINITE = "column 'height': inf is infinite"
BAD = {
    "infinite": ("height", np.inf, db.NaiveBayes, INFINITE),
    "infinite, joint": ("height", np.inf, db.GaussianDiscriminant, INFINITE),
    "infinite, evidence": ("height", np.inf, db.EvidenceClassifier, INFINITE),
    "infinite, linear": ("height", np.inf, db.LogisticRegression, INFINITE),
    "no label": ("class", None, db.NaiveBayes, "the label is missing"),
    "negative weight": ("weight", -1.0, db.NaiveBayes, "-1 is not a weight"),
    "no weight": ("weight", None, db.NaiveBayes, "is not a weight"),
    "no waiting time": ("wait", 0.0, lambda: db.NaiveBayes({"wait": f.Exponential()}), "column 'wait': 0.0 is not ab"),
    "negative count": ("visits", -1, lambda: db.NaiveBayes({"visits": f.Poisson()}), "column 'visits': -1 is not a c"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_are_named(kind):
    column, value, make, message = BAD[kind]
    parts = replace_cell(cut(of(("height", "wait", "visits"))), 4, column, 3, value)
    with pytest.raises(db.DecibanError, match="partition 4, row 3: ") as caught:
        make().fit(rows_of(replace_cell(parts, 6, column, 1, value)))
    assert message in str(caught.value)


def test_the_first_bad_partition_is_named_whichever_was_read_first():
    parts = replace_cell(replace_cell(cut(of(ALL)), 6, "height", 0, np.inf), 2, "wait", 1, np.inf)
    for seed in range(3):
        with pytest.raises(db.DecibanError, match="partition 2, row 1: column 'wait'"):
            db.NaiveBayes().fit(rows_of(parts, seed=seed))


def test_columns_of_a_partition_are_matched_by_name():
    parts = cut(of(ALL))
    whole = rows_of(parts)

    def refitted(part):
        tables = [*parts[:6], part, *parts[7:]]
        return db.NaiveBayes().fit(replace(whole, parts=tuple((table,) for table in tables)))

    assert evidence(refitted(parts[6].select(parts[6].column_names[::-1]))) == evidence(in_memory(PLAIN))
    lacking = parts[6].drop(["age"])
    with pytest.raises(db.DecibanError, match=r"partition 6: .*lacks.*'age'"):
        refitted(lacking)
    with pytest.raises(db.DecibanError, match=r"partition 6: .*'age'.*text"):
        refitted(lacking.append_column("age", pa.array(["old"] * lacking.num_rows)))


def test_no_rows_at_all():
    nothing = distributed(of(ALL).slice(0, 0), (0, 0, 0))
    for model in (db.NaiveBayes(), db.EvidenceClassifier(), db.LogisticRegression(), db.NaiveBayes("auto")):
        with pytest.raises(db.DecibanError, match="no rows"):
            model.fit(nothing)
    with pytest.raises(db.DecibanError, match="no rows"):
        db.evaluate(in_memory(PLAIN), nothing, None)
    with pytest.raises(db.DecibanError, match="no rows"):
        db.cross_validate(db.NaiveBayes(), nothing, None, 2)
    with pytest.raises(db.DecibanError, match="weight"):
        db.NaiveBayes().fit(distributed(with_weight(of(ALL), 0.0)))


def test_label_and_weight_are_columns():
    for label, weight, message in (
        ("nope", None, "no column 'nope' to use as label"),
        ("class", "nope", "no column 'nope' to use as weight"),
        ("class", "class", "same column"),
        (0, None, "label must be the name of a column"),
        ("class", [1.0], "sample_weight must be the name of a column"),
    ):
        with pytest.raises(db.DecibanError, match=message):
            toy.rows([[of(ALL)]], label, weight)


def test_a_warning_of_several_partitions_arrives_once():
    """As it does of the same rows in memory, also where it differs by a number."""
    model, parts = impossible_rows()
    for some in (parts, [parts[0], pa.concat_tables(parts[1:3]), *parts[3:]]):
        with pytest.warns(db.DecibanWarning) as caught:
            db.evaluate(model, rows_of(some, None), None)
        (message,) = [str(w.message) for w in caught]
        assert message.startswith("3 rows are impossible under every class")
        assert caught[0].filename == __file__


# Results -------------------------------------------------------------------------------------------------------------


def test_results_add_in_any_grouping():
    def results():
        for number in range(40):
            if number % 7 == 3:
                yield PartitionResult()
            else:
                warned = (("odd", number, 1),) if number % 2 else ()
                yield PartitionResult(np.array([1 << number]), None, warned)

    whole = sum_results(results())
    pieces = [*results()]
    last = sum_results([sum_results(pieces[5:6]), sum_results(pieces[6:])])
    other = sum_results([sum_results(pieces[:5]), sum_results([]), last])
    assert whole.value.tolist() == other.value.tolist() == [sum(1 << n for n in range(40) if n % 7 != 3)]
    odd = [n for n in range(40) if n % 2 and n % 7 != 3]
    assert whole.warnings == other.warnings == (("odd", odd[0], len(odd)),)
    assert sum_results([]).empty
    assert sum_results([]).unwrap() is None


def test_of_errors_only_the_first_partition_is_named():
    def fails(number):
        def work():
            raise db.RowError("column 'x'", number, "is bad")

        return PartitionResult.of(number, work)

    total = sum_results([PartitionResult(1), fails(9), fails(4), PartitionResult(2)])
    assert total.value is None
    with pytest.raises(db.DecibanError, match=r"partition 4.*column 'x'"):
        total.unwrap()
    with pytest.raises(ZeroDivisionError):  # errors that are not deciban's are not kept
        PartitionResult.of(0, lambda: 1 // 0)


def test_errors_can_be_pickled():
    for error in (
        db.DecibanError("a"),
        db.NotInvertible("a"),
        db.NegativeEvidence("a"),
        db.RowError("column 'x'", 3, "bad"),
    ):
        copied = pickle.loads(pickle.dumps(error))
        assert type(copied) is type(error)
        assert str(copied) == str(error)
        assert getattr(copied, "row", None) == getattr(error, "row", None)


def test_the_number_of_warnings_is_bounded():
    total = sum_results(PartitionResult(1, None, ((f"warning {number}", number, 1),)) for number in range(50))
    with pytest.warns(db.DecibanWarning) as caught:
        assert total.unwrap() == 50
    assert len(caught) == MAX_WARNINGS


# Prediction columns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [["no", "yes"], [3, 7], [False, True]])
def test_predictions_keep_the_type_of_labels(labels):
    model = db.NaiveBayes().fit(np.arange(6.0).reshape(6, 1), np.array(labels * 3))
    predictions = PredictionColumns(model)
    rows = np.array([[0.0], [5.0]])
    predicted, *p = predictions.predict(rows)
    assert predicted.to_pylist() == model.predict(rows).tolist()
    assert [column.to_pylist() for column in p] == model.predict_proba(rows).T.tolist()
    assert [column.type for column in (predicted, *p)] == predictions.types
    assert [column.type for column in predictions.empty()] == predictions.types
    assert predictions.names == ("prediction", *(f"proba_{label}" for label in model.classes_.tolist()))


def test_prediction_columns_get_a_number_where_a_name_is_taken():
    model = db.NaiveBayes().fit([[0.0], [1.0]], ["a", "b"])
    names = PredictionColumns(model).free_names(["x", "prediction", "proba_a"])
    assert list(names) == ["prediction 2", "proba_a 2", "proba_b"]
    labels = PredictionColumns(model, probabilities=False)
    assert labels.names == ("prediction",)
    assert len(labels.predict(np.array([[0.0]]))) == 1
