"""Cells: how many rows of each class are in each cell of fixed partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.statistics.statistic import SumStatistic
from deciban.statistics.sums import Sum
from deciban.statistics.totals import Totals
from deciban.types import FloatArray, Index, IntArray, Labels


class Cells(Totals):
    """N_c(v) = Σ w over rows of class c in cell v, for partitions side by side that each put every row into a cell.

    >>> import numpy as np
    >>> rows = np.array([[0, 1], [1, 1]], np.int32)  # two partitions, of two cells each
    >>> Cells.count(rows, np.array([0, 2, 4]), np.zeros(2, np.int32), None, 1).sum_x.value
    array([[1., 1., 0., 2.]])
    """

    @classmethod
    def count(
        cls, codes: NDArray[np.int32], offsets: IntArray, labels: Labels, weights: FloatArray | None, classes: int
    ) -> Cells:
        """codes (n, m): the cell of each row in each partition, which begins at its offset."""
        return cls(Sum(_kernels.count_codes(codes, offsets, labels, weights, classes)))

    @classmethod
    def concat_columns(cls, parts: Sequence[Self]) -> Self:
        return super(SumStatistic, cls).concat_columns(parts)

    def columns(self, index: Index) -> Self:
        """Cells belong to all columns together."""
        return self
