"""Separation: every result is verified, a hyperplane by its margins and a certificate by a point in both hulls."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from deciban.errors import DecibanError
from deciban.linear import margins, separation_programs
from deciban.linear.separation import Certificate, Hyperplane, Separation, find_separation, halfspace, least_slack

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
AND, XOR = np.array([-1, -1, -1, 1]), np.array([-1, 1, 1, -1])


def fractions(values):
    return [Fraction(float(v)) for v in np.ravel(values)]


def exact_margins(plane, x, sign):
    weights, offset = fractions(plane.weights), Fraction(plane.offset)
    scores = (sum((w * v for w, v in zip(weights, fractions(row), strict=True)), -offset) for row in x)
    return [int(s) * score for s, score in zip(sign, scores, strict=True)]


def assert_separates(plane, x, sign):
    assert isinstance(plane, Hyperplane)
    assert (sign * (x @ plane.weights - plane.offset) >= 1).all()


def assert_in_both_hulls(proof, x, sign, tolerance=1e-12):
    """Sums in units of each column's largest value."""
    assert isinstance(proof, Certificate)
    assert (np.diff(proof.rows) > 0).all()
    assert len(proof.rows) <= x.shape[1] + 2
    assert (proof.multipliers > 0).all()
    assert proof.multipliers.sum() == pytest.approx(1, abs=1e-14)
    signed = proof.multipliers * sign[proof.rows]
    assert abs(signed.sum()) <= tolerance
    assert (np.abs(signed @ x[proof.rows]) <= tolerance * np.abs(x).max(axis=0, initial=0)).all()


def assert_exactly_in_both_hulls(proof, x, sign):
    """For small whole numbers the multipliers are fractions with small denominators: with them the sums are exact."""
    lambdas = [Fraction(m).limit_denominator(10**6) for m in proof.multipliers.tolist()]
    np.testing.assert_allclose(proof.multipliers, [float(m) for m in lambdas], atol=1e-13)
    signed = [m * int(s) for m, s in zip(lambdas, sign[proof.rows], strict=True)]
    assert sum(lambdas) == 1
    assert sum(signed) == 0
    for column in x[proof.rows].T:
        assert sum(m * int(v) for m, v in zip(signed, column, strict=True)) == 0


def assert_proves_itself(answer, x, sign):
    if isinstance(answer, Hyperplane):
        assert_separates(answer, x, sign)
    else:
        assert_in_both_hulls(answer, x, sign)


WIDTHS = st.integers(0, 4)


@st.composite
def samples(draw, columns=WIDTHS, classes=2, largest=4):
    """Small whole numbers; half of the samples are labelled by a hyperplane, the others at random."""
    n, d = draw(st.integers(1, 14)), draw(columns)
    cells = st.integers(-largest, largest)
    x = np.array(draw(st.lists(st.lists(cells, min_size=d, max_size=d), min_size=n, max_size=n)), float).reshape(n, d)
    if classes == 2 and draw(st.booleans()):
        score = x @ np.array(draw(st.lists(cells, min_size=d, max_size=d)), float)
        return x, (score > np.median(score)).astype(int)
    return x, np.array(draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)))


def few_rows_first(patch):
    """Start with one row of each class, and add one at a time."""
    first = separation_programs.first_pairs
    patch.setattr(separation_programs, "first_pairs", lambda codes, classes, _: first(codes, classes, 1))
    patch.setattr(separation_programs, "MORE", 1)
    patch.setattr(margins, "CHUNK", 3)


# A hyperplane --------------------------------------------------------------------------------------------------------


def test_the_and_function_is_separable():
    plane = halfspace(CORNERS, AND)
    assert min(exact_margins(plane, CORNERS, AND)) == 1
    np.testing.assert_array_equal(plane.weights, [2, 2])  # the widest margin: w·x = 3 lies midway
    np.testing.assert_array_equal(plane.axis_intercepts, [1.5, 1.5])


