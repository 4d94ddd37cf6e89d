"""Dask: the same model as of all rows in memory, on three workers, one of which dies; and lazy predictions."""

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import GaussianNB

import deciban as db
from tests.engines.data import (
    CELLS,
    JOINT,
    NUMBERS,
    SEVERAL,
    TABLE,
    close_scatters,
    cut,
    evidence,
    of,
    rounding,
    same_probabilities,
    spoiled,
)

distributed = pytest.importorskip("dask.distributed", reason="dask is not installed: pip install deciban[dask]")
import dask  # noqa: E402
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

from deciban.engines import dask as engine  # noqa: E402

f = db.families
ALL = (*NUMBERS, *CELLS)
ROOT = str(Path(__file__).parents[2])


pytestmark = pytest.mark.xdist_group("dask")  # one cluster at a time


@pytest.fixture(scope="module")
def cluster():
    """Three worker processes, each with a nanny that starts it again."""
    with (
        dask.config.set({"distributed.worker.daemon": True, "distributed.admin.low-level-log-length": 0}),
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def as_arrow(table):
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def frame_of(tables, convert=as_arrow):
    """A partition for each table, as it is: Dask would make text of objects."""
    whole, ends = convert(pa.concat_tables(tables)), np.cumsum([0, *(table.num_rows for table in tables)]).tolist()
    return of_parts([whole.iloc[start:stop] for start, stop in pairwise(ends)])


def of_parts(frames):
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_delayed([dask.delayed(frame) for frame in frames], meta=frames[0].iloc[:0], verify_meta=False)


def threads():
    return dask.config.set(scheduler="synchronous")


# Learning ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SEVERAL)
def test_three_workers_learn_what_one_process_does_to_the_last_bit(kind, cluster):
    make, columns = SEVERAL[kind]
    table = of(columns)
    frame = frame_of(cut(table))
    assert frame.npartitions == 17
    assert 0 in frame.map_partitions(len).compute().tolist()
    expected = make().fit(table, "class", sample_weight="weight")
    model = engine.fit(make(), frame, "class", sample_weight="weight")
    assert evidence(model) == evidence(expected)
    assert model.predict_proba(table).tobytes() == expected.predict_proba(table).tobytes()
    said = engine.predict(model, frame).compute()["prediction"]
    assert said.tolist() == expected.predict(table).tolist()


@pytest.mark.parametrize("kind", JOINT)
def test_covariances_agree_to_rounding(kind):
    make, columns = JOINT[kind]
    table = of(columns)
    expected = make().fit(table, "class", sample_weight="weight")
    with threads():
        model = engine.fit(make(), frame_of(cut(table)), "class", "weight")
    close_scatters(model, expected)
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), rounding(kind))
    assert model.predict(table).tolist() == expected.predict(table).tolist()


CONVERT = {
    "arrow": as_arrow,
    "numpy": lambda table: table.to_pandas(),
    "nullable": lambda table: table.to_pandas().convert_dtypes(),
    "objects": lambda table: table.to_pandas().astype({"city": object, "class": object}),
    "categories": lambda table: table.to_pandas().astype({"city": "category"}),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", CONVERT)
def test_whatever_pandas_keeps_cells_in(kind, weighted):
    """Of one partition some columns are all holes, so that it does not know what they hold."""
    table, weight = of(ALL), "weight" if weighted else None
    parts = cut(table if weighted else table.drop(["weight"]))
    for name in ("city", "smoker", "age"):
        place = parts[8].schema.get_field_index(name)
        hole = pa.nulls(parts[8].num_rows, parts[8].schema.field(name).type)
        parts[8] = parts[8].set_column(place, name, hole)
    table = pa.concat_tables(parts)
    expected = db.NaiveBayes().fit(table, "class", sample_weight=weight)
    with threads():
        model = engine.fit(db.NaiveBayes(), frame_of(parts, CONVERT[kind]), "class", weight)
    assert evidence(model) == evidence(expected)


def test_categories_that_are_not_known_yet():
    table = of(ALL)
    frame = frame_of(cut(table), CONVERT["numpy"])
    frame["city"] = frame["city"].astype("category")
    with threads():
        model = engine.fit(db.NaiveBayes(), frame, "class", "weight")
    assert evidence(model) == evidence(db.NaiveBayes().fit(table, "class", sample_weight="weight"))


@pytest.mark.parametrize("most", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_an_evidence_classifier(most):
    table = of((*ALL, "note"))
    expected = db.EvidenceClassifier(trees=8, max_weight_rows=most).fit(table, "class", sample_weight="weight")
    with threads():
        model = engine.fit(
            db.EvidenceClassifier(trees=8, max_weight_rows=most), frame_of(cut(table)), "class", "weight"
        )
    assert evidence(model, exact=True) == evidence(expected, exact=True)
    close_scatters(model, expected)
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), 1e-8)


