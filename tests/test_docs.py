"""Every Python block of the documentation runs, and every public name is documented."""

from __future__ import annotations

import doctest
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import deciban
from deciban import cli
from tests.test_architecture import ROOMS

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(python|console|python spark|python slow)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(document: Path) -> Iterator[tuple[int, str, str]]:
    """The runnable blocks of a document, also folded ones, each with the number of its first line and its language."""
    text = document.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield text.count("\n", 0, match.start(3)) + 1, match[2], textwrap.dedent(match[3])


def run_commands(block: str) -> None:
    """Runs a shell session: lines after "$ " are commands, followed by their output."""
    for session in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = session.partition("\n")
        printed = output_of(command)
        assert doctest.OutputChecker().check_output(expected, printed, FLAGS), f"$ {command}\n{printed}"


def output_of(command: str) -> str:
    """What a command prints: in this process if it is the program alone, or its first lines; else in a shell."""
    if plain := re.fullmatch(r"deciban ([^|<>;*]+?)(?: \| head -(\d+))?", command):
        result = CliRunner().invoke(cli.app, shlex.split(plain[1]))
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return "".join(result.stdout.splitlines(keepends=True)[: int(plain[2] or 1_000_000)]) + result.stderr
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env={**os.environ, "PATH": path})
    return done.stdout + done.stderr


def with_blank_lines(session: str) -> str:
    """Marks blank lines inside an output as doctest requires."""
    lines = session.rstrip().splitlines()
    for i, line in enumerate(lines):
        following = next((later for later in lines[i:] if later.strip()), ">>>")
        if not line.strip() and not following.startswith(">>>"):
            lines[i] = "<BLANKLINE>"
    return "\n".join(lines) + "\n"


RUNNING = [document for document in DOCUMENTS if any(blocks(document))]


