"""scan: paths, choices of columns, what it exports, and how much memory and how many threads it takes."""

import io
import json
import os
import subprocess
import sys
import threading

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import deciban as db
from tests.data.files.written import FILES, as_parquet, at, csv_text

TABLE = pa.table({"n": [1, 2, None], "x": [0.5, None, 2.0], "b": [True, False, None], "t": ["a", None, "b"]})
TYPES = {"n": "integer", "x": "number", "b": "boolean", "t": "text"}


@pytest.fixture
def scan(tmp_path):
    return db.scan(at(tmp_path, "t.csv", csv_text(TABLE)), block_size=10)


# Columns -------------------------------------------------------------------------------------------------------------


def test_columns_are_chosen_by_name(scan):
    assert scan.columns == TYPES
    assert scan.select(["t", "n"]).read().to_pydict() == TABLE.select(["t", "n"]).to_pydict()
    assert scan.select("t").names == ("t",)
    assert scan.drop(["x", "n"]).names == ("b", "t")
    assert scan.drop("x").select(["n"]).read().to_pydict() == {"n": [1, 2, None]}
    assert scan.names == ("n", "x", "b", "t")  # a choice is a scan of its own
    for chosen in (scan.select, scan.drop, scan.select(["n"]).select):
        with pytest.raises(db.DecibanError, match="there is no column 'z'"):
            chosen(["z"])
    with pytest.raises(db.DecibanError, match="occurs more than once"):
        scan.select(["n", "n"])


def test_what_is_printed(scan, tmp_path):
    assert repr(scan) == f"Scan of {tmp_path / 't.csv'}: n (integer), x (number), b (boolean), t (category)"
    both = db.scan([tmp_path / "t.csv", at(tmp_path, "u.csv", csv_text(TABLE))])
    assert repr(both.select(["n"])) == "Scan of 2 files: n (integer)"


@pytest.mark.parametrize("way", FILES)
def test_scans_export_the_arrow_stream(tmp_path, way):
    scan = FILES[way](tmp_path, TABLE)
    expected = TABLE.to_pydict()
    table = pa.table(scan)
    assert table.to_pydict() == expected
    assert table.schema.types == [pa.int64(), pa.float64(), pa.bool_(), pa.string()]
    assert pl.DataFrame(scan).to_dict(as_series=False) == expected
    assert duckdb.sql("select * from scan").to_arrow_table().to_pydict() == expected
    assert duckdb.sql("select sum(x) from scan").fetchall() == [(2.5,)]


def test_whole_numbers_of_any_size_are_exported(tmp_path):
    path = as_parquet(tmp_path, "1.parquet", pa.table({"x": pa.array([1, 2**64 - 1], pa.uint64())}))
    assert pa.table(db.scan(path))["x"].to_pylist() == [1.0, 2.0**64]
    paths = [path, as_parquet(tmp_path, "2.parquet", pa.table({"x": [2**62 + 1]}))]
    assert pa.table(db.scan(paths))["x"].to_pylist() == [1.0, 2.0**64, 2.0**62]


def test_exports_are_of_types_that_hold_all_rows(tmp_path, small_sample):
    scan = db.scan(at(tmp_path, "t.csv", "x,y\n" + "1,a\n" * 300 + "t,b\nu,b\nv,b\nw,b\n"), block_size=1000)
    assert scan.columns["x"] == "integer"
    assert pa.table(scan).schema.field("x").type == pa.string()
    bad = db.scan(at(tmp_path, "t.csv", "x,y\n" + "1,a\n" * 300 + "t\n"), block_size=1000)
    with pytest.raises(db.DecibanError, match="line 302: 1 cells"):
        pa.table(bad)


# Paths ---------------------------------------------------------------------------------------------------------------


def test_patterns_lists_and_their_order(tmp_path, monkeypatch):
    for i in (2, 10, 1):
        at(tmp_path, f"part{i}.csv", f"x,y\n{i},a\n")
    (tmp_path / "part_folder.csv").mkdir()
    assert db.scan(str(tmp_path / "part*.csv")).read()["x"].to_pylist() == [1, 10, 2]
    assert db.scan([tmp_path / "part2.csv", str(tmp_path / "part1*.csv")]).read()["x"].to_pylist() == [2, 1, 10]
    assert db.scan(tmp_path / "part1.csv").read()["x"].to_pylist() == [1]
    odd = at(tmp_path, "[odd].csv", "x,y\n7,a\n")
    assert db.scan(odd).read()["x"].to_pylist() == [7]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert db.scan("~/part2.csv").read()["x"].to_pylist() == [2]


def test_a_file_is_given_twice_under_any_name(tmp_path, monkeypatch):
    path = at(tmp_path, "t.csv", "x,y\n1,a\n")
    (tmp_path / "link.csv").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    for other in ("t.csv", "./t.csv", "link.csv"):
        with pytest.raises(db.DecibanError, match=f"'{other}' is given twice"):
            db.scan([path, other])


