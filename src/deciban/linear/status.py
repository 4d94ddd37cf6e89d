"""What deserves a word after a fit: classes that can be separated, columns that are combinations of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.errors import warn
from deciban.linear.objective import Objective
from deciban.linear.solve import Solved
from deciban.responses import Bernoulli, Multinomial
from deciban.separation import Separation, separating
from deciban.types import FloatArray

FAR = 15.0  # log-odds beyond which a fit without penalty is suspected to be without end
LONG = 8  # Newton's steps after which it is, too


class Watch:
    """Asks, once, whether a fit without penalty has no end: whether the classes can be separated."""

    def __init__(self, objective: Objective, *, penalised: bool) -> None:
        classes = isinstance(objective.response, (Bernoulli, Multinomial))
        self.objective, self.asked = objective, penalised or not classes
        self.separation: Separation | None = None

    def suspects(self, iteration: int, theta: FloatArray) -> bool:
        if iteration >= LONG and not self.asked:
            self._ask()
        return self.separation is not None

    def look_at(self, theta: FloatArray) -> None:
        if not self.asked and np.abs(self.objective.predictors(theta)).max(initial=0.0) > FAR:
            self._ask()

    def _ask(self) -> None:
        self.asked = True
        rows, codes = self.objective.rows, self.objective.y.astype(np.int32)
        self.separation = separating(rows.x, codes, self.objective.m + 1)


def status_of(solved: Solved, watch: Watch, objective: Objective, names: tuple[str, ...]) -> str:
    """ "ok", or what is wrong, which is warned of too (but for constant columns, which do no harm)."""
    found = []
    if watch.separation is not None:
        how = "separable" if watch.separation.complete else "partly separable"
        found.append(f"{how} by: columns {_listed(watch.separation.columns, names)}")
        warn(found[-1] + "; without a penalty the coefficients grow for ever and were stopped: set l2, or firth=True")
    elif not solved.solution.converged:
        found.append(f"not converged after {len(solved.solution.path)} iterations")
        warn(found[-1] + ": raise max_iter or tol, or set l2")
    constant = set(_constant(objective, solved.flat))
    collinear = [j for j in solved.flat if j not in constant]
    if collinear:
        found.append(f"collinear: columns {_listed(collinear, names)} are combinations of each other")
        warn(found[-1] + ": of all coefficients that fit equally well the shortest were taken")
    if constant:
        found.append(f"constant: columns {_listed(sorted(constant), names)}")
    return "; ".join(found) or "ok"


def _listed(columns: Sequence[int], names: tuple[str, ...]) -> str:
    shown = ", ".join(repr(names[j]) for j in columns[:10])
    return shown + (f" and {len(columns) - 10} more" if len(columns) > 10 else "")


def _constant(objective: Objective, columns: tuple[int, ...]) -> list[int]:
    x: Any = objective.rows.x
    found = []
    for j in columns:
        column = x[:, [j]].toarray() if sp.issparse(x) else x[:, j]
        if column.min() == column.max():
            found.append(j)
    return found
