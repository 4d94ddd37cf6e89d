"""Keys of rows, and the rows with the lowest: the same rows whatever order, batches and types they come in."""

import pickle
from collections import Counter
from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import deciban as db
from deciban import _kernels
from deciban.data import Sample, Streamed, frame_of, stream_of
from deciban.data.labels import encode_labels
from deciban.data.sampling import GOLDEN, RowSample, _mixed, row_keys, row_sample_of, sampled
from deciban.data.schema import Schema
from tests.data.files.written import FILES, STREAMS, as_parquet

N = 200
RNG = np.random.default_rng(0)
TABLE = pa.table(
    {
        "size": pa.array(np.where(RNG.random(N) < 0.1, None, RNG.normal(size=N))),
        "rank": pa.array(np.where(RNG.random(N) < 0.1, None, RNG.integers(0, 50, N)), pa.int64()),
        "colour": pa.array(np.where(RNG.random(N) < 0.1, None, RNG.choice(["red", "blü", 'a "b", c'], N))),
        "flag": pa.array(RNG.random(N) < 0.5),
        "y": pa.array(RNG.choice(["no", "yes"], N)),
        "w": pa.array(RNG.choice([0.0, 1.0, 2.5], N)),
    }
)
COLUMNS = ["size", "rank", "colour", "flag"]


def keys(x, seed=0):
    frame = frame_of(x)
    return row_keys(frame, range(len(frame.names)), seed)


EXPECTED = keys(TABLE.select(COLUMNS))

# Keys ----------------------------------------------------------------------------------------------------------------


def test_keys_are_as_different_as_rows():
    rows = TABLE.select(COLUMNS).to_pylist()
    different = {tuple(row.values()): key for row, key in zip(rows, EXPECTED.tolist(), strict=True)}
    assert len(set(different.values())) == len(different) > 0.9 * N
    for row, key in zip(rows, EXPECTED.tolist(), strict=True):
        assert different[tuple(row.values())] == key


def test_columns_and_what_they_hold_do_not_change_places():
    """No two of: other cells, cells of other columns, missing values, empty text."""
    rows = [[1.0, 2.0], [2.0, 1.0], [1.0, None], [None, 1.0], [0.0, None], [None, None], [0.0, 0.0], [3.0, 0.0]]
    texts = [["u", "v"], ["v", "u"], ["u", None], [None, "u"], ["", None], ["", ""], ["None", ""], ["1", "1"]]
    for cells in (rows, texts):
        frame = pd.DataFrame(cells, columns=["a", "b"]).astype(object if cells is texts else float)
        for names in (["a", "b"], ["b", "a"]):
            assert len(set(keys(frame[names]).tolist())) == len(cells)


NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
FORMS = {
    "pandas": lambda t: t.to_pandas(),
    "pandas, nullable": lambda t: t.to_pandas(types_mapper=NULLABLE.get),
    "polars": pl.from_arrow,
    "dictionary": lambda t: t.set_column(2, "colour", t["colour"].dictionary_encode()),
    "large text": lambda t: t.set_column(2, "colour", t["colour"].cast(pa.large_string())),
    "chunks": lambda t: pa.concat_tables([t.slice(0, 7), t.slice(7, 100), t.slice(107)]),
    "floats": lambda t: t.set_column(1, "rank", t["rank"].cast(pa.float64())),
    "narrow integers": lambda t: t.set_column(1, "rank", t["rank"].cast(pa.int8())),
    "objects": lambda t: np.array([list(row.values()) for row in t.to_pylist()], dtype=object),
}


def test_the_form_of_the_table_does_not_matter():
    for form, make in FORMS.items():
        np.testing.assert_array_equal(keys(make(TABLE.select(COLUMNS))), EXPECTED, err_msg=form)


def test_the_type_of_an_array_does_not_matter():
    x = RNG.integers(0, 9, (40, 3))
    expected = keys(x.astype(np.float64))
    for kind in (np.int8, np.int64, np.uint16, np.float16, np.float32, np.float64, ">f8"):
        native = pd.DataFrame(x.astype(kind).astype(np.dtype(kind).newbyteorder("=")))
        for form in (x.astype(kind), np.asfortranarray(x.astype(kind)), native):
            np.testing.assert_array_equal(keys(form), expected, err_msg=str(kind))
    assert not np.array_equal(keys(sp.csr_array(x.astype(np.float64))), expected)  # words are another kind of rows


