"""Makes the notebooks of the lectures from their pages: `python tools/notebooks.py [FOLDER]`, or `make notebooks`."""

from __future__ import annotations

import ast
import doctest
import json
import posixpath
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "lectures"
NOTEBOOKS = ROOT / "examples" / "lectures"
BLOCK = re.compile(r"^```python(?: slow)?\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"^<div class=\"lecture-figure\".*?</div>$", re.MULTILINE)
FOLDED = re.compile(r"^\?\?\?\+? \w+ \"(.*?)\"\n((?:[ ]{4}.*\n|[ ]*\n)+)", re.MULTILINE)
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")
SECTION = re.compile(r"^(?=## )", re.MULTILINE)
LINES = re.compile(r"(?<=\n)[ \t]*\n(?=[^>\s])")  # blank lines inside of what a session prints


def all_notebooks() -> dict[str, str]:
    """The text of each notebook, by the name of its page."""
    pages = sorted(path for path in PAGES.glob("*.md") if path.name != "index.md")
    return {page.stem: notebook(page.stem, page.read_text(encoding="utf-8")) for page in pages}


def notebook(name: str, page: str) -> str:
    """A notebook of format 4.5, with the output that the page shows."""
    cells = []
    for i, cell in enumerate(cells_of(name, page), start=1):
        cell["id"] = f"{name}-{i}"
        cells.append(dict(sorted(cell.items())))
    for i, cell in enumerate((cell for cell in cells if cell["cell_type"] == "code"), start=1):
        for part in (cell, *cell["outputs"]):
            part |= {"execution_count": i} if "execution_count" in part else {}
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    document = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def cells_of(name: str, page: str) -> Iterator[dict[str, Any]]:
    for i, part in enumerate(BLOCK.split(page)):
        if i % 2:
            yield code_cell(part)
        else:
            for section in SECTION.split(part):
                if section.strip():
                    text = in_notebook(name, section).strip()
                    yield {"cell_type": "markdown", "metadata": {}, "source": in_lines(text)}


def in_notebook(name: str, markdown: str) -> str:
    """Text of a page where notebooks show it: a link for the figure, details for what is folded."""
    site = f"../../build/site/lectures/{name}.html#explore"
    markdown = FIGURE.sub(f"*The figure is on the [page of the site]({site}), which `make docs` builds.*", markdown)
    markdown = FOLDED.sub(details, markdown + "\n")
    return LINK.sub(moved, markdown)


def details(folded: re.Match[str]) -> str:
    body = textwrap.dedent(folded[2]).strip()
    return f"<details>\n<summary>{folded[1]}</summary>\n\n{body}\n\n</details>\n\n"


def moved(link: re.Match[str]) -> str:
    """A link of a page, from its notebook: to the notebook of another page, or to any other file."""
    path = posixpath.normpath(posixpath.join("docs/lectures", link[1]))
    if posixpath.dirname(path) == "docs/lectures" and path.endswith(".md") and path != "docs/lectures/index.md":
        path = path.replace("docs/", "examples/").replace(".md", ".ipynb")
    return f"]({posixpath.relpath(path, 'examples/lectures')}{link[2] or ''})"


def code_cell(block: str) -> dict[str, Any]:
    """A block as a cell: sessions become plain code, and what they print becomes output."""
    source, outputs = session(block) if block.startswith(">>>") else (block.rstrip(), [])
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": outputs,
        "source": in_lines(source),
    }


def session(block: str) -> tuple[str, list[dict[str, Any]]]:
    r"""The code of a session, and its outputs. Values between statements need display, which notebooks have.

    >>> code, outputs = session(">>> 1, 2  # two\n(1, 2)\n>>> print('a')\na\n>>> 3\n3\n")
    >>> code.splitlines()
    ['display((1, 2))  # two', "print('a')", '3']
    >>> [output["output_type"] for output in outputs]
    ['display_data', 'stream', 'execute_result']
    >>> print(session(">>> 1 / 0\nTraceback (most recent call last):\nZeroDivisionError: division by zero\n")[0])
    try:
        1 / 0
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    """
    parts = doctest.DocTestParser().parse(LINES.sub("<BLANKLINE>\n", block))
    last = next(i for i in reversed(range(len(parts))) if isinstance(parts[i], doctest.Example))
    code, outputs = "", []
    for i, part in enumerate(parts):
        if isinstance(part, str):
            code += "\n" if part and code else ""
            continue
        printed = part.want.replace("<BLANKLINE>\n", "\n").rstrip("\n")
        value = expression(part.source)
        if part.exc_msg is not None:
            code += f"try:\n{textwrap.indent(part.source, '    ')}"
            code += 'except Exception as error:\n    print(f"{type(error).__name__}: {error}")\n'
            outputs.append(stream(re.sub(r"^[\w.]*\.", "", part.exc_msg)))
        elif not printed:
            code += part.source
        elif value is None:
            code += part.source
            outputs.append(stream(printed + "\n"))
        else:
            code += part.source if i == last else part.source.replace(value, displayed(value), 1)
            shown = {"data": {"text/plain": in_lines(printed)}, "metadata": {}}
            result = {"execution_count": None, "output_type": "execute_result"}
            outputs.append(shown | (result if i == last else {"output_type": "display_data"}))
    return code.rstrip(), [dict(sorted(output.items())) for output in outputs]


def expression(source: str) -> str | None:
    """The text of an expression that has a value; None for statements and for what prints."""
    statement = ast.parse(source).body[0]
    if not isinstance(statement, ast.Expr):
        return None
    value = ast.get_source_segment(source, statement.value)
    return None if value is None or value.startswith("print(") else value


def displayed(value: str) -> str:
    """A call that shows a value, which may be a tuple without parentheses."""
    call = ast.parse(f"display({value})", mode="eval").body
    return f"display({value})" if len(getattr(call, "args", [])) == 1 else f"display(({value}))"


def stream(text: str) -> dict[str, Any]:
    return {"name": "stdout", "output_type": "stream", "text": in_lines(text)}


def in_lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else NOTEBOOKS
    folder.mkdir(parents=True, exist_ok=True)
    made = {f"{name}.ipynb": text for name, text in all_notebooks().items()}
    for path in folder.glob("*.ipynb"):
        if path.name not in made:
            path.unlink()
    for file, text in made.items():
        (folder / file).write_text(text, encoding="utf-8")
