"""How strongly weights are held together: chosen by the loss of rows that are left out, without a refit."""

from __future__ import annotations

import numpy as np

from deciban.late import late
from deciban.types import FloatArray
from deciban.weighing.objective import Evidence, Problem, Solution, probabilities, scores, surprise
from deciban.weighing.solve import solve

linalg = late("scipy.linalg")

PENALTIES = (300.0, 30.0, 3.0, 0.3)
LITTLE = 1e-3  # what is left of a row's curvature without it, at least
ROUGH = 1e-5  # tol where penalties are compared: they differ by more


def choose_penalty(
    evidence: Evidence, penalties: tuple[float, ...] = PENALTIES
) -> tuple[float, Solution, dict[float, float]]:
    """The penalty λ to weigh with, its weights (roughly), and the mean log-loss of each λ tried, on left-out rows.

    From the strong to the weak, each started where the one before ended, until the loss rises. The strongest is taken
    whose loss is not above the least by more than one standard error of the difference (Breiman et al. 1984).
    """
    solutions: dict[float, Solution] = {}
    losses: dict[float, FloatArray] = {}
    weight = np.ones(len(evidence.labels)) if evidence.weights is None else evidence.weights
    total = max(float(weight.sum()), 1e-300)
    solution: Solution | None = None
    for penalty in sorted(penalties, reverse=True):
        solution = solutions[penalty] = solve(evidence, penalty, solution, tol=ROUGH)
        losses[penalty] = surprise(left_out_scores(evidence, penalty, solution).T, evidence.labels)
        so_far = [float(weight @ loss) / total for loss in losses.values()]
        if so_far[-1] > min(so_far):
            break
    means = {penalty: float(weight @ loss) / total for penalty, loss in losses.items()}
    best = min(means, key=means.__getitem__)
    for penalty, loss in losses.items():
        apart, mean = loss - losses[best], means[penalty] - means[best]
        if mean <= np.sqrt(max(float(weight @ apart**2) / total - mean**2, 0.0) / total):
            return penalty, solutions[penalty], means
    return best, solutions[best], means


def left_out_scores(evidence: Evidence, penalty: float, solution: Solution) -> FloatArray:
    """(n, C) scores of each row by weights that are learned from all the others, to the first order.

    z + h·r/(1 − h·p(1 − p)), with r = p − [c = y], and h = x·H⁻¹x of the weights that are not 0 (and the bias), H being
    ∇²J within a score column. (Rad & Maleki 2020; other columns are taken to stay.)
    """
    problem = Problem.of(evidence, penalty)
    z = scores(evidence, solution).T
    p = probabilities(z)
    hessian = problem.blocks(p)
    leaves = np.minimum(problem.weights, 1.0)  # a row of weight 2 is two rows
    out = z.copy()
    for c in range(len(z)):
        free = np.append(solution.weights[:, c] > 0, True)
        x = np.column_stack([evidence.values[c], np.ones(len(z[c]))])[:, free]
        root = np.linalg.cholesky(hessian[c][np.ix_(free, free)])
        whitened = linalg.solve_triangular(root, x.T.astype(np.float64), lower=True, check_finite=False)
        h = leaves * np.einsum("ij,ij->j", whitened, whitened)
        truth = evidence.labels == (1 if len(z) == 1 else c)
        out[c] += h * (p[c] - truth) / np.maximum(1.0 - h * p[c] * (1.0 - p[c]), LITTLE)
    return out.T
