"""Dask: the laws of engines in this process; workers of which one dies; arrays; and whatever pandas has for cells."""

import os
import signal
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import GaussianNB

import deciban as db
from tests.engines.data import (
    ALL,
    PLAIN,
    assert_same_bits,
    cut,
    evidence,
    impossible_rows,
    in_memory,
    of,
    replace_cell,
    same_probabilities,
    selected,
)
from tests.engines.laws import EngineLaws

distributed = pytest.importorskip("dask.distributed", reason="dask is not installed: pip install deciban[dask]")
import dask  # noqa: E402
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

from deciban.engines import dask as engine  # noqa: E402

f = db.families
pytestmark = pytest.mark.xdist_group("dask")  # one cluster at a time


def as_arrow(table):
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def frame_of(tables, convert=as_arrow):
    """A partition for each table, as it is: Dask would make text of objects."""
    whole, ends = convert(pa.concat_tables(tables)), np.cumsum([0, *(table.num_rows for table in tables)]).tolist()
    return of_parts([whole.iloc[start:stop] for start, stop in pairwise(ends)])


def of_parts(frames, on_read=None):
    def part_of(number):
        if on_read is not None:
            on_read(number, 0)
        return frames[number]

    delayed = [dask.delayed(part_of, pure=False)(number) for number in range(len(frames))]
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_delayed(delayed, meta=frames[0].iloc[:0], verify_meta=False)


@pytest.fixture
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


here = pytest.mark.usefixtures("synchronous")


@here
class TestDask(EngineLaws):
    engine, library = engine, "Dask"

    def frame(self, tables, on_read=None):
        return of_parts([as_arrow(table) for table in tables], on_read)

    def computed(self, frame):
        return pa.Table.from_pandas(frame.compute(), preserve_index=False)


# DataFrames ----------------------------------------------------------------------------------------------------------

CONVERT = {
    "numpy": lambda table: table.to_pandas(),
    "nullable": lambda table: table.to_pandas().convert_dtypes(),
    "objects": lambda table: table.to_pandas().astype({"city": object, "class": object}),
    "categories": lambda table: table.to_pandas().astype({"city": "category"}),
}


@here
@pytest.mark.parametrize("kind", CONVERT)
def test_whatever_pandas_has_for_cells(kind):
    """In one partition some columns are all missing, so that it does not know their types."""
    parts = cut(of(ALL) if kind != "numpy" else of(ALL).drop(["weight"]))
    for name in ("city", "smoker", "age"):
        place = parts[6].schema.get_field_index(name)
        parts[6] = parts[6].set_column(place, name, pa.nulls(parts[6].num_rows, parts[6].schema.field(name).type))
    weight = "weight" if kind != "numpy" else None
    expected = db.NaiveBayes().fit(pa.concat_tables(parts), "class", sample_weight=weight)
    model = engine.fit(db.NaiveBayes(), frame_of(parts, CONVERT[kind]), "class", weight)
    assert evidence(model) == evidence(expected)


@here
def test_categories_that_are_not_known_yet():
    frame = frame_of(cut(of(ALL)), CONVERT["numpy"])
    frame["city"] = frame["city"].astype("category")
    assert evidence(engine.fit(db.NaiveBayes(), frame, "class", "weight")) == evidence(in_memory(PLAIN))


@here
def test_text_among_numbers_is_named():
    """Of Python objects the types are inferred from the partitions."""
    parts = [part.to_pandas().astype({"age": object}) for part in cut(of(("height", "age")))]
    parts[6].loc[parts[6].index[2], "age"] = "old"
    with pytest.raises(db.DecibanError, match=r"partition 6.*'age'"):
        engine.fit(db.NaiveBayes(), of_parts(parts), "class", "weight")
    parts[6]["age"] = "old"
    with pytest.raises(db.DecibanError, match=r"'age'.*(text|numbers)"):
        engine.fit(db.NaiveBayes(), of_parts(parts), "class", "weight")
    cells = [[1, 2]] * 8 + [["u", "v"]] * 4  # text begins with the second task that sums
    parts = [pd.DataFrame({"x": pd.Series(x, dtype=object), "y": ["a", "b"]}) for x in cells]
    with pytest.raises(db.DecibanError, match=r"partition 8: column 'x' held numbers"):
        engine.fit(db.NaiveBayes(), of_parts(parts), "y")


