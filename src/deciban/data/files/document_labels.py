"""A file of labels for documents: lines "label path", or csv with a header "path,label"."""

from __future__ import annotations

import csv
import os
from collections.abc import Collection

from deciban.errors import DecibanError


def read_labels(path: str, root: str, documents: Collection[str]) -> dict[str, str]:
    """{document: label}; paths in the file are relative to it, or to the root folder.

    Documents are absolute paths, as `absolute_path` gives them.
    """
    labels: dict[str, str] = {}
    bases = (os.path.dirname(os.path.realpath(path)), os.path.realpath(root))
    lines = _lines(path)
    for number, label, relative in lines:
        candidates = (os.path.normpath(os.path.join(base, relative)) for base in bases)
        document = next((candidate for candidate in candidates if candidate in documents), None)
        if document is not None and labels.setdefault(document, label) != label:
            shown = os.path.relpath(document, bases[1])
            raise DecibanError(
                f"{path}, line {number}: {shown!r} is {label!r} here, and was {labels[document]!r} before"
            )
    if not labels:
        raise DecibanError(
            f"none of the {len(lines)} paths in {path} is a file in {root}: they must be relative to either"
        )
    return labels


def absolute_path(path: str) -> str:
    """The absolute path of a file, with links in its folder resolved, but not the file itself."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _lines(path: str) -> list[tuple[int, str, str]]:
    """Line number, label and path: "label path" as in TREC, or csv with a header of "path" or "file", and "label"."""
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            text = file.read()
    except OSError as error:
        raise DecibanError(f"{path} cannot be read: {error.strerror}") from None
    rows = csv.reader(text.splitlines())
    names = [name.strip().lower() for name in next(rows, [])]
    path_name = next((name for name in ("path", "file") if name in names), None)
    lines = []
    if path_name is not None and "label" in names:
        for row in rows:
            if row and len(row) != len(names):
                raise DecibanError(f"{path}, line {rows.line_num}: {len(row)} cells, and {len(names)} in the header")
            if row:
                lines.append((rows.line_num, row[names.index("label")].strip(), row[names.index(path_name)].strip()))
        return lines
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split(None, 1)
        if len(cells) == 1:
            raise DecibanError(f"{path}, line {number}: a line must be 'label path', or the header 'path,label'")
        if cells:
            lines.append((number, cells[0], cells[1].strip()))
    return lines
