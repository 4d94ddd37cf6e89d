"""Terms less a document, as exact fractions. (tests/families/test_text.py holds all event models against refits.)"""

from fractions import Fraction

import numpy as np
import pytest

from deciban.data.batch import Texts
from deciban.families.loo.left_out_terms import LeftOut
from deciban.statistics.tokens import TermRows, Tokens

CUT = (1, 1, 1, 0, False, 0)
MAILS = Texts.of(["buy book book", "buy drugs", "drugs drugs only", "book"])
LABELS = np.array([0, 1, 1, 0], np.int32)


def left_out(events, alpha=1.0, each=0.0):
    learned = Tokens.of(MAILS, CUT, LABELS, None, 2, once=events == "bernoulli")
    rows = TermRows.of(MAILS, CUT, learned.terms)
    return np.exp(LeftOut(learned, alpha, each, events, np.zeros(2)).of(rows, LABELS, np.ones(4)))


def test_a_term_that_no_other_document_has_is_gone_for_all_classes():
    """Without the third mail V = 3; class 1 has buy and drugs once, class 0 buy once and book three times."""
    result = left_out("multinomial")[2]
    expected = Fraction(0 + 1, 4 + 3) ** 2, Fraction(1 + 1, 2 + 3) ** 2
    np.testing.assert_allclose(result, [float(p) for p in expected], rtol=1e-14)


def test_absent_terms_count_among_those_that_are_left():
    """The last mail has book; of the others one has it in class 0 (with buy), and two of class 1 lack it."""
    result = left_out("bernoulli")[3]
    zero = Fraction(2, 3) * Fraction(1, 3) * Fraction(2, 3) * Fraction(2, 3)  # book; no buy, no drugs, no only
    one = Fraction(1, 4) * Fraction(2, 4) * Fraction(1, 4) * Fraction(2, 4)
    np.testing.assert_allclose(result, [float(zero), float(one)], rtol=1e-14)


def test_virtual_terms_are_spread_as_those_that_are_left():
    """Without the first mail there are book 1, buy 1, drugs 3, only 1; half a virtual term for each class."""
    result = left_out("multinomial", alpha=0.0, each=0.5)[0]
    share = Fraction(1, 2) * Fraction(1, 6)  # of book, and of buy
    zero = share / Fraction(3, 2) * ((1 + share) / Fraction(3, 2)) ** 2
    one = (1 + share) / Fraction(11, 2) * (share / Fraction(11, 2)) ** 2
    np.testing.assert_allclose(result, [float(zero), float(one)], rtol=1e-13)


@pytest.mark.parametrize("events", ["multinomial", "bernoulli", "complement"])
def test_what_is_in_the_middle_is_taken_off(events):
    learned = Tokens.of(MAILS, CUT, LABELS, None, 2, once=events == "bernoulli")
    rows = TermRows.of(MAILS, CUT, learned.terms)
    middle = np.array([0.25, -1.0])
    plain, less = (LeftOut(learned, 1.0, 0.0, events, m).of(rows, LABELS, np.ones(4)) for m in (np.zeros(2), middle))
    times = 1.0 if events == "bernoulli" else np.array([3.0, 2.0, 2.0, 1.0])[:, np.newaxis]  # "only" is gone
    np.testing.assert_allclose(plain - less, np.broadcast_to(times * middle, (4, 2)), rtol=1e-12)
