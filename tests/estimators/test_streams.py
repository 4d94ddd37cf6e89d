"""Models of streams: the same as of the table in memory, however it is written, cut and read."""

import random
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import cycle, product

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deciban as db
from deciban.data.files.dialect import NA_VALUES
from tests.data.files.written import FILES, STREAMS, as_parquet, at, csv_text, json_text
from tests.laws import flattened

f = db.families
WAYS = FILES | STREAMS


def mixed(rows=400, seed=0):
    """Numbers, integers, booleans and text, with missing values; weights, some of them 0; a city that comes last."""
    lot = random.Random(seed)

    def some(values):
        return [None if lot.random() < 0.1 else value for value in values]

    classes = [lot.choice(["no", "yes", "perhaps"]) for _ in range(rows)]
    shift = {"no": 0, "yes": 1, "perhaps": 2}
    return pa.table(
        {
            "height": some(lot.gauss(170 + 5 * shift[c], 10) for c in classes),
            "tiny": some(lot.gauss(shift[c], 1) * 1e-100 for c in classes),
            "age": pa.array(some(lot.randrange(18, 90 + shift[c]) for c in classes), pa.int64()),
            "smoker": some(lot.random() < 0.3 + 0.2 * shift[c] for c in classes),
            "city": [*some(lot.choice(["Köln", 'a "b", c', "two\nlines", "007"]) for _ in classes[1:]), "Ulm"],
            "visits": some(lot.randrange(6 + shift[c]) for c in classes),
            "wait": some(lot.expovariate(1 + shift[c]) + 1e-9 for c in classes),
            "weight": [float(lot.choice([0, 0.1, 1, 2.5])) for _ in classes],
            "class": classes,
        }
    )


TABLE = mixed()
MODELS = {
    "Gaussian, Categorical, Bernoulli": lambda: db.NaiveBayes(),
    "missing as a category": lambda: db.NaiveBayes(missing="category"),
    "Poisson, Exponential, Uniform, Binned": lambda: db.NaiveBayes(
        {"visits": f.Poisson(), "wait": f.Exponential(), "age": f.Binned(), ("height", "tiny"): f.Uniform()}
    ),
    "Categorical numbers": lambda: db.NaiveBayes({("age", "visits", "smoker"): f.Categorical()}),
    "Multinomial": lambda: db.NaiveBayes({("age", "visits"): f.Multinomial()}),
    "smoothing by the data": lambda: db.NaiveBayes(smoothing="auto"),
}


def evidence(model):
    """All that was learned, to the last bit."""
    actual = model.generative_
    arrays = [actual.counts.words, *(a for b in actual.blocks for a in flattened(b.statistic).values())]
    return actual.schema, actual.classes, [(a.shape, a.tobytes()) for a in map(np.asarray, arrays)]


@cache
def of_table(kind):
    return MODELS[kind]().fit(TABLE, "class", sample_weight="weight")


@pytest.mark.parametrize(
    ("way", "kind"),
    [*zip(WAYS, cycle(MODELS), strict=False), *(("csv, blocks of 100 rows", kind) for kind in MODELS)],
)
def test_a_stream_gives_the_model_of_the_table_to_the_last_bit(way, kind, tmp_path):
    expected = of_table(kind)
    model = MODELS[kind]().fit(WAYS[way](tmp_path, TABLE), "class", sample_weight="weight")
    assert evidence(model) == evidence(expected)
    rows = TABLE.filter(pc.greater(TABLE["weight"], 0)).drop(["class"])
    assert model.predict_proba(rows).tobytes() == expected.predict_proba(rows).tobytes()
    streamed = model.predict_proba(WAYS[way](tmp_path, rows))
    assert streamed.tobytes() == expected.predict_proba(rows).tobytes()