def test_a_parallel_axis_has_an_infinite_intercept():
    plane = halfspace(np.array([[0.0, 7.0], [1.0, 7.0]]), np.array([-1, 1]))
    assert plane.axis_intercepts.tolist() == [0.5, np.inf]
    assert Hyperplane(np.zeros(1), 0.0).axis_intercepts.tolist() == [np.inf]


@given(samples())
def test_small_samples_have_exact_proofs(sample):
    x, codes = sample
    sign = 2 * codes - 1
    answer = halfspace(x, sign)
    if isinstance(answer, Hyperplane):
        assert_separates(answer, x, sign)
        assert min(exact_margins(answer, x, sign)) >= 1
    else:
        assert_in_both_hulls(answer, x, sign)
        assert_exactly_in_both_hulls(answer, x, sign)


@settings(max_examples=12)
@given(samples(columns=st.integers(1, 4)))
def test_the_working_set_and_sparse_rows_change_nothing(sample):
    x, codes = sample
    sign = 2 * codes - 1
    answer = halfspace(x, sign)
    stored = halfspace(sp.csr_array(x), sign)
    assert type(stored) is type(answer)
    assert_proves_itself(stored, x, sign)
    with pytest.MonkeyPatch.context() as patch:
        few_rows_first(patch)
        grown = halfspace(x, sign)
    assert type(grown) is type(answer)
    assert_proves_itself(grown, x, sign)


def test_duplicate_sparse_entries_are_summed():
    """Rows 0, 1 + 2 and 5; the caller's matrix is not changed."""
    x = sp.csr_array((np.array([1.0, 2.0, 5.0]), np.array([0, 0, 0]), np.array([0, 0, 2, 3])), (3, 1))
    plane = halfspace(x, np.array([-1, -1, 1]))
    np.testing.assert_allclose([plane.weights[0], plane.offset], [1, 4], rtol=1e-12)
    assert x.nnz == 3


@settings(max_examples=12)
@given(samples(columns=st.just(3)), st.permutations([1e-12, 1.0, 1e12]))
def test_columns_of_any_size(sample, sizes):
    x, codes = sample
    sign = 2 * codes - 1
    answer, scaled = halfspace(x, sign), halfspace(x * sizes, sign)
    assert type(scaled) is type(answer)
    assert_proves_itself(scaled, x * sizes, sign)


@settings(max_examples=12)
@given(samples(columns=st.just(2)))
def test_columns_far_from_zero(sample):
    x, codes = sample
    sign, far = 2 * codes - 1, x + np.array([2.0**36, -(2.0**30)])
    answer = halfspace(far, sign)
    assert type(answer) is type(halfspace(x, sign))
    assert_proves_itself(answer, far, sign)
    assert type(halfspace(sp.csr_array(far), sign)) is type(answer)


@settings(max_examples=12)
@given(samples(columns=st.integers(1, 2)))
def test_redundant_columns(sample):
    x, codes = sample
    sign = 2 * codes - 1
    more = np.column_stack([x, np.full(len(x), 1e6), x[:, 0], x.sum(axis=1)])
    answer = halfspace(more, sign)
    assert type(answer) is type(halfspace(x, sign))
    assert_proves_itself(answer, more, sign)


@pytest.mark.parametrize("sign", [[1, 1, 1], [-1, -1, -1], [1], [-1]])
@pytest.mark.parametrize("find", [halfspace, least_slack])
def test_one_side_needs_no_weights(sign, find):
    plane = find(np.arange(2.0 * len(sign)).reshape(-1, 2), np.array(sign))
    assert plane.weights.tolist() == [0, 0]
    assert plane.offset == -sign[0]


def test_values_of_very_different_sizes():
    x = np.exp(np.random.default_rng(0).normal(size=(300, 3)) * 4)  # from 1e-6 to 1e6
    for w in ([1.0, 1.0, -1.0], [1e-3, 0.0, 1.0]):
        score = x @ w
        sign = np.where(score > np.median(score), 1, -1)
        assert_separates(halfspace(x, sign), x, sign)


