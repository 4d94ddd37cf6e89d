"""Parquet and Arrow files: types are those of the file, and damage is named."""

import decimal
from itertools import product

import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import deciban as db
from tests.data.files.written import as_arrow, as_parquet, at

LISTS = pa.array([[1], [2], [3]])
TABLE = pa.table(
    {
        "small": pa.array([1, None, 3], pa.int8()),
        "single": pa.array([0.5, None, 2], pa.float32()),
        "price": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("2.50")]),
        "truth": [True, None, False],
        "text": ["a", None, "b"],
        "large": pa.array(["a", None, "b"], pa.large_string()),
        "coded": pa.array(["u", None, "v"]).dictionary_encode(),
        "nothing": pa.nulls(3),
        "a.b": [1, 2, 3],
        "y": ["no", "yes", "no"],
    }
)
WAYS = {
    "parquet": lambda d, t: as_parquet(d, "t.parquet", t, row_group_size=2),
    "plain parquet": lambda d, t: as_parquet(d, "t.parquet", t, use_dictionary=False, compression="none"),
    "parquet by another name": lambda d, t: as_parquet(d, "t.csv", t),
    "file": lambda d, t: as_arrow(d, "t.arrow", t, pa.ipc.new_file),
    "stream": lambda d, t: as_arrow(d, "t.feather", t, pa.ipc.new_stream),
    "stream by another name": lambda d, t: as_arrow(d, "t.csv", t, pa.ipc.new_stream),
}


@pytest.mark.parametrize("way", WAYS)
def test_cells_are_those_of_the_table(tmp_path, way):
    scan = db.scan(WAYS[way](tmp_path, TABLE))
    numbers, texts = ["integer", "number", "number"], ["text", "text", "text"]
    assert list(scan.columns.values()) == [*numbers, "boolean", *texts, "empty", "integer", "text"]
    assert scan.read().to_pydict() == TABLE.to_pydict()
    assert scan.select(["a.b", "text"]).read().to_pydict() == TABLE.select(["a.b", "text"]).to_pydict()


@pytest.mark.parametrize("way", WAYS)
def test_a_column_of_lists_is_refused_only_if_it_is_used(tmp_path, way):
    scan = db.scan(WAYS[way](tmp_path, TABLE.append_column("day", LISTS)))
    assert scan.columns["day"] == "other"
    with pytest.raises(db.DecibanError, match="column 'day' is neither numbers nor text: convert it, or drop it"):
        db.NaiveBayes().fit(scan, "y")
    model = db.NaiveBayes().fit(scan.drop("day"), "y")
    assert model.predict(scan).tolist() == model.predict(TABLE).tolist()
    learned = db.NaiveBayes().fit(pa.table({"day": [1.0, 2, 3], "y": ["a", "b", "a"]}), "y")
    with pytest.raises(db.DecibanError, match=r"t\.\w+: column 'day' holds neither numbers nor text"):
        learned.predict(scan)


@pytest.mark.parametrize("way", WAYS)
def test_files_that_are_truncated_are_named(tmp_path, way):
    path = WAYS[way](tmp_path, TABLE)
    data = path.read_bytes()
    name = {"t.csv": "t.arrow" if "stream" in way else "t.parquet"}.get(path.name, path.name)
    for left in (0.3, 0.9):
        path = at(tmp_path, name, data[: int(len(data) * left)])
        with pytest.raises(db.DecibanError, match=f"{name} cannot be read, it may be truncated or damaged"):
            db.scan(path).read()


def test_names_of_columns_that_are_not_utf8_are_damage(tmp_path):
    path = as_parquet(tmp_path, "t.parquet", pa.table({"name": [1.0], "y": ["a"]}), store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"name", b"\xff\xfe\xff\xfe"))
    with pytest.raises(db.DecibanError, match=r"t\.parquet cannot be read.*utf-8"):
        db.scan(path).read()


def test_damage_within_a_file_and_files_of_another_format_are_named(tmp_path):
    for name, data in product(("t.parquet", "t.arrow"), (b"", b"x,y\n1,2\n")):
        with pytest.raises(db.DecibanError, match=f"{name} cannot be read"):
            db.scan(at(tmp_path, name, data)).read()
    path = as_parquet(tmp_path, "t.parquet", pa.table({"x": list(range(10_000))}), compression="none")
    data = bytearray(path.read_bytes())
    data[4:400] = bytes(396)
    with pytest.raises(db.DecibanError, match=r"t.parquet cannot be read"):
        db.scan(at(tmp_path, "t.parquet", bytes(data))).read()


