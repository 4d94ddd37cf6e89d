"""Predictor: a fitted linear function of a table's features, which scores rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from deciban import _kernels
from deciban.batch import Frame
from deciban.contributions import Contributions, Line
from deciban.design import Design
from deciban.families.base import padded_table
from deciban.linear.rows import DenseRows, SparseRows
from deciban.schema import Schema
from deciban.types import FloatArray

if TYPE_CHECKING:
    from deciban.families.formulas import Formula


@dataclass(frozen=True)
class Predictor:
    """η_k = constant_k + Σ_j w_kj (x_j − origin_j), for the features x of a design.

    Counting from an origin near the data keeps the digits that w·x + b would lose where columns are far from 0.
    """

    design: Design
    coefficients: FloatArray  # (k, p) w
    constant: FloatArray  # (k) η at the origin
    origin: FloatArray  # (p)

    @classmethod
    def of(cls, design: Design, rows: DenseRows | SparseRows, theta: FloatArray) -> Predictor:
        """From what a solver found, counted from the features' means."""
        w = theta[:, :-1] / rows.scale
        origin = np.zeros(w.shape[1]) if isinstance(rows, SparseRows) else design.origin
        return cls(design, w, theta[:, -1] + w @ (origin - rows.origin), origin)

    def theta(self, rows: DenseRows | SparseRows) -> FloatArray:
        """The same in the coordinates of a solver."""
        at_origin = self.constant + self.coefficients @ (rows.origin - self.origin)
        return np.hstack([self.coefficients * rows.scale, at_origin[:, np.newaxis]])

    @property
    def schema(self) -> Schema:
        return self.design.schema

    @property
    def intercept(self) -> FloatArray:
        """(k) η where every feature is 0."""
        result: FloatArray = self.constant - self.coefficients @ self.origin
        return result

    @property
    def log_prior(self) -> FloatArray:
        return np.zeros(len(self.constant))

    def converts(self, frame: Frame) -> bool:
        return self.design.converts(frame)

    def joint(self, frame: Frame, out: FloatArray, first_row: int = 0) -> None:
        """out (n, k) = η."""
        x = self.design.matrix(frame, first_row)
        w = np.ascontiguousarray(self.coefficients)
        if sp.issparse(x):
            out[:] = self.intercept
            _kernels.add_sparse(x.data, x.indices, x.indptr, padded_table(w), len(w), out)
        else:
            out[:] = _kernels.predictors(x, w, self.constant, self.origin)
        if not np.isfinite(out.sum()):
            self.design.forbid_infinite(frame, first_row)

    @property
    def start(self) -> str:
        """What explanations call the constant."""
        return "intercept" if self.design.of_twin or not self.origin.any() else "average row"

    def formula(self) -> list[Formula]:
        """η less its constant, as formulas that need no library."""
        return self.design.formula(self.coefficients, self.origin)

    def contributions(self, frame: Frame) -> Contributions:
        """The constant, and what each column adds."""
        shares = self.column_shares(frame)
        columns = sorted(set(self.design.owners))
        lines = Line(self.start), *(Line(str(self.schema.names[j]), (j,)) for j in columns)
        constant = np.broadcast_to(self.constant, (frame.rows, 1, len(self.constant)))
        return Contributions(lines, np.concatenate([constant, shares[:, columns]], axis=1))

    def column_shares(self, frame: Frame) -> FloatArray:
        """(n, columns, k) what each column of the table adds."""
        x: Any = self.design.matrix(frame)
        self.design.forbid_infinite(frame, 0)
        distance = (x.toarray() if sp.issparse(x) else np.asarray(x, np.float64)) - self.origin
        owners = np.array(self.design.owners, dtype=np.intp)
        order = np.argsort(owners, kind="stable")
        columns, starts = np.unique(owners[order], return_index=True)
        out = np.zeros((frame.rows, len(self.schema.names), len(self.constant)))
        if len(columns):
            terms = distance[:, order, np.newaxis] * self.coefficients.T[order]
            out[:, columns] = np.add.reduceat(terms, starts, axis=1)
        return out
