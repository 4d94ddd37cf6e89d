"""The laws of sufficient statistics hold for every statistic, and every statistic has a test file."""

from pathlib import Path

import pytest

from deciban import statistics
from tests.laws import LAWS, assert_laws, columns_can_be_concatenated, members, modules, subjects

SUBJECTS = subjects(statistics, statistics.Statistic, "tests.statistics")


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_laws(subject):
    assert_laws(subject, [*LAWS, columns_can_be_concatenated], examples=12)


def test_every_statistic_is_tested_for_the_laws():
    assert set(members(statistics, statistics.Statistic)) <= {subject.kind for subject in SUBJECTS}


def test_every_statistic_file_has_a_test_file():
    files = modules(statistics, besides={"statistic"})
    assert [name for name in files if not Path(__file__).with_name(f"test_{name}.py").exists()] == []
