"""Fixtures of the tests of files."""

import pytest

from deciban.data.files import delimited, json_lines, text_files


@pytest.fixture
def small_sample(monkeypatch):
    """Types and dialects are inferred from the first 1,000 bytes, so that a few hundred rows are more than a sample."""
    for module in (text_files, delimited, json_lines):
        monkeypatch.setattr(module, "SAMPLE", 1000)