@pytest.mark.parametrize("kind", [db.LogisticRegression, db.SoftmaxRegression])
def test_linear_models(kind):
    table = of(ALL)
    expected = kind(l2=1.0).fit(table, "class", sample_weight="weight")
    with threads():
        model = engine.fit(kind(l2=1.0), frame_of(cut(table)), "class", "weight")
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), 1e-8)


def test_labels_keep_their_type():
    for labels in (np.array([3, 7] * 20), np.array([False, True] * 20), np.array(["no", "yes"] * 20)):
        people = pd.DataFrame({"x": np.arange(40.0), "y": labels})
        with threads():
            frame = dd.from_pandas(people, npartitions=4)
            model = engine.fit(db.NaiveBayes(), frame, "y")
            said = engine.predict(model, frame).compute()
        expected = db.NaiveBayes().fit(people, "y")
        assert model.classes_.dtype == expected.classes_.dtype
        assert said["prediction"].tolist() == expected.predict(people).tolist()
        assert type(said["prediction"].tolist()[0]) is type(expected.predict(people).tolist()[0])


# Workers that die ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_worker_that_dies_midway_costs_and_doubles_nothing(cluster, tmp_path):
    table = of(ALL)
    parts = [as_arrow(part) for part in cut(table)]
    marker = tmp_path / "died"

    def part_of(number):
        if number == 12 and not marker.exists():
            marker.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return parts[number]

    delayed = [dask.delayed(part_of, pure=False)(number) for number in range(len(parts))]
    frame = dd.from_delayed(delayed, meta=parts[0].iloc[:0], verify_meta=False)
    before = set(cluster.run(os.getpid).values())
    model = engine.fit(db.NaiveBayes(), frame, "class", "weight")
    assert int(marker.read_text()) in before
    assert evidence(model) == evidence(db.NaiveBayes().fit(table, "class", sample_weight="weight"))
    cluster.wait_for_workers(3, timeout=60)


# Arrays --------------------------------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.arange(60) % 3
W = np.where(np.arange(60) % 5, 1.5, 0.0)

ARRAYS = {
    "floats": X,
    "floats with holes": np.where(X > 2, np.nan, X),
    "single": X.astype(np.float32),
    "integers": (X * 10).astype(np.int64),
    "booleans": X > 0,
}
CHUNKS = {"rows": (7, 4), "rows and columns": (13, 3), "one": (60, 4), "uneven": ((1, 0, 30, 29), (4,))}


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("chunks", CHUNKS)
def test_arrays(kind, chunks):
    x = da.from_array(ARRAYS[kind], chunks=CHUNKS[chunks])
    expected = db.NaiveBayes().fit(ARRAYS[kind], Y, sample_weight=W)
    with threads():
        model = engine.fit(db.NaiveBayes(), x, Y, sample_weight=W)
        assert evidence(model) == evidence(expected)
        assert engine.predict(model, x).compute().tolist() == expected.predict(ARRAYS[kind]).tolist()
        p = engine.predict_proba(model, x)
        assert p.shape == (60, 3)
        assert p.compute().tobytes() == expected.predict_proba(ARRAYS[kind]).tobytes()
        assert engine.evaluate(model, x, Y, W) == db.evaluate(expected, ARRAYS[kind], Y, W)


