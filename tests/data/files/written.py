"""One table, written in every way that a scan or a stream can read it."""

import csv
import gzip
import io
import json
import math

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.ipc
import pyarrow.parquet as pq

import deciban as db


def cell_of(value):
    """As text that reads back exactly; a missing value is an empty cell."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(value).lower() if isinstance(value, bool) else str(value)


def csv_text(table, delimiter=",", **style):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n", **style)
    writer.writerow(table.column_names)
    writer.writerows([cell_of(v) for v in row.values()] for row in table.to_pylist())
    return out.getvalue()


def json_text(table):
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist())


def at(folder, name, data):
    """The path of a new file."""
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def in_eight(table):
    size = -(-table.num_rows // 8)
    return [table.slice(i * size, size) for i in range(8)]


def as_parquet(folder, name, table, **options):
    pq.write_table(table, folder / name, **options)
    return folder / name


def as_arrow(folder, name, table, new):
    with new(folder / name, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=100):
            writer.write_batch(batch)
    return folder / name


def csv_files(folder, table):
    return [at(folder, f"part{i}.csv", csv_text(part)) for i, part in enumerate(in_eight(table))]


def parquet_files(folder, table):
    return [as_parquet(folder, f"part{i}.parquet", part) for i, part in enumerate(in_eight(table))]


FILES = {
    "csv": lambda d, t: db.scan(at(d, "t.csv", csv_text(t))),
    "csv, blocks of 100 rows": lambda d, t: db.scan(at(d, "t.csv", csv_text(t)), block_size=8_000),
    "csv, blocks of 50 bytes": lambda d, t: db.scan(at(d, "t.csv", csv_text(t)), block_size=50),
    "csv, all quoted": lambda d, t: db.scan(at(d, "t.csv", csv_text(t, quoting=csv.QUOTE_ALL)), block_size=3_000),
    "csv.gz": lambda d, t: db.scan(at(d, "t.csv.gz", gzip.compress(csv_text(t).encode())), block_size=3_000),
    "csv.zst": lambda d, t: db.scan(
        at(d, "t.csv.zst", pa.compress(csv_text(t).encode(), "zstd", asbytes=True)), block_size=3_000
    ),
    "csv in UTF-16": lambda d, t: db.scan(
        at(d, "t.csv", csv_text(t).encode("utf-16")), encoding="utf-16", block_size=3_000
    ),
    "tsv": lambda d, t: db.scan(at(d, "t.tsv", csv_text(t, "\t")), block_size=3_000),
    "jsonl": lambda d, t: db.scan(at(d, "t.jsonl", json_text(t)), block_size=3_000),
    "parquet": lambda d, t: db.scan(as_parquet(d, "t.parquet", t, row_group_size=100)),
    "arrow file": lambda d, t: db.scan(as_arrow(d, "t.arrow", t, pa.ipc.new_file)),
    "arrow stream": lambda d, t: db.scan(as_arrow(d, "t.arrow", t, pa.ipc.new_stream)),
    "8 files of csv": lambda d, t: db.scan(csv_files(d, t), block_size=3_000),
    "8 files of parquet": lambda d, t: db.scan(parquet_files(d, t)),
    "csv beside parquet": lambda d, t: db.scan([*csv_files(d, t)[:4], *parquet_files(d, t)[4:]]),
}
STREAMS = {
    "polars": lambda d, t: pl.from_arrow(t),
    "duckdb": lambda d, t: duckdb.from_arrow(t),
    "reader": lambda d, t: pa.RecordBatchReader.from_batches(t.schema, t.to_batches(max_chunksize=100)),
    "dataset": lambda d, t: ds.dataset(parquet_files(d, t)),
    "scanner": lambda d, t: ds.dataset(t).scanner(batch_size=100),
}