@pytest.mark.parametrize(
    ("way", "covariance"),
    [
        ("csv, blocks of 100 rows", "shared"),
        ("parquet", "per-class"),
        ("8 files of csv", "per-class"),
        ("reader", "shared"),
    ],
)
def test_covariances_of_a_stream_agree_to_rounding(way, covariance, tmp_path):
    table = TABLE.select(["height", "age", "wait", "class"])
    expected = db.GaussianDiscriminant(covariance=covariance).fit(table, "class")
    model = db.GaussianDiscriminant(covariance=covariance).fit(WAYS[way](tmp_path, table), "class")
    assert model.class_count_.tolist() == expected.class_count_.tolist()
    proba = model.predict_proba(WAYS[way](tmp_path, table))
    np.testing.assert_allclose(proba, expected.predict_proba(table), rtol=1e-12, atol=1e-15)


def test_counts_and_sums_are_those_of_exact_fractions(tmp_path):
    model = db.NaiveBayes().fit(FILES["csv, blocks of 50 bytes"](tmp_path, TABLE), "class", sample_weight="weight")
    rows = [row for row in TABLE.to_pylist() if row["weight"]]
    for i, name in enumerate(model.classes_):
        weights = [Fraction(row["weight"]) for row in rows if row["class"] == name]
        assert model.class_count_[i] == float(sum(weights))
        for block in model.generative_.blocks:
            for j, column in enumerate(block.plan.columns):
                column = model.generative_.schema.names[column]
                cells = [row for row in rows if row["class"] == name and row[column] is not None]
                if isinstance(block.plan.family, f.Gaussian):
                    total = float(sum(Fraction(row["weight"]) * Fraction(row[column]) for row in cells))
                    assert block.statistic.sum_x.value[i, j] == total
                if isinstance(block.plan.family, f.Categorical):
                    counts = Counter()
                    for row in cells:
                        counts[row[column]] += Fraction(row["weight"])
                    assert block.statistic.levels[j] == ("007", "Köln", "Ulm", 'a "b", c', "two\nlines")
                    actual = dict(zip(block.statistic.levels[j], block.statistic.table.value[i], strict=True))
                    assert actual == {level: float(counts[level]) for level in actual}


@pytest.mark.parametrize("way", ["csv", "csv, blocks of 100 rows", "jsonl", "8 files of parquet", "dataset"])
def test_more_rows_are_learned_and_forgotten(way, tmp_path):
    first, second = TABLE.slice(0, 300), TABLE.slice(300)
    expected = db.NaiveBayes().fit(TABLE, "class")
    model = db.NaiveBayes().fit(WAYS[way](tmp_path, first), "class")
    alone = evidence(model)
    assert evidence(model.partial_fit(WAYS[way](tmp_path, second), "class")) == evidence(expected)
    assert evidence(model.forget(WAYS[way](tmp_path, second), "class")) == alone


def test_labels_and_weights_may_be_arrays(tmp_path):
    columns, y, w = TABLE.drop(["class", "weight"]), TABLE["class"].to_pylist(), TABLE["weight"].to_numpy()
    expected = db.NaiveBayes().fit(columns, y, w)
    scan = FILES["csv, blocks of 100 rows"](tmp_path, columns)
    assert evidence(db.NaiveBayes().fit(scan, y, w)) == evidence(expected)
    for labels, weights in ((y[:-1], None), (y, w[:-1]), ([*y, "no"], None)):
        with pytest.raises(db.DecibanError, match="inconsistent numbers of samples"):
            db.NaiveBayes().fit(scan, labels, weights)


CELLS = {
    "number": st.none() | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100),
    "whole": st.none() | st.integers(-(2**63), 2**63 - 1),
    "truth": st.none() | st.booleans(),
    "text": st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5),
}


@st.composite
def tables(draw):
    """Of one to three files, in any order; every column has a cell of each type, so that its type is plain."""
    rows = draw(st.lists(st.fixed_dictionaries(CELLS | {"y": st.sampled_from(["a", "b"])}), min_size=1, max_size=10))
    rows.append({"number": 0.5, "whole": 7, "truth": True, "text": "x", "y": "a"})
    rows = [row for row in rows if (row["text"] or "x").strip() not in NA_VALUES]
    return draw(st.permutations(rows))


SCHEMA = pa.schema(
    {"number": pa.float64(), "whole": pa.int64(), "truth": pa.bool_(), "text": pa.string(), "y": pa.string()}
)


