"""scan: files as a stream of rows."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import pyarrow as pa

from deciban.data.arrow import TableFrame
from deciban.data.batch import Kind, Notation
from deciban.data.cell_types import KIND_OF, CellType, arrow_types
from deciban.data.files.column_inference import ColumnInference
from deciban.data.files.dialect import NA_VALUES, CsvOptions, require_utf8
from deciban.data.files.formats import open_fragment
from deciban.data.files.fragment import Chunk, Fragment, OpenOptions, ReadOptions, SkippedDocuments, TypeMismatch
from deciban.data.files.source_paths import Paths, resolve_paths
from deciban.data.files.text_files import BLOCK, TextFile
from deciban.data.notation import ambiguity_warnings
from deciban.data.prefetch import parallel_map
from deciban.data.schema import require_unique
from deciban.data.stream import Stream, TypesChanged, read_table
from deciban.errors import DecibanError, did_you_mean, warn

ColumnType = Literal["category", "number", "boolean", "date"]  # types that `scan` accepts
Progress = Callable[[int, int, str], None]  # called with the rows read, the bytes read of a file, and its path


def scan(
    paths: Paths,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    names: Sequence[str] | None = None,
    quote: str = '"',
    na_values: Collection[str] = NA_VALUES,
    decimal: str | None = None,
    encoding: str = "utf-8",
    skip: int = 0,
    types: Mapping[str, ColumnType] | None = None,
    trim: Mapping[str, str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    block_size: int = BLOCK,
) -> Scan:
    r"""Read files as rows for `fit`, `predict` and `evaluate`: in blocks, never all at once.

    Parameters
    ----------
    paths : str, path-like, or list of these
        A path, a pattern such as "data/*.parquet", or a list of them; "-" is standard input. Tables are csv, tsv, JSON
        lines, parquet and Arrow (Feather); text may be compressed by gzip, zstd, bz2 or lz4. Mail is a folder with its
        subfolders (Maildirs among them), an mbox, or files of one mail each.
    format : "csv", "jsonl", "parquet", "arrow", "mail", "text" or None, default None
        By default inferred from the first bytes and the name of each file. A folder is "mail" by default; with "text"
        every file in it is a document.
    delimiter : str or None, default None
        What separates cells of csv; by default inferred from the first rows.
    header : bool or None, default None
        Whether the first row of csv holds names; by default inferred from the first rows.
    names : list of str or None, default None
        Names of the columns of csv without a header, or instead of it if `header=True`. Without names and header
        columns are called c1, c2, ….
    quote : str, default '"'
        The quote character of csv; "" for none.
    na_values : list of str, default ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL")
        Cells of csv that are missing values.
    decimal : str or None, default None
        The decimal mark of csv; by default inferred from the first rows.
    encoding : str, default "utf-8"
        The encoding of text files.
    skip : int, default 0
        Lines to skip at the beginning of csv.
    types : dict or None, default None
        {column: "category", "number", "boolean" or "date"}, in place of the types that are inferred from cells.
    trim : dict or None, default None
        {column: characters} to strip from the end of a column's cells, in csv.
    labels : str, path-like, or None, default None
        A file with the classes of mails or texts: lines "spam path", or csv with a header "path,label". Paths are
        relative to this file or to the folder.
    block_size : int, default 4_194_304
        Bytes of text that are read at a time. No result depends on it.

    Returns
    -------
    Scan
        It exports the Arrow C stream, so `pyarrow.table(scan)`, polars and duckdb read it too.

    Raises
    ------
    DecibanError
        If there is no such file, or an option cannot be used.

    See Also
    --------
    deciban.data.files.scan.Scan : What is returned.

    Notes
    -----
    A column of csv has the narrowest type that holds all of its cells, in all files: boolean, integer, number, text. If
    later rows need a wider type than the first ones, reading starts again.

    Text in which all cells except a few are dates (2026-03-01, with a time or without), times of day, or numbers such
    as $1,200, 12.5% and 1.234,56 has the type "date", "time", "formatted" or "formatted_comma" (a decimal comma); the
    few cells are missing values.

    Mail has a column for each of its main headers, and "links", "attachments" (names and types) and "body"; texts have
    "text". "folder" is the first folder below the scanned one, often the class; with `labels` it is "label". Files that
    are not mail are skipped, and a DecibanWarning names them at the end of a pass.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import deciban as db
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("status;income;evade\nsingle;125;no\nmarried;?;no\nsingle;85;yes\n")
    >>> people = db.scan(path)
    >>> people.columns
    {'status': 'text', 'income': 'integer', 'evade': 'text'}
    >>> db.NaiveBayes().fit(people, "evade").predict(people).tolist()
    ['no', 'no', 'yes']
    """
    names = None if names is None else _words("names", names)
    csv = CsvOptions(delimiter, quote, header, names, _words("na_values", na_values), decimal, skip)
    csv.check()
    if not isinstance(block_size, int) or block_size < 1:
        raise DecibanError(f"block_size must be a whole number of 1 or more, not {block_size!r}")
    cell_types, trim = _cell_types(types or {}), trim or {}
    require_utf8("trim", *trim.values())
    options = OpenOptions(csv, trim, labels)
    files = [TextFile(path, encoding, block_size, title) for path, title in resolve_paths(paths)]
    result = Scan([open_fragment(file, format, options) for file in files], cell_types)
    if (cell_types or trim) and not any(fragment.has_late_columns for fragment in result.fragments):
        result.select({**cell_types, **trim})  # raises if a column is absent
    return result


def _words(option: str, words: Collection[str]) -> tuple[str, ...]:
    if isinstance(words, str):
        raise DecibanError(f"{option} must be a list of words, not {words!r}")
    return tuple(words)


def _cell_types(types: Mapping[str, ColumnType]) -> dict[str, CellType]:
    for name, column_type in types.items():
        if column_type not in get_args(ColumnType):
            raise DecibanError(f"types[{name!r}] must be one of {', '.join(get_args(ColumnType))}, not {column_type!r}")
    return {name: "text" if column_type == "category" else column_type for name, column_type in types.items()}


@dataclass(frozen=True)
class _Selection:
    """Which columns a scan has, and how they are read."""

    types: Mapping[str, CellType]  # given by the user
    names: Sequence[str] | None = None  # None: all that are not dropped, with keys of JSON that later rows add
    dropped: Set[str] = frozenset()
    text: Set[str] = frozenset()  # columns whose text is never read as dates or numbers


class Scan(Stream):
    r"""Rows of files, block by block: made by `scan`, and passed as X to any method.

    Parameters
    ----------
    fragments : list of Fragment
        The opened files.
    types : dict
        Types of columns that are given, not inferred.

    Attributes
    ----------
    columns : dict
        Names and types of the columns; in text files inferred from the first rows, until more are read.
    names : tuple of str
        The names of the columns.
    kinds : tuple of str
        What models take each column for: "number", "category", "date" and so on.
    notations : tuple
        How columns of text are parsed as dates or numbers; empty if none is.
    title : str
        The file, or the number of files, as messages name it.
    single_pass : bool
        Whether the rows can be read only once; False for files.
    empty : Frame
        No rows, with the columns and kinds of the others.
    fragments : tuple of Fragment
        The files.
    on_progress : callable or None
        Set it to be called with the number of rows read, the bytes read of a file, and its path.

    See Also
    --------
    deciban.scan : Makes one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import deciban as db
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("id,income,evade\n1,125,no\n2,85,yes\n")
    >>> people = db.scan(path).drop("id")
    >>> people.names
    ('income', 'evade')
    >>> people.read().to_pydict()
    {'income': [125, 85], 'evade': ['no', 'yes']}
    """

    def __init__(self, fragments: Sequence[Fragment], types: Mapping[str, CellType]) -> None:
        self.fragments = tuple(fragments)
        self.on_progress: Progress | None = None
        self._selection = _Selection(dict(types))
        self._inference = ColumnInference(self.fragments)
        self._chunks: list[tuple[int, Fragment, int]] = []  # of the last pass: first row, file, offset in it

    # Columns -------------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> dict[str, CellType]:
        """Names and types; in text files they are inferred from the first rows, until more are read."""
        styles = {name: notation.style for name, notation in self._notations.items()}
        types = {**self._inference.types, **styles, **self._selection.types}
        return {name: types.get(name, "empty") for name in self.names}

    @property
    def notations(self) -> tuple[Notation | None, ...]:
        known = self._notations
        notations = tuple(known.get(name) if name not in self._selection.types else None for name in self.names)
        return notations if any(notations) else ()

    @property
    def _notations(self) -> dict[str, Notation]:
        return self._inference.notations(self._selection.text)

    @property
    def names(self) -> tuple[str, ...]:
        if self._selection.names is not None:
            return tuple(self._selection.names)
        return tuple(name for name in self._inference.types if name not in self._selection.dropped)

    @property
    def title(self) -> str:
        return self.fragments[0].title if len(self.fragments) == 1 else f"{len(self.fragments)} files"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        for name, cell_type in self.columns.items():
            if cell_type == "other":
                raise DecibanError(f"column {name!r} is neither numbers nor text: convert it, or drop it")
        return tuple(KIND_OF[cell_type] for cell_type in self.columns.values())

    def select(self, names: str | Iterable[str]) -> Scan:
        """Only these columns, in this order.

        Parameters
        ----------
        names : str or list of str
            The columns.

        Returns
        -------
        Scan
            A new one; no other column is read.

        Raises
        ------
        DecibanError
            If a column is absent.
        """
        names = (names,) if isinstance(names, str) else tuple(names)
        require_unique(names)
        absent = self.resolve_columns(names)._absent(names)
        if absent:
            near = did_you_mean(absent[0], among=self.names)
            raise DecibanError(f"there is no column {absent[0]!r}{near} in {self.title}; there are {list(self.names)}")
        return self._with(names=names, dropped=frozenset())

    def drop(self, names: str | Iterable[str]) -> Scan:
        """All columns except these.

        Parameters
        ----------
        names : str or list of str
            The columns to leave out, such as an identifier.

        Returns
        -------
        Scan
            A new one.

        Raises
        ------
        DecibanError
            If a column is absent.
        """
        dropped, selected = self._selection.dropped | {*self.select(names).names}, self._selection.names
        return self._with(names=selected and [name for name in selected if name not in dropped], dropped=dropped)

    def with_types(self, types: Mapping[str, CellType]) -> Scan:
        """The same files with these types: a cell of text that does not fit is an error.

        Parameters
        ----------
        types : dict
            {column: type}.

        Returns
        -------
        Scan
            A new one.
        """
        return self._with(types={**self._selection.types, **types})

    def keep_text(self, names: Collection[str]) -> Scan:
        """The same rows; text of these columns, such as labels, is not parsed as dates or numbers.

        Parameters
        ----------
        names : list of str
            The columns.

        Returns
        -------
        Scan
            A new one.
        """
        return self._with(text=self._selection.text | {*names})

    def with_trim(self, name: str, characters: str) -> Scan:
        """The same csv files; these characters are stripped from the end of a column's cells.

        Parameters
        ----------
        name : str
            The column.
        characters : str
            The characters, each of which is stripped.

        Returns
        -------
        Scan
            A new one.
        """
        trimmed = self._with()
        trimmed.fragments = tuple(fragment.with_trim(name, characters) for fragment in self.fragments)
        trimmed._inference = ColumnInference(trimmed.fragments)
        return trimmed

    def project(self, names: Collection[str]) -> Scan:
        """The same rows, without columns that need not be read.

        Parameters
        ----------
        names : list of str
            The columns that are needed. JSON that lacks one has missing values there, with a warning.

        Returns
        -------
        Scan
            A new one; the same if a column is absent, so that the caller says which.
        """
        absent = self.resolve_columns(names)._absent(names)
        if absent and not self._may_have(absent):
            return self  # the caller says which columns are missing
        if absent:
            warn(f"no object of {self.title} has {', '.join(map(repr, absent))}: read as missing values")
        wanted = set(names)
        return self._with(names=[*(name for name in self.names if name in wanted), *absent], dropped=frozenset())

    def resolve_columns(self, names: Collection[str]) -> Scan:
        """The same stream; reads all rows first if a column is unknown, since later JSON objects may have it.

        Parameters
        ----------
        names : list of str
            The columns that are needed.

        Returns
        -------
        Scan
            The same.
        """
        absent = self._absent(names)
        if absent and self._may_have(absent) and not self._inference.complete:
            self._inference.infer_from_all_rows()
        return self

    def _absent(self, names: Collection[str]) -> list[str]:
        known = set(self.names)
        return [name for name in dict.fromkeys(names) if name not in known]

    def _may_have(self, absent: Collection[str]) -> bool:
        """Whether later rows may have these columns: JSON may have other keys, other files name all columns."""
        all_keys = self._selection.names is None and self._selection.dropped.isdisjoint(absent)
        return all_keys and all(fragment.has_late_columns for fragment in self.fragments)

    def _with(self, **changes: Any) -> Scan:
        other = Scan(self.fragments, {})
        other._selection = replace(self._selection, **changes)
        other.on_progress, other._inference = self.on_progress, self._inference
        return other

    # Rows ----------------------------------------------------------------------------------------------------------

    def frames(self) -> Iterator[TableFrame]:
        """The batches in order; the next one is read while one is in use.

        Returns
        -------
        iterator of TableFrame
            A pass over all files.

        Raises
        ------
        DecibanError
            If a row cannot be read; the message names file and line.
        """
        if not (self._inference.complete or self._inferred) and self._may_have(()):
            self._inference.infer_from_all_rows()  # where all types are given, late keys would not be noticed
        names, types, notations = self.names, self.columns, self.notations
        kinds = tuple(KIND_OF.get(cell_type, "empty") for cell_type in types.values())  # others are only passed through
        self._require_unique_names()
        self._chunks.clear()
        rows, skipped = 0, SkippedDocuments()
        try:
            for fragment, chunk in self._read(ReadOptions(names, types, self._inferred, self._undecided)):
                table = chunk.table
                position = {name: j for j, name in enumerate(table.column_names)}
                columns = [
                    table.column(position[name]) if name in position else pa.nulls(table.num_rows) for name in names
                ]
                self._chunks.append((rows, fragment, chunk.offset))
                rows += table.num_rows
                skipped.add(chunk)
                if self.on_progress is not None:
                    self.on_progress(rows, chunk.bytes_read, fragment.path)
                if table.num_rows:
                    yield TableFrame(pa.table(columns, names=list(names)), names, kinds, notations)
        except TypeMismatch:
            self._inference.infer_from_all_rows()
            raise TypesChanged("columns have wider types than their first rows: read them again") from None
        self._report(skipped, rows)

    def _require_unique_names(self) -> None:
        require_unique(self.names)
        for fragment in self.fragments:
            try:
                require_unique(fragment.names)
            except DecibanError as error:
                raise DecibanError(f"{fragment.title}: {error}") from None

    def _read(self, options: ReadOptions) -> Iterator[tuple[Fragment, Chunk]]:
        tasks = ((fragment, task) for fragment in self.fragments for task in fragment.read_tasks(options))
        return parallel_map(lambda item: (item[0], item[1]()), tasks)

    def _report(self, skipped: SkippedDocuments, rows: int) -> None:
        """Warns once of skipped documents and ambiguous columns; raises an error if no document was read."""
        kinds = {kind for fragment in self.fragments if (kind := fragment.document_kind) is not None}
        if kinds and not rows:
            raise DecibanError(f"there is no {' or '.join(sorted(kinds))} in {self.title}: {skipped}")
        columns = self.columns
        text = self._inference.text_profiles({*self._selection.text, *self._selection.types})
        text = {name: profile for name, profile in text.items() if columns.get(name) == "text"}
        for message in ambiguity_warnings(text):
            self._inference.warn_once(message)
        if skipped.count:
            self._inference.warn_once(f"{self.title}: {skipped.count} skipped, as a whole or in part: {skipped}")

    @property
    def _inferred(self) -> frozenset[str]:
        """Columns whose types are inferred from their first rows."""
        return frozenset() if self._inference.complete else frozenset(self.names).difference(self._selection.types)

    @property
    def _undecided(self) -> frozenset[str]:
        """Columns of text that later rows may show to be dates or numbers."""
        profiles, types = self._inference.profiles, self.columns
        text = {name for name in self._inferred - self._selection.text if types[name] == "text" and name in profiles}
        return frozenset(name for name in text if profiles[name].may_have_notation())

    def locate(self, row: int) -> str | None:
        """Where a row of the last pass was read.

        Parameters
        ----------
        row : int
            Its number, from 0.

        Returns
        -------
        str or None
            File and line, or None if they are not known.
        """
        i = bisect_right(self._chunks, row, key=lambda chunk: chunk[0]) - 1
        if i < 0:
            return None
        first, fragment, offset = self._chunks[i]
        return fragment.locate(offset, row - first)

    def read(self) -> Any:
        """All rows in memory.

        Returns
        -------
        pyarrow.Table
            The selected columns.
        """
        return read_table(self).table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if not self._inference.complete:
            self._inference.infer_from_all_rows()
        _ = self.kinds  # raises if a column cannot be read
        arrow = arrow_types() | {"text": pa.string()}
        schema = pa.schema([(name, arrow[cell_type]) for name, cell_type in self.columns.items()])
        batches = (batch for frame in self.frames() for batch in frame.table.cast(schema, safe=False).to_batches())
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        return reader.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        types = ((name, "category" if cell_type == "text" else cell_type) for name, cell_type in self.columns.items())
        return f"Scan of {self.title}: {', '.join(f'{name} ({cell_type})' for name, cell_type in types)}"
