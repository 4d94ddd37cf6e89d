"""Triangular systems of equations, solved by numpy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.types import FloatArray

BLOCK = 16  # rows that are updated by one product


def solve_lower(lower: NDArray[Any], right: FloatArray) -> FloatArray:
    """X (d, n) with LX = R, by forward substitution: x_i = (r_i − Σ_{j<i} l_ij x_j)/l_ii.

    >>> solve_lower(np.array([[2.0, 0.0], [1.0, 4.0]]), np.eye(2))
    array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]])
    """
    x = right.astype(np.float64)
    for start in range(0, len(lower), BLOCK):
        stop = min(start + BLOCK, len(lower))
        x[start:stop] -= lower[start:stop, :start] @ x[:start]
        for i in range(start, stop):
            x[i] -= lower[i, start:i] @ x[start:i]
            x[i] /= lower[i, i]
    return x