@settings(max_examples=15)
@given(rows=tables(), data=st.data())
def test_neither_blocks_nor_files_nor_their_order_change_the_model(tmp_path_factory, rows, data):
    folder = tmp_path_factory.mktemp("files")
    table = pa.Table.from_pylist(rows, SCHEMA)
    expected = evidence(db.NaiveBayes().fit(table, "y"))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    parts = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    order = data.draw(st.permutations(range(len(parts))))
    size = data.draw(st.integers(1, 400))
    form = {"csv": csv_text, "jsonl": json_text}
    options = {"csv": {"header": True, "delimiter": ","}, "jsonl": {}}
    for kind in ("csv", "jsonl"):
        paths = [at(folder, f"{i}.{kind}", form[kind](part)) for i, part in enumerate(parts) if part.num_rows]
        order_here = [i for i in order if i < len(paths)]
        scan = db.scan([paths[i] for i in order_here], block_size=size, **options[kind])
        assert evidence(db.NaiveBayes().fit(scan, "y")) == expected
    paths = [as_parquet(folder, f"{i}.parquet", part, row_group_size=3) for i, part in enumerate(parts)]
    assert evidence(db.NaiveBayes().fit(db.scan([paths[i] for i in order]), "y")) == expected


# What a model learned says how text is read
def test_text_that_looks_like_numbers_is_read_as_the_model_knows_it(tmp_path):
    model = db.NaiveBayes().fit(pa.table({"x": ["1", "2"] * 5, "y": ["a", "b"] * 5}), "y")
    assert model.predict(db.scan(at(tmp_path, "t.csv", "x\n1\n2\n"))).tolist() == ["a", "b"]
    coded = pd.DataFrame({"x": pd.Categorical([1, 2] * 5), "y": ["a", "b"] * 5})
    model = db.NaiveBayes().fit(coded, "y")
    assert model.predict(db.scan(at(tmp_path, "t.csv", "x\n1\n2\n"))).tolist() == ["a", "b"]
    more = db.scan(at(tmp_path, "t.csv", "x,y\n1,a\n3,b\n"))
    assert model.partial_fit(more, "y").generative_.blocks[0].statistic.levels == ((1, 2, 3),)


def test_booleans_are_read_as_the_model_knows_them(tmp_path):
    model = db.NaiveBayes().fit(pa.table({"x": [True, False] * 5, "y": ["a", "b"] * 5}), "y")
    for cells in ("true\nfalse", "1\n0", "TRUE\nFalse", " true\nfalse "):
        assert model.predict(db.scan(at(tmp_path, "t.csv", f"x\n{cells}\n"))).tolist() == ["a", "b"]


@pytest.mark.parametrize("labels", [["a", "b"], [1, 2], [True, False], ["1", "2"], ["007", "8"], ["true", "false"]])
def test_labels_of_every_type(tmp_path, labels):
    table = pa.table({"x": [1.0, 5.0, 1.5, 4.5] * 5, "y": labels * 10})
    scan = db.scan(at(tmp_path, "t.csv", csv_text(table)), block_size=20)
    model = db.NaiveBayes().fit(table, "y")
    alone, classes = evidence(model), model.classes_.tolist()
    model.partial_fit(scan, "y")
    assert model.classes_.tolist() == classes == sorted(labels)
    assert model.class_count_.tolist() == [20, 20]
    assert evidence(model.forget(scan, "y")) == alone
    assert model.leave_one_out(scan, "y").confusion.tolist() == model.leave_one_out(table, "y").confusion.tolist()
    text = {"y": "category"} if isinstance(labels[0], str) else {}
    typed = db.scan(at(tmp_path, "t.csv", csv_text(table)), types=text)
    assert evidence(db.NaiveBayes().fit(typed, "y")) == alone