def with_blocks(language: str) -> list[Path]:
    """The documents that have blocks of a language."""
    return [document for document in RUNNING if language in {each for _, each, _ in blocks(document)}]


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", RUNNING, ids=name_of)
def test_blocks_run(document: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sessions (>>>, $) print the output below them; plain blocks execute. Each document has its own directory."""
    run_document(document, monkeypatch, tmp_path, {"python", "console"})


@pytest.mark.slow
@pytest.mark.parametrize("document", with_blocks("python slow"), ids=name_of)
def test_slow_blocks_run(document: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run_document(document, monkeypatch, tmp_path, {"python", "console", "python slow"})


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("document", with_blocks("python spark"), ids=name_of)
def test_blocks_of_spark_run(document: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    run_document(document, monkeypatch, tmp_path, {"python", "python spark"})


def run_document(document: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, languages: set[str]) -> None:
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("document_" + document.stem.lower())
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look up their module
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    for first, language, block in blocks(document):
        if language not in languages:
            continue
        if language == "console":
            run_commands(block)
        elif not block.startswith(">>>"):
            exec(compile("\n" * (first - 1) + block, str(document), "exec", dont_inherit=True), module.__dict__)
            for path in re.findall(r"\A# src/(\S+)\.py$", block, re.MULTILINE):  # later blocks may import it
                monkeypatch.setitem(sys.modules, path.replace("/", "."), module)
        else:
            text = with_blank_lines(block)
            session = doctest.DocTestParser().get_doctest(text, {}, document.name, str(document), first - 1)
            session.globs = module.__dict__
            runner.run(session, out=report.append, clear_globs=False)
    assert not report, "".join(report)


def test_documents_have_sessions() -> None:
    """Blocks are recognised: documents without any are named."""
    names = ("architecture", "benchmarks", "compare/index", "design", "references", "versioning")
    text = {ROOT / "docs" / f"{name}.md" for name in names}
    silent = {path for path in DOCUMENTS if path not in RUNNING}
    assert {path for path in silent if path.parent.name not in ("reference", "decisions")} == text


def test_the_map_shows_the_layers_that_are_enforced() -> None:
    layers: list[set[str]] = []
    for line in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines():
        if row := re.match(r"\| (\d*) ?\| ([^|]+) \|", line):
            layers += [set()] if row[1] else []
            layers[-1] |= {name.strip("/").removesuffix(".py") for name in re.findall(r"`([\w./]+)`", row[2])}
    assert layers == ROOMS


def test_decisions_are_numbered_and_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    pages = sorted(path.name for path in folder.glob("0*.md"))
    assert [page[:4] for page in pages] == [f"{n:04d}" for n in range(1, len(pages) + 1)]
    assert re.findall(r"\((0.*?)\)", (folder / "index.md").read_text(encoding="utf-8")) == pages
    for page in pages:
        headings = re.findall(r"^## (.*)", (folder / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences"], page


def test_pages_of_the_lectures_have_the_same_parts() -> None:
    parts = ["Goal", "Derivation", "In deciban", "Explore", "Exercises", "Read next"]
    for page in sorted((ROOT / "docs" / "lectures").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if page.name != "index.md":
            assert re.findall(r"^## (.*)", text, re.MULTILINE) == parts, page.name
            assert len(re.findall(r"^\?\?\? note \"Solution\"$", text, re.MULTILINE)) == 3, page.name
            assert len(re.findall(r"^<div class=\"lecture-figure\" data-figure", text, re.MULTILINE)) == 1, page.name


def test_links_between_files_resolve() -> None:
    """In the repository; test_site.py checks the site, with anchors."""
    broken = [
        (document.name, link)
        for document in [
            *DOCUMENTS,
            *(ROOT / name for name in ("CHANGELOG.md", "benchmarks/README.md", "examples/README.md")),
        ]
        for link in LINK.findall(document.read_text(encoding="utf-8"))
        if "://" not in link and not link.startswith("#") and not (document.parent / link.partition("#")[0]).exists()
    ]
    assert not broken


def test_results_of_r_are_in_the_references() -> None:
    """The comments in blocks of R agree with the reference files."""
    page = (ROOT / "docs" / "from-r.md").read_text(encoding="utf-8")
    references = {path.stem: json.loads(path.read_text()) for path in (ROOT / "tests" / "references").glob("*.json")}
    bayes, lda = references["naive_bayes"]["iris"], references["discriminant"]["iris"]["lda"]
    glm, left_out = (
        references["linear"]["binomial"]["breast_cancer"],
        references["leave_one_out"]["iris"]["lda"]["moment"],
    )
    petals = zip(bayes["classes"], bayes["mean"], bayes["sd"], strict=True)
    coefficients = zip(glm["names"], glm["coefficients"], glm["standard_errors"], strict=True)
    likeliest = [row.index(max(row)) for row in left_out]  # 50 rows of each class
    lines = [
        *(f"# {name} {mean[2]:.3f} {sd[2]:.7f}" for name, mean, sd in petals),
        *(f"# versicolor {row[1]:.7f}, virginica {row[2]:.7f}" for row in (bayes["posterior"][70], lda[70])),
        *(f"# {name} {estimate:.7g} {error:.7g}" for name, estimate, error in coefficients),
    ]
    for i, name in enumerate(bayes["classes"]):
        predicted = likeliest[50 * i : 50 * i + 50]
        lines.append(f"# {name} {predicted.count(0)} {predicted.count(1)} {predicted.count(2)}")
    spaced = re.sub(" +", " ", page)
    assert not [line for line in lines if line not in spaced]


def test_pictures_match_their_script() -> None:
    """Hand-drawn ones; altair's output depends on its version, so only its size is checked."""
    draw = runpy.run_path(str(ROOT / "tools" / "pictures.py"))
    pictures = ROOT / "docs" / "pictures"
    assert (pictures / "one-idea.svg").read_text(encoding="utf-8") == draw["one_idea"]()
    assert (pictures / "mark.svg").read_text(encoding="utf-8") == draw["mark"]()
    assert (pictures / "rooms.svg").read_text(encoding="utf-8") == draw["rooms"]()
    most = {".svg": 60_000, ".png": 200_000}  # bytes
    assert [path.name for path in pictures.iterdir() if path.stat().st_size > most[path.suffix]] == []


def test_public_names_are_documented() -> None:
    pages = [path.read_text(encoding="utf-8") for path in DOCUMENTS if path.name != "CONTRIBUTING.md"]
    words = {word for page in pages for word in re.findall(r"\w+", page)}
    assert set(deciban.__all__) <= words
