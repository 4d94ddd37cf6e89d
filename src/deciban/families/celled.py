"""What families over a fixed partition of the rows share: counts of cells."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.families.base import Context, Family, Reads, Table, padded_table
from deciban.families.mixed import Codes, Coding
from deciban.statistics.cells import Cells
from deciban.types import FloatArray, Labels


@dataclass(frozen=True)
class CelledParams:
    log_p: FloatArray  # (K, cells)


@dataclass(frozen=True)
class Celled(Family[Cells, CelledParams]):
    """log p(x|c) = mean over partitions of log (k_v + α) / (n + αV), for x in cell v of V.

    Partitions are fixed before rows are counted, so counts add. Each sees all columns, so their mean is taken.
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

    def estimate(self, statistic: Cells, context: Context) -> CelledParams:
        counts = statistic.sum_x.value + context.smoothing
        parts = np.split(counts, self.offsets[1:-1], axis=1)
        with np.errstate(divide="ignore"):
            logs = [np.log(part) - np.log(part.sum(axis=1, keepdims=True)) for part in parts]
        return CelledParams(np.hstack(logs))

    def add_log_density(self, params: CelledParams, values: Codes, out: FloatArray) -> None:
        table = padded_table(params.log_p / (len(self.offsets) - 1))
        _kernels.add_table(self.cells(values), self.offsets, table, out.shape[1], out)

    def n_parameters(self, params: CelledParams) -> int:
        return len(params.log_p) * int(self.offsets[-1] - len(self.offsets) + 1)

    def silent(self, params: CelledParams) -> Sequence[int]:
        return ()

    def describe(self, params: CelledParams, context: Context) -> list[Table]:
        return []


@dataclass(frozen=True)
class Pairs(Celled):
    """Tables of pairs of columns: p(x_a, x_b|c).

    >>> import numpy as np
    >>> family = Pairs(Coding(((0.5,), (0.5,)), (None, None)), ((0, 1),))
    >>> codes = np.array([[1, 1], [1, 2], [2, 1], [2, 2]], np.uint8)
    >>> family.cells(codes).ravel().tolist(), family.offsets.tolist()
    ([4, 5, 7, 8], [0, 9])
    """

    pairs: tuple[tuple[int, int], ...] = ()
    least: float = 0.0  # nats over all rows that a pair had to say more than its two columns, to be chosen

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        sizes = self.reading.sizes.astype(np.int64)
        return np.cumsum([0, *(sizes[a] * sizes[b] for a, b in self.pairs)], dtype=np.int64)

    def cells(self, codes: Codes) -> NDArray[np.int32]:
        sizes = self.reading.sizes
        found = [codes[:, a].astype(np.int32) * sizes[b] + codes[:, b] for a, b in self.pairs]
        return np.stack(found, axis=1)