def test_paths_that_lead_nowhere(tmp_path):
    at(tmp_path, "t.csv", "x,y\n1,a\n")
    for paths, message in [
        (tmp_path / "u.csv", "there is no file '.*u.csv'"),
        (tmp_path / "u*.csv", r"no file matches '.*u\*.csv'"),
        (tmp_path, "is a directory: name the files in it"),
        ([], "no files to scan"),
        ([tmp_path / "t.csv", tmp_path / "t*.csv"], "given twice"),
        (tmp_path / "t.csv" / "u.csv", "there is no file"),
    ]:
        with pytest.raises(db.DecibanError, match=message):
            db.scan(paths)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl"])
def test_files_that_may_not_be_read(tmp_path, name):
    path = at(tmp_path, name, "x,y\n1,a\n")
    path.chmod(0)
    with pytest.raises(db.DecibanError, match=f"{name} cannot be read: Permission denied"):
        db.scan(path).read()


def test_a_file_that_goes_away(tmp_path):
    scan = db.scan(at(tmp_path, "t.csv", "x,y\n1,a\n"))
    assert scan.names == ("x", "y")
    (tmp_path / "t.csv").unlink()
    with pytest.raises(db.DecibanError, match=r"t.csv cannot be read: No such file"):
        scan.read()


def test_formats_may_be_given(tmp_path):
    assert db.scan(at(tmp_path, "t.json", "x,y\n1,a\n"), format="csv").columns == {"x": "integer", "y": "text"}
    assert db.scan(at(tmp_path, "t.csv", '{"x": 1}\n'), format="jsonl").columns == {"x": "integer"}
    path = as_parquet(tmp_path, "t.data", TABLE)
    assert db.scan(path).columns == db.scan(path, format="parquet").columns == TYPES
    with pytest.raises(db.DecibanError, match="format must be one of csv, jsonl, parquet, arrow, mail, text, not 'x'"):
        db.scan(path, format="x")


@pytest.fixture
def stdin(monkeypatch):
    """Sets what standard input holds."""

    def hold(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return hold


def test_standard_input_and_pipes(tmp_path, stdin):
    stdin(csv_text(TABLE).encode())
    assert db.scan("-").read().to_pydict() == TABLE.to_pydict()
    os.mkfifo(tmp_path / "pipe")
    feeding = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(csv_text(TABLE)))
    feeding.start()
    assert db.scan(tmp_path / "pipe").read().to_pydict() == TABLE.to_pydict()
    feeding.join()


def test_standard_input_is_called_so(tmp_path, stdin):
    for data, message in (
        (b"", "standard input is empty"),
        (b"x,y\n1,a\n2\n", "standard input, line 3: 1 cells"),
        (b'{"x": 1}\n{"x": \n', "standard input, line 2: this is not JSON"),
        (b"x,y\n1,a\0\n", "standard input, line 2: holds a NUL byte"),
        (b"\x1f\x8b", "standard input cannot be read"),
        (b"ARROW1\0\0", "standard input cannot be read"),
        (b"x,x\n1,2\n", "standard input: column 'x' occurs more than once"),
    ):
        stdin(data)
        with pytest.raises(db.DecibanError, match=f"^{message}"):
            db.scan("-").read()
    stdin(b"x,y\n1,a\n")
    assert repr(db.scan("-")) == "Scan of standard input: x (integer), y (category)"
    stdin(b"x,y\n1,a\n")
    with pytest.raises(db.DecibanError, match=r"^standard input lacks column 'z'"):
        db.scan([at(tmp_path, "t.csv", "x,y,z\n1,a,2\n"), "-"]).read()


# Several files -------------------------------------------------------------------------------------------------------


def test_columns_may_stand_in_another_order(tmp_path):
    paths = [at(tmp_path, "1.csv", "x,y\n1,a\n"), at(tmp_path, "2.csv", "y;x\nb;2\n")]
    assert db.scan(paths).read().to_pydict() == {"x": [1, 2], "y": ["a", "b"]}
    assert db.scan(paths[::-1]).read().to_pydict() == {"x": [2, 1], "y": ["b", "a"]}


def test_files_of_other_columns_are_refused(tmp_path):
    few, many = "x,y\n1,a\n", "x,y,z\n1,a,3\n"
    for one, two in ((few, many), (many, few)):
        paths = [at(tmp_path, "1.csv", one), at(tmp_path, "2.csv", two)]
        lacking, having = ("1.csv", "2.csv") if one is few else ("2.csv", "1.csv")
        for order in (paths, paths[::-1]):
            with pytest.raises(db.DecibanError, match=rf"{lacking} lacks column 'z', which \S*{having} has: all"):
                db.scan(order).read()
    parquet = as_parquet(tmp_path, "3.parquet", pa.table({"x": [1], "y": ["a"], "z": [1]}))
    with pytest.raises(db.DecibanError, match=r"1.csv lacks column 'z'"):
        db.scan([at(tmp_path, "1.csv", few), parquet]).read()