@here
def test_a_partition_that_lacks_a_column_is_named():
    parts = [as_arrow(part) for part in cut(of(ALL))]
    parts[6] = parts[6].drop(columns="age")
    with pytest.raises(db.DecibanError, match=r"partition 6: .*lacks.*'age'"):
        engine.fit(db.NaiveBayes(), of_parts(parts), "class", "weight")


@here
def test_empty_partitions_have_the_types_of_the_others():
    predictions = engine.predict(in_memory(PLAIN), of_parts([as_arrow(part) for part in cut(of(ALL))]))
    for number in (2, 3):  # the other is empty
        pd.testing.assert_series_equal(predictions.partitions[number].compute().dtypes, predictions.dtypes)


@here
def test_predictions_keep_names_that_are_not_text_and_columns_that_the_model_does_not_read():
    x = pd.DataFrame({0: [0.0, 1.0, 2.0, 3.0], 1: [1.0, 0.0, 1.0, 0.5]})
    model = db.NaiveBayes().fit(x.to_numpy(), ["a", "b", "a", "b"])
    actual = engine.predict(model, dd.from_pandas(x, npartitions=2)).compute()
    assert list(actual.columns) == [0, 1, "prediction", "proba_a", "proba_b"]
    assert actual["prediction"].tolist() == model.predict(x.to_numpy()).tolist()
    table = pd.DataFrame({"x": [1.0, 2.0], "when": pd.to_datetime(["2020-01-01", "2021-01-01"]), "y": ["a", "b"]})
    model = db.NaiveBayes().fit(table[["x", "y"]], "y")
    actual = engine.predict(model, dd.from_pandas(table, npartitions=2)).compute()
    assert actual.columns.tolist() == ["x", "when", "y", "prediction", "proba_a", "proba_b"]
    assert actual["prediction"].tolist() == ["a", "b"]


@here
def test_dates_are_read_as_in_memory():
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(60) * 37, unit="h")
    table = pd.DataFrame({"when": when, "till": when + pd.to_timedelta(np.arange(60) % 7, unit="D")})
    table["y"] = np.where(when.day_of_week < 4, "a", "b")
    for make in (db.NaiveBayes, lambda: db.EvidenceClassifier(trees=0, pairs=0)):
        model, whole = engine.fit(make(), dd.from_pandas(table, npartitions=3), "y"), make().fit(table, "y")
        np.testing.assert_allclose(model.predict_proba(table), whole.predict_proba(table), rtol=1e-9)
        text = table.assign(when=table["when"].astype(str))
        actual = engine.predict(model, dd.from_pandas(text, npartitions=2)).compute()
        assert actual["prediction"].tolist() == whole.predict(table).tolist()


def test_work_is_in_the_graph_once(monkeypatch):
    """And not with every partition: a model may be large."""
    graphs = []
    result = engine.PartitionResult()
    monkeypatch.setattr(engine.Delayed, "compute", lambda self: graphs.append(dict(self.dask)) or result)
    frame = dd.from_pandas(pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "b"] * 2}), npartitions=4)
    large = np.zeros(1 << 20)
    engine.rows(frame, "y").map_sum(lambda number, part: large)
    (graph,) = graphs
    assert sum(len(distributed.protocol.pickle.dumps(task)) > large.nbytes for task in graph.values()) == 1


def test_what_is_no_model_or_no_collection_is_refused():
    frame = dd.from_pandas(pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]}), npartitions=1)
    square = da.ones((4, 2), chunks=2)
    for model, collection, label, message in (
        (db.NaiveBayes, frame, "y", r"NaiveBayes is a class: pass a model, NaiveBayes\(\)"),
        (GaussianNB(), frame, "y", "GaussianNB cannot be fitted to partitions"),
        (db.NaiveBayes(), frame, np.arange(2), "label must be the name of a column"),
        (db.NaiveBayes(), pd.DataFrame({"x": [1.0]}), "x", "a DataFrame of pandas: pass a Dask DataFrame"),
        (db.NaiveBayes(), da.ones((4,), chunks=2), np.arange(4), "two dimensions"),
        (db.NaiveBayes(), square, "y", "pass an array with a value for each row"),
        (db.NaiveBayes(), square, None, "pass an array with a value for each row"),
        (db.NaiveBayes(), square, np.arange(5), "inconsistent numbers of samples"),
    ):
        with pytest.raises(db.DecibanError, match=message):
            engine.fit(model, collection, label)
    with pytest.raises(db.DecibanError, match="X is a DataFrame of dask: use fit, predict"):
        db.NaiveBayes().fit(frame, "y")