def test_zero_has_no_sign_and_all_missing_numbers_are_one():
    other = np.array([np.uint64(0x7FF8000000000123)]).view(np.float64)[0]
    assert np.isnan(other)
    assert len(set(keys(np.array([[0.0, np.nan], [-0.0, -np.nan], [0.0, other]])).tolist())) == 1


def test_rows_batch_by_batch_have_the_same_keys():
    frame = frame_of(TABLE.select(COLUMNS))
    for size in (1, 7, 123):
        parts = [row_keys(frame.slice(i, min(i + size, N)), range(4)) for i in range(0, N, size)]
        np.testing.assert_array_equal(np.concatenate(parts), EXPECTED)
    order = RNG.permutation(N)
    np.testing.assert_array_equal(row_keys(frame.take(order), range(4)), EXPECTED[order])


def test_columns_are_chosen_by_their_places():
    turned = frame_of(TABLE.select(["y", *COLUMNS[::-1], "w"]))
    np.testing.assert_array_equal(row_keys(turned, [4, 3, 2, 1]), EXPECTED)


def test_the_form_of_sparse_rows_does_not_matter():
    x = RNG.poisson(0.4, (60, 9))
    expected = keys(sp.csr_array(x.astype(np.float64)))
    for make, kind in (
        *((sp.csr_array, kind) for kind in (np.int64, np.float32)),
        *((make, np.float64) for make in (sp.csc_array, sp.coo_array, sp.csr_matrix)),
    ):
        np.testing.assert_array_equal(keys(make(x.astype(kind))), expected)
    kept = sp.csr_array(x.astype(np.float64))
    kept.data[::5] = 0.0  # stored zeros
    np.testing.assert_array_equal(keys(kept), keys(sp.csr_array(kept.toarray())))
    order = RNG.permutation(60)
    np.testing.assert_array_equal(keys(sp.csr_array(x[order].astype(np.float64))), expected[order])
    assert len(set(expected.tolist())) == len({tuple(row) for row in x.tolist()})


@pytest.mark.parametrize("seed", [0, 1, 2**62])
def test_keys_of_another_seed_are_others_and_all_bits_are_even(seed):
    actual = keys(np.arange(20_000.0)[:, np.newaxis], seed)
    assert seed == 0 or not np.intersect1d(actual, keys(np.arange(20_000.0)[:, np.newaxis])).size
    bits = (actual[:, np.newaxis] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    np.testing.assert_allclose(bits.mean(axis=0), 0.5, atol=5 * 0.5 / np.sqrt(20_000))
    folds = np.bincount(((actual >> np.uint64(7)) % np.uint64(3)).astype(int))
    np.testing.assert_allclose(folds / 20_000, 1 / 3, atol=0.02)


# Samples -------------------------------------------------------------------------------------------------------------

FEW = (
    pa.table({"size": [0.5, 1.5] * 100, "rank": [1, 2, 3, 4, 5] * 40, "colour": ["red"] * N, "flag": [True] * N})
    .append_column("y", TABLE["y"])
    .append_column("w", TABLE["w"])
)  # ten different rows
TABLES = {"many": TABLE, "few": FEW}
ALL = 10_000


@cache
def expected(name, most, weights):
    """[(cells, class, weight, number of the first such row)] of the different rows with the lowest keys; or of all."""
    table = TABLES[name]
    keys_of_rows = keys(table.select(COLUMNS)).tolist()
    rows = [(keys_of_rows[i], row["y"], i, row) for i, row in enumerate(table.to_pylist()) if not weights or row["w"]]
    cells = {key: tuple(row[name] for name in COLUMNS) for key, _, _, row in rows}
    if len(rows) <= most:
        return [(*cells[key], label, row["w"] if weights else 1.0, i) for key, label, i, row in rows]
    kept = set(sorted({key for key, *_ in rows})[:most])
    groups = {}
    for key, label, i, row in rows:
        if key in kept:
            groups.setdefault((key, label), []).append((i, row["w"] if weights else 1.0))
    return [
        (*cells[key], label, sum(w for _, w in groups[key, label]), min(i for i, _ in groups[key, label]))
        for key, label in sorted(groups)
    ]


def contents(sample):
    """The rows of a sample: cells, class, weight and number."""
    columns = sample.frame.table.select(COLUMNS).to_pylist()
    labels = [sample.labels.classes[code] for code in sample.labels.codes]
    weights = [1.0] * len(labels) if sample.weights is None else sample.weights.tolist()
    numbers = range(len(labels)) if sample.numbers is None else sample.numbers.tolist()
    return [(*row.values(), *rest) for row, *rest in zip(columns, labels, weights, numbers, strict=True)]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("most", "weights"), [(1, None), (4, "w"), (40, None), (40, "w"), (ALL, None), (ALL, "w")])
