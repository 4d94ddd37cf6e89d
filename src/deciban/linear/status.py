"""The status of a fit: separable classes, collinear or constant columns, no convergence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.errors import DecibanError, warn
from deciban.linear.curvature import DenseCurvature
from deciban.linear.design import Design
from deciban.linear.design_rows import DesignRows
from deciban.linear.objective import Criterion, Objective
from deciban.linear.separation import Separation, find_separation
from deciban.linear.solvers import MAX_HESSIAN, SolverResult, rank_deficiency
from deciban.types import FloatArray

FAR = 15.0  # log-odds: beyond, a fit without penalty is suspected to diverge
MAX_PROGRAM = 400  # coefficients for which a linear program is solved
NEAR = 0.1  # log-odds: a step near a minimum changes those of every row by less
LONG, LARGE = 8, 8.0  # during the descent: check every 8 steps, if log-odds exceed 8

DIVERGES = (
    "; without a penalty the coefficients diverge and were stopped: "
    "set l2 above 0, or use LogisticRegression(firth=True)"
)


class SeparationWatch:
    """Checks, once, whether the classes can be separated, so that a fit without penalty does not converge.

    With too many coefficients for a linear program, or distributed rows, the coefficients themselves may prove it:
    if they classify every row correctly, they separate.
    """

    def __init__(self, objective: Criterion, *, penalised: bool) -> None:
        self.objective, self.done = objective, penalised or not objective.response.max_classes
        self.separation: Separation | None = None
        self.uncertain = False

    def should_stop(self, iteration: int, theta: FloatArray) -> bool:
        """Whether to stop before a step, as the classes are separable."""
        if iteration and iteration % LONG == 0:
            self.check(theta, LARGE)
        return self.separation is not None and self.separation.complete

    def check(self, theta: FloatArray, far: float = FAR) -> None:
        if self.done:
            return
        max_abs_eta = float(self.objective.maximum(_max_abs_eta, theta))
        self.uncertain = max_abs_eta > FAR  # during the descent smaller values are reason to check, but not to doubt
        if max_abs_eta <= far:
            return
        objective = self.objective
        if not isinstance(objective, Objective) or theta[:, :-1].size > MAX_PROGRAM:
            if not objective.maximum(_misclassifies, theta):
                self.separation = Separation(tuple(np.argsort(-np.abs(theta[:, :-1]).max(axis=0)).tolist()), True)
            elif not isinstance(objective, Objective) and far == FAR:
                self.uncertain = not _is_near_minimum(objective, theta)
            return
        self.done = True
        try:
            self.separation = find_separation(objective.rows.x, objective.codes, objective.m + 1)
            self.uncertain = False
        except DecibanError:  # an unsolved linear program is no reason to lose the fit
            self.uncertain = True


def _is_near_minimum(objective: Criterion, theta: FloatArray) -> bool:
    """Whether θ is near a minimum: a Newton step from there hardly changes any η.

    Without a minimum, the loss of some rows falls as exp(−|η|), and every step changes their η by about 1.
    """
    if theta.size > MAX_HESSIAN:
        return False
    newton = DenseCurvature.of(objective.information(theta))
    flat = newton.flat.shape[1]
    if flat and flat != objective.m * rank_deficiency(objective):  # too far out for any curvature
        return False
    return float(objective.maximum(_max_abs_eta, newton.solve(objective.loss(theta)[1]))) < NEAR


def _max_abs_eta(objective: Objective, theta: FloatArray) -> float:
    return float(np.abs(objective.predictors(theta)).max(initial=0.0))


def _misclassifies(objective: Objective, theta: FloatArray) -> bool:
    """Whether θ scores some other class at least as high as the true one in any row."""
    eta = objective.predictors(theta)
    scores = np.hstack([np.zeros((len(eta), 1)), eta])
    true = np.take_along_axis(scores, objective.codes[:, np.newaxis], axis=1)
    return bool(((scores >= true).sum(axis=1) > 1).any())


def _constant_columns(objective: Criterion, columns: Sequence[int]) -> list[int]:
    """Those of the columns that are constant."""
    if not columns:
        return []
    high, low = np.split(objective.maximum(_extremes, columns), 2)
    return [j for j, constant in zip(columns, high == -low, strict=True) if constant]


def _extremes(objective: Objective, columns: Sequence[int]) -> FloatArray:
    """(2c) the maximum of each column, then minus the minimum."""
    x: Any = objective.rows.x
    cells = [x[:, [j]].toarray() if sp.issparse(x) else x[:, j] for j in columns]
    return np.array([float(column.max()) for column in cells] + [-float(column.min()) for column in cells])


def status_of(solved: SolverResult, watch: SeparationWatch, objective: Criterion, design: Design) -> str:
    """The problems of a fit, or "ok"; warns of each, except constant columns, which do no harm.

    Sufficient statistics are often collinear by construction (the indicators of a category sum to 1): no warning.
    """
    problems, names = [], display_names(design)
    if watch.separation is not None:
        degree = "separable" if watch.separation.complete else "partly separable"
        problems.append(f"{degree} by: columns {_listed(watch.separation.columns, names)}")
        warn(problems[-1] + DIVERGES)
    elif watch.uncertain:
        in_memory = isinstance(objective, Objective)
        reason = "there are too many columns to check" if in_memory else "distributed rows are not checked"
        problems.append(f"perhaps separable: some log-odds are very large, and {reason}")
        warn(problems[-1] + DIVERGES.replace("were", "may have been"))
    elif not solved.solution.converged:
        problems.append(f"not converged after {len(solved.solution.path) - 1} iterations")
        warn(problems[-1] + ": raise max_iter or tol, or set l2")
    flat = () if design.has_sufficient_statistics else solved.flat
    constant = set(_constant_columns(objective, flat))
    if not design.has_sufficient_statistics and objective.rows.varies is not None:
        constant |= set(np.flatnonzero(~objective.rows.varies).tolist())  # with a penalty nothing is flat
    collinear = [j for j in flat if j not in constant]
    if collinear:
        problems.append(f"collinear: columns {_listed(collinear, names)} are combinations of each other")
        warn(problems[-1] + ": among equally good coefficients the shortest vector was taken")
    if constant:
        problems.append(f"constant: columns {_listed(sorted(constant), names)}")
    return "; ".join(problems) or "ok"


def require_scales(rows: DesignRows, design: Design) -> None:
    """Raises an error for a column whose values cannot be squared and summed in floats."""
    extreme = np.flatnonzero((rows.scale < 1e-120) | (rows.scale > 1e120))
    if len(extreme):
        name, size = display_names(design)[extreme[0]], rows.scale[extreme[0]]
        raise DecibanError(f"column {name} varies by {size:.1g}, whose square is out of range: rescale it")


def display_names(design: Design) -> list[str]:
    """Feature names for messages: names in quotes, positions without."""
    return [name if design.schema.positional and name.isdecimal() else repr(name) for name in design.names]


def _listed(columns: Sequence[int], names: Sequence[str]) -> str:
    shown = ", ".join(names[j] for j in columns[:10])
    return shown + (f" and {len(columns) - 10} more" if len(columns) > 10 else "")
