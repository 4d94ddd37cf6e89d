"""A headless Chromium for tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def headless_browser() -> Iterator[Any]:
    """Without a Chromium or playwright the test is skipped; with DECIBAN_BROWSER=1 it fails."""
    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None or find_spec("playwright") is None:
        missing = pytest.fail if os.environ.get("DECIBAN_BROWSER") == "1" else pytest.skip
        missing("playwright and Chromium are needed: pip install playwright, and chromium on the PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()
