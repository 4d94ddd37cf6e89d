"""The laws of statistics and the contract of a log-density hold for every family, and every family has a test file."""

from pathlib import Path

import numpy as np
import pytest

from deciban import families
from tests.laws import LAWS, all_families, assert_laws, context, family_subjects, modules, rows, rows_of

SUBJECTS = family_subjects()

each_family = pytest.mark.parametrize("subject", SUBJECTS, ids=str)
pytestmark = pytest.mark.filterwarnings("ignore:singular covariance")


@each_family
def test_laws(subject):
    assert_laws(subject, LAWS, examples=2 if subject.least else 6)


@each_family
def test_log_densities(subject):
    assert_laws(subject, [contract], examples=4 if subject.least else 12)


def contract(subject, data):
    drawn = data.draw(rows(subject))
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


@pytest.mark.parametrize("family", all_families())
def test_every_family_is_tested_for_the_laws(family):
    assert family in {subject.kind for subject in SUBJECTS}


@pytest.mark.parametrize("name", modules(families, besides={"family", "loo"}))
def test_every_family_file_has_a_test_file(name):
    assert Path(__file__).with_name(f"test_{name}.py").exists()
