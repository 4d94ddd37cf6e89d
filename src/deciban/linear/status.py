"""What deserves a word after a fit: classes that can be separated, columns that are combinations of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.design import Design
from deciban.errors import DecibanError, warn
from deciban.linear.objective import Objective
from deciban.linear.rows import DenseRows, SparseRows
from deciban.linear.solve import Solved
from deciban.responses import Bernoulli, Multinomial
from deciban.separation import Separation, separating
from deciban.types import FloatArray

FAR = 15.0  # log-odds beyond which a fit without penalty is suspected to have no end
ASKED = 400  # coefficients up to which a linear program is asked
LONG, LARGE = 8, 8.0  # the same while it goes on: every so many steps, beyond such log-odds

ENDLESS = (
    "; without a penalty the coefficients grow for ever and were stopped: "
    "set l2 above 0, or use LogisticRegression(firth=True)"
)


class Watch:
    """Asks, once, whether a fit without penalty has no end: whether the classes can be separated.

    Where there are too many coefficients for a linear program, the coefficients themselves may prove it: if they get
    every row right, they separate.
    """

    def __init__(self, objective: Objective, *, penalised: bool) -> None:
        classes = isinstance(objective.response, (Bernoulli, Multinomial))
        self.objective, self.asked = objective, penalised or not classes
        self.separation: Separation | None = None
        self.unsure = False

    def suspects(self, iteration: int, theta: FloatArray) -> bool:
        """Before each step: whether to stop, as there is no end."""
        if iteration and iteration % LONG == 0:
            self.look_at(theta, LARGE)
        return self.separation is not None and self.separation.complete

    def look_at(self, theta: FloatArray, far: float = FAR) -> None:
        if self.asked:
            return
        eta = self.objective.predictors(theta)
        if np.abs(eta).max(initial=0.0) <= far:
            return
        rows, codes = self.objective.rows, self.objective.y.astype(np.int32)
        if theta[:, :-1].size > ASKED:
            scores = np.hstack([np.zeros((len(eta), 1)), eta])
            own = np.take_along_axis(scores, codes[:, np.newaxis], axis=1)
            self.unsure = True
            if ((scores >= own).sum(axis=1) == 1).all():  # no other score is as large
                self.separation = Separation(tuple(np.argsort(-np.abs(theta[:, :-1]).max(axis=0)).tolist()), True)
            return
        self.asked = True
        try:
            self.separation = separating(rows.x, codes, self.objective.m + 1)
        except DecibanError:  # a program that was not solved is no reason to lose the fit
            self.unsure = True


def status_of(solved: Solved, watch: Watch, objective: Objective, design: Design) -> str:
    """ "ok", or what is wrong, which is warned of too, but for constant columns, which do no harm.

    That the statistics of a twin are redundant is no news: all values of a category add up to 1.
    """
    found = []
    names = shown_names(design)
    if watch.separation is not None:
        how = "separable" if watch.separation.complete else "partly separable"
        found.append(f"{how} by: columns {_listed(watch.separation.columns, names)}")
        warn(found[-1] + ENDLESS)
    elif watch.unsure:
        found.append("perhaps separable: some log-odds are very large, and there are too many columns to tell")
        warn(found[-1] + ENDLESS.replace("were", "may have been"))
    elif not solved.solution.converged:
        found.append(f"not converged after {len(solved.solution.path) - 1} iterations")
        warn(found[-1] + ": raise max_iter or tol, or set l2")
    flat = () if design.of_twin else solved.flat
    constant = set(_constant(objective, flat))
    if not design.of_twin and objective.rows.varies is not None:  # with a penalty nothing is flat, yet this is so
        constant |= set(np.flatnonzero(~objective.rows.varies).tolist())
    collinear = [j for j in flat if j not in constant]
    if collinear:
        found.append(f"collinear: columns {_listed(collinear, names)} are combinations of each other")
        warn(found[-1] + ": of all coefficients that fit equally well the shortest were taken")
    if constant:
        found.append(f"constant: columns {_listed(sorted(constant), names)}")
    return "; ".join(found) or "ok"


def require_units(rows: DenseRows | SparseRows, design: Design) -> None:
    """Columns whose numbers can be squared, and whose squares can be added."""
    odd = np.flatnonzero((rows.scale < 1e-120) | (rows.scale > 1e120))
    if len(odd):
        name, size = shown_names(design)[odd[0]], rows.scale[odd[0]]
        raise DecibanError(f"column {name} varies by {size:.1g}, of which there are no squares: rescale it")


def shown_names(design: Design) -> list[str]:
    """Features as messages call them: names in quotes, positions without."""
    return [name if design.schema.positional and name.isdecimal() else repr(name) for name in design.names]


def _listed(columns: Sequence[int], names: Sequence[str]) -> str:
    shown = ", ".join(names[j] for j in columns[:10])
    return shown + (f" and {len(columns) - 10} more" if len(columns) > 10 else "")


def _constant(objective: Objective, columns: tuple[int, ...]) -> list[int]:
    x: Any = objective.rows.x
    found = []
    for j in columns:
        column = x[:, [j]].toarray() if sp.issparse(x) else x[:, j]
        if column.min() == column.max():
            found.append(j)
    return found
