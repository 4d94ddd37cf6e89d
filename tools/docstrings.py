"""Docstrings for the reference: prose, then parameters, then examples, each section with a title."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

BLANK = re.compile(r"\n[ \t]*\n")
TITLE = re.compile(r"(\w[\w ]*)\n-{3,}\n?")
PARAMETER = re.compile(r"\w+(, \w+)*( :|$)")


def in_sections(docstring: str) -> str:
    r"""The docstring in numpydoc sections, if its examples have no title or prose follows the parameters.

    >>> in_sections("x².\n\nParameters\n----------\nx : number\n\nNot below 0.\n\n>>> square(2)\n4").split("\n\n")
    ['x².', 'Not below 0.', 'Parameters\n----------\nx : number', 'Examples\n--------\n>>> square(2)\n4']
    """
    sections: dict[str, list[str]] = {"": []}
    section = ""
    for paragraph in BLANK.split(docstring.strip("\n")):
        title = TITLE.match(paragraph)
        if title:
            section, paragraph = title[1], paragraph[title.end() :]
        elif paragraph.startswith(">>>"):
            section = "Examples"
        elif section == "Parameters" and not paragraph.startswith(" ") and not PARAMETER.match(paragraph):
            section = ""
        sections.setdefault(section, []).append(paragraph)
    return "\n\n".join(_section(title, paragraphs) for title, paragraphs in sections.items() if paragraphs)


def _section(title: str, paragraphs: list[str]) -> str:
    text = "\n\n".join(paragraphs)
    return f"{title}\n{'-' * len(title)}\n{text}" if title else text


class Sections(Extension):
    """Rewrites every docstring in sections before it is parsed."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = in_sections(obj.docstring.value)
