"""Leaving a row out of the statistic is a refit without it, for every family."""

import numpy as np
import pytest

from deciban import families
from deciban.families.family import Fitted
from deciban.families.labelled_values import LabelledValues
from tests.laws import assert_laws, context, family_subjects, rows

SUBJECTS = family_subjects()


def refits(subject, all_rows, setting):
    """(n, K) log p(x_i | class), each row from an estimate without it."""
    family, n = subject.family, len(all_rows)
    whole = subject.of(all_rows)
    out = np.zeros((n, all_rows.classes))
    for i in range(n):
        rest = subject.after_subtraction(subject.of(all_rows.take(np.delete(np.arange(n), i))), whole)
        row = family.coded_for(rest, all_rows.take(np.array([i])).values)
        out[i] = family.log_density(family.estimate(rest, setting), row, all_rows.classes)[0]
    return out


def left_out(subject, all_rows, setting):
    whole = subject.of(all_rows)
    values = subject.family.coded_for(whole, all_rows.values)
    fitted = Fitted(whole, subject.family.estimate(whole, setting), setting)
    out = np.zeros((len(all_rows), all_rows.classes))
    subject.family.leave_one_out(fitted, LabelledValues(values, all_rows.labels, all_rows.weights), out)
    return out


def with_company(all_rows):
    """The rows that weigh something and are not the only one of their class."""
    weights = np.ones(len(all_rows)) if all_rows.weights is None else all_rows.weights
    kept = all_rows.take(np.flatnonzero(weights))
    return kept, np.bincount(kept.labels, minlength=kept.classes)[kept.labels] > 1


def rounding(subject, all_rows):
    """What a mean that is rounded to a double may change: of 1e8 ± 1 it has 8 digits less, in the refit as well."""
    if subject.kind is not families.Gaussian:
        return 0.0
    lost = [1.0]
    for column in all_rows.values.T:
        seen = np.unique(column[~np.isnan(column)])
        lost += (np.abs(seen).max() / np.diff(seen)).tolist() if len(seen) > 1 else []
    return min(1.0, 64 * np.finfo(np.float64).eps * max(lost))


@pytest.mark.filterwarnings("ignore:singular covariance")
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_leaving_a_row_out_is_a_refit_without_it(subject):
    assert_laws(subject, [left_out_is_refit], examples=3 if subject.least else 15)


def left_out_is_refit(subject, data):
    kept, company = with_company(data.draw(rows(subject)))
    setting = context(kept, **subject.settings)
    with np.errstate(all="ignore"):
        expected, actual = (f(subject, kept, setting)[company] for f in (refits, left_out))
    digits = max(1e-10, rounding(subject, kept))
    np.testing.assert_allclose(actual, expected, rtol=digits, atol=digits)
