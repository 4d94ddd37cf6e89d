"""The documents run: every Python block in them is executed, and every public name is in them."""

from __future__ import annotations

import doctest
import json
import os
import re
import runpy
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import deciban

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|console|python spark)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(document: Path) -> Iterator[tuple[int, str, str]]:
    """The blocks of a document that run, each with the number of its first line and its language."""
    text = document.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        yield text.count("\n", 0, found.start(2)) + 1, found[1], found[2]


def run_commands(block: str) -> None:
    """A session at the console: lines after "$ " are commands, those below are what they print."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for session in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = session.partition("\n")
        done = subprocess.run(command, shell=True, capture_output=True, text=True, env={**os.environ, "PATH": path})
        printed = done.stdout + done.stderr
        assert doctest.OutputChecker().check_output(expected, printed, FLAGS), f"$ {command}\n{printed}"


def with_blank_lines(session: str) -> str:
    """A blank line inside an output is written as doctest wants it; the documents stay readable."""
    lines = session.rstrip().splitlines()
    for i, line in enumerate(lines):
        following = next((later for later in lines[i:] if later.strip()), ">>>")
        if not line.strip() and not following.startswith(">>>"):
            lines[i] = "<BLANKLINE>"
    return "\n".join(lines) + "\n"


RUNNING = [document for document in DOCUMENTS if any(blocks(document))]


@pytest.mark.parametrize("document", RUNNING, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_run(document: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sessions (>>>, $) print what is written below them; plain blocks execute. Each document has a directory."""
    run_document(document, monkeypatch, tmp_path, {"python", "console"})


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_blocks_of_spark_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    run_document(ROOT / "docs" / "scale.md", monkeypatch, tmp_path, {"python", "python spark"})


def run_document(document: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, languages: set[str]) -> None:
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("document_" + document.stem.lower())
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    for first, language, block in blocks(document):
        if language not in languages:
            continue
        if language == "console":
            run_commands(block)
        elif not block.startswith(">>>"):
            exec(compile("\n" * (first - 1) + block, str(document), "exec", dont_inherit=True), module.__dict__)
            for path in re.findall(r"\A# src/(\S+)\.py$", block, re.MULTILINE):  # what follows may import it
                monkeypatch.setitem(sys.modules, path.replace("/", "."), module)
        else:
            text = with_blank_lines(block)
            session = doctest.DocTestParser().get_doctest(text, {}, document.name, str(document), first - 1)
            session.globs = module.__dict__
            runner.run(session, out=report.append, clear_globs=False)
    assert not report, "".join(report)


def test_documents_hold_sessions() -> None:
    """The blocks are found: documents that are all text by design are named."""
    text = {ROOT / "docs" / f"{name}.md" for name in ("architecture", "benchmarks", "design")}
    assert {path for path in DOCUMENTS if path not in RUNNING and path.parent.name != "reference"} == text


def test_links_between_files_lead_somewhere() -> None:
    """In the repository; test_site.py has those of the site, with their places."""
    lost = [
        (document.name, link)
        for document in [*DOCUMENTS, ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "README.md"]
        for link in LINK.findall(document.read_text(encoding="utf-8"))
        if "://" not in link and not link.startswith("#") and not (document.parent / link.partition("#")[0]).exists()
    ]
    assert not lost


def test_what_r_found_is_in_the_references() -> None:
    """The comments in blocks of R are those of the files that the models are tested by."""
    page = (ROOT / "docs" / "from-r.md").read_text(encoding="utf-8")
    found = {path.stem: json.loads(path.read_text()) for path in (ROOT / "tests" / "references").glob("*.json")}
    bayes, lda = found["naive_bayes"]["iris"], found["discriminant"]["iris"]["lda"]
    glm, left_out = found["linear"]["binomial"]["breast_cancer"], found["leave_one_out"]["iris"]["lda"]["moment"]
    petals = zip(bayes["classes"], bayes["mean"], bayes["sd"], strict=True)
    coefficients = zip(glm["names"], glm["coefficients"], glm["standard_errors"], strict=True)
    likeliest = [row.index(max(row)) for row in left_out]  # 50 rows of each class
    lines = [
        *(f"# {name} {mean[2]:.3f} {sd[2]:.7f}" for name, mean, sd in petals),
        *(f"# versicolor {row[1]:.7f}, virginica {row[2]:.7f}" for row in (bayes["posterior"][70], lda[70])),
        *(f"# {name} {estimate:.7g} {error:.7g}" for name, estimate, error in coefficients),
    ]
    for i, name in enumerate(bayes["classes"]):
        mine = likeliest[50 * i : 50 * i + 50]
        lines.append(f"# {name} {mine.count(0)} {mine.count(1)} {mine.count(2)}")
    spaced = re.sub(" +", " ", page)
    assert not [line for line in lines if line not in spaced]


def test_pictures_are_those_of_their_script() -> None:
    """Those that are drawn by hand; what altair draws depends on its version, so that only its size is looked at."""
    draw = runpy.run_path(str(ROOT / "tools" / "pictures.py"))
    pictures = ROOT / "docs" / "pictures"
    assert (pictures / "one-idea.svg").read_text(encoding="utf-8") == draw["one_idea"]()
    assert (pictures / "mark.svg").read_text(encoding="utf-8") == draw["mark"]()
    most = {".svg": 60_000, ".png": 200_000}  # bytes; a photograph of a page has more
    assert [path.name for path in pictures.iterdir() if path.stat().st_size > most[path.suffix]] == []


@pytest.mark.parametrize("name", deciban.__all__)
def test_public_names_are_documented(name: str) -> None:
    pages = [path for path in DOCUMENTS if path.name != "CONTRIBUTING.md"]
    assert any(re.search(rf"\b{name}\b", page.read_text(encoding="utf-8")) for page in pages)