@pytest.mark.parametrize("value", [1.0, 1 / 3, 1e12])
def test_sides_closer_than_double_precision_are_not_separable(value):
    """No d fits between the two: w·x is rounded as coarsely as x."""
    x, sign = np.array([[value, 5.0], [np.nextafter(value, np.inf), 5.0]]), np.array([-1, 1])
    proof = halfspace(x, sign)
    assert_in_both_hulls(proof, x, sign)
    assert proof.multipliers.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("gap", [1e-3, 1e-8])
def test_many_rows_with_a_small_margin(gap):
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(8000, 6)), np.array([3.0, -2.0, 1.0, 0.5, 0.0, 1.0])
    score = x @ w
    sign = np.where(score > 0, 1, -1)
    x[:, 5] += sign * gap
    plane = halfspace(x, sign)
    assert_separates(plane, x, sign)
    assert_separates(halfspace(sp.csr_array(x), sign), x, sign)


# A certificate -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "sign", "rows", "multipliers"),
    [
        (CORNERS, XOR, [0, 1, 2, 3], [1 / 4, 1 / 4, 1 / 4, 1 / 4]),
        ([[0], [3], [3], [9]], [-1, -1, 1, 1], [1, 2], [1 / 2, 1 / 2]),  # the same row on both sides
        ([[0, 0], [3, 0], [1, 0], [5, 5]], [-1, -1, 1, 1], [0, 1, 2], [1 / 3, 1 / 6, 1 / 2]),  # touches an edge
        ([[0, 0], [3, 0], [0, 3], [1, 1]], [-1, -1, -1, 1], [0, 1, 2, 3], [1 / 6, 1 / 6, 1 / 6, 1 / 2]),  # inside
        (np.empty((3, 0)), [1, 1, -1], None, [1 / 2, 1 / 2]),  # no columns
    ],
)
def test_a_point_in_both_hulls(x, sign, rows, multipliers):
    x, sign = np.array(x, float), np.array(sign)
    proof = halfspace(x, sign)
    assert rows is None or proof.rows.tolist() == rows
    np.testing.assert_allclose(proof.multipliers, multipliers, atol=1e-15)
    assert_exactly_in_both_hulls(proof, x, sign)


def test_two_rows_among_many_are_the_certificate():
    """In the first column + has no value below 1 and − none above, and 1 in one row each."""
    rng = np.random.default_rng(3)
    x = rng.integers(-1000, 1000, (20_000, 5)).astype(float)
    sign = np.where(x[:, 0] > 0, 1, -1)
    x[:, 0] += 2000 * sign
    x[7001], x[12_345] = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    sign[7001], sign[12_345] = 1, -1
    assert not np.isin(
        [7001, 12_345], separation_programs.first_pairs((sign > 0).astype(int), 2, separation_programs.FIRST)[0]
    ).any()
    proof = halfspace(x, sign)
    assert proof.rows.tolist() == [7001, 12_345]
    np.testing.assert_allclose(proof.multipliers, [0.5, 0.5], atol=1e-15)


# Least slack ---------------------------------------------------------------------------------------------------------


def slack(plane, x, sign):
    return np.maximum(0, 1 - sign * (x @ plane.weights - plane.offset)).sum()


LINE, WAVE = np.array([[0.0], [0.0], [0.0], [1.0], [2.0], [3.0], [3.0], [3.0]]), np.array([-1, -1, -1, 1, -1, 1, 1, 1])


def test_least_slack_of_a_line():
    """By symmetry d = 3/2 w. The six outer rows need w ≥ 2/3; each inner one costs 1 + w/2, so no more."""
    plane = least_slack(LINE, WAVE)
    np.testing.assert_allclose([plane.weights[0], plane.offset], [2 / 3, 1], rtol=1e-12)
    assert slack(plane, LINE, WAVE) == pytest.approx(8 / 3, rel=1e-12)