LABELS = {
    "numpy": lambda y: y,
    "list": lambda y: y.tolist(),
    "pandas": pd.Series,
    "dask array": lambda y: da.from_array(y, chunks=11),
    "dask series": lambda y: dd.from_pandas(pd.Series(y), npartitions=3),
    "text": lambda y: np.array(["a", "b", "c"])[y],
    "booleans": lambda y: y > 0,
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_arrays(kind):
    y = LABELS[kind](Y)
    with threads():
        whole = y.compute() if hasattr(y, "compute") else y
        expected = db.NaiveBayes().fit(X, whole)
        lengths = getattr(y, "npartitions", None) if kind == "dask series" else None
        x = da.from_array(X, chunks=(20 if lengths else 7, 4))
        model = engine.fit(db.NaiveBayes(), x, y)
        assert evidence(model) == evidence(expected)
        assert model.classes_.tolist() == expected.classes_.tolist()
        assert engine.predict(model, x).compute().tolist() == expected.predict(X).tolist()
        assert engine.predict(model, x).dtype == engine.predict(model, x).compute().dtype


def test_chunks_of_unknown_sizes():
    x, y = da.from_array(X, chunks=(7, 4)), da.from_array(Y, chunks=7)
    some, labels = x[x[:, 0] > 0], y[x[:, 0] > 0]
    kept = X[:, 0] > 0
    expected = db.NaiveBayes().fit(X[kept], Y[kept])
    with threads():
        model = engine.fit(db.NaiveBayes(), some, labels)
        assert evidence(model) == evidence(expected)
        assert engine.predict(model, some).compute().tolist() == expected.predict(X[kept]).tolist()
        assert engine.predict_proba(model, some).compute().tobytes() == expected.predict_proba(X[kept]).tobytes()
        with pytest.raises(db.DecibanError, match="compute_chunk_sizes"):
            engine.fit(db.NaiveBayes(), some, Y[kept])


def test_sparse_chunks():
    dense = np.random.default_rng(1).poisson(0.4, (60, 8)).astype(float)
    x = da.from_array(dense, chunks=(17, 8)).map_blocks(sp.csr_array, meta=sp.csr_array((0, 0)))
    whole = sp.csr_array(dense)
    for make in (lambda: db.NaiveBayes(f.Multinomial()), lambda: db.EvidenceClassifier()):
        expected = make().fit(whole, Y)
        with threads():
            model = engine.fit(make(), x, Y)
            assert evidence(model) == evidence(expected)
            assert engine.predict(model, x).compute().tolist() == expected.predict(whole).tolist()


@pytest.mark.parametrize("kind", [db.LogisticRegression, db.SoftmaxRegression, db.GaussianDiscriminant])
def test_other_models_of_arrays(kind):
    expected = kind().fit(X, Y, sample_weight=W)
    with threads():
        model = engine.fit(kind(), da.from_array(X, chunks=(7, 2)), da.from_array(Y, chunks=60), W)
        same_probabilities(model.predict_proba(X), expected.predict_proba(X), 1e-7)
        more = db.cross_validate(kind(), engine.rows(da.from_array(X, chunks=(7, 2)), Y, W), None, 3)
    assert more.rows == pytest.approx(W.sum())


@pytest.mark.parametrize(
    ("collection", "label", "said"),
    [
        (pd.DataFrame({"x": [1.0]}), "x", "a DataFrame of pandas: pass a Dask DataFrame"),
        (da.ones((4,), chunks=2), np.arange(4), "two dimensions"),
        (da.ones((4, 2), chunks=2), "y", "pass an array with a value for each row"),
        (da.ones((4, 2), chunks=2), None, "pass an array with a value for each row"),
        (da.ones((4, 2), chunks=2), np.arange(5), "inconsistent numbers of samples"),
        (dd.from_pandas(pd.DataFrame({"x": [1.0]}), npartitions=1), "y", "no column 'y' to use as label"),
        (dd.from_pandas(pd.DataFrame({"x": [1.0]}), npartitions=1), np.arange(1), "label must be the name of a column"),
    ],
)
def test_what_is_no_collection(collection, label, said):
    with pytest.raises(db.DecibanError, match=said):
        engine.fit(db.NaiveBayes(), collection, label)


def test_bad_cells_of_arrays_are_named():
    bad = X.copy()
    bad[33, 2] = np.inf
    x = da.from_array(bad, chunks=(10, 4))
    for model in (db.NaiveBayes(), db.GaussianDiscriminant(), db.LogisticRegression(), db.EvidenceClassifier()):
        with threads(), pytest.raises(db.DecibanError, match="partition 3, row 3: column 2: inf is infinite"):
            engine.fit(model, x, Y)
    with threads(), pytest.raises(db.DecibanError, match="partition 5, row 5: sample_weight: -1"):
        engine.fit(db.NaiveBayes(), da.from_array(X, chunks=(10, 4)), Y, np.where(np.arange(60) == 55, -1.0, 1.0))
    y = np.where(np.arange(60) == 21, np.nan, Y)
    with threads(), pytest.raises(db.DecibanError, match=r"partition 2, row 1: .*label"):
        engine.fit(db.NaiveBayes(), da.from_array(X, chunks=(10, 4)), y)


# Bad rows ------------------------------------------------------------------------------------------------------------

BAD = {
    "infinite": ("height", np.inf, {}, "partition 5, row 3: column 'height': inf is infinite"),
    "no label": ("class", None, {}, "partition 5, row 3: .*the label is missing"),
    "negative weight": ("weight", -1.0, {}, "partition 5, row 3: sample_weight: -1 is not a weight"),
    "no waiting time": ("wait", 0.0, {"wait": f.Exponential()}, "partition 5, row 3: column 'wait': 0.0 is not above"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_are_named(kind, cluster):
    column, value, families, said = BAD[kind]
    parts = spoiled(spoiled(cut(of(ALL)), 12, column, 1, value), 5, column, 3, value)
    with pytest.raises(db.DecibanError, match=said):
        engine.fit(db.NaiveBayes(families), frame_of(parts), "class", "weight")


def test_bad_rows_are_not_tried_again(cluster, tmp_path):
    part = as_arrow(spoiled([of(ALL)], 0, "height", 3, np.inf)[0])

    def once(number):
        with (tmp_path / str(number)).open("a") as file:
            file.write("x")
        return part

    delayed = [dask.delayed(once, pure=False)(number) for number in range(2)]
    frame = dd.from_delayed(delayed, meta=part.iloc[:0], verify_meta=False)
    with pytest.raises(db.DecibanError, match="partition 0, row 3"):
        engine.fit(db.NaiveBayes(), frame, "class", "weight")
    assert [(tmp_path / str(number)).read_text() for number in range(2)] == ["x", "x"]


def test_text_among_numbers_is_named():
    """Of Python's objects the partitions have to be asked what they hold."""
    parts = [part.to_pandas().astype({"age": object}) for part in cut(of(("height", "age")))]
    parts[6].loc[parts[6].index[2], "age"] = "old"
    frame = of_parts(parts)
    with threads(), pytest.raises(db.DecibanError, match=r"partition 6.*'age'"):
        engine.fit(db.NaiveBayes(), frame, "class", "weight")
    parts[6]["age"] = "old"
    frame = of_parts(parts)
    with threads(), pytest.raises(db.DecibanError, match=r"'age'.*(text|numbers)"):
        engine.fit(db.NaiveBayes(), frame, "class", "weight")


def test_a_partition_that_lacks_a_column_is_named():
    parts = [as_arrow(part) for part in cut(of(ALL))]
    parts[7] = parts[7].drop(columns="age")
    frame = of_parts(parts)
    with threads(), pytest.raises(db.DecibanError, match=r"partition 7: .*lacks.*'age'"):
        engine.fit(db.NaiveBayes(), frame, "class", "weight")


def test_all_partitions_are_empty():
    with threads(), pytest.raises(db.DecibanError, match="no rows"):
        engine.fit(db.NaiveBayes(), frame_of([of(ALL).slice(0, 0)] * 3), "class", "weight")


def test_warnings_of_workers_arrive_once(cluster):
    x = pd.DataFrame({"x": [float(i % 10) for i in range(60)], "y": ["a", "b"] * 30})
    model = db.NaiveBayes(f.Uniform()).fit(x, "y")
    x.loc[[12, 25, 47], "x"] = 50.0
    with pytest.warns(db.DecibanWarning) as caught:
        found = engine.evaluate(model, dd.from_pandas(x, npartitions=6), "y")
    (told,) = [str(w.message) for w in caught if w.category is db.DecibanWarning]
    assert told.startswith("3 rows are impossible under every class")
    with pytest.warns(db.DecibanWarning, match="3 rows"):
        assert found == db.evaluate(model, x, "y")


# Predicting ----------------------------------------------------------------------------------------------------------


def test_predictions_are_lazy_and_stand_beside_the_columns(tmp_path):
    table = of(ALL)
    model = db.NaiveBayes().fit(table, "class", sample_weight="weight")
    parts = [as_arrow(part) for part in cut(table)]

    def part_of(number):
        (tmp_path / "computed").touch()
        return parts[number]

    delayed = [dask.delayed(part_of, pure=False)(number) for number in range(len(parts))]
    frame = dd.from_delayed(delayed, meta=parts[0].iloc[:0], verify_meta=False)
    answered = engine.predict(model, frame)
    assert list(answered.columns) == [*table.column_names, "prediction", *(f"proba_{c}" for c in model.classes_)]
    assert not (tmp_path / "computed").exists()
    with threads():
        found = answered.compute()
        for number in (3, 4):  # the other is empty
            pd.testing.assert_series_equal(answered.partitions[number].compute().dtypes, answered.dtypes)
    assert list(found.columns) == list(answered.columns)
    assert found["prediction"].tolist() == model.predict(table).tolist()
    expected = model.predict_proba(table)
    for k, name in enumerate(model.classes_):
        assert found[f"proba_{name}"].to_numpy().tobytes() == np.ascontiguousarray(expected[:, k]).tobytes()
    pd.testing.assert_frame_equal(found[table.column_names], pd.concat(parts), check_index_type=False)


def test_names_that_are_taken_get_a_number():
    x = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "prediction": [1.0, 2.0, 1.0, 3.0], "y": ["a", "b", "a", "b"]})
    model = db.NaiveBayes().fit(x, "y")
    with threads():
        found = engine.predict(model, dd.from_pandas(x, npartitions=2)).compute()
    assert found["prediction"].tolist() == x["prediction"].tolist()
    (other,) = [name for name in found.columns if name.startswith("prediction") and name != "prediction"]
    assert found[other].tolist() == model.predict(x).tolist()
    with threads():
        alone = engine.predict(model, dd.from_pandas(x, npartitions=2), probabilities=False).compute()
    assert not [name for name in alone.columns if name.startswith("proba_")]


def test_names_that_are_not_text_stay():
    x = pd.DataFrame({0: [0.0, 1.0, 2.0, 3.0], 1: [1.0, 0.0, 1.0, 0.5]})
    model = db.NaiveBayes().fit(x.to_numpy(), ["a", "b", "a", "b"])
    with threads():
        found = engine.predict(model, dd.from_pandas(x, npartitions=2)).compute()
    assert list(found.columns) == [0, 1, "prediction", "proba_a", "proba_b"]
    assert found["prediction"].tolist() == model.predict(x.to_numpy()).tolist()


def test_a_bad_cell_to_be_predicted_is_named(cluster):
    """The error comes from another process."""
    x = pd.DataFrame({"x": np.arange(40.0), "y": ["a", "b"] * 20})
    model = db.NaiveBayes().fit(x, "y")
    x.loc[33, "x"] = np.inf
    with pytest.raises(db.DecibanError, match="partition 3, row 3: column 'x': inf is infinite"):
        engine.predict(model, dd.from_pandas(x, npartitions=4)).compute()


def test_an_array_is_predicted_lazily():
    model = db.NaiveBayes().fit(X, Y)
    asked = []

    def look(block):
        asked.append(len(block))
        return block

    x = da.from_array(X, chunks=(20, 4)).map_blocks(look, dtype=float, meta=np.empty((0, 0)))
    said, p = engine.predict(model, x), engine.predict_proba(model, x)
    assert not asked
    assert said.dtype == Y.dtype
    assert said.chunks == ((20, 20, 20),)
    assert p.chunks == ((20, 20, 20), (3,))
    with pytest.raises(db.DecibanError, match="takes a Dask array"):
        engine.predict_proba(model, dd.from_pandas(pd.DataFrame(X), npartitions=1))


# Judging -------------------------------------------------------------------------------------------------------------


def test_evaluate_and_folds_are_those_of_all_rows(cluster):
    table = of(ALL, TABLE, "fold")
    frame = frame_of(cut(table))
    model = db.NaiveBayes().fit(of(ALL), "class", sample_weight="weight")
    assert engine.evaluate(model, frame, "class", "weight") == db.evaluate(model, table, "class", "weight")
    found = engine.cross_validate(db.NaiveBayes(), frame, "class", "fold", sample_weight="weight")
    fold, weight = table["fold"].to_numpy(), table["weight"].to_numpy()
    plain = table.drop(["fold", "weight"])
    expected = db.cross_validate(db.NaiveBayes(), plain, "class", fold, sample_weight=weight)
    assert found == expected
    assert list(found.parts) == list(expected.parts)


def test_folds_do_not_depend_on_the_partitions():
    table = of(ALL)
    with threads():
        found = [
            engine.cross_validate(db.NaiveBayes(), frame_of(parts), "class", 5, sample_weight="weight")
            for parts in (cut(table), [table], cut(table, (0, 100, 100, 340)))
        ]
    assert found[0] == found[1] == found[2]
    assert found[0].rows == pytest.approx(sum(table["weight"].to_pylist()))
    assert len(found[0].parts) == 5


def test_rows_of_a_collection_are_learned_forgotten_and_left_out():
    table = of(ALL)
    first, second = (engine.rows(frame_of(cut(table)[part]), "class", "weight") for part in (slice(9), slice(9, 17)))
    expected = db.NaiveBayes().fit(table, "class", sample_weight="weight")
    with threads():
        model = db.NaiveBayes().fit(first)
        alone = evidence(model)
        assert evidence(model.partial_fit(second)) == evidence(expected)
        whole = engine.rows(frame_of(cut(table)), "class", "weight")
        assert model.leave_one_out(whole) == expected.leave_one_out(table, "class", sample_weight="weight")
        assert evidence(model.forget(second)) == alone


# Without Dask --------------------------------------------------------------------------------------------------------


def test_without_dask_the_way_to_it_is_told():
    code = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "dask":
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Hidden())
import deciban
deciban.NaiveBayes().fit([[0.0], [1.0]], ["a", "b"])
try:
    import deciban.engines.dask
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert "pip install deciban[dask]" in done.stdout