def test_many_files_are_looked_at_for_their_columns_too(tmp_path):
    paths = [at(tmp_path, f"{i:02}.csv", "x,y\n1,a\n") for i in range(20)]
    paths.append(at(tmp_path, "99.csv", "x,y,z\n1,a,2\n"))
    with pytest.raises(db.DecibanError, match=r"99.csv has, beyond the others, column 'z'"):
        db.scan(paths).read()
    assert db.scan([*paths[:20], at(tmp_path, "20.csv", "x,y\nt,a\n")]).read()["x"].to_pylist() == ["1"] * 20 + ["t"]


def test_all_formats_go_together(tmp_path):
    paths = [
        at(tmp_path, "1.csv", "x,y\n1,a\n"),
        at(tmp_path, "2.jsonl", json.dumps({"x": 2.5, "y": "b"})),
        as_parquet(tmp_path, "3.parquet", pa.table({"y": ["c"], "x": [3]})),
    ]
    for order in (paths, paths[::-1], paths[1:] + paths[:1]):
        assert sorted(db.scan(order).read().to_pylist(), key=lambda row: row["x"]) == [
            {"x": 1.0, "y": "a"},
            {"x": 2.5, "y": "b"},
            {"x": 3.0, "y": "c"},
        ]


# Threads, memory, progress -------------------------------------------------------------------------------------------


def ours():
    return [thread for thread in threading.enumerate() if thread.name.startswith("deciban")]


@pytest.mark.parametrize("way", ["csv, blocks of 50 bytes", "parquet", "jsonl"])
def test_threads_end_when_reading_is_given_up(tmp_path, way):
    table = pa.concat_tables([TABLE] * 100)
    frames = FILES[way](tmp_path, table).frames()
    next(frames)
    frames.close()
    assert ours() == []
    for _ in FILES[way](tmp_path, table).frames():
        break
    assert ours() == []


def test_threads_end_when_reading_fails(tmp_path):
    path = at(tmp_path, "t.csv", "x,y\n" + "1,a\n" * 1000 + "1,inf\n")
    for scan in (db.scan(path, block_size=1000), db.scan(path, block_size=1000, types={"y": "number"})):
        with pytest.raises(db.DecibanError):
            db.NaiveBayes(db.families.Gaussian()).fit(scan, "x")
    assert ours() == []


MEMORY = """
import resource, sys
import pyarrow as pa
import deciban as db
model = db.NaiveBayes()
scan = db.scan(sys.argv[1], block_size=1 << 20)
for _ in scan.select(["x0"]).frames():  # all that is loaded once is loaded now
    break
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model.fit(scan, "y")
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(after - before, pa.default_memory_pool().max_memory() >> 10, pa.total_allocated_bytes() >> 10)
"""


def test_reading_takes_the_memory_of_a_few_blocks(tmp_path):
    row = ",".join(f"{0.123456789 * j:.9f}" for j in range(9))
    path = at(tmp_path, "t.csv", ",".join(f"x{j}" for j in range(9)) + ",y\n" + f"{row},a\n{row},b\n" * 160_000)
    assert path.stat().st_size > 32_000_000
    run = subprocess.run([sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True)
    grown, arrow, left = map(int, run.stdout.split())  # kB
    assert grown < 30_000
    assert arrow < 20_000
    assert left < 2_000


def test_models_do_not_depend_on_the_number_of_workers(tmp_path, monkeypatch):
    rows = "".join(
        f"{i % 97 / 7},{'abc'[i % 3]},{'' if i % 11 else i % 5},{'no' if i % 4 else 'yes'}\n" for i in range(500)
    )
    path, predictions = at(tmp_path, "t.csv", "x,t,n,y\n" + rows), set()
    for workers in (1, 2, 8):
        monkeypatch.setattr("deciban.data.prefetch.WORKERS", workers)
        scan = db.scan(path, block_size=1000)
        predictions.add(db.NaiveBayes().fit(scan, "y").predict_log_proba(scan).tobytes())
    assert len(predictions) == 1


def test_progress_is_reported(tmp_path):
    paths = [at(tmp_path, f"{i}.csv", csv_text(pa.concat_tables([TABLE] * 50))) for i in range(2)]
    scan, reported = db.scan(paths, block_size=100), []
    scan.on_progress = lambda *what: reported.append(what)
    scan.select(["n"]).read()
    assert [path for _, _, path in reported] == sorted(path for _, _, path in reported)
    assert reported[-1] == (300, paths[1].stat().st_size, str(paths[1]))
    for path in paths:
        read = [bytes_read for _, bytes_read, where in reported if where == str(path)]
        assert read == sorted(read)
        assert read[-1] == path.stat().st_size