def test_a_column_that_turns_out_wider_is_learned_as_what_it_is(tmp_path):
    table = pa.table({"x": ["1"] * 5_000 + ["t"] * 200, "y": ["a" * 100, "b"] * 2_600})
    scan = db.scan(at(tmp_path, "t.csv", csv_text(table)), block_size=100_000)
    assert scan.columns["x"] == "integer"
    assert evidence(db.NaiveBayes().fit(scan, "y")) == evidence(db.NaiveBayes().fit(table, "y"))
    turned = db.scan(at(tmp_path, "t.csv", csv_text(table.select(["y", "x"]))), block_size=100_000)
    assert db.NaiveBayes().fit(turned, "x").classes_.tolist() == ["1", "t"]


def test_weights_that_turn_out_wider(tmp_path):
    table = pa.table({"x": [1.0, 2.0] * 2_500, "w": [1.0] * 4_999 + [0.5], "y": ["a" * 100, "b"] * 2_500})
    text = csv_text(table).replace("1.0,a", "1,a").replace("1.0,b", "1,b")
    model = db.NaiveBayes().fit(table.slice(0, 2), "y", sample_weight="w")
    model.partial_fit(db.scan(at(tmp_path, "t.csv", text)), "y", sample_weight="w")
    assert model.class_count_.tolist() == [2_501, 2_500.5]


# What goes wrong leaves the model as it was
GOOD = 'x,t,w,y\n1,"a\nb",1,no\n2,b,1,yes\n\n'  # five lines
BAD = {
    "infinite": ("inf,a,1,no\n", "line 6: column 'x': inf is infinite"),
    "no label": ("1,a,1,\n", "line 6: label: the label is missing"),
    "negative weight": ("1,a,-1,no\n", "line 6: sample_weight: -1 is not a weight"),
    "no weight": ("1,a,,no\n", "line 6: sample_weight: nan is not a weight"),
    "text for a number": ("one,a,1,no\n", "line 6: column 'x' is read as numbers, and 'one' is not"),
    "ragged": ("1,a,1,no,7\n", "line 6: 5 cells, where there are 4 columns"),
    "open quote": ('1,"a,1,no\n', "line 6: 2 cells, where there are 4 columns: .*; is a quote not closed?"),
    "open quote at the end": ("1,a,1,no\n" + GOOD[8:] + '1,"a,1,no\n2,b,1,no\n', "line 11: the quote that opens here"),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_name_file_and_line_and_change_nothing(tmp_path, case):
    bad, message = BAD[case]
    model = db.NaiveBayes().fit(db.scan(at(tmp_path, "good.csv", GOOD)), "y", sample_weight="w")
    before, params = evidence(model), vars(model).copy()
    text = GOOD + bad + ("" if case == "open quote at the end" else GOOD[8:])
    path = at(tmp_path, "bad.csv", text)
    for work, size in product((model.partial_fit, model.forget, model.fit), (10, 1 << 20)):
        scan = db.scan(path, block_size=size)
        if work == model.fit and case == "text for a number":
            continue  # a first fit takes the column for text
        with pytest.raises(db.DecibanError, match=f"bad.csv, {message}"):
            work(scan, "y", sample_weight="w")
        assert evidence(model) == before
        assert vars(model).keys() == params.keys()
        assert model.classes_.tolist() == ["no", "yes"]


def test_the_line_is_right_in_the_third_block_of_the_second_file(tmp_path):
    rows = '1,"two\nlines",1,no\n2,b,1,yes\n'
    first = at(tmp_path, "1.csv", "x,t,w,y\n" + rows * 50)
    second = at(tmp_path, "2.csv", "x,t,w,y\n" + rows * 50 + "inf,a,1,no\n" + rows)
    scan = db.scan([first, second], block_size=1000)
    with pytest.raises(db.DecibanError, match=r"2.csv, line 152: column 'x': inf is infinite"):
        db.NaiveBayes().fit(scan, "y")


def test_weights_that_are_all_zero_are_refused(tmp_path):
    scan = db.scan(at(tmp_path, "t.csv", "x,w,y\n1,0,a\n2,0,b\n"), block_size=5)
    with pytest.raises(db.DecibanError, match="every sample weight is zero"):
        db.NaiveBayes().fit(scan, "y", sample_weight="w")


@pytest.mark.parametrize(("y", "weight", "use"), [("z", None, "label"), ("class", "z", "weight")])
def test_names_that_are_no_columns(tmp_path, y, weight, use):
    with pytest.raises(db.DecibanError, match=f"no column 'z' to use as {use}"):
        db.NaiveBayes().fit(FILES["csv"](tmp_path, TABLE), y, weight)


def test_a_file_that_lacks_a_column_is_told_what_it_has(tmp_path):
    model = db.NaiveBayes().fit(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), "y")
    with pytest.raises(db.DecibanError, match="the table lacks column 'x'; it has columns 'u', 'v'"):
        model.predict(db.scan(at(tmp_path, "t.csv", "u,v\n1,2\n")))


