"""Curvatures: P d = g agrees with numpy, with the solution of least length where P is flat."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban.linear.curvature import DenseCurvature, Diagonal, Kronecker
from tests.cases import cases


def random(seed=0):
    return np.random.default_rng(seed)


def positive(size, seed=0, *, rank=None):
    """A positive semi-definite matrix of the given rank."""
    root = random(seed).normal(size=(size, size if rank is None else rank))
    return root @ root.T


def shortest(matrix, gradient):
    """The solution of least length in units of the diagonal's roots: numpy's pseudo-inverse of the scaled matrix."""
    unit = np.sqrt(np.diagonal(matrix))
    inverse = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0)
    scaled = matrix * inverse * inverse[:, np.newaxis]
    return inverse * (np.linalg.pinv(scaled, rcond=1e-11, hermitian=True) @ (inverse * gradient))


def assert_close(result, expected, rtol=1e-9):
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@cases("size", [1, 2, 3, 7, 40])
def test_dense_curvature_solves_as_numpy_does(size):
    matrix, gradient = positive(size) + np.eye(size), random(1).normal(size=size)
    full = DenseCurvature.of(matrix)
    assert full.flat.shape == (size, 0)
    assert_close(full.solve(gradient), np.linalg.solve(matrix, gradient))
    assert_close(full.inverse(), np.linalg.inv(matrix))
    assert full.log_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-12, abs=1e-12)
    right = random(2).normal(size=(size, 4))
    assert_close(full.solve_columns(right), np.linalg.solve(matrix, right))


def test_a_gradient_of_the_shape_of_theta_is_solved():
    matrix, gradient = positive(6) + np.eye(6), random(1).normal(size=(2, 3))
    result = DenseCurvature.of(matrix).solve(gradient)
    assert result.shape == (2, 3)
    assert_close(result.ravel(), np.linalg.solve(matrix, gradient.ravel()))


@cases("size, lacking", [(2, 1), (3, 2), (7, 1), (7, 5), (40, 2)])
def test_flat_directions_get_no_part_of_the_solution(size, lacking):
    rank = max(1, size - lacking)
    matrix = positive(size, rank=rank)
    full = DenseCurvature.of(matrix)
    assert full.flat.shape == (size, size - rank)
    unit = np.sqrt(np.diagonal(matrix))
    np.testing.assert_allclose(matrix @ (full.flat / unit[:, np.newaxis]), 0.0, atol=1e-10 * np.abs(matrix).max())
    inside = matrix @ random(3).normal(size=size)  # as a gradient: no slope without curvature
    result = full.solve(inside)
    assert_close(result, shortest(matrix, inside), rtol=1e-8)
    assert_close(matrix @ result, inside, rtol=1e-8)
    anything = random(4).normal(size=size)
    assert_close(full.solve(anything), shortest(matrix, anything), rtol=1e-8)
    assert_close(full.inverse() @ anything, full.solve(anything), rtol=1e-8)


def test_equal_columns_share_their_coefficient():
    x = random(5).normal(size=(30, 2))
    one, two = x.T @ x, np.hstack([x, x[:, :1]]).T @ np.hstack([x, x[:, :1]])
    alone = DenseCurvature.of(one).solve(np.array([3.0, 1.0]))
    shared = DenseCurvature.of(two).solve(np.array([3.0, 1.0, 3.0]))
    assert_close(shared, [alone[0] / 2, alone[1], alone[0] / 2])


@cases("zeros", [[0], [2, 4], [0, 1, 2, 3, 4]])
def test_rows_of_zeros_are_flat(zeros):
    matrix = positive(5) + np.eye(5)
    matrix[zeros], matrix[:, zeros] = 0.0, 0.0
    gradient = random(6).normal(size=5)
    full = DenseCurvature.of(matrix)
    assert full.flat.shape == (5, len(zeros))
    kept = [j for j in range(5) if j not in zeros]
    expected = np.zeros(5)
    expected[kept] = np.linalg.solve(matrix[np.ix_(kept, kept)], gradient[kept])
    np.testing.assert_allclose(full.solve(gradient), expected, rtol=1e-10, atol=1e-12)


@cases("rank", [2, 4])
def test_flat_directions_do_not_depend_on_units(rank):
    matrix, units = positive(4, rank=rank), np.array([1e-12, 1.0, 1e12, 1e3])
    gradient = matrix @ random(7).normal(size=4)
    plain, other = DenseCurvature.of(matrix), DenseCurvature.of(matrix * units * units[:, np.newaxis])
    assert other.flat.shape == plain.flat.shape == (4, 4 - rank)
    np.testing.assert_allclose(other.solve(gradient * units) * units, plain.solve(gradient), rtol=1e-9)


@given(st.lists(st.integers(-12, 12), min_size=3, max_size=3))
def test_the_solution_does_not_depend_on_units(exponents):
    units = 10.0 ** np.array(exponents)
    matrix, gradient = positive(3, seed=8) + np.eye(3), np.array([1.0, -2.0, 0.5])
    result = DenseCurvature.of(matrix * units * units[:, np.newaxis]).solve(gradient * units)
    np.testing.assert_allclose(result * units, np.linalg.solve(matrix, gradient), rtol=1e-10)


def test_an_almost_singular_matrix_is_solved():
    x = np.column_stack([np.linspace(-1.0, 1.0, 50), np.linspace(-1.0, 1.0, 50)])
    x[:, 1] += 1e-5 * np.cos(np.arange(50))
    matrix = x.T @ x
    full = DenseCurvature.of(matrix)
    assert full.flat.shape == (2, 0)
    assert_close(full.solve(matrix @ np.array([1.0, 2.0])), [1.0, 2.0], rtol=1e-4)


def test_an_eigenvalue_rounded_below_zero_is_flat():
    """A numerical Hessian may be slightly indefinite."""
    matrix = np.ones((3, 3)) - 1e-16 * np.diag([1.0, 2.0, 3.0])
    full = DenseCurvature.of(matrix)
    assert full.flat.shape == (3, 2)
    assert_close(full.solve(np.full(3, 6.0)), [2.0, 2.0, 2.0])


def test_diagonal_solves_and_keeps_zeros():
    diagonal = Diagonal(np.array([[2.0, 0.0], [1e-300, 4.0]]))
    assert diagonal.solve(np.array([[1.0, 5.0], [0.0, 8.0]])).tolist() == [[0.5, 0.0], [0.0, 2.0]]


@cases("m, width", [(1, 1), (1, 5), (3, 1), (2, 3), (4, 6)])
def test_kronecker_solves(m, width):
    v, g, gradient = positive(m) + np.eye(m), positive(width, 1) + np.eye(width), random(9).normal(size=(m, width))
    result = Kronecker(DenseCurvature.of(v), DenseCurvature.of(g)).solve(gradient)
    assert result.shape == gradient.shape
    assert_close(result.ravel(), np.linalg.solve(np.kron(v, g), gradient.ravel()))


def test_kronecker_with_flat_columns_is_the_pseudo_inverse():
    v, g = positive(3) + np.eye(3), positive(4, rank=2)
    unit = np.sqrt(np.diagonal(g))
    g = g / unit / unit[:, np.newaxis]  # so that least length is the same in both
    v = v / np.sqrt(np.diagonal(v)) / np.sqrt(np.diagonal(v))[:, np.newaxis]
    gradient = random(10).normal(size=(3, 4))
    result = Kronecker(DenseCurvature.of(v), DenseCurvature.of(g)).solve(gradient)
    assert_close(result.ravel(), np.linalg.pinv(np.kron(v, g), rcond=1e-10) @ gradient.ravel(), rtol=1e-8)
