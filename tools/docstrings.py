"""Docstrings for the reference: "See Also" as a list of links."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

SECTION = re.compile(r"^See Also\n-+\n((?:.+\n?)*)", re.MULTILINE)
ENTRY = re.compile(r"([\w.]+) : (.*)")


def linked(docstring: str) -> str:
    r"""The docstring with links in "See Also"; methods of the same class are named only.

    >>> print(linked("x².\n\nSee Also\n--------\ndeciban.scan : Files.\nfit : Learn.\n\nNotes\n-----\nSquare."))
    x².
    <BLANKLINE>
    See Also
    --------
    - [`scan`][deciban.scan]: Files.
    - `fit`: Learn.
    <BLANKLINE>
    Notes
    -----
    Square.
    """
    return SECTION.sub(lambda section: section[0].replace(section[1], ENTRY.sub(_link, section[1])), docstring)


def _link(entry: re.Match[str]) -> str:
    name, text = entry.groups()
    if not name.startswith("deciban."):
        return f"- `{name}`: {text}"
    parts = name.split(".")
    shown = ".".join(part for part in parts[1:] if part == parts[-1] or part[0].isupper())
    return f"- [`{shown}`][{name}]: {text}"


class SeeAlso(Extension):
    """Rewrites every docstring before it is parsed."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = linked(obj.docstring.value)