def test_least_slack_reads_the_sides_of_many_rows_in_proportion():
    plane = least_slack(np.repeat(LINE, 2000, axis=0), np.repeat(WAVE, 2000))
    np.testing.assert_allclose([plane.weights[0], plane.offset], [2 / 3, 1], rtol=1e-12)


@settings(max_examples=12)
@given(samples(columns=st.integers(1, 3)))
def test_no_hyperplane_has_less_slack(sample):
    """Compared with the program in its definition, with a slack variable for each row."""
    x, codes = sample
    (n, d), sign = x.shape, 2 * codes - 1
    rows = np.column_stack([-sign[:, np.newaxis] * x, sign, -np.eye(n)])
    cost, bounds = np.repeat([0, 1], [d + 1, n]), [(None, None)] * (d + 1) + [(0, None)] * n
    best = linprog(cost, rows, -np.ones(n), bounds=bounds).fun
    for rows_of_x in (x, sp.csr_array(x)):
        assert slack(least_slack(rows_of_x, sign), x, sign) == pytest.approx(best, abs=1e-6)


# No estimate ---------------------------------------------------------------------------------------------------------


def separates_in_the_plane(x, sign):
    """Whether some line has all rows weakly on their sides and one strictly, in whole numbers: if there is one, there
    is one through two points, or one across their common line through a point."""
    points = [(int(a), int(b)) for a, b in x]
    normals = {(q[0] - p[0], q[1] - p[1]) for p, q in permutations(points, 2) if p != q}
    normals |= {(-b, a) for a, b in normals}
    for a, b in normals:
        for p in points:
            margins = [int(s) * (a * (q[0] - p[0]) + b * (q[1] - p[1])) for s, q in zip(sign, points, strict=True)]
            if min(margins) >= 0 and max(margins) > 0:
                return True
    return False


@settings(max_examples=12)
@given(samples(columns=st.just(2), largest=3))
def test_two_classes_in_the_plane(sample):
    x, codes = sample
    result = find_separation(x, codes, 2)
    if len(set(codes.tolist())) < 2:
        assert result is None
        return
    assert (result is not None) == separates_in_the_plane(x, 2 * codes - 1)
    assert (result is not None and result.complete) == isinstance(halfspace(x, 2 * codes - 1), Hyperplane)


def optimum(x, codes, *, strict):
    """The programs in their definition, with all rows at once: the sum of margins, or the least margin."""
    (n, d), present = x.shape, sorted(set(codes.tolist()))
    rows = np.zeros((n, len(present), len(present), d + 1))
    whole = np.column_stack([x, np.ones(n)])
    for i, y in enumerate(map(present.index, codes.tolist())):
        for k in range(len(present)):
            rows[i, k, y] += whole[i]
            rows[i, k, k] -= whole[i]
    rows = np.array([rows[i, k].ravel() for i in range(n) for k, c in enumerate(present) if c != codes[i]])
    if not strict:
        return -linprog(-rows.sum(axis=0), -rows, np.zeros(len(rows)), bounds=(-1, 1)).fun
    cost = np.append(np.zeros(rows.shape[1]), -1)
    bounds = [(-1, 1)] * rows.shape[1] + [(None, None)]
    return -linprog(cost, np.column_stack([-rows, np.ones(len(rows))]), np.zeros(len(rows)), bounds=bounds).fun


@settings(max_examples=12)
@given(samples(classes=3, columns=st.integers(1, 3), largest=3))
def test_three_classes_agree_with_the_full_program(sample):
    x, codes = sample
    result = find_separation(x, codes, 3)
    if len(set(codes.tolist())) < 2:
        assert result is None
        return
    assert (result is not None) == (optimum(x, codes, strict=False) > 1e-6)
    if result is not None:
        columns = list(result.columns)
        assert result.complete == (optimum(x, codes, strict=True) > 1e-6)
        assert optimum(x[:, columns], codes, strict=result.complete) > 1e-6
        for j in columns:  # none can be left out
            assert optimum(x[:, [c for c in columns if c != j]], codes, strict=result.complete) < 1e-6


