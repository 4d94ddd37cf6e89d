"""The registry of file formats, and how the format of a file is recognised."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

from deciban.data.files import columnar, delimited, json_lines, mailboxes
from deciban.data.files.fragment import FileFormat, Fragment, OpenOptions
from deciban.data.files.text_files import TextFile
from deciban.errors import DecibanError

_TABLES = delimited.CSV, json_lines.JSON_LINES, columnar.PARQUET, columnar.ARROW
FORMATS: dict[str, FileFormat] = {format.name: format for format in (*_TABLES, mailboxes.MAIL, mailboxes.TEXT)}
COMPRESSION_SUFFIXES = (".gz", ".zst", ".bz2", ".lz4")


def format_by_suffix(path: str) -> FileFormat | None:
    """The format that a path or URL ends with, compressed or not.

    >>> format_by_suffix("s3://bucket/2026/people.csv.gz").name
    'csv'
    """
    suffixes = [suffix.lower() for suffix in PurePosixPath(path.rstrip("/")).suffixes]
    if suffixes and suffixes[-1] in COMPRESSION_SUFFIXES:
        suffixes.pop()
    return next((f for f in FORMATS.values() if suffixes and suffixes[-1] in f.suffixes), None)


def open_fragment(file: TextFile, name: str | None, options: OpenOptions) -> Fragment:
    """A file, or a folder of documents, in the format of this name; None: the format is recognised."""
    if name is not None and name not in FORMATS:
        raise DecibanError(f"format must be one of {', '.join(FORMATS)}, not {name!r}")
    folder, pattern = os.path.isdir(file.path), os.path.join(file.path, "*.csv")
    is_a_directory = DecibanError(f"{file.path} is a directory: name the files in it, for instance {pattern!r}")
    format = FORMATS[name] if name is not None else mailboxes.MAIL if folder else _format_of(file.path)
    if folder and not format.holds_documents:
        raise is_a_directory
    if options.labels is not None and not format.holds_documents:
        raise DecibanError(f"labels go with mail and texts, and {file.title} is {format.name}: name its label column")
    fragment = format.open(file, options)
    suffixes = {suffix for f in FORMATS.values() if not f.holds_documents for suffix in f.suffixes}
    tables = suffixes - {".txt"}  # often mail
    if name is None and folder and all(PurePosixPath(path).suffix.lower() in tables for path in fragment.paths):
        raise is_a_directory
    return fragment


def _format_of(path: str) -> FileFormat:
    """By the signature of the file, else by its name, else by what it resembles; csv if nothing else."""
    try:
        with open(path, "rb") as file:
            start = file.read(64)
    except OSError as error:
        raise DecibanError(f"{path} cannot be read: {error.strerror}") from None
    by_signature = next((f for f in FORMATS.values() if f.has_signature(start)), None)
    similar = next((f for f in FORMATS.values() if f.resembles(start)), delimited.CSV)
    return by_signature or format_by_suffix(path) or similar
