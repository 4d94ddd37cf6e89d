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
from deciban.types import BoolArray

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
        return nullcontext()  # the engine names the partition and the row

    def batches(self, *, needs_small_batches: bool) -> NoReturn:
        raise DecibanError("these rows are distributed, and this needs them in one place: read them into memory")

    def sample(self, schema: Schema, most: int = SAMPLED_ROWS, seed: int = 0) -> Sample:
        """Up to about `most` of the rows, in memory, selected by their values."""
        work = partial(RowSample.of, schema=schema, most=most, seed=seed)
        return self.summed(work, needs_small_batches=True).sample()


def _summed(work: Callable[[Batch], T], needs_small_batches: bool, partition: Labelled) -> T | None:
    return partition.summed_or_none(work, needs_small_batches=needs_small_batches)


# Some of the rows ----------------------------------------------------------------------------------------------------

Select = Callable[[Batch], BoolArray]  # (n) which rows of a batch


@dataclass(frozen=True)
class _SelectedRows(Labelled):
    """Some of the rows of a partition."""

    rows: Labelled
    select: Select

    @property
    def frame(self) -> Frame:
        return self.rows.frame

    def error_context(self) -> AbstractContextManager[None]:
        return self.rows.error_context()

    def batches(self, *, needs_small_batches: bool) -> Iterator[Batch]:
        for batch in self.rows.batches(needs_small_batches=needs_small_batches):
            selected = np.flatnonzero(self.select(batch))
            if len(selected):
                yield batch.take(selected)


@dataclass(frozen=True)
class DistributedSelection(DistributedRows):
    """Some of the rows, such as a fold, or all others."""

    rows: DistributedRows
    select: Select
    hidden: str | None = None  # a column that is not a feature, such as one that holds the folds

    @property
    def label(self) -> str | None:  # type: ignore[override]
        return self.rows.label

    @property
    def frame(self) -> Frame:
        frame = self.rows.frame
        return frame.split(self.hidden, "fold")[0] if self.hidden and isinstance(frame, TableFrame) else frame

    def total(self, work: Callable[[Labelled], T | None]) -> T | None:
        return self.rows.total(partial(_of_selected, work, self.select))


def _of_selected(work: Callable[[Labelled], T | None], select: Select, partition: Labelled) -> T | None:
    return work(_SelectedRows(partition, select))
