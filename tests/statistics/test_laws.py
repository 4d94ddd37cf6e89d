"""Every statistic keeps every law, and every statistic has its test file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban import statistics
from tests.laws import LAWS, columns_can_stand_side_by_side, members, modules, subjects

SUBJECTS = subjects(statistics, statistics.Statistic, "tests.statistics")


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
@pytest.mark.parametrize("law", [*LAWS, columns_can_stand_side_by_side], ids=lambda law: law.__name__)
@given(data=st.data())
def test_law(law, subject, data):
    law(subject, data)


@pytest.mark.parametrize("statistic", members(statistics, statistics.Statistic))
def test_every_statistic_is_held_to_the_laws(statistic):
    assert statistic in {subject.kind for subject in SUBJECTS}


@pytest.mark.parametrize("name", modules(statistics, besides={"base"}))
def test_every_statistic_file_has_a_test_file(name):
    assert Path(__file__).with_name(f"test_{name}.py").exists()
