"""Forward substitution, against exact fractions and scipy's."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from deciban.evidence.joint_normals import BLOCK, solve_lower

RNG = np.random.default_rng(5)


def test_small_systems_are_those_of_fractions():
    lower = np.tril(RNG.integers(1, 9, (5, 5))).astype(np.float64)
    right = RNG.integers(-9, 9, (5, 2)).astype(np.float64)
    x: list[list[Fraction]] = []
    for i in range(5):
        rest = [
            Fraction(right[i, k]) - sum((Fraction(lower[i, j]) * x[j][k] for j in range(i)), Fraction(0))
            for k in range(2)
        ]
        x.append([value / Fraction(lower[i, i]) for value in rest])
    np.testing.assert_allclose(solve_lower(lower, right), np.array(x, dtype=np.float64), rtol=1e-13)


@pytest.mark.parametrize("d", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 50])
def test_it_agrees_with_scipy_and_leaves_its_input_alone(d):
    a = RNG.normal(size=(d, 3 * d))
    lower, right = np.linalg.cholesky(a @ a.T), RNG.normal(size=(d, 4))
    kept = right.copy()
    np.testing.assert_allclose(solve_lower(lower, right), solve_triangular(lower, right, lower=True), rtol=1e-10)
    assert (right == kept).all()


def test_the_inverse_of_a_triangle_is_a_triangle():
    lower = np.tril(RNG.normal(size=(40, 40))) + 10 * np.eye(40)
    inverse = solve_lower(lower, np.eye(40))
    assert (np.triu(inverse, 1) == 0).all()
    np.testing.assert_allclose(lower @ inverse, np.eye(40), atol=1e-14)