# Everything else takes streams too
SMALL = TABLE.select(["height", "age", "city", "visits", "class"]).slice(0, 150)
PAIR = pa.table({"height": TABLE["height"], "age": TABLE["age"], "class": TABLE["class"]}).drop_null()
PAIR = PAIR.filter(pc.not_equal(PAIR["class"], "perhaps"))
OTHERS = {
    "LogisticRegression": lambda X: db.LogisticRegression(l2=1.0).fit(X, "class").predict_proba(X),
    "SoftmaxRegression": lambda X: db.SoftmaxRegression(l2=1.0).fit(X, "class").predict_proba(X),
    "GeneralizedLinearModel": lambda X: db.GeneralizedLinearModel("poisson").fit(X, "visits").predict(X),
    "CalibratedClassifier": lambda X: db.CalibratedClassifier(db.NaiveBayes()).fit(X, "class").predict_proba(X),
    "families chosen": lambda X: db.NaiveBayes("auto").fit(X, "class").predict_proba(X),
    "score": lambda X: db.NaiveBayes().fit(X, "class").score(X, "class"),
    "joint": lambda X: db.NaiveBayes().fit(X, "class").predict_joint_log_proba(X),
    "leave_one_out": lambda X: db.NaiveBayes().fit(X, "class").leave_one_out(X, "class").confusion,
    "cross_validate": lambda X: db.cross_validate(db.NaiveBayes(), X, "class").confusion,
    "cross_validate by refits": lambda X: db.cross_validate(db.LogisticRegression(l2=1.0), X, "class").confusion,
    "evaluate": lambda X: db.evaluate(db.NaiveBayes().fit(X, "class"), X, "class").confusion,
    "explain": lambda X: db.NaiveBayes().fit(X, "class").explain(X).joint,
    "refine": lambda X: db.NaiveBayes(missing="skip").fit(X, "class").to_linear().refine(X, "class").predict_proba(X),
}


@pytest.mark.parametrize("what", OTHERS)
def test_whatever_takes_a_table_takes_a_stream(tmp_path, what):
    table = SMALL.filter(pc.is_valid(SMALL["visits"]))
    expected = OTHERS[what](table)
    for way in ("csv beside parquet", "duckdb"):
        np.testing.assert_allclose(OTHERS[what](WAYS[way](tmp_path, table)), expected, rtol=1e-9, atol=1e-12)


def test_a_learning_curve_and_a_halfspace_of_a_stream(tmp_path):
    scan = FILES["csv"](tmp_path, PAIR)
    assert db.Halfspace().fit(scan, "class").separable_ is db.Halfspace().fit(PAIR, "class").separable_ is False
    curves = [db.learning_curve([db.NaiveBayes()], X, "class") for X in (scan, PAIR)]
    assert str(curves[0]) == str(curves[1])


