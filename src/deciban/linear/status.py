"""What deserves a word after a fit: classes that can be separated, columns that are combinations of each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deciban.design import Design
from deciban.errors import DecibanError, warn
from deciban.linear.curvature import Full
from deciban.linear.objective import Criterion
from deciban.linear.rows import DenseRows, SparseRows
from deciban.linear.solve import MODERATE, Solved, rank_lost
from deciban.responses import Bernoulli, Multinomial
from deciban.separation import Separation, separating
from deciban.types import FloatArray

FAR = 15.0  # log-odds beyond which a fit without penalty is suspected to have no end
ASKED = 400  # coefficients up to which a linear program is asked
SETTLED = 0.1  # log-odds that a step near a minimum moves no row by
LONG, LARGE = 8, 8.0  # the same while it goes on: every so many steps, beyond such log-odds

ENDLESS = (
    "; without a penalty the coefficients grow for ever and were stopped: "
    "set l2 above 0, or use LogisticRegression(firth=True)"
)


class Watch:
    """Asks, once, whether a fit without penalty has no end: whether the classes can be separated.

    Where there are too many coefficients for a linear program, or the rows are elsewhere, the coefficients themselves
    may prove it: if they get every row right, they separate.
    """

    def __init__(self, objective: Criterion, *, penalised: bool) -> None:
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
        farthest = self.objective.farthest(theta)
        self.unsure = farthest > FAR  # while it goes on, less is reason to ask, but none for doubts
        if farthest <= far:
            return
        rows = self.objective.labelled_rows()
        if rows is None or theta[:, :-1].size > ASKED:
            if not self.objective.errs(theta):
                self.separation = Separation(tuple(np.argsort(-np.abs(theta[:, :-1]).max(axis=0)).tolist()), True)
            elif rows is None and far == FAR:
                self.unsure = not _has_end(self.objective, theta)
            return
        self.asked = True
        try:
            self.separation, self.unsure = separating(*rows, self.objective.m + 1), False
        except DecibanError:  # a program that was not solved is no reason to lose the fit
            self.unsure = True


def _has_end(objective: Criterion, theta: FloatArray) -> bool:
    """Whether θ is near a minimum: a Newton step from there moves no η far.

    Where there is none, the loss of some rows falls as exp(−|η|) does, and every step moves their η by about 1.
    """
    if theta.size > MODERATE:
        return False
    newton = Full.of(objective.information(theta))
    flat = newton.flat.shape[1]
    if flat and flat != objective.m * rank_lost(objective):  # so far out that there is no curvature left
        return False
    return objective.farthest(newton.solve(objective.loss(theta)[1])) < SETTLED


def status_of(solved: Solved, watch: Watch, objective: Criterion, design: Design) -> str:
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
        why = "the rows are not in one place" if objective.labelled_rows() is None else "there are too many columns"
        found.append(f"perhaps separable: some log-odds are very large, and {why} to tell")
        warn(found[-1] + ENDLESS.replace("were", "may have been"))
    elif not solved.solution.converged:
        found.append(f"not converged after {len(solved.solution.path) - 1} iterations")
        warn(found[-1] + ": raise max_iter or tol, or set l2")
    flat = () if design.of_twin else solved.flat
    constant = set(objective.constant(flat))
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
