"""Figures that need tables.js and evidence.js, opened with the scripts of their own."""

from tests.lectures.figures import FIGURES, evaluate

# Fractions as text; infinities and NaN, which JSON does not have, as they are.
PLAIN = """((plain) => plain(plain, %s))((self, value) =>
    value === null || typeof value !== "object" ? value
    : value.toJSON ? `${value}`
    : Array.isArray(value) ? value.map((one) => self(self, one))
    : Object.fromEntries(Object.entries(value).map(([key, one]) => [key, self(self, one)])))"""


def open_figure(figures, name, *arguments, **options):
    """The page with a figure; the scripts are loaded as Figures.open loads others."""
    page = figures.open(name, *arguments, script="tables", **options)
    for script in ("evidence", name):
        page.add_script_tag(url=f"{FIGURES.as_uri()}/{script}.js")
    return page


def numbers(page, **changed):
    """The results of the figure, after a change of its state."""
    return evaluate(page, PLAIN % ("figure.set(given)" if changed else "figure.results()"), changed or None)


def shown(page, selector):
    """The texts of some elements of the figure."""
    return page.locator(f".lecture-figure {selector}").all_inner_texts()
