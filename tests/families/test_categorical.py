"""Categorical: one of a set of values."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from deciban.data.batch import UNSEEN, Coded
from deciban.errors import DecibanError
from deciban.families import Categorical, Context
from deciban.families.priors import Dirichlet, Laplace, Virtual
from tests.families.refits import assert_left_out_is_refitted, left_out
from tests.laws import family_subject
from tests.statistics.test_counts import coded


@dataclass(frozen=True)
class Own:
    """A prior of one's own: a tenth of what all classes together counted, and it does not say so."""

    def pseudo_counts(self, counts, levels, classes):
        return np.broadcast_to(0.5 + 0.1 * counts.sum(axis=-2, keepdims=True), counts.shape)


SUBJECTS = [
    family_subject(Categorical(), coded),
    family_subject(Categorical(), coded, " MLE", settings={"smoothing": 0.0}),
    family_subject(Categorical(), coded, " reserve", settings={"reserve": True}),
    family_subject(Categorical(), coded, " reserve, MLE", settings={"reserve": True, "smoothing": 0.0}),
    family_subject(Categorical(Virtual(3.0)), coded),
    family_subject(Categorical(Virtual(3.0)), coded, " reserve", settings={"reserve": True}),
    family_subject(Categorical(Dirichlet(2.5)), coded),
    family_subject(Categorical(Own()), coded),
]

COLOURS = ["red", "blue", "red", None, "green", "blue", "red", "red"]
LABELS = [0, 0, 0, 0, 1, 1, 1, 1]
KNOWN = ("blue", "green", "red")


def coded_as(values, known=KNOWN):
    return Coded(
        np.array([[-1 if v is None else known.index(v) if v in known else UNSEEN] for v in values], np.int32), (known,)
    )


def fit(family, values=COLOURS, labels=LABELS, classes=2, **settings):
    context = Context(tuple(range(classes)), ("colour",), **settings)
    return family.estimate(family.collect(coded_as(values), np.array(labels, np.int32), None, classes), context)


def probabilities(params):
    return np.exp(params.log_p[0])


@pytest.mark.parametrize("alpha", [0, 1, 0.5])
def test_the_estimate_is_smoothed_frequency(alpha):
    """(k_v + α) / (n + αV)."""
    a = Fraction(alpha)
    expected = [[(k + a) / (n + 3 * a) for k in row] for row, n in (((1, 0, 2), 3), ((1, 1, 2), 4))]
    for params in (fit(Categorical(), smoothing=alpha), fit(Categorical(Laplace(alpha)))):
        assert params.levels == (KNOWN,)
        np.testing.assert_allclose(probabilities(params), np.array(expected, dtype=float), rtol=1e-14)


def test_status_of_the_lectures():
    """P(Married|Yes) = 0, P(Single|No) = 2/7."""
    no = ["Single", "Married", "Single", "Married", "Married", "Divorced", "Married"]
    yes = ["Divorced", "Single", "Single"]
    known = ("Divorced", "Married", "Single")
    family, labels = Categorical(), np.array([0] * 7 + [1] * 3, np.int32)
    evidence = family.collect(coded_as(no + yes, known), labels, None, 2)
    p = probabilities(family.estimate(evidence, Context(("No", "Yes"), ("Status",), smoothing=0.0)))
    assert p[0, 2] == pytest.approx(2 / 7, rel=1e-14)
    assert p[1, 1] == 0.0


@pytest.mark.parametrize("concentration", [{"red": 4.0, "blue": 1.0, "green": 2.5}, [1.0, 2.5, 4.0]])
def test_dirichlet_prior(concentration):
    """(k_v + a_v − 1) / (n + Σa − V)."""
    params = fit(Categorical(Dirichlet(concentration)))
    np.testing.assert_allclose(probabilities(params)[0], np.array([1 + 0, 0 + 1.5, 2 + 3]) / (3 + 7.5 - 3), rtol=1e-14)


def test_a_dirichlet_of_one_number_is_laplace():
    assert np.array_equal(fit(Categorical(Dirichlet(3.0))).log_p[0], fit(Categorical(Laplace(2.0))).log_p[0])


def test_virtual_examples_from_a_given_table():
    """(k_v + m Q(v, c)) / (n_c + m Q(c))."""
    q = np.array([[0.1, 0.2, 0.1], [0.3, 0.1, 0.2]])
    p = probabilities(fit(Categorical(Virtual(5.0, q))))
    counts = np.array([[1, 0, 2], [1, 1, 2]])
    np.testing.assert_allclose(
        p, (counts + 5 * q) / (counts.sum(axis=1) + 5 * q.sum(axis=1))[:, np.newaxis], rtol=1e-14
    )


