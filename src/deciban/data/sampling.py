"""Sampling: a subset of the rows that depends neither on their order nor on their batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.data.arrays import MatrixFrame, SparseFrame
from deciban.data.arrow import TableFrame
from deciban.data.arrow_buffers import NotUtf8
from deciban.data.batch import Batch, ColumnRef, Frame, positions
from deciban.data.class_index import ClassIndex
from deciban.data.documents import TextFrame
from deciban.data.labelled import Sample
from deciban.data.labels import Encoded
from deciban.data.schema import Schema
from deciban.data.stream import concat_frames
from deciban.errors import require_whole
from deciban.lazy import lazy
from deciban.types import FloatArray, Labels, sorted_levels

pa = lazy("pyarrow")
sp = lazy("scipy.sparse")

Keys = NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
START = np.uint64(0xD1B54A32D192ED03)  # not a multiple of GOLDEN, so that no cell cancels it
ROWS_AT_ONCE = 1 << 16  # whose columns are converted, to hash them


def seed_of(random_state: int | None) -> int:
    """The number itself; for None, a seed drawn from the entropy of the system.

    >>> seed_of(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return require_whole("random_state", random_state)


def row_keys(frame: Frame, columns: Sequence[ColumnRef], seed: int = 0) -> Keys:
    """(n) 64 bits for each row, a hash of some of its cells: equal rows have equal keys, others hardly ever.

    >>> from deciban.data import frame_of
    >>> a, b, c = row_keys(frame_of([["x", 1.0], ["y", 1.0], ["x", 1.0]]), [0, 1])
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    starts = range(0, frame.rows, ROWS_AT_ONCE)
    if len(starts) < 2 or isinstance(frame, SparseFrame):
        return _row_keys(frame, columns, seed)
    parts = (frame.slice(start, min(start + ROWS_AT_ONCE, frame.rows)) for start in starts)
    return np.concatenate([_row_keys(part, columns, seed) for part in parts])


def _row_keys(frame: Frame, columns: Sequence[ColumnRef], seed: int) -> Keys:
    keys = _mixed(np.full(frame.rows, seed, np.int64).view(np.uint64) + START)
    if isinstance(frame, SparseFrame):
        _kernels.add_sparse_keys(frame.x.data, frame.x.indices, frame.x.indptr, keys)
        return _mixed(keys)
    indices = positions(columns)
    salts = np.arange(1, len(indices) + 1, dtype=np.uint64) * GOLDEN
    is_text = [frame.kinds[j] in ("category", "text") for j in indices]
    for text, members in groupby(range(len(indices)), key=is_text.__getitem__):
        run = list(members)
        if not text:
            _kernels.mix_keys(frame.numbers([indices[i] for i in run]), salts[run], keys)
            continue
        for i in run:
            keys = _mixed(keys ^ _mixed(_text_keys(frame, indices[i]) + salts[i]))
    return keys


def _mixed(bits: Keys) -> Keys:
    """Bits that each depend on all bits (the finaliser of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _text_keys(frame: Frame, j: int) -> Keys:
    try:
        coded = frame.coded([j])
    except NotUtf8:
        texts = frame.texts([j])
        return np.frombuffer(b"".join(_digest(texts.cell(i, 0)) for i in range(frame.rows)), np.uint64)
    digests = b"".join([*map(_digest, coded.levels[0]), bytes(8)])  # the last one is that of missing values, −1
    return np.frombuffer(digests, np.uint64)[coded.codes[:, 0]]


def _digest(value: object) -> bytes:
    return blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=8).digest()


def columns_of(frame: Frame, schema: Schema) -> Frame:
    """Only the columns of a schema, in its order: a table may have others, or another order."""
    return frame.select(schema.positions(frame)) if isinstance(frame, TableFrame) else frame


def sampled(sample: Sample, keys: Keys, most: int) -> Sample:
    """About `most` of the rows, sorted by key and class; all of them, unchanged, if there are no more.

    Equal rows become one with their total weight, and the rows with the lowest keys are selected. So the sample is a
    function of the rows, whatever their order, and no row is lost where few are different.
    """
    rows, weights = row_sample_of(keys, sample.labels.codes, sample.weights, most)
    return sample if len(rows) == len(keys) else replace(sample.take(rows), weights=weights)


def row_sample_of(
    keys: Keys, labels: Labels, weights: FloatArray | None, most: int
) -> tuple[NDArray[np.intp], FloatArray | None]:
    """The indices of about `most` rows, and their weights: see `sampled`."""
    return _lowest(keys, labels, weights, most) if len(keys) > most else (np.arange(len(keys)), weights)


def _lowest(
    keys: Keys, labels: Labels, weights: FloatArray | None, most: int
) -> tuple[NDArray[np.intp], FloatArray | None]:
    """The indices of the distinct rows with the `most` lowest keys, and their weights."""
    candidates, wanted = np.arange(len(keys)), 4 * most
    if len(keys) > 2 * wanted:
        low = np.flatnonzero(keys <= np.partition(keys, wanted)[wanted])
        candidates = low if len(np.unique(keys[low])) > most else candidates
    bound = np.unique(keys[candidates])[:most][-1]
    return distinct_rows(keys, labels, weights, candidates[keys[candidates] <= bound])


def distinct_rows(
    keys: Keys, labels: Labels, weights: FloatArray | None, among: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.intp], FloatArray | None]:
    """The indices of distinct rows, sorted by key and class, each with the total weight of the rows equal to it."""
    candidates = np.arange(len(keys)) if among is None else among
    order = candidates[np.lexsort((labels[candidates], keys[candidates]))]
    repeated = (np.diff(keys[order]) == 0) & (np.diff(labels[order]) == 0)
    starts = np.flatnonzero(np.concatenate([[True], ~repeated]))
    if weights is None and len(starts) == len(order):
        return order, None
    weight = np.ones(len(keys)) if weights is None else weights
    return order[starts], np.add.reduceat(weight[order], starts)


