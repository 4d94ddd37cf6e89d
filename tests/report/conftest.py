"""A browser, for what a report does in one."""

import pytest

from tests.browser import headless_browser


@pytest.fixture(scope="package")
def browser():
    """A headless Chromium, with an event loop that tests elsewhere could not share."""
    with headless_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def browser_page(browser):
    """An empty page."""
    page = browser.new_page()
    yield page
    page.close()
