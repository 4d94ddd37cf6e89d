"""Sampling: some of the rows, whichever order and batches they come in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.data import Sample
from deciban.data.arrays import MatrixFrame, SparseFrame
from deciban.data.arrow import TableFrame
from deciban.data.batch import Batch, ColumnRef, DerivedColumn, Frame, Kind
from deciban.data.class_index import ClassIndex
from deciban.data.documents import TextFrame
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
START = np.uint64(0xD1B54A32D192ED03)  # no multiple of the other, so that no cell undoes it


def seed_of(random_state: int | None) -> int:
    """A seed: the whole number itself, or one that the system draws for None.

    >>> seed_of(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return require_whole("random_state", random_state)


def row_keys(frame: Frame, columns: Sequence[ColumnRef], seed: int = 0) -> Keys:
    """(n) 64 bits for each row, a function of what some columns hold: equal rows have equal keys, others hardly ever.

    >>> from deciban.data import frame_of
    >>> a, b, c = row_keys(frame_of([["x", 1.0], ["y", 1.0], ["x", 1.0]]), [0, 1])
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    start = _mixed(np.full(frame.rows, seed, np.int64).view(np.uint64) + START)
    if isinstance(frame, SparseFrame):
        return _mixed(start + _sparse(frame))
    keys = start
    own = [j for j in columns if not isinstance(j, DerivedColumn)]
    places = np.arange(1, len(own) + 1, dtype=np.uint64) * GOLDEN
    texts = [frame.kinds[j] in ("category", "text") for j in own]
    for is_text, run in groupby(range(len(own)), key=texts.__getitem__):
        some = list(run)
        if not is_text:  # numbers side by side
            _kernels.mix_keys(frame.numbers([own[i] for i in some]), places[some], keys)
            continue
        for i in some:
            keys = _mixed(keys ^ _mixed(_texts(frame, own[i]) + places[i]))
    return keys


def _mixed(bits: Keys) -> Keys:
    """Every bit of the result depends on all bits (the end of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _texts(frame: Frame, j: int) -> Keys:
    try:
        coded = frame.coded([j])
    except UnicodeDecodeError:  # bytes that are not UTF-8
        texts = frame.texts([j])
        return np.frombuffer(b"".join(_mark(repr(texts.cell(i, 0))) for i in range(frame.rows)), np.uint64)
    known = np.frombuffer(b"".join([*map(_mark, map(repr, coded.levels[0])), bytes(8)]), np.uint64)  # missing is last
    return known[coded.codes[:, 0]]


def _mark(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _sparse(frame: SparseFrame) -> Keys:
    x = frame.x
    cells = _mixed((x.data + 0.0).view(np.uint64) + GOLDEN * (x.indices.astype(np.uint64) + np.uint64(1)))
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(np.where(x.data == 0, np.uint64(0), cells))])
    keys: Keys = total[x.indptr[1:]] - total[x.indptr[:-1]]
    return keys


def columns_of(frame: Frame, schema: Schema) -> Frame:
    """The columns of a schema alone, in its order: other rows may have them in another, or more of them."""
    return frame.select(schema.positions(frame)) if isinstance(frame, TableFrame) else frame


def sampled(sample: Sample, keys: Keys, most: int) -> Sample:
    """No more than about `most` of the rows, in an order of their own; all as they are, if there are no more.

    Equal rows are one, that has the weight of all: so the sample is a function of the rows, however they came, and of
    few different rows none is lost. Of many, those with the lowest keys are taken.
    """
    rows, weights = row_sample_of(keys, sample.labels.codes, sample.weights, most)
    return sample if len(rows) == len(keys) else replace(sample.take(rows), weights=weights)


def row_sample_of(
    keys: Keys, labels: Labels, weights: FloatArray | None, most: int
) -> tuple[NDArray[np.intp], FloatArray | None]:
    """The places of no more than about `most` rows, and their weights: see `sampled`."""
    if len(keys) <= most:
        return np.arange(len(keys)), weights
    return _different(keys, labels, weights, most)


def _lowest(keys: Keys, most: int) -> NDArray[np.intp]:
    """Rows with the lowest keys, among them more than `most` different ones if there are so many."""
    wanted = 4 * most
    if len(keys) > 2 * wanted:
        near = np.flatnonzero(keys <= np.partition(keys, wanted)[wanted])
        if len(np.unique(keys[near])) > most:
            return near
    return np.arange(len(keys))


def _different(
    keys: Keys, labels: Labels, weights: FloatArray | None, most: int
) -> tuple[NDArray[np.intp], FloatArray | None]:
    """The different rows with the lowest keys, by key and class, each with the weight of all that are equal to it."""
    near = _lowest(keys, most)
    bound = np.unique(keys[near])[:most][-1]
    return different(keys, labels, weights, near[keys[near] <= bound])


def different(
    keys: Keys, labels: Labels, weights: FloatArray | None, among: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.intp], FloatArray | None]:
    """The places of different rows, by key and class, each with the weight of all that are equal to it."""
    near = np.arange(len(keys)) if among is None else among
    order = near[np.lexsort((labels[near], keys[near]))]
    same = (np.diff(keys[order]) == 0) & (np.diff(labels[order]) == 0)
    begins = np.flatnonzero(np.concatenate([[True], ~same]))
    if weights is None and len(begins) == len(order):
        return order, None
    weight = np.ones(len(keys)) if weights is None else weights
    return order[begins], np.add.reduceat(weight[order], begins)


