"""Every family keeps every law, and every family has its test file."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban import families
from tests.laws import LAWS, context, members, modules, rows, rows_of, subjects

SUBJECTS = subjects(families, families.Family, "tests.families")

each_family = pytest.mark.parametrize("subject", SUBJECTS, ids=str)
pytestmark = pytest.mark.filterwarnings("ignore:singular covariance")


@each_family
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law(law, subject):
    @given(data=st.data())  # of its own for each: one that is shared by a thousand cases recurses too deep
    def holds(data):
        law(subject, data)

    holds()


def estimated(subject, drawn):
    return subject.family.estimate(subject.of(drawn), context(drawn, **subject.settings))


@each_family
@given(data=st.data())
def test_parts_sum_to_the_log_density(subject, data):
    drawn = data.draw(rows(subject))
    params = estimated(subject, drawn)
    whole = subject.family.log_density(params, drawn.values, drawn.classes)
    parts = subject.family.parts(params, drawn.values, drawn.classes)
    with np.errstate(invalid="ignore"):
        size = np.sum([np.abs(part) for part in parts], axis=0)
    assert whole.shape == (len(drawn), drawn.classes)
    assert all(part.shape == whole.shape for part in parts)
    assert not np.isnan(whole).any()
    np.testing.assert_allclose(
        np.sum(parts, axis=0), whole, rtol=1e-9, atol=1e-12 * size[np.isfinite(size)].max(initial=1)
    )


@each_family
@given(data=st.data())
def test_a_silent_column_favours_no_class(subject, data):
    drawn = data.draw(rows(subject))
    params = estimated(subject, drawn)
    parts = subject.family.parts(params, drawn.values, drawn.classes)
    if len(parts) == drawn.values.shape[1]:
        for j in subject.family.silent(params):
            assert (parts[j] == parts[j][:, :1]).all()


@each_family
@given(data=st.data())
def test_log_density_adds_to_what_is_there(subject, data):
    drawn = data.draw(rows(subject))
    params = estimated(subject, drawn)
    out = np.full((len(drawn), drawn.classes), 3.0)
    subject.family.add_log_density(params, drawn.values, out)
    expected = 3.0 + subject.family.log_density(params, drawn.values, drawn.classes)
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-9)


@each_family
@given(data=st.data())
def test_a_row_gets_the_same_bits_whatever_stands_around_it(subject, data):
    drawn = data.draw(rows(subject))
    params = estimated(subject, drawn)
    whole = subject.family.log_density(params, drawn.values, drawn.classes)
    for i in range(len(drawn)):
        alone = subject.family.log_density(params, rows_of(drawn.values, np.array([i])), drawn.classes)
        assert alone.tobytes() == whole[i].tobytes()


@each_family
@given(data=st.data())
def test_every_family_describes_itself(subject, data):
    drawn = data.draw(rows(subject))
    setting = context(drawn, **subject.settings)
    params = estimated(subject, drawn)
    for table in subject.family.describe(params, setting):
        assert all(len(row) == len(table.header) for row in table.rows)
    assert set(subject.family.silent(params)) <= set(range(drawn.values.shape[1]))
    assert subject.family.n_parameters(params) >= 0


@pytest.mark.parametrize("family", members(families, families.Family))
def test_every_family_is_held_to_the_laws(family):
    assert family in {subject.kind for subject in SUBJECTS}


@pytest.mark.parametrize("name", modules(families, besides={"base"}))
def test_every_family_file_has_a_test_file(name):
    assert Path(__file__).with_name(f"test_{name}.py").exists()