def test_files_of_other_types_do_not_mix(tmp_path):
    for one, other, which in (
        *(([1, 2], ["a"], "0"), (["a"], [1, 2], "1"), ([True], ["a"], "0")),
        *(([True], [1], "."), ([1], [LISTS[0]], None)),
    ):
        paths = [as_parquet(tmp_path, f"{i}.parquet", pa.table({"x": cells})) for i, cells in enumerate((one, other))]
        message = f"{which}.parquet: column 'x' holds" if which else "column 'x' is nei"
        for order in (paths, paths[::-1]):
            with pytest.raises(db.DecibanError, match=message):
                db.scan(order).read()


def test_files_of_narrower_types_do(tmp_path):
    columns = [pa.array([1], pa.int8()), pa.array([2.5], pa.float32()), pa.nulls(1), pa.array([4], pa.uint64())]
    paths = [as_parquet(tmp_path, f"{i}.parquet", pa.table({"x": x, "y": ["a"]})) for i, x in enumerate(columns)]
    scan = db.scan(paths)
    assert scan.columns == {"x": "number", "y": "text"}
    assert pa.table(scan)["x"].to_pylist() == [1.0, 2.5, None, 4.0]
    model = db.NaiveBayes().fit(scan, "y")
    assert model.generative_.blocks[0].statistic.sum_x.value.tolist() == [[7.5]]


def test_a_file_beyond_those_looked_at_may_widen_the_types(tmp_path):
    cells = [[i] for i in range(20)] + [[0.5]]
    paths = [as_parquet(tmp_path, f"{i:02}.parquet", pa.table({"x": x})) for i, x in enumerate(cells)]
    scan = db.scan(paths)
    assert scan.columns == {"x": "integer"}
    assert scan.read()["x"].to_pylist() == [*range(20), 0.5]
    assert scan.columns == {"x": "number"}


def test_numbers_that_are_categories(tmp_path):
    frame = pd.DataFrame({"x": pd.Categorical([1, 2] * 5), "y": ["a", "b"] * 5})
    model = db.NaiveBayes().fit(frame, "y")
    plain = pa.table({"x": [1, 2, 3]})
    coded = pa.table({"x": pa.array([1, 2, 3]).dictionary_encode()})
    for path in (as_parquet(tmp_path, "t.parquet", plain), as_arrow(tmp_path, "t.arrow", coded, pa.ipc.new_file)):
        assert model.predict_proba(db.scan(path)).tolist() == model.predict_proba(coded).tolist()


@pytest.mark.parametrize("way", WAYS)
def test_progress_ends_at_the_size_of_the_file(tmp_path, way):
    path = WAYS[way](tmp_path, TABLE)
    scan, reported = db.scan(path), []
    scan.on_progress = lambda *what: reported.append(what)
    scan.read()
    assert reported[-1][::2] == (3, str(path))
    assert 0.99 * path.stat().st_size <= reported[-1][1] <= path.stat().st_size
    assert [t[1] for t in reported] == sorted(t[1] for t in reported)


def test_rows_are_named_by_their_number(tmp_path):
    table = pa.table({"x": [1.0] * 250 + [float("inf")], "y": ["a", "b", "a"] * 83 + ["a", "b"]})
    for path in (as_parquet(tmp_path, "t.parquet", table, row_group_size=100), WAYS["file"](tmp_path, table)):
        with pytest.raises(db.DecibanError, match=rf"{path.name}, row 250: column 'x': inf is infinite"):
            db.NaiveBayes().fit(db.scan(path), "y")


def test_doubled_names_are_refused(tmp_path):
    table = pa.table([[1], [2]], names=["x", "x"])
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(db.DecibanError, match=r"t.parquet: column 'x' occurs more than once"):
        db.scan(tmp_path / "t.parquet").read()


def test_structures_and_lists_are_carried_along_but_not_learned_from(tmp_path):
    table = pa.table({"x": [1.0, 2.0], "day": [{"a": 1}, {"a": 2}], "l": [[1], [2, 3]], "y": ["a", "b"]})
    scan = db.scan(as_parquet(tmp_path, "t.parquet", table))
    (frame,) = scan.frames()
    assert frame.kinds == ("number", "empty", "empty", "category")
    assert frame.table.to_pydict() == table.to_pydict()
    for asked in (lambda: scan.kinds, lambda: scan.empty, scan.read, lambda: db.NaiveBayes().fit(scan, "y")):
        with pytest.raises(db.DecibanError, match="column 'day' is neither numbers nor text"):
            asked()
    model = db.NaiveBayes().fit(scan.select(["x", "y"]), "y")
    assert model.predict(scan).tolist() == ["a", "b"]
    assert model.predict(frame).tolist() == ["a", "b"]