def test_a_sample_has_the_different_rows_with_the_lowest_keys(table, most, weights):
    rows = TABLES[table]
    sample = Sample(
        frame_of(rows.select(COLUMNS)), encode_labels(rows["y"]), None if weights is None else rows["w"].to_numpy()
    )
    if weights:
        sample = sample.take(np.flatnonzero(sample.weights))
    assert contents(sampled(sample, row_keys(sample.frame, range(4)), most)) == expected(table, most, weights)


def test_a_sample_does_not_depend_on_the_order_of_rows():
    frame, labels = frame_of(FEW.select(COLUMNS)), encode_labels(FEW["y"])
    whole = Sample(frame, labels, RNG.integers(1, 5, N).astype(float))
    turned = whole.take(RNG.permutation(N))
    one, other = (sampled(rows, row_keys(rows.frame, range(4)), 5) for rows in (whole, turned))
    assert [row[:-1] for row in contents(one)] == [row[:-1] for row in contents(other)]


# Streams -------------------------------------------------------------------------------------------------------------

WAYS = FILES | {name: make for name, make in STREAMS.items() if name != "polars"}


def watched(source, most, weights=None, label="y"):
    stream = stream_of(source)
    few = partial(RowSample.of, schema=Schema(tuple(COLUMNS), ("number",) * 4), most=most, seed=0)
    total = Streamed(stream, label, weights).summed(few, needs_small_batches=True)
    return total.sample(), total.rows


@pytest.mark.parametrize("way", WAYS)
def test_the_rows_kept_of_a_stream_are_those_of_the_table(way, tmp_path):
    for table, most, weights in (("many", 40, "w"), ("few", 1, None), ("many", ALL, None))[: 3 if way == "csv" else 2]:
        sample, read = watched(WAYS[way](tmp_path, TABLES[table]), most, weights)
        assert contents(sample) == expected(table, most, weights)
        assert read == (N if weights is None else np.count_nonzero(TABLES[table]["w"].to_numpy()))


def test_labels_may_be_an_array():
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=9))
    sample, _ = watched(reader, 30, None, encode_labels(TABLE["y"]))
    assert contents(sample) == expected("many", 30, None)


def test_batches_that_know_other_classes_and_values_are_joined(tmp_path):
    """Each batch has a class, a colour and a type of its own."""
    parts = [
        pa.table({"x": pa.array([i, i], kind), "colour": [f"colour {i}"] * 2, "y": [f"class {9 - i}"] * 2})
        for i, kind in enumerate([pa.int64(), pa.float64(), pa.int8(), pa.float32()])
    ]
    parts.append(pa.table({"x": pa.nulls(2), "colour": pa.nulls(2), "y": ["class 0"] * 2}))
    paths = [as_parquet(tmp_path, f"{i}.parquet", part) for i, part in enumerate(parts)]
    few = partial(RowSample.of, schema=Schema(("x", "colour"), ("number", "category")), most=6, seed=0)
    sample = Streamed(stream_of(db.scan(paths)), "y", None).summed(few, needs_small_batches=True).sample()
    whole = pa.Table.from_pylist([row for part in parts for row in part.to_pylist()])
    rank = keys(whole.select(["x", "colour"]))
    assert sample.numbers.tolist() == [2 * i for i in np.argsort(rank[::2])]  # both rows of a file are one
    assert sample.weights.tolist() == [2.0] * 5
    rows = whole.take(sample.numbers.tolist())
    assert sample.frame.table.to_pylist() == rows.select(["x", "colour"]).to_pylist()
    assert [sample.labels.classes[code] for code in sample.labels.codes] == rows["y"].to_pylist()


