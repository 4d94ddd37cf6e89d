"""Families of counts over fixed partitions of the rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.errors import require
from deciban.evidence.mixed_columns import Codes, Coding
from deciban.families.family import Context, Family, Reads, Table, padded_table
from deciban.statistics.cell_counts import Cells
from deciban.types import FloatArray, Labels


@dataclass(frozen=True)
class PartitionParams:
    log_p: FloatArray  # (K, cells)


@dataclass(frozen=True)
class PartitionCounts(Family[Cells, PartitionParams]):
    """log p(x|c) = mean over partitions of log (k_v + α) / (n + αV), for x in cell v of V.

    Partitions are fixed before rows are counted, so counts add. All see the same features, so their mean is taken.
    """

    reading: Coding
    reads: ClassVar[Reads] = "mixed"
    joint: ClassVar[bool] = True

    @property
    @abstractmethod
    def offsets(self) -> NDArray[np.int64]:
        """(m + 1) where the cells of each partition begin, and the end."""

    @abstractmethod
    def cells(self, codes: Codes) -> NDArray[np.int32]:
        """(n, m) the cell of each row in each partition."""

    def width(self, columns: int) -> int:
        return int(self.offsets[-1])

    def check(self, values: Any) -> None:
        """Every code has a cell."""

    def collect(self, values: Codes, labels: Labels, weights: FloatArray | None, classes: int) -> Cells:
        return Cells.count(self.cells(values), self.offsets, labels, weights, classes)

    def estimate(self, statistic: Cells, context: Context) -> PartitionParams:
        counts = statistic.sum_x.value + context.smoothing
        parts = np.split(counts, self.offsets[1:-1], axis=1)
        with np.errstate(divide="ignore"):
            logs = [np.log(part) - np.log(part.sum(axis=1, keepdims=True)) for part in parts]
        return PartitionParams(np.hstack(logs))

    def add_log_density(self, params: PartitionParams, values: Codes, out: FloatArray) -> None:
        table = padded_table(params.log_p / (len(self.offsets) - 1))
        _kernels.add_table(self.cells(values), self.offsets, table, out.shape[1], out)

    def n_parameters(self, params: PartitionParams) -> int:
        return len(params.log_p) * int(self.offsets[-1] - len(self.offsets) + 1)

    def describe(self, params: PartitionParams, context: Context) -> list[Table]:
        return []


@dataclass(frozen=True)
class Pairs(PartitionCounts):
    """Tables of pairs of features: p(x_a, x_b|c).

    >>> import numpy as np
    >>> family = Pairs(Coding(((0.5,), (0.5,)), (None, None)), ((0, 1),))
    >>> codes = np.array([[1, 1], [1, 2], [2, 1], [2, 2]], np.uint8)
    >>> family.cells(codes).ravel().tolist(), family.offsets.tolist()
    ([4, 5, 7, 8], [0, 9])
    """

    pairs: tuple[tuple[int, int], ...] = ()
    least: float = 0.0  # nats over all rows that a pair had to gain over its two features, to be selected

    def check_fields(self) -> None:
        require(0 <= self.least < np.inf, f"the least gain is {self.least}")
        d = len(self.reading.cuts)
        known = all(0 <= a < d and 0 <= b < d and a != b for a, b in self.pairs)
        require(self.pairs and known, "pairs of unknown columns")

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        sizes = self.reading.sizes.astype(np.int64)
        return np.cumsum([0, *(sizes[a] * sizes[b] for a, b in self.pairs)], dtype=np.int64)

    def cells(self, codes: Codes) -> NDArray[np.int32]:
        sizes = self.reading.sizes
        return np.stack([codes[:, a].astype(np.int32) * sizes[b] + codes[:, b] for a, b in self.pairs], axis=1)