@dataclass(frozen=True)
class RowSample:
    """No more than about twice `most` of the rows that were met: those with the lowest keys.

    a + b are those of the rows of both, so some of the rows of a stream, or of many parts elsewhere, are a sum as well.
    """

    kept: tuple[tuple[Sample, Keys], ...]
    most: int
    rows: int  # that were met, but for those of weight 0

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
        return _joined([sample for sample, _ in self.kept]), np.concatenate([keys for _, keys in self.kept])

    def _thinned(self) -> tuple[Sample, Keys]:
        rows, keys = self._all()
        kept, weights = _different(keys, rows.labels.codes, rows.weights, self.most)
        return replace(rows.take(kept), weights=weights), keys[kept]

    def sample(self) -> Sample:
        """What `sampled` takes of all rows."""
        return self._thinned()[0] if self.rows > self.most else self._all()[0]

    def __getstate__(self) -> dict[str, Any]:
        """To be sent elsewhere: a batch may be a small part of buffers that would go along."""
        whole = [(rows.take(np.arange(len(keys))), keys) for rows, keys in self.kept]
        return {**self.__dict__, "kept": tuple(whole)}


def _joined(samples: list[Sample]) -> Sample:
    if len(samples) == 1:
        return samples[0]
    classes = sorted_levels({label for sample in samples for label in sample.labels.classes})
    index = ClassIndex(classes)
    codes, weights, numbers = [], list[FloatArray | None](), []
    for sample in samples:
        codes.append(index.recode(sample.labels.codes, sample.labels.classes))
        weights.append(sample.weights)
        assert sample.numbers is not None
        numbers.append(sample.numbers)
    weighed = any(found is not None for found in weights)
    ones = [np.ones(len(c)) if w is None else w for c, w in zip(codes, weights, strict=True)]
    return Sample(
        _stacked([sample.frame for sample in samples]),
        Encoded(np.concatenate(codes), classes),
        np.concatenate(ones) if weighed else None,
        np.concatenate(numbers),
    )


def _stacked(frames: list[Frame]) -> Frame:
    """The rows of tables, documents, arrays or sparse rows, one after the other."""
    texts = [frame for frame in frames if isinstance(frame, TextFrame)]
    if texts:
        columns = zip(*(frame.columns for frame in texts), strict=True)
        return replace(texts[0], columns=tuple([cell for part in column for cell in part] for column in columns))
    tables = [frame for frame in frames if isinstance(frame, TableFrame)]
    if tables:
        return concat_frames(
            [frame if isinstance(frame, TableFrame) else _as_table(frame, tables[0]) for frame in frames]
        )
    if all(isinstance(frame, MatrixFrame) for frame in frames):
        return MatrixFrame(np.concatenate([frame.x for frame in frames if isinstance(frame, MatrixFrame)]))
    everything = range(len(frames[0].names))
    rows = [frame.x if isinstance(frame, SparseFrame) else sp.csr_array(frame.numbers(everything)) for frame in frames]
    return SparseFrame(sp.csr_array(sp.vstack(rows)))


def _as_table(frame: Frame, like: TableFrame) -> TableFrame:
    """Rows of an array as those of a table with the same columns."""
    x = frame.numbers(range(len(like.names)))
    columns = [pa.array(column, from_pandas=True) for column in np.asarray(x, np.float64).T]
    kinds: tuple[Kind, ...] = tuple("number" for _ in columns)
    return replace(like, table=pa.table(columns, names=like.table.column_names), kinds=kinds)