def test_work_travels_once(monkeypatch):
    """And not with every partition: a model may be large."""
    seen = []
    result = engine.PartitionResult()
    monkeypatch.setattr(engine.Delayed, "compute", lambda self: seen.append(dict(self.dask)) or result)
    frame = dd.from_pandas(pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "b"] * 2}), npartitions=4)
    large = np.zeros(1 << 20)
    engine.rows(frame, "y").map_sum(lambda number, part: large)
    (graph,) = seen
    assert sum(len(dask.base.tokenize(task)) > 0 and _size(task) > large.nbytes for task in graph.values()) == 1


def _size(task):
    return len(distributed.protocol.pickle.dumps(task))


def test_columns_that_a_model_does_not_read_are_kept_whatever_they_are():
    table = pd.DataFrame({"x": [1.0, 2.0], "when": pd.to_datetime(["2020-01-01", "2021-01-01"]), "y": ["a", "b"]})
    model = db.NaiveBayes().fit(table[["x", "y"]], "y")
    with threads():
        found = engine.predict(model, dd.from_pandas(table, npartitions=2)).compute()
    assert found.columns.tolist() == ["x", "when", "y", "prediction", "proba_a", "proba_b"]
    assert found["prediction"].tolist() == ["a", "b"]


def test_a_bad_cell_met_by_predict_is_named():
    model = db.NaiveBayes().fit(pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]}), "y")
    far = dd.from_pandas(pd.DataFrame({"x": [1.0, 1.0, 1.0, np.inf]}), npartitions=2)
    with threads(), pytest.raises(db.DecibanError, match="partition 1, row 1: column 'x': inf"):
        engine.predict(model, far).compute()


