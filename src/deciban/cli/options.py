"""Options that several commands share, and how files are read by them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from deciban.sources.dialect import Asked
    from deciban.sources.files import Scan

FILES = "How files are read"  # headline in the help
FORMATS = ("csv", "jsonl", "parquet", "arrow", "mail", "text")


def choice(*decls: str, among: Iterable[str], help: str, **more: Any) -> Any:
    """An option whose value is one of some words."""
    words = tuple(among)

    def check(value: str | None) -> str | None:
        if value is not None and value not in words:
            raise typer.BadParameter(f"{value!r} is none of {', '.join(words)}")
        return value

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return typer.Option(*decls, metavar="|".join(words), callback=check, autocompletion=complete, help=help, **more)


Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, made by `deciban fit`.")]
Data = Annotated[
    list[str],  # a Path would take a slash off s3://
    typer.Argument(
        metavar="DATA",
        help="Files of rows (csv, tsv, jsonl, parquet, arrow), folders of mail, patterns, or -: standard input.",
    ),
]
Label = Annotated[
    str | None,
    typer.Option(metavar="COL", help="The column of classes: its name, or its place: 1 is the first, -1 the last."),
]
TrimLabel = Annotated[
    str | None, typer.Option(help='Characters to take off the end of labels, such as ".".', rich_help_panel=FILES)
]
Weight = Annotated[
    str | None, typer.Option(metavar="COL", help="A column of weights: 2 is the row twice, 0 is the row absent.")
]
Json = Annotated[bool, typer.Option("--json", help="Print an object for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress. (In pipes there is none.)")]


@dataclass(frozen=True)
class Reading:
    """How files are written, as far as the user says so; the rest is found out from their first rows."""

    delimiter: Annotated[
        str | None, typer.Option(help='What separates cells of csv: one character, or "tab".', rich_help_panel=FILES)
    ] = None
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether csv begins with names.", rich_help_panel=FILES),
    ] = None
    names: Annotated[
        str | None,
        typer.Option(
            metavar="COL,COL",
            help="Names of the columns of csv; else of its header, or c1, c2, ...",
            rich_help_panel=FILES,
        ),
    ] = None
    na_values: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD,WORD",
            help="What stands for a missing value, beside an empty cell. Repeatable.",
            rich_help_panel=FILES,
        ),
    ] = None
    quote: Annotated[
        str, typer.Option(help='The quotation mark of csv; "" is none.', show_default=False, rich_help_panel=FILES)
    ] = '"'
    decimal: Annotated[
        str | None, typer.Option(help="The decimal point of csv; else it is found out.", rich_help_panel=FILES)
    ] = None
    encoding: Annotated[str, typer.Option(help="The encoding of text files.", rich_help_panel=FILES)] = "utf-8"
    skip: Annotated[int, typer.Option(help="Lines to skip at the beginning.", min=0, rich_help_panel=FILES)] = 0
    input_format: Annotated[
        str | None,
        choice("--input-format", among=FORMATS, help="The format of DATA, if names mislead.", rich_help_panel=FILES),
    ] = None
    category: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL,COL",
            help="Columns to read as categories, also if they hold numbers. Repeatable.",
            rich_help_panel=FILES,
        ),
    ] = None
    labels: Annotated[
        Path | None,
        typer.Option(help="The classes of mails: lines LABEL PATH, or csv with path,label.", rich_help_panel=FILES),
    ] = None

    @property
    def asked(self) -> Asked:
        """What is said of the dialect of csv."""
        from deciban.sources.dialect import MISSING, Asked

        return Asked(
            delimiter="\t" if self.delimiter in ("tab", "\\t") else self.delimiter,
            quote=self.quote,
            header=self.header,
            names=self.names.split(",") if self.names else None,
            na_values=("", *(word for given in self.na_values for word in given.split(",")))
            if self.na_values
            else MISSING,
            decimal=self.decimal,
            skip=self.skip,
        )

    def scan(self, paths: Sequence[str | Path]) -> Scan:
        """The files, columns of --category typed so."""
        from deciban.sources.files import scan

        found = scan(
            paths,
            format=self.input_format,  # type: ignore[arg-type]
            encoding=self.encoding,
            labels=self.labels,
            **vars(self.asked),
        )
        categories = columns_named(found.names, self.category, "--category")
        return found.typed(dict.fromkeys(categories, "text")) if categories else found


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """The command, its parameter `reading` spread into the options of Reading: typer knows no groups of options."""
    hints = get_type_hints(Reading, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    spread = [
        inspect.Parameter(field.name, keyword, default=field.default, annotation=hints[field.name])
        for field in fields(Reading)
    ]

    @wraps(command)
    def run(**options: Any) -> None:
        reading = Reading(**{each.name: options.pop(each.name) for each in spread})
        command(**options, reading=reading)

    own = inspect.signature(command, eval_str=True).parameters.values()
    kept = [parameter.replace(kind=keyword) for parameter in own if parameter.name != "reading"]
    run.__signature__ = inspect.Signature([*kept, *spread])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*kept, *spread)}
    return run


# Columns by name -----------------------------------------------------------------------------------------------------


def columns_named(names: Sequence[str], given: Sequence[str] | None, option: str) -> list[str]:
    """The columns that an option lists, with commas between them or one by one.

    >>> columns_named(["a", "b", "x,y"], ["a,b", "x,y"], "--drop")
    ['a', 'b', 'x,y']
    """
    found = [name for value in given or () for name in ([value] if value in names else value.split(","))]
    for name in found:
        require_column(names, name, option)
    return found


def require_column(names: Sequence[str], name: str, option: str) -> None:
    from deciban.errors import DecibanError

    if name not in names:
        raise DecibanError(f"{option}: there is no column {name!r}; there are {', '.join(names)}")


def label_named(names: Sequence[str], given: str) -> str:
    """The name of a column that is given by its name or by its place.

    >>> label_named(["a", "b"], "b"), label_named(["a", "b"], "1"), label_named(["a", "b"], "-1")
    ('b', 'a', 'b')
    """
    if given in names or not given.removeprefix("-").isdecimal():
        require_column(names, given, "--label")
        return given
    place = int(given)
    if not 1 <= abs(place) <= len(names):
        require_column(names, given, "--label")
    return names[place - 1 if place > 0 else place]
