"""Laws of every family: of its statistic, of its log-density and of leaving a row out."""

from pathlib import Path

import numpy as np
import pytest

from deciban import families
from tests.families.refits import left_out, refitted
from tests.laws import LAWS, all_families, assert_laws, context, family_subjects, modules, rows_of

SUBJECTS = family_subjects()

each_family = pytest.mark.parametrize("subject", SUBJECTS, ids=str)
pytestmark = pytest.mark.filterwarnings("ignore:singular covariance")


@each_family
def test_laws(subject):
    """Of statistics, of log-densities, and of leaving a row out."""
    assert_laws(subject, [*LAWS, log_density_contract, leaving_a_row_out_is_a_refit], 3 if subject.least else 7)


def log_density_contract(subject, drawn, rng):
    setting = context(drawn, **subject.settings)
    params = subject.family.estimate(subject.of(drawn), setting)
    log_p = subject.family.log_density(params, drawn.values, drawn.classes)
    parts = subject.family.parts(params, drawn.values, drawn.classes)
    assert log_p.shape == (len(drawn), drawn.classes)
    assert not np.isnan(log_p).any()
    assert_parts_sum_to(log_p, parts)
    assert_silent_columns_favour_no_class(subject.family.silent(params), parts, drawn)
    assert_density_is_added(subject.family, params, drawn, log_p)
    assert_rows_are_independent(subject.family, params, drawn, log_p)
    for table in subject.family.describe(params, setting):
        assert all(len(row) == len(table.header) for row in table.rows)
    assert subject.family.n_parameters(params) >= 0


def assert_parts_sum_to(log_p, parts):
    with np.errstate(invalid="ignore"):
        size = np.sum([np.abs(part) for part in parts], axis=0)
    assert all(part.shape == log_p.shape for part in parts)
    np.testing.assert_allclose(
        np.sum(parts, axis=0), log_p, rtol=1e-9, atol=1e-12 * size[np.isfinite(size)].max(initial=1)
    )


def assert_silent_columns_favour_no_class(silent, parts, drawn):
    assert set(silent) <= set(range(drawn.values.shape[1]))
    if len(parts) == drawn.values.shape[1]:
        for j in silent:
            assert (parts[j] == parts[j][:, :1]).all()


def assert_density_is_added(family, params, drawn, log_p):
    out = np.full((len(drawn), drawn.classes), 3.0)
    family.add_log_density(params, drawn.values, out)
    np.testing.assert_allclose(out, 3.0 + log_p, rtol=1e-9, atol=1e-9)


def assert_rows_are_independent(family, params, drawn, log_p):
    """A row has the same log-density, bit for bit, whatever rows are around it."""
    for i in range(len(drawn)):
        alone = family.log_density(params, rows_of(drawn.values, np.array([i])), drawn.classes)
        assert alone.tobytes() == log_p[i].tobytes()


def with_company(all_rows):
    """The rows of positive weight, and which of them are not the only one of their class."""
    weights = np.ones(len(all_rows)) if all_rows.weights is None else all_rows.weights
    kept = all_rows.take(np.flatnonzero(weights))
    return kept, np.bincount(kept.labels, minlength=kept.classes)[kept.labels] > 1


def rounding(subject, all_rows):
    """The effect of rounding a mean to a double: of 1e8 ± 1 it has 8 digits less, in the refit as well."""
    if subject.kind is not families.Gaussian:
        return 0.0
    lost = [1.0]
    for column in all_rows.values.T:
        seen = np.unique(column[~np.isnan(column)])
        lost += (np.abs(seen).max() / np.diff(seen)).tolist() if len(seen) > 1 else []
    return min(1.0, 64 * np.finfo(np.float64).eps * max(lost))


def leaving_a_row_out_is_a_refit(subject, all_rows, rng):
    kept, company = with_company(all_rows)
    given = subject.family, kept.values, kept.labels, kept.weights, context(kept, **subject.settings)
    with np.errstate(all="ignore"):
        actual, expected = left_out(*given)[company], refitted(*given, subject.after_subtraction)[company]
    digits = max(1e-10, rounding(subject, kept))
    np.testing.assert_allclose(actual, expected, rtol=digits, atol=digits)


def test_every_family_is_tested_for_the_laws():
    assert set(all_families()) <= {subject.kind for subject in SUBJECTS}


def test_every_family_file_has_a_test_file():
    files = modules(families, besides={"family", "loo"})
    assert [name for name in files if not Path(__file__).with_name(f"test_{name}.py").exists()] == []
