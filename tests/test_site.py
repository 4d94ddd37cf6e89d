"""The site builds without warnings and offline, and its reference has every public name."""

from __future__ import annotations

import doctest
import inspect
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import typer
from typer.testing import CliRunner

import deciban
from deciban import cli
from deciban.data.files.scan import Scan
from deciban.display.explanation import Explanation
from deciban.display.summary import Summary
from deciban.evaluation.threshold_rates import Rates
from deciban.report import Report
from deciban.table import Table
from tests.browser import headless_browser

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("mkdocs", "material", "mkdocstrings", "griffe_inherited_docstrings", "latex2mathml")
ABSENT = [name for name in NEEDED if not find_spec(name)]
pytestmark = [
    pytest.mark.skipif(bool(ABSENT), reason=f"the site needs pip install '.[docs]': there is no {ABSENT}"),
    pytest.mark.xdist_group("site"),  # one worker builds it, once
]
ANSWERS = {
    "deciban.display.explanation.Explanation": Explanation,
    "deciban.display.summary.Summary": Summary,
    "deciban.table.Table": Table,
    "deciban.report.Report": Report,
    "deciban.evaluation.threshold_rates.Rates": Rates,
    "deciban.data.files.scan.Scan": Scan,
}
OFFLINE = """
import os, runpy, sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        raise SystemExit(f"the build asks for {arguments}")
sys.addaudithook(refuse)
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""
# What people type into the search box, and the pages that answer it
QUESTIONS = {
    "target column": "faq.html",
    "missing values": "faq.html",
    "unlearn a customer": "faq.html",
    "scikit-learn pipeline": "from-scikit-learn.html",
    "imbalanced classes": "faq.html",
    "date columns": "tables.html",
    "high cardinality": "faq.html",
    "feature importance": "faq.html",
    "explain one prediction": "explaining.html",
    "calibrated probabilities": "faq.html",
    "csv larger than memory": "files.html",
    "merge models": "faq.html",
    "save load model": "faq.html",
    "cross-validate": "faq.html",
    "class_prior": "faq.html",
    "threshold": "faq.html",
    "classify text": "text.html",
    "spark": "scale.html",
    "GaussianNB": "from-scikit-learn.html",
    "when not to use": "which-model.html",
}
LOADING = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}


class Page(HTMLParser):
    """The links, loaded files and anchors of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        self.loads += [attributes[name] for kind, name in LOADING if kind == tag and name in attributes]
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag == "link" and attributes.get("rel") != "canonical":
            self.loads.append(attributes["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by a process that cannot open a connection."""
    target = tmp_path_factory.mktemp("build") / "site"
    command = [sys.executable, "-c", OFFLINE, str(ROOT / "tools" / "site.py"), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    return target


@cache
def page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def is_elsewhere(address: str) -> bool:
    return bool(urlsplit(address).netloc)


def test_nothing_is_loaded_from_other_hosts(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    for path in pages:
        assert not [address for address in page(path).loads if is_elsewhere(address)], path
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"@import[^;]*//[^;]*|url\([\"']?(?:https?:)?//[^)]*", text), path


def test_links_within_the_site_resolve(site: Path) -> None:
    broken = []
    for path in site.rglob("*.html"):
        if path.name == "404.html":  # its links are absolute
            continue
        for address in [*page(path).links, *page(path).loads]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            fragment = unquote(parts.fragment)
            if not target.is_file() or (fragment and target.suffix == ".html" and fragment not in page(target).anchors):
                broken.append((str(path.relative_to(site)), address))
    assert not broken


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder: browsers do not run the search of pages opened from disk."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def found(tab: Any, question: str) -> list[str]:
    """The first three pages that the search box of a page lists."""
    box = tab.locator("input.md-search__input")
    for text, state in (("", "=== 0"), (question, "> 0")):
        box.fill(text)
        box.press("End")  # the theme waits for a key
        tab.wait_for_function(f"document.querySelectorAll('.md-search-result__item').length {state}", timeout=60_000)
    links = "items => items.slice(0, 3).map((item) => new URL(item.querySelector('a').href).pathname.slice(1))"
    pages: list[str] = tab.eval_on_selector_all(".md-search-result__item", links)
    return pages


def test_the_search_leads_to_answers(site: Path) -> None:
    with served(site) as address, headless_browser() as browser:
        tab = browser.new_page(viewport={"width": 1300, "height": 900})
        tab.goto(f"{address}/index.html")
        tab.locator("input.md-search__input").click()
        first = {question: found(tab, question) for question in QUESTIONS}
    assert not {question: pages for question, pages in first.items() if QUESTIONS[question] not in pages}


def anchors(site: Path) -> set[str]:
    return set().union(*(page(path).anchors for path in (site / "reference").glob("*.html")))


def public_things() -> Iterator[tuple[str, Any]]:
    """Public names and their objects; aliases only once."""
    yield from ANSWERS.items()
    for module in (deciban, deciban.families, deciban.priors):
        for name in module.__all__:
            thing = getattr(module, name)
            if not isinstance(thing, ModuleType) and thing not in ANSWERS.values():
                yield f"{module.__name__}.{name}", thing


def public_members(kind: type) -> Iterator[str]:
    """Methods and properties that this library defines for a class."""
    for name in dir(kind):
        owner = next(base for base in kind.__mro__ if name in vars(base))
        member = inspect.getattr_static(kind, name)
        called = inspect.isfunction(member) or isinstance(member, (property, classmethod, staticmethod))
        if called and not name.startswith("_") and owner.__module__.startswith("deciban"):
            yield name


def home_of(name: str, kind: type, member: str) -> str:
    """Where a member is documented: members of every family in Family."""
    family = deciban.families.Family
    shared = issubclass(kind, family) and hasattr(family, member)
    return f"deciban.families.Family.{member}" if shared else f"{name}.{member}"


@pytest.mark.parametrize(
    ("file", "function", "tries"),
    [("docstrings", "linked", 1), ("reference", "page", 1), ("mathematics", "typeset", 4)],
)
def test_examples_of_the_tools_run(file: str, function: str, tries: int) -> None:
    names = runpy.run_path(str(ROOT / "tools" / f"{file}.py"))
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for test in finder.find(names[function], globs=names):
        runner.run(test)
    assert (runner.tries, runner.failures) == (tries, 0)


def test_a_public_class_has_a_page_of_its_own(site: Path) -> None:
    for name, kind in public_things():
        short = name.rpartition(".")[2]
        path = site / "reference" / f"{'scan' if short == 'Scan' else short}.html"
        assert path.is_file(), name
        assert name in page(path).anchors, path
        assert inspect.getdoc(kind), name


def test_page_names_differ_by_more_than_case(site: Path) -> None:
    """Some file systems cannot tell them apart."""
    names = [path.name.lower() for path in (site / "reference").glob("*.html")]
    assert len(names) == len(set(names))


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    missing = {name for name, _ in public_things()} - anchors(site)
    assert not missing, "add them to a group in tools/reference.py"


def test_every_public_member_is_in_the_reference(site: Path) -> None:
    members = {
        home_of(name, kind, member)
        for name, kind in public_things()
        if inspect.isclass(kind)
        for member in public_members(kind)
    }
    missing = members - anchors(site)
    assert not missing, "what has no docstring is not in the reference"


@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_every_function_of_an_engine_is_in_the_reference(site: Path, engine: str) -> None:
    source = (ROOT / "src" / "deciban" / "engines" / f"{engine}.py").read_text(encoding="utf-8")
    functions = re.search(r"^__all__ = \[(.*?)\]", source, re.MULTILINE | re.DOTALL)
    assert functions is not None
    missing = {f"deciban.engines.{engine}.{name}" for name in re.findall(r"\"(\w+)\"", functions[1])} - anchors(site)
    assert not missing


def helps() -> Iterator[tuple[str, str]]:
    """Every command and its help."""
    root = typer.main.get_command(cli.app)
    wide = {"COLUMNS": "200", "TERMINAL_WIDTH": "200"}
    yield "", CliRunner().invoke(cli.app, ["--help"], env=wide).output
    mails = root.commands["mail"].commands  # type: ignore[attr-defined]
    names = [[name] for name in root.commands if name != "mail"]  # type: ignore[attr-defined]
    for words in (*names, *(["mail", name] for name in mails)):
        yield "-".join(words), CliRunner().invoke(cli.app, [*words, "--help"], env=wide).output


def test_every_command_and_option_is_in_the_reference(site: Path) -> None:
    """Each in a table of its command."""
    html = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    first, *named = re.split(r"<h2 id=\"deciban-([\w-]+)\"", html)
    sections = {"": first, **dict(zip(named[::2], named[1::2], strict=True))}
    options_checked = 0
    for name, help_ in helps():
        own = re.sub(
            rf"\bdeciban (?!{name or 'COMMAND'}\b)[a-z-]+ --[a-z-]+", "", help_
        )  # text may name other commands
        options = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", own)) - {"--help"}
        options_checked += len(options)
        cells = " ".join(re.findall(r"<td><code>(.*?)</code></td>", sections[name]))
        assert not options - set(re.findall(r"--[a-z][\w-]*", cells)), f"deciban {name}"
    assert options_checked > 100
