"""A page on disk with one figure of the lectures, opened in a browser."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "lectures" / "figures"
WIDE, PHONE = (1000, 900), (375, 812)
SCHEMES = ("default", "slate")  # light and dark, as mkdocs-material calls them

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>figure</title><link rel="stylesheet" href="{base}/figures.css">
<style>html {{ font-size: 125%; }}
body {{ margin: 0 auto; padding: 0 16px; max-width: 688px; font-family: sans-serif; }}
[data-md-color-scheme=slate] {{ background: #1e2129; }}</style></head>
<body data-md-color-scheme="{scheme}">
<div class="lecture-figure" data-figure="{name}" {options}></div>
{scripts}
</body></html>
"""


def site_scripts():
    """The scripts that pages of the site load, in their order."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    names = re.findall(r"^  - lectures/figures/(\S+\.js)", settings, re.MULTILINE)
    return [FIGURES / name for name in names]


class Figures:
    """Opens figures, and hears what their page says on the console, asks for or opens."""

    def __init__(self, page, folder):
        self.page, self.folder = page, folder
        self.heard = []
        page.on("console", lambda message: self.heard.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.heard.append(str(error)))
        page.on("dialog", lambda dialog: (self.heard.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.heard.append(request.url))

    def open(self, name, size=WIDE, scheme="default", **options):
        """The page with the figure and its data- attributes, e.g. open("points", show="lda")."""
        scripts = "\n".join(f'<script src="{path.as_uri()}"></script>' for path in site_scripts() if path.exists())
        data = " ".join(f'data-{key}="{value}"' for key, value in options.items())
        path = self.folder / "figure.html"
        text = PAGE.format(base=FIGURES.as_uri(), name=name, scheme=scheme, options=data, scripts=scripts)
        path.write_text(text, encoding="utf-8")
        self.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
        self.page.goto(path.as_uri())
        return self.page

    def check_silence(self):
        """Nothing may be heard but requests for files on disk; raises AssertionError otherwise."""
        assert [what for what in self.heard if not what.startswith("file://")] == []
        self.heard.clear()


def evaluate(page, expression, argument=None):
    """A JavaScript expression of `figure` (its state, set and results), `box` (the element) and `given`."""
    names = "const box = document.querySelector('.lecture-figure'), { figure } = box"
    return page.evaluate(f"(given) => {{ {names}; return {expression}; }}", argument)


def results(page, **changed):
    """The numbers of the figure, after a change of its state; functions are left out."""
    change = "figure.set(given)" if changed else "figure.results()"
    return evaluate(page, f"JSON.parse(JSON.stringify({change}))", changed or None)


def scrolls_sideways(page):
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


def low_contrast(page):
    """Texts of the figure whose contrast with the page is below 4.5 : 1 (WCAG AA)."""
    return page.evaluate(
        """() => {
        const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        const luminance = (colour) => {
            canvas.fillStyle = colour;
            canvas.fillRect(0, 0, 1, 1);
            const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
                .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const behind = (node) => {
            const colour = getComputedStyle(node).backgroundColor;
            return colour === "rgba(0, 0, 0, 0)" && node.parentElement ? behind(node.parentElement) : colour;
        };
        const found = [];
        for (const node of document.querySelectorAll(".lecture-figure *")) {
            const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
            if (!own || !node.getClientRects().length || node.disabled) continue;
            const style = getComputedStyle(node);
            const [a, b] = [luminance(node instanceof SVGElement ? style.fill : style.color), luminance(behind(node))];
            const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (contrast < 4.5) found.push(`${node.textContent.trim()}: ${contrast.toFixed(2)}`);
        }
        return found;
        }"""
    )


@pytest.fixture(scope="module")
def module_figures(browser_page, tmp_path_factory):
    return Figures(browser_page, tmp_path_factory.mktemp("figures"))


@pytest.fixture
def figures(module_figures):
    """Opens figures; after the test nothing may have been heard but requests for files on disk."""
    module_figures.heard.clear()
    yield module_figures
    module_figures.check_silence()
    module_figures.page.emulate_media(color_scheme="light", reduced_motion="no-preference")