@settings(max_examples=12)
@given(samples(classes=3, columns=st.integers(1, 3), largest=3))
def test_the_working_set_finds_the_same_separation(sample):
    x, codes = sample
    result = find_separation(x, codes, 3)
    with pytest.MonkeyPatch.context() as patch:
        few_rows_first(patch)
        grown = find_separation(x, codes, 3)
    assert (grown is None) == (result is None)
    assert grown is None or grown.complete == result.complete


def noisy(n=400, d=4, classes=2, seed=0):
    """Overlapping classes that depend on the first column."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, np.clip(np.floor(x[:, 0] + rng.normal(size=n) + classes / 2), 0, classes - 1).astype(int)


def named_columns():
    """(name, rows, classes, expected separation)"""
    none, complete, partly = None, True, False
    for classes in (2, 3):
        yield "overlapping classes", *noisy(classes=classes), none
    x, codes = noisy()
    more = np.column_stack([x, x[:, 0] / 3 + x[:, 1] / 7, x[:, 2], np.ones(len(x)), 1e-12 * x[:, 3]])
    yield "collinear columns", more, codes, none
    for size in (1e-12, 1.0, 1e12):
        x, codes = noisy()
        x[:, 2] = size * (np.abs(x[:, 2]) + 0.1) * (2 * codes - 1)
        yield "one column", x, codes, Separation((2,), complete)
    x, codes = noisy()
    pure = (np.arange(len(x)) % 5 == 0) & (codes == 1)
    yield "a pure indicator", np.column_stack([x[:, :3], pure]), codes, Separation((3,), partly)
    hidden = np.column_stack([x[:, :3], x[:, 1] / 3 + pure])  # counts despite rounding
    yield "an indicator hidden in a sum", hidden, codes, Separation((1, 3), partly)
    x, codes = noisy(8000)
    one_row = np.arange(8000) == np.flatnonzero(codes == 0)[2345]
    yield "an indicator of one row", np.column_stack([x[:, :3], one_row]), codes, Separation((3,), partly)
    x[:, 3] = x[:, 1] + (2 * codes - 1) * (0.01 + np.abs(x[:, 3]))
    yield "a difference of two columns", x, codes, Separation((1, 3), complete)
    x, codes = noisy(classes=3)
    x[:, 1] = np.where(codes == 2, 1.0, -1.0) * (0.5 + np.abs(x[:, 1]))
    yield "a class that splits off", x, codes, Separation((1,), partly)
    x, codes = noisy(classes=3)
    x[:, 1] = codes + 0.5 * np.random.default_rng(1).random(len(x))
    yield "three classes in a row", x, codes, Separation((1,), complete)


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
def test_columns_that_separate_are_named(stored):
    for name, x, codes, expected in named_columns():
        assert find_separation(stored(x), codes, codes.max() + 1) == expected, name


def test_skewed_overlapping_columns_have_an_estimate():
    """The largest value is a million times the median; the others must not be taken for 0."""
    rng = np.random.default_rng(6)
    x = np.exp(rng.normal(size=(500, 3)) * 5)
    assert find_separation(x, rng.integers(0, 2, 500), 2) is None


def test_a_class_without_rows_is_ignored():
    x, codes = noisy()
    assert find_separation(x, 2 * codes, 4) is None
    assert find_separation(x, np.full(len(x), 2), 4) is None
    x[:, 1] = 2 * codes - 1
    assert find_separation(x, 2 * codes + 1, 4) == Separation((1,), complete=True)


def test_an_unsolved_program_is_an_error(monkeypatch):
    def unsolved(*_, **__):
        return type("Result", (), {"status": 4, "message": "numerical difficulties"})

    monkeypatch.setattr(separation_programs, "linprog", unsolved)
    with pytest.raises(DecibanError, match="numerical difficulties"):
        halfspace(CORNERS, AND)