def test_numbers_in_one_partition_and_text_in_another():
    """Text begins with the second task that adds: it is named also where sums are added."""
    cells = [[1, 2]] * 8 + [["u", "v"]] * 4
    parts = [pd.DataFrame({"x": pd.Series(x, dtype=object), "y": ["a", "b"]}) for x in cells]
    with threads(), pytest.raises(db.DecibanError, match=r"partition 8: column 'x' held numbers"):
        engine.fit(db.NaiveBayes(), of_parts(parts), "y")


def test_labels_may_be_a_series():
    with threads():
        y = dd.from_pandas(pd.Series(Y), npartitions=3)
        model = engine.fit(db.NaiveBayes(), da.from_array(X, chunks=(17, X.shape[1])), y)
    assert model.class_count_.tolist() == db.NaiveBayes().fit(X, Y).class_count_.tolist()


def test_what_is_no_model_or_no_engine_is_said():
    frame = dd.from_pandas(pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]}), npartitions=1)
    with pytest.raises(db.DecibanError, match=r"NaiveBayes is a class: pass a model, NaiveBayes\(\)"):
        engine.fit(db.NaiveBayes, frame, "y")
    with pytest.raises(db.DecibanError, match="GaussianNB cannot be fitted to partitions"):
        engine.fit(GaussianNB(), frame, "y")
    with pytest.raises(db.DecibanError, match="X is a DataFrame of dask: use fit, predict"):
        db.NaiveBayes().fit(frame, "y")


def test_dates_are_learned_as_in_one_place():
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(60) * 37, unit="h")
    table = pd.DataFrame({"when": when, "till": when + pd.to_timedelta(np.arange(60) % 7, unit="D")})
    table["y"] = np.where(when.day_of_week < 4, "a", "b")
    with threads():
        for make in (db.NaiveBayes, lambda: db.EvidenceClassifier(trees=0)):
            frame = dd.from_pandas(table, npartitions=3)
            model, whole = engine.fit(make(), frame, "y"), make().fit(table, "y")
            np.testing.assert_allclose(model.predict_proba(table), whole.predict_proba(table), rtol=1e-9)
            text = table.assign(when=table["when"].astype(str))
            found = engine.predict(model, dd.from_pandas(text, npartitions=2)).compute()
            assert found["prediction"].tolist() == whole.predict(table).tolist()
