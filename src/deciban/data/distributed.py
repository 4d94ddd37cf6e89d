"""DistributedRows: rows in parts that lie elsewhere. Work is sent to the parts, and what comes back is added up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeVar

import numpy as np

from deciban.data import Labelled, Sample
from deciban.data.arrow import TableFrame
from deciban.data.batch import Batch, Frame
from deciban.data.sampling import RowSample
from deciban.data.schema import Schema
from deciban.errors import DecibanError
from deciban.types import IntArray

T = TypeVar("T")

LOOKED_AT = 200_000  # rows that choices are made by, at most


class DistributedRows(Labelled):
    """Rows in parts, on other machines or in other processes; an engine knows how to reach them."""

    label: str | None  # the name of the column of classes, if it has one
    label_dtype: Any = None  # numpy's, of classes that come as an array

    @abstractmethod
    def total(self, work: Callable[[Labelled], T | None]) -> T | None:
        """Σ work(part) over all parts, in a fixed order; None where there is nothing to add."""

    def _no_rows(self) -> str:
        return "there are no rows to learn from or to judge by: partitions are empty, or all weights are zero"

    def summed_or_none(self, work: Callable[[Batch], T], *, needs_small_batches: bool) -> T | None:
        return self.total(partial(_summed, work, needs_small_batches))

    def error_context(self) -> AbstractContextManager[None]:
        """Parts say by themselves where a row is."""
        return nullcontext()

    def batches(self, *, needs_small_batches: bool) -> NoReturn:
        raise DecibanError("these rows are in parts elsewhere, and this needs them in one place: read them into memory")

    def sample(self, schema: Schema, most: int = LOOKED_AT, seed: int = 0) -> Sample:
        """Some of the rows, or all if they are few, in memory: which ones depends on what they hold."""
        return self.summed(
            partial(RowSample.of, schema=schema, most=most, seed=seed), needs_small_batches=True
        ).sample()


def _summed(work: Callable[[Batch], T], needs_small_batches: bool, part: Labelled) -> T | None:
    return part.summed_or_none(work, needs_small_batches=needs_small_batches)


# Some of the rows ----------------------------------------------------------------------------------------------------

Folds = Callable[[Batch], IntArray]  # the fold of each row


@dataclass(frozen=True)
class Chosen(Labelled):
    """The rows of one fold, or of all others."""

    rows: Labelled
    fold: Folds
    number: int
    others: bool

    @property
    def frame(self) -> Frame:
        return self.rows.frame

    def error_context(self) -> AbstractContextManager[None]:
        return self.rows.error_context()

    def batches(self, *, needs_small_batches: bool) -> Iterator[Batch]:
        for batch in self.rows.batches(needs_small_batches=needs_small_batches):
            kept = np.flatnonzero((self.fold(batch) == self.number) != self.others)
            if len(kept):
                yield batch.take(kept)


@dataclass(frozen=True)
class DistributedFold(DistributedRows):
    """The same of rows elsewhere."""

    rows: DistributedRows
    fold: Folds
    number: int
    others: bool
    hidden: str | None = None  # a column that names the fold, which is none to learn from

    @property
    def label(self) -> str | None:  # type: ignore[override]
        return self.rows.label

    @property
    def frame(self) -> Frame:
        frame = self.rows.frame
        return frame.split(self.hidden, "fold")[0] if self.hidden and isinstance(frame, TableFrame) else frame

    def total(self, work: Callable[[Labelled], T | None]) -> T | None:
        return self.rows.total(partial(_of_fold, work, self.fold, self.number, self.others))


def _of_fold(work: Callable[[Labelled], T | None], fold: Folds, number: int, others: bool, part: Labelled) -> T | None:
    return work(Chosen(part, fold, number, others))