# Workers -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes, each with a nanny that starts it again."""
    with (
        dask.config.set({"distributed.worker.daemon": True, "distributed.admin.low-level-log-length": 0}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_workers_fit_the_model_of_one_process_to_the_last_bit(cluster):
    make, table, weight = selected("each column another")
    frame = frame_of(cut(table, (*range(0, 340, 20), 340, 340)))
    assert frame.npartitions == 18
    model, expected = engine.fit(make(), frame, "class", weight), in_memory("each column another")
    assert_same_bits(model, expected, table)
    assert engine.predict(model, frame).compute()["prediction"].tolist() == expected.predict(table).tolist()
    evaluation = engine.evaluate(model, frame, "class", "weight")
    assert evaluation == db.evaluate(expected, table, "class", "weight")


def test_errors_and_warnings_of_workers_arrive_once(cluster, tmp_path):
    def note(number, attempt):
        with (tmp_path / str(number)).open("a") as file:
            file.write("x")

    parts = [as_arrow(part) for part in replace_cell(cut(of(ALL)), 4, "height", 3, np.inf)]
    with pytest.raises(db.DecibanError, match="partition 4, row 3: column 'height': inf is infinite"):
        engine.fit(db.NaiveBayes(), of_parts(parts, note), "class", "weight")
    assert [(tmp_path / str(number)).read_text() for number in range(len(parts))] == ["x"] * len(parts)
    with pytest.raises(db.DecibanError, match="partition 4, row 3: column 'height': inf is infinite"):
        engine.predict(in_memory(PLAIN), of_parts(parts)).compute()
    model, parts = impossible_rows()
    with pytest.warns(db.DecibanWarning) as caught:
        engine.evaluate(model, frame_of(parts), "class")
    (message,) = [str(w.message) for w in caught if w.category is db.DecibanWarning]
    assert message.startswith("3 rows are impossible under every class")


@pytest.mark.slow
def test_a_worker_that_dies_midway_costs_and_doubles_nothing(cluster, tmp_path):
    marker = tmp_path / "died"

    def die(number, attempt):
        if number == 6 and not marker.exists():
            marker.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)

    before = set(cluster.run(os.getpid).values())
    frame = of_parts([as_arrow(part) for part in cut(of(ALL))], die)
    model = engine.fit(db.NaiveBayes(), frame, "class", "weight")
    assert int(marker.read_text()) in before
    assert evidence(model) == evidence(in_memory(PLAIN))
    cluster.wait_for_workers(2, timeout=60)


# Arrays --------------------------------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.arange(60) % 3
W = np.where(np.arange(60) % 5, 1.5, 0.0)
UNEVEN = ((1, 0, 30, 29), (4,))
ARRAYS = {
    "floats": (X, (7, 4)),
    "floats, chunks of columns": (X, (13, 3)),
    "floats with missing values": (np.where(X > 2, np.nan, X), UNEVEN),
    "single": (X.astype(np.float32), (60, 4)),
    "integers": ((X * 10).astype(np.int64), (13, 3)),
    "booleans": (X > 0, UNEVEN),
}


@here
@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays(kind):
    array, chunks = ARRAYS[kind]
    x = da.from_array(array, chunks=chunks)
    expected = db.NaiveBayes().fit(array, Y, sample_weight=W)
    model = engine.fit(db.NaiveBayes(), x, Y, sample_weight=W)
    assert evidence(model) == evidence(expected)
    assert engine.predict(model, x).compute().tolist() == expected.predict(array).tolist()
    p = engine.predict_proba(model, x)
    assert p.shape == (60, 3)
    assert p.compute().tobytes() == expected.predict_proba(array).tobytes()
    assert engine.evaluate(model, x, Y, W) == db.evaluate(expected, array, Y, W)


@here
@pytest.mark.parametrize(
    "make",
    [
        lambda y: y.tolist(),
        pd.Series,
        lambda y: da.from_array(y, chunks=11),
        lambda y: dd.from_pandas(pd.Series(y), npartitions=3),
        lambda y: np.array(["a", "b", "c"])[y],
        lambda y: y > 0,
    ],
    ids=["list", "pandas", "dask array", "dask series", "text", "booleans"],
)
def test_labels_of_arrays(make):
    y = make(Y)
    expected = db.NaiveBayes().fit(X, y.compute() if hasattr(y, "compute") else y)
    x = da.from_array(X, chunks=(7, 4))
    model = engine.fit(db.NaiveBayes(), x, y)
    assert evidence(model) == evidence(expected)
    assert model.classes_.tolist() == expected.classes_.tolist()
    predicted = engine.predict(model, x)
    assert predicted.compute().tolist() == expected.predict(X).tolist()
    assert predicted.dtype == predicted.compute().dtype


@here
def test_chunks_of_unknown_sizes():
    x, y = da.from_array(X, chunks=(7, 4)), da.from_array(Y, chunks=7)
    some, labels = x[x[:, 0] > 0], y[x[:, 0] > 0]
    kept = X[:, 0] > 0
    expected = db.NaiveBayes().fit(X[kept], Y[kept])
    model = engine.fit(db.NaiveBayes(), some, labels)
    assert evidence(model) == evidence(expected)
    assert engine.predict(model, some).compute().tolist() == expected.predict(X[kept]).tolist()
    assert engine.predict_proba(model, some).compute().tobytes() == expected.predict_proba(X[kept]).tobytes()
    with pytest.raises(db.DecibanError, match="compute_chunk_sizes"):
        engine.fit(db.NaiveBayes(), some, Y[kept])


@here
def test_sparse_chunks():
    dense = np.random.default_rng(1).poisson(0.4, (60, 8)).astype(float)
    x = da.from_array(dense, chunks=(17, 8)).map_blocks(sp.csr_array, meta=sp.csr_array((0, 0)))
    whole = sp.csr_array(dense)
    for make in (lambda: db.NaiveBayes(f.Multinomial()), lambda: db.EvidenceClassifier()):
        expected, model = make().fit(whole, Y), engine.fit(make(), x, Y)
        assert evidence(model) == evidence(expected)
        assert engine.predict(model, x).compute().tolist() == expected.predict(whole).tolist()


@here
@pytest.mark.parametrize("kind", [db.LogisticRegression, db.GaussianDiscriminant])
def test_other_models_of_arrays(kind):
    expected = kind().fit(X, Y, sample_weight=W)
    model = engine.fit(kind(), da.from_array(X, chunks=(7, 2)), da.from_array(Y, chunks=60), W)
    same_probabilities(model.predict_proba(X), expected.predict_proba(X), 1e-7)
    evaluation = db.cross_validate(kind(), engine.rows(da.from_array(X, chunks=(7, 2)), Y, W), None, 3)
    assert evaluation.rows == pytest.approx(W.sum())


@here
def test_bad_cells_of_arrays_are_named():
    bad = X.copy()
    bad[33, 2] = np.inf
    plain = db.NaiveBayes()
    label, weights = np.where(np.arange(60) == 21, np.nan, Y), np.where(np.arange(60) == 55, -1.0, 1.0)
    infinite = "partition 3, row 3: column 2: inf is infinite"
    for model, x, y, w, message in (
        *((model, bad, Y, None, infinite) for model in (plain, db.GaussianDiscriminant(), db.LogisticRegression())),
        (db.EvidenceClassifier(), bad, Y, None, infinite),
        (plain, X, Y, weights, "partition 5, row 5: sample_weight: -1"),
        (plain, X, label, None, r"partition 2, row 1: .*label"),
    ):
        with pytest.raises(db.DecibanError, match=message):
            engine.fit(model, da.from_array(x, chunks=(10, 4)), y, w)


def test_an_array_is_predicted_lazily():
    model = db.NaiveBayes().fit(X, Y)
    read = []
    x = da.from_array(X, chunks=(20, 4))
    x = x.map_blocks(lambda block: read.append(1) or block, dtype=float, meta=np.empty((0, 0)))
    predicted, p = engine.predict(model, x), engine.predict_proba(model, x)
    assert not read
    assert predicted.dtype == Y.dtype
    assert predicted.chunks == ((20, 20, 20),)
    assert p.chunks == ((20, 20, 20), (3,))
    with pytest.raises(db.DecibanError, match="takes a Dask array"):
        engine.predict_proba(model, dd.from_pandas(pd.DataFrame(X), npartitions=1))