@pytest.mark.parametrize("most", [1, 40, ALL])
def test_they_are_a_sum_in_any_grouping_here_or_elsewhere(most):
    schema = Schema(tuple(COLUMNS), ("number",) * 4)
    rows = Streamed(stream_of(pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(9))), "y", None)
    parts = [
        pickle.loads(pickle.dumps(RowSample.of(batch, schema, most, 0)))
        for batch in rows.batches(needs_small_batches=True)
    ]
    half = len(parts) // 2
    one_by_one, halves = sum(parts[1:], parts[0]), sum(parts[1:half], parts[0]) + sum(parts[half + 1 :], parts[half])
    assert contents(one_by_one.sample()) == contents(halves.sample()) == expected("many", most, None)


def test_what_is_sent_elsewhere_is_no_more_than_the_rows():
    table = pa.table({"x": np.arange(100_000.0), "y": ["a"] * 100_000})
    batch = next(Streamed(stream_of(table.slice(7, 5).to_reader()), "y", None).batches(needs_small_batches=True))
    assert len(pickle.dumps(RowSample.of(batch, Schema(("x",), ("number",)), 10, 0))) < 5_000


def test_no_more_rows_are_held_than_twice_those_that_may_be_kept(tmp_path):
    stream = stream_of(db.scan(as_parquet(tmp_path, "t.parquet", TABLE, row_group_size=20)))
    held, total = [], None
    for batch in Streamed(stream, "y", None).batches(needs_small_batches=True):
        few = RowSample.of(batch, Schema(tuple(COLUMNS), ("number",) * 4), 30, 0)
        total = few if total is None else total + few
        held.append(sum(len(rows) for _, rows in total.kept))
        assert len(batch.labels) <= 20
    assert max(held) <= 2 * 30 * 2  # of each class


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_kernel_mixes_as_numpy_does(kind, order):
    """SplitMix64's last step over bits of doubles; every missing number is one, and −0 is 0."""
    x = np.random.default_rng(0).normal(size=(1100, 70)).astype(kind, order=order)
    x[:4, 0] = [np.nan, -np.nan, 0.0, -0.0]
    places = np.arange(2**63 - 35, 2**63 + 35, dtype=np.uint64)
    keys = np.arange(1100, dtype=np.uint64)
    expected = keys.copy()
    for j in range(70):
        cells = x[:, j].astype(np.float64) + 0.0
        bits = np.where(np.isnan(cells), np.nan, cells).view(np.uint64)
        expected = _mixed(expected ^ _mixed(bits + places[j]))
    _kernels.mix_keys(x, places, keys)
    np.testing.assert_array_equal(keys, expected)
    with pytest.raises(ValueError, match="salts has length"):
        _kernels.mix_keys(x, places[:2], keys)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_the_kernel_mixes_sparse_rows_as_numpy_does(index):
    """A sum over the values stored, without those that are 0; places count from 1."""
    x = sp.random_array((1100, 70), density=0.2, format="csr", rng=np.random.default_rng(0))
    x.data[:4] = [0.0, -0.0, np.nan, -1.0]
    keys = np.arange(1100, dtype=np.uint64)
    cells = _mixed(x.data.view(np.uint64) + (x.indices.astype(np.uint64) + np.uint64(1)) * GOLDEN)
    expected = keys.copy()
    np.add.at(expected, np.repeat(np.arange(1100), np.diff(x.indptr)), np.where(x.data == 0, np.uint64(0), cells))
    _kernels.add_sparse_keys(x.data, x.indices.astype(index), x.indptr.astype(index), keys)
    np.testing.assert_array_equal(keys, expected)
    with pytest.raises(ValueError, match="keys has length"):
        _kernels.add_sparse_keys(x.data, x.indices.astype(index), x.indptr.astype(index), keys[1:])


@pytest.mark.parametrize("different", [3, 40, 5000])
def test_the_lowest_keys_are_those_of_all(different):
    """Many rows are thinned before they are sorted; equal rows may leave too few different ones."""
    rng = np.random.default_rng(different)
    keys = rng.integers(0, 2**63, different).astype(np.uint64)[rng.integers(0, different, 5000)]
    labels = rng.integers(0, 2, 5000).astype(np.int32)
    rows, weights = row_sample_of(keys, labels, None, 30)
    lowest = sorted(set(keys.tolist()))[:30]
    expected = Counter((key, label) for key, label in zip(keys.tolist(), labels.tolist(), strict=True) if key in lowest)
    cells = zip(keys[rows].tolist(), labels[rows].tolist(), strict=True)
    assert dict(zip(cells, weights.tolist(), strict=True)) == expected