def test_virtual_examples_from_all_classes_together():
    p = probabilities(fit(Categorical(Virtual(5.0))))
    counts, share = np.array([[1, 0, 2], [1, 1, 2]]), np.array([2, 1, 4]) / 7
    np.testing.assert_allclose(p, (counts + 5 * share / 2) / (counts.sum(axis=1) + 5 / 2)[:, np.newaxis], rtol=1e-14)


def test_log_density_looks_the_value_up():
    params = fit(Categorical())
    result = Categorical().log_density(params, coded_as(["green", None, "purple", "blue"]), 2)
    expected = np.log([[1 / 6, 2 / 7], [1, 1], [1, 1], [2 / 6, 2 / 7]])
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


def test_a_reserve_is_one_more_value():
    """(0 + α) / (n + α(V + 1)) for all that were never seen."""
    params = fit(Categorical(), reserve=True)
    result = Categorical().log_density(params, coded_as(["purple", "red", None]), 2)
    np.testing.assert_allclose(result, np.log([[1 / 7, 1 / 8], [3 / 7, 3 / 8], [1, 1]]), rtol=1e-12)
    assert Categorical().describe(params, Context(("a", "b"), ("colour",), reserve=True))[0].header[-1] == "(unseen)"


def test_a_class_with_no_cell_is_even_with_smoothing():
    p = probabilities(fit(Categorical(), ["red", "red", "blue", None], [0, 0, 0, 1]))
    np.testing.assert_allclose(p[1], [1 / 2, 1 / 2], rtol=1e-14)


def test_a_prior_that_does_not_know_a_value_says_so():
    with pytest.raises(DecibanError, match="green"):
        fit(Categorical(Dirichlet({"red": 1.0, "blue": 1.0})))


# Leaving rows out ---------------------------------------------------------------------------------------------------


RNG = np.random.default_rng(0)
CLASSES = np.repeat(np.arange(3, dtype=np.int32), 8)  # of 24 rows
WEIGHTS = {
    "no weights": None,
    "a weight for each class": np.array([0.1, 1.0, 2.7])[CLASSES],
    "weights that differ": RNG.random(24) + 0.1,
    "some without weight": np.where(RNG.random(24) < 0.3, 0.0, RNG.random(24)),
}
Q = RNG.random((3, 4))


def many_rows():
    """Few values; many, some of which occur once; one value; none; and one that a class has none of."""
    codes = np.stack([np.arange(24) % 5 - 1, RNG.integers(-1, 20, 24), np.zeros(24), np.full(24, -1)], axis=1)
    codes = np.column_stack([codes, np.where(CLASSES == 1, -1, codes[:, 0])]).astype(np.int32)
    return Coded(codes, tuple(tuple(range(size)) for size in (4, 20, 1, 1, 4)))


@pytest.mark.parametrize("prior", [None, Laplace(0.0), Dirichlet(1.5), Virtual(2.0), Own()], ids=str)
def test_a_row_left_out_is_a_row_never_learned(prior):
    for weights in WEIGHTS.values():
        for reserve in (False, True):
            assert_left_out_is_refitted(Categorical(prior), many_rows(), CLASSES, weights, reserve=reserve)


@pytest.mark.parametrize("prior", [Virtual(2.0, Q / Q.sum()), Dirichlet([1.0, 2.0, 3.5, 1.5])], ids=str)
def test_a_row_is_left_out_of_a_prior_over_values_in_order(prior):
    values = many_rows()
    first = Coded(values.codes[:, :1], values.levels[:1])
    for weights in WEIGHTS.values():
        assert_left_out_is_refitted(Categorical(prior), first, CLASSES, weights)


def test_the_left_out_row_is_taken_from_its_own_class():
    """(k_v − 1 + α) / (n − 1 + αV) in the row's class, (k_v + α) / (n + αV) in the other."""
    context = Context((0, 1), ("colour",))
    result = left_out(Categorical(), coded_as(COLOURS), np.array(LABELS, np.int32), None, context)
    red = [[Fraction(2 - 1 + 1, 3 - 1 + 3), Fraction(2 + 1, 4 + 3)], [Fraction(2 + 1, 3 + 3), Fraction(1 + 1, 3 + 3)]]
    np.testing.assert_allclose(np.exp(result[[0, 7]]), np.array(red, float), rtol=1e-14)
    assert result[3].tolist() == [0, 0]


@pytest.mark.parametrize(("reserve", "expected"), [(False, [1, 1]), (True, [Fraction(1, 3 + 3), Fraction(1, 3 + 3)])])
def test_a_value_that_no_other_row_has_is_one_never_seen(reserve, expected):
    """Green is left out: V is 2, and one more if a place is reserved."""
    context = Context((0, 1), ("colour",), reserve=reserve)
    result = left_out(Categorical(), coded_as(COLOURS), np.array(LABELS, np.int32), None, context)
    np.testing.assert_allclose(np.exp(result[4]), np.array(expected, float), rtol=1e-14)
