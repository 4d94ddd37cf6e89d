"""A browser, for what a report does in one."""

import os
import shutil
from importlib.util import find_spec

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="package")
def browser():
    """A headless Chromium, with an event loop that tests elsewhere could not share.

    Without one tests are skipped; with DECIBAN_BROWSER=1 they fail.
    """
    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None or find_spec("playwright") is None:
        missing = pytest.fail if os.environ.get("DECIBAN_BROWSER") == "1" else pytest.skip
        missing("playwright and Chromium are needed: pip install playwright, and chromium on the PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser_page(browser):
    """An empty page."""
    page = browser.new_page()
    yield page
    page.close()
