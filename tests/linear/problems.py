"""Problems to solve: an objective over some rows, for every response in the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.linear.design_rows import DenseRows, SparseRows, rows_of
from deciban.linear.objective import Objective
from tests.linear.responses.registry import Example

LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "dense": lambda x: x,
    "float32": lambda x: x.astype(np.float32),
    "sparse": sp.csr_array,
}
VARIATIONS = ["plain", "weights", "offset", "l2", "metric", "all"]
ASKED = {
    "plain": set(),
    "weights": {"weights"},
    "offset": {"offset"},
    "l2": {"l2"},
    "metric": {"l2", "metric"},
    "all": {"weights", "offset", "l2", "metric"},
}


def cells(n: int, p: int, seed: int = 0) -> np.ndarray:
    """Columns of different units with many zeros, multiples of 1/64 so that float32 is exact."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random((n, p)) < 0.4, 0.0, rng.normal(size=(n, p)))
    return np.round(x * 64) / 64 * 4.0 ** np.arange(p)


def rows_over(x: np.ndarray, layout: str = "dense", weights: np.ndarray | None = None) -> DenseRows | SparseRows:
    share = np.full(len(x), 1.0 / len(x)) if weights is None else weights / weights.sum()
    return rows_of(LAYOUTS[layout](x), share @ x, weights)


def problem(example: Example, layout: str = "dense", variation: str = "plain", n: int = 40, p: int = 3) -> Objective:
    x, rng, asked = cells(n, p), np.random.default_rng(1), ASKED[variation]
    root = rng.normal(size=(example.m, example.m))
    weights = rng.uniform(0.1, 3.0, n) if "weights" in asked else None
    return Objective(
        rows_over(x, layout, weights),
        example.response,
        example.draw(rng, n),
        weights=weights,
        offset=rng.uniform(-0.1, 0.1, n) if "offset" in asked else None,
        l2=2.5 if "l2" in asked else 0.0,
        metric=root @ root.T + 0.1 * np.eye(example.m) if "metric" in asked else None,
    )


def somewhere(example: Example, objective: Objective, seed: int = 2) -> np.ndarray:
    """A θ at which every row is inside the response's domain."""
    theta = np.random.default_rng(seed).uniform(-1.0, 1.0, objective.shape)
    eta = objective.rows.predictors(theta)
    theta *= min(1.0, 0.7 * example.room / np.abs(eta).max())
    theta[:, -1] += example.centre
    return theta


def plain_cells(objective: Objective) -> np.ndarray:
    """(n, p + 1) the rows in the coordinates of θ, by numpy alone."""
    x = objective.rows.x
    x = x.toarray() if sp.issparse(x) else x.astype(np.float64)
    z = (x - objective.rows.origin) / objective.rows.scale
    return np.hstack([z, np.ones((len(z), 1))])


def chosen(rows: DenseRows | SparseRows, index: np.ndarray) -> DenseRows | SparseRows:
    """Some of the rows, in the same coordinates."""
    return replace(rows, x=rows.x[index])


def derivative(function: Callable[[np.ndarray], np.ndarray], theta: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """∂function/∂θ by a five-point stencil, with the entries of θ first; exact to about 1e-12 of the function."""
    result = []
    for place in np.ndindex(theta.shape):
        h = np.zeros_like(theta)
        h[place] = step
        near = np.asarray(function(theta + h)) - np.asarray(function(theta - h))
        far = np.asarray(function(theta + 2 * h)) - np.asarray(function(theta - 2 * h))
        result.append((8.0 * near - far) / (12.0 * step))
    return np.array(result).reshape(theta.shape + np.shape(result[0]))
