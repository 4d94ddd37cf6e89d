"""A page of a browser, for what a report does in one."""

import os
import shutil
from importlib.util import find_spec

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


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