def test_labels_of_one_file_that_look_like_those_of_another_are_not_two_classes(tmp_path):
    """0 and "0", and true and 1: merged in silence they would be two classes, or one that neither is."""
    models = []
    for name, labels in {"a": [0, 1], "b": [0, "u"], "c": [True, False]}.items():
        rows = "".join(f"{i % 5},{labels[i % 2]}\n" for i in range(20))
        (tmp_path / f"{name}.csv").write_text("x,y\n" + rows)
        models.append(db.NaiveBayes().fit(db.scan(tmp_path / f"{name}.csv"), "y"))
    a, b, c = models
    for one, other in ((a, b), (b, a), (a, c), (c, a)):
        with pytest.raises(db.DecibanError, match="of different types"):
            one.merge(other)
    with pytest.raises(db.DecibanError, match="'u' is not"):
        a.partial_fit(db.scan(tmp_path / "b.csv"), "y")
    text = [db.NaiveBayes().fit(db.scan(tmp_path / f"{n}.csv", types={"y": "category"}), "y") for n in "ab"]
    whole = db.NaiveBayes().fit(db.scan([tmp_path / "a.csv", tmp_path / "b.csv"]), "y")
    assert evidence(text[0] + text[1]) == evidence(whole)


def test_whole_numbers_beyond_what_a_double_holds_stay_apart(tmp_path):
    big = 1 << 53
    rows = "".join(f"{i % 7},{big + i % 2},{big + i % 3}\n" for i in range(60))
    (tmp_path / "big.csv").write_text("x,y,z\n" + rows)
    scan = db.scan(tmp_path / "big.csv")
    model = db.NaiveBayes({"z": f.Categorical()}).fit(scan, "y")
    assert model.classes_.tolist() == [big, big + 1]
    assert db.evaluate(model, scan, "y").count.tolist() == [30, 30]
    assert model.predict_proba(scan).tobytes() == model.predict_proba(scan.read()).tobytes()
    assert model.partial_fit(scan, "y").class_count_.tolist() == [60, 60]
    assert model.forget(scan, "y").class_count_.tolist() == [30, 30]


@pytest.mark.parametrize("peer", [False, True])
def test_types_that_turn_out_wider_while_rows_are_predicted(tmp_path, peer):
    labels = ["a" * 100, "b"]
    rows = [f"{i % 3},{labels[i % 2]},{1 + i % 4}" for i in range(5_000)]
    (tmp_path / "late.csv").write_text("x,y,w\n" + "\n".join([*rows, f"1.5,{labels[0]},0.5"]) + "\n")
    scan = db.scan(tmp_path / "late.csv")
    table = scan.read()
    model = db.NaiveBayes().fit(table.drop(["w"]), "y")
    if peer:
        from sklearn.naive_bayes import GaussianNB

        model = Other(GaussianNB().fit(table.column("x").to_numpy()[:, np.newaxis], table.column("y").to_pylist()))
    evaluation = db.evaluate(model, db.scan(tmp_path / "late.csv"), "y", sample_weight="w")
    assert evaluation.rows == sum(table.column("w").to_pylist())


class Other:
    """A model of another library that reads a table of Arrow."""

    def __init__(self, model):
        self.model, self.classes_ = model, model.classes_

    def fit(self, X, y):
        raise NotImplementedError

    def predict_proba(self, X):
        return self.model.predict_proba(X.column("x").to_numpy()[:, np.newaxis])


@pytest.mark.parametrize("make", [db.NaiveBayes, lambda: db.LogisticRegression(l2=1), db.CalibratedClassifier])
def test_scores_and_more_rows_are_read_as_the_model_has_learned_them(tmp_path, make):
    lot = random.Random(0)
    rows = [(lot.choice("12x"), lot.choice("pq")) for _ in range(200)]
    (tmp_path / "a.csv").write_text("zip,y\n" + "".join(f"{z},{y}\n" for z, y in rows))
    (tmp_path / "b.csv").write_text("zip,y\n" + "".join(f"{z},{y}\n" for z, y in rows if z != "x"))
    model = make().fit(db.scan(tmp_path / "a.csv"), "y")
    later = db.scan(tmp_path / "b.csv")
    table = pd.read_csv(tmp_path / "b.csv", dtype=str)
    assert model.score(later, "y") == model.score(table, "y") == (model.predict(table) == table["y"]).mean()
    if hasattr(model, "partial_fit"):
        more = model.partial_fit(later, "y").predict_proba(table)
        expected = make().fit(db.scan(tmp_path / "a.csv"), "y").partial_fit(table, "y").predict_proba(table)
        assert more.tobytes() == expected.tobytes()