@dataclass(frozen=True)
class RowSample:
    """A sample that adds up: a + b samples the rows of both, in a stream or in the partitions of a cluster.

    It holds at most about 2·`most` rows, those with the lowest keys.
    """

    kept: tuple[tuple[Sample, Keys], ...]
    most: int
    rows: int  # number of rows sampled from, without rows of weight 0

    @classmethod
    def of(cls, batch: Batch, schema: Schema, most: int, seed: int) -> RowSample:
        labels = Encoded(batch.labels, batch.classes)
        numbers = batch.first + (np.arange(len(batch.labels)) if batch.rows is None else batch.rows)
        keys = row_keys(batch.frame, schema.column_refs(batch.frame), seed)
        rows = Sample(columns_of(batch.frame, schema), labels, batch.weights, numbers)
        return cls(((rows, keys),), most, len(keys))._bounded()

    def __add__(self, other: RowSample) -> RowSample:
        return RowSample((*self.kept, *other.kept), self.most, self.rows + other.rows)._bounded()

    def _bounded(self) -> RowSample:
        if sum(len(keys) for _, keys in self.kept) <= 2 * self.most:
            return self
        return replace(self, kept=(self._thinned(),))

    def _all(self) -> tuple[Sample, Keys]:
        return _concat([sample for sample, _ in self.kept]), np.concatenate([keys for _, keys in self.kept])

    def _thinned(self) -> tuple[Sample, Keys]:
        rows, keys = self._all()
        kept, weights = _lowest(keys, rows.labels.codes, rows.weights, self.most)
        return replace(rows.take(kept), weights=weights), keys[kept]

    def sample(self) -> Sample:
        """The sample, as `sampled` of all rows gives it."""
        return self._thinned()[0] if self.rows > self.most else self._all()[0]

    def __getstate__(self) -> dict[str, Any]:
        """Copies of the rows: a batch may be a small slice of buffers that would be pickled as a whole."""
        copies = [(rows.take(np.arange(len(keys))), keys) for rows, keys in self.kept]
        return {**self.__dict__, "kept": tuple(copies)}


def _concat(samples: list[Sample]) -> Sample:
    if len(samples) == 1:
        return samples[0]
    classes = sorted_levels({label for sample in samples for label in sample.labels.classes})
    index, weights = ClassIndex(classes), None
    if any(sample.weights is not None for sample in samples):
        ones = (np.ones(sample.frame.rows) if sample.weights is None else sample.weights for sample in samples)
        weights = np.concatenate(list(ones))
    return Sample(
        _concat_frames([sample.frame for sample in samples]),
        Encoded(np.concatenate([index.recode(s.labels.codes, s.labels.classes) for s in samples]), classes),
        weights,
        np.concatenate([sample.numbers for sample in samples if sample.numbers is not None]),
    )


def _concat_frames(frames: list[Frame]) -> Frame:
    """All rows of several frames: tables, documents, arrays or sparse rows."""
    texts = [frame for frame in frames if isinstance(frame, TextFrame)]
    if texts:
        columns = zip(*(frame.columns for frame in texts), strict=True)
        return replace(texts[0], columns=tuple([cell for cells in column for cell in cells] for column in columns))
    tables = [frame for frame in frames if isinstance(frame, TableFrame)]
    if tables:
        return concat_frames([f if isinstance(f, TableFrame) else _as_table(f, tables[0]) for f in frames])
    matrices = [frame for frame in frames if isinstance(frame, MatrixFrame)]
    if len(matrices) == len(frames):
        return MatrixFrame(np.concatenate([frame.x for frame in matrices]))
    all_columns = range(len(frames[0].names))
    rows = [frame.x if isinstance(frame, SparseFrame) else sp.csr_array(frame.numbers(all_columns)) for frame in frames]
    return SparseFrame(sp.csr_array(sp.vstack(rows)))


def _as_table(frame: Frame, like: TableFrame) -> TableFrame:
    """The rows of an array, as a table with the columns of another."""
    x = frame.numbers(range(len(like.names)))
    columns = [pa.array(column, from_pandas=True) for column in np.asarray(x, np.float64).T]
    table = pa.table(columns, names=like.table.column_names)
    return replace(like, table=table, kinds=tuple("number" for _ in columns))
