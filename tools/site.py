"""Assembles the pages of the site and builds it: `python tools/site.py [SITE]`, or `make docs`.

The pages are those in docs/, two files of the root, and the reference, which is generated: commands from the program,
public names from their docstrings (tools/reference.py).
They are assembled before mkdocs reads them, so that any builder of Markdown could replace it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mathematics import typeset

ROOT = Path(__file__).resolve().parents[1]
# Files of the root that are pages too, with names in lower case
ROOT_PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
SESSION = re.compile(r"^( *)```python(?: spark| slow)?\n\1(?=>>>)", re.MULTILINE)
# Pages on how the library is made: search lists guides and the reference before them
BACKGROUND = ("decisions/", "lectures/", "architecture.md", "design.md")
LESS_SEARCHED = "---\nsearch:\n  boost: 0.2\n---\n\n"
NAME_LINK = re.compile(r"\[`(\w+)`\]\(((?:\.\./)*reference/)\w+\.md\)")
BAR = "\\|"  # "|" in a cell of a table


def assemble(pages: Path) -> None:
    """Writes all pages of the site to a new folder."""
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    for name in ROOT_PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        (pages / name.lower()).write_text(text.replace("](docs/", "]("), encoding="utf-8")
    (pages / "reference" / "commands.md").write_text(commands_page(), encoding="utf-8")
    reference_module().write_pages(pages / "reference")
    for page in pages.rglob("*.md"):
        name = page.relative_to(pages).as_posix()
        text = to_pages_of_names(for_the_site(page.read_text(encoding="utf-8"), name), pages)
        page.write_text((LESS_SEARCHED if name.startswith(BACKGROUND) else "") + text, encoding="utf-8")


def for_the_site(markdown: str, page: str) -> str:
    """Markdown with links to files of the root as links to their pages, formulas typeset, and sessions as pycon."""
    for name in ROOT_PAGES:
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(name)}", rf"](\1{name.lower()}", markdown)
    return SESSION.sub(r"\1```pycon\n\1", typeset(markdown, page))


def to_pages_of_names(markdown: str, pages: Path) -> str:
    """Links from a public name to a page of the reference lead to the name's own page, which is generated."""

    def own(link: re.Match[str]) -> str:
        exists = (pages / "reference" / f"{link[1]}.md").is_file()
        return f"[`{link[1]}`]({link[2]}{link[1]}.md)" if exists else link[0]

    return NAME_LINK.sub(own, markdown)


def build(pages: Path, site: Path) -> None:
    """Builds the site from its pages; a warning is an error."""
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # a note on what comes after mkdocs-material: see docs/decisions/0061
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"), docs_dir=str(pages), site_dir=str(site), strict=True)
    config.nav = reference_module().expand_nav(config.nav or [])
    build(config)


def reference_module() -> Any:
    """tools/reference.py, however this file is run."""
    sys.path.insert(0, str(ROOT / "tools"))
    return importlib.import_module("reference")


def commands_page() -> str:
    """The reference of all commands and options, generated from the program."""
    import typer

    from deciban.cli import app

    root: Any = typer.main.get_command(app)
    parts = ["# Command line", root.help or "", "`deciban COMMAND --help` shows the same."]
    parts += _options(root.params)
    for name, command in sorted(root.commands.items()):
        if name == "mail":
            parts += [part for mail_command in command.commands for part in _mail(mail_command)]
        else:
            parts += _command(name, command)
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: Any) -> Iterator[str]:
    text, _, examples = (command.help or "").partition("\b\n")
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    yield f"## deciban {name}"
    yield f"    deciban {name} {' '.join(_metavar(p) for p in arguments)} [OPTIONS]".replace("  [", " [")
    yield _plain(text.strip())
    yield from _examples(examples.partition("\n")[2])
    if arguments:
        yield _table("argument", [(_metavar(p), p.help) for p in arguments])
    yield from _options([p for p in command.params if p.param_type_name == "option"])


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return f"{name}…" if argument.nargs == -1 else name


def _options(params: list[Any]) -> Iterator[str]:
    """A table for each panel of the help, in its order."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for p in params:
        names = ", ".join([*p.opts, *p.secondary_opts])
        value = "" if p.is_flag else f" {p.metavar or p.name.upper()}"
        panels.setdefault(getattr(p, "rich_help_panel", None) or "", []).append((names + value, p.help or ""))
    for panel, rows in panels.items():
        yield _table((panel or "option").lower(), rows)


def _mail(name: str) -> Iterator[str]:
    """A mail command, whose options argparse parses."""
    from deciban.cli import mail

    parser = mail.parser_of(name)
    yield f"## deciban mail {name}"
    yield "    " + " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield _plain(parser.description or "")
    yield from _examples((parser.epilog or "").partition("\n")[2])
    arguments: list[tuple[str, str]] = []
    options: list[tuple[str, str]] = []
    for action in parser._actions:
        text = (action.help or "").replace("%(default)s", str(action.default))
        if isinstance(action, argparse._HelpAction):
            continue
        if action.option_strings:
            value = f" {action.metavar}" if action.nargs != 0 else ""
            options.append((", ".join(action.option_strings) + value, text))
        else:
            arguments.append((str(action.metavar), text))
    yield _table("argument", arguments)
    yield _table("option", options)


def _examples(lines: str) -> Iterator[str]:
    commands = [line.strip() for line in lines.splitlines() if line.strip()]
    if commands:
        yield "\n".join(["```sh", *commands, "```"])


def _table(head: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| `{name}` | {_plain(text)} |" for name, text in rows]
    return "\n".join([f"| {head} | meaning |", "|---|---|", *lines])


def _plain(text: str) -> str:
    """Text with the characters escaped that Markdown would interpret."""
    return re.sub(r"([*_<\[])", r"\\\1", text).replace("|", BAR) if "`" not in text else text.replace("|", BAR)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").resolve()
    assemble(target.with_name("docs"))
    build(target.with_name("docs"), target)
