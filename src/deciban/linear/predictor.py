"""Predictor: a fitted linear function of the features of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from deciban import _kernels
from deciban.contributions import By, Contributions, Line
from deciban.data.batch import Frame
from deciban.data.schema import Schema
from deciban.families.family import padded_table
from deciban.lazy import lazy
from deciban.linear.design import Design
from deciban.linear.design_rows import DesignRows, SparseRows
from deciban.statistics.statistic import require_numbers
from deciban.types import FloatArray, Levels

if TYPE_CHECKING:
    from deciban.export.score_formula import ScoreFormula

export = lazy("deciban.export.score_formula")  # needed only by reports


@dataclass(frozen=True)
class Predictor:
    """η_k = constant_k + Σ_j w_kj (x_j − origin_j), for the features x of a design.

    An origin near the data keeps digits that w·x + b would lose for features far from 0.
    """

    design: Design
    coefficients: FloatArray  # (k, p) w
    constant: FloatArray  # (k) η at the origin
    origin: FloatArray  # (p)

    def check_fields(self) -> None:
        p = len(self.design.names)
        require_numbers("constant", self.constant, (self.constant.size,))
        require_numbers("coefficients", self.coefficients, (len(self.constant), p))
        require_numbers("origin", self.origin, (p,))

    @classmethod
    def of(cls, design: Design, rows: DesignRows, theta: FloatArray) -> Predictor:
        """From the solution of a solver, with the features' means as origin."""
        w = theta[:, :-1] / rows.scale
        origin = np.zeros(w.shape[1]) if isinstance(rows, SparseRows) else design.origin
        return cls(design, w, theta[:, -1] + w @ (origin - rows.origin), origin)

    def theta(self, rows: DesignRows) -> FloatArray:
        """θ (k, p + 1), in the coordinates of a solver."""
        at_origin = self.constant + self.coefficients @ (rows.origin - self.origin)
        return np.hstack([self.coefficients * rows.scale, at_origin[:, np.newaxis]])

    @property
    def schema(self) -> Schema:
        return self.design.schema

    @property
    def intercept(self) -> FloatArray:
        """(k) η where every feature is 0."""
        return self.constant - self.coefficients @ self.origin

    @property
    def log_prior(self) -> FloatArray:
        return np.zeros(len(self.constant))

    def needs_small_batches(self, frame: Frame) -> bool:
        return self.design.needs_small_batches(frame)

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
        """The name of the constant in explanations."""
        return "intercept" if self.design.has_sufficient_statistics or not self.origin.any() else "average row"

    def with_reference(self) -> Predictor:
        """Adds a reference class with score 0, as the first of k + 1 classes."""
        w, constant = self.coefficients, self.constant
        return replace(self, coefficients=np.vstack([0.0 * w[:1], w]), constant=np.append(0.0, constant))

    def score_formula(self, classes: Levels, mean: str | None, *, probabilities: bool) -> ScoreFormula:
        """constant + Σ_features, in the order of `contributions`; `mean` is the `javascript_mean` of a number."""
        if len(self.constant) < len(classes):  # scores against the first class
            return self.with_reference().score_formula(classes, mean, probabilities=probabilities)
        owners = tuple((j,) for j in sorted(set(self.design.owners)))
        terms = self.design.formula(self.coefficients, self.origin)
        terms = [term for term in terms if set(export.owners_of(term)) & set(owners)]
        parts = self.log_prior, self.constant, self.start, owners, tuple(terms)
        formula: ScoreFormula = export.ScoreFormula(
            self.schema, classes, *parts, mean=mean, probabilities=probabilities
        )
        return formula

    def contributions(self, frame: Frame, by: By = "column") -> Contributions:
        """The constant, and the contribution of each feature; there are no pairs."""
        shares = self.column_shares(frame)
        columns = sorted(set(self.design.owners))
        lines = Line(self.start), *(Line(str(self.schema.names[j]), (j,)) for j in columns)
        constant = np.broadcast_to(self.constant, (frame.rows, 1, len(self.constant)))
        return Contributions(lines, np.concatenate([constant, shares[:, columns]], axis=1))

    def describe_columns(self) -> dict[int, str]:
        """The encoding of each column, in words."""
        return {j: part.encoder.describe(i) for part in self.design.parts for i, j in enumerate(part.columns)}

    def column_shares(self, frame: Frame) -> FloatArray:
        """(n, columns, k) the contribution of each column of the table."""
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
