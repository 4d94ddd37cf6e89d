"""The browser of the reports' tests, and figures that are opened in it."""

from tests.lectures.figures import figures, module_figures
from tests.report.conftest import browser, browser_page

__all__ = ["browser", "browser_page", "figures", "module_figures"]
