"""A page of a browser, for what a report does in one."""

import os
import shutil
from importlib.util import find_spec

import pytest

SLOW = pytest.mark.slow  # cases of the full matrix, which make test-all runs
NAMES = ("chromium", "chromium-browser", "google-chrome")


def some_slow(names, *fast):
    """Parameters of which only the fast ones run in make test."""
    return [name if name in fast else pytest.param(name, marks=SLOW) for name in names]


@pytest.fixture(scope="module")
def browser_page():
    """An empty page of a headless Chromium. Without one tests are skipped; with DECIBAN_BROWSER=1 they fail."""
    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None or find_spec("playwright") is None:
        missing = pytest.fail if os.environ.get("DECIBAN_BROWSER") == "1" else pytest.skip
        missing("playwright and Chromium are needed: pip install playwright, and chromium on the PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()
