"""DistributedRows: rows in partitions of a cluster. Work is sent to the partitions, and its results are summed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeVar

import numpy as np

from deciban.data.arrow import TableFrame
from deciban.data.batch import Batch, Frame
from deciban.data.labelled import Labelled, Sample
from deciban.data.sampling import RowSample
from deciban.data.schema import Schema
from deciban.errors import DecibanError
from deciban.types import IntArray

T = TypeVar("T")

SAMPLED_ROWS = 200_000  # the most rows from which structure is selected


class DistributedRows(Labelled):
    """Rows in partitions, in other processes or on other machines; an engine implements `total`."""

    label: str | None  # the name of the label column, if labels are a column
    label_dtype: Any = None  # the numpy type of labels that are an array

    @abstractmethod
    def total(self, work: Callable[[Labelled], T | None]) -> T | None:
        """Σ work(partition) over all partitions, in a fixed order; None if all results are None."""

    def _no_rows(self) -> str:
        return "there are no rows to learn from or to evaluate: partitions are empty, or all weights are zero"

    def summed_or_none(self, work: Callable[[Batch], T], *, needs_small_batches: bool) -> T | None:
        return self.total(partial(_summed, work, needs_small_batches))

    def error_context(self) -> AbstractContextManager[None]:
        """Work on a partition names the partition and row itself."""
        return nullcontext()

    def batches(self, *, needs_small_batches: bool) -> NoReturn:
        raise DecibanError("these rows are distributed, and this needs them in one place: read them into memory")

    def sample(self, schema: Schema, most: int = SAMPLED_ROWS, seed: int = 0) -> Sample:
        """Up to about `most` of the rows, in memory, selected by their values."""
        work = partial(RowSample.of, schema=schema, most=most, seed=seed)
        return self.summed(work, needs_small_batches=True).sample()


def _summed(work: Callable[[Batch], T], needs_small_batches: bool, partition: Labelled) -> T | None:
    return partition.summed_or_none(work, needs_small_batches=needs_small_batches)


# Folds ---------------------------------------------------------------------------------------------------------------

Folds = Callable[[Batch], IntArray]  # the fold of each row


@dataclass(frozen=True)
class _FoldRows(Labelled):
    """The rows of one fold, or of all others, in a partition."""

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
    """The rows of one fold, or of all others."""

    rows: DistributedRows
    fold: Folds
    number: int
    others: bool
    hidden: str | None = None  # a column that holds the fold of each row, and is not a feature

    @property
    def label(self) -> str | None:  # type: ignore[override]
        return self.rows.label

    @property
    def frame(self) -> Frame:
        frame = self.rows.frame
        return frame.split(self.hidden, "fold")[0] if self.hidden and isinstance(frame, TableFrame) else frame

    def total(self, work: Callable[[Labelled], T | None]) -> T | None:
        return self.rows.total(partial(_of_fold, work, self.fold, self.number, self.others))


def _of_fold(
    work: Callable[[Labelled], T | None], fold: Folds, number: int, others: bool, partition: Labelled
) -> T | None:
    return work(_FoldRows(partition, fold, number, others))
