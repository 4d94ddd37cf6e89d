"""Options that several commands share, in groups."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from deciban.data.files.dialect import CsvOptions
    from deciban.data.files.scan import Scan

FORMATS = ("csv", "jsonl", "parquet", "arrow", "mail", "text")
file_option = partial(typer.Option, rich_help_panel="Reading files")


def choice(*names: str, among: Iterable[str], help: str, **more: Any) -> Any:
    """An option whose value is one of several words."""
    words = tuple(among)

    def check(value: str | None) -> str | None:
        if value is not None and value not in words:
            raise typer.BadParameter(f"{value!r} is none of {', '.join(words)}")
        return value

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return typer.Option(*names, metavar="|".join(words), callback=check, autocompletion=complete, help=help, **more)


Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, written by `deciban fit`.")]
Data = Annotated[
    list[str],  # a Path would drop a slash of s3://
    typer.Argument(
        metavar="DATA",
        help="Data files (csv, tsv, jsonl, parquet, arrow), mail folders, glob patterns, or - for standard input.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar (none is shown in pipes).")]


class OptionGroup:
    """Options as the fields of a dataclass: `with_groups` turns a parameter of this type into one option per field."""


@dataclass(frozen=True)
class TargetOptions(OptionGroup):
    """What is predicted: the label of each row, and how much the row counts."""

    label: Annotated[
        str | None,
        typer.Option(metavar="COL", help="The label column: its name, or its position (1 is the first, -1 the last)."),
    ] = None
    weight: Annotated[
        str | None,
        typer.Option(metavar="COL", help="A column of sample weights: 2 counts a row twice, 0 leaves it out."),
    ] = None
    trim_label: Annotated[str | None, typer.Option(help='Characters to strip from the end of labels, such as ".".')] = (
        None
    )


@dataclass(frozen=True)
class Reading(OptionGroup):
    """How files are read, where the user says so; the rest is inferred from the first rows."""

    delimiter: Annotated[str | None, file_option(help='The character that separates the fields of csv, or "tab".')] = (
        None
    )
    header: Annotated[
        bool | None, file_option("--header/--no-header", help="Whether the first line of csv holds column names.")
    ] = None
    names: Annotated[
        str | None,
        file_option(metavar="COL,COL", help="Column names for csv; by default from its header, or c1, c2, ..."),
    ] = None
    na_values: Annotated[
        list[str] | None,
        file_option(metavar="WORD,WORD", help="Words that mean a missing value, beside an empty field. Repeatable."),
    ] = None
    quote: Annotated[str, file_option(help='The quotation mark of csv; "" for none.', show_default=False)] = '"'
    decimal: Annotated[str | None, file_option(help="The decimal point of csv; inferred by default.")] = None
    encoding: Annotated[str, file_option(help="The encoding of text files.")] = "utf-8"
    skip: Annotated[int, file_option(help="Lines to skip at the top of each file.", min=0)] = 0
    input_format: Annotated[
        str | None,
        choice(
            "--input-format",
            among=FORMATS,
            help="The format of DATA, where file names do not tell.",
            rich_help_panel="Reading files",
        ),
    ] = None
    category: Annotated[
        list[str] | None,
        file_option(metavar="COL,COL", help="Columns to read as categories even if they hold numbers. Repeatable."),
    ] = None
    labels: Annotated[
        Path | None, file_option(help="A file with the labels of mail: lines of LABEL PATH, or csv with path,label.")
    ] = None

    @property
    def asked(self) -> CsvOptions:
        """The csv dialect, as far as options set it."""
        from deciban.data.files.dialect import NA_VALUES, CsvOptions

        words = [word for value in self.na_values or () for word in value.split(",")]
        return CsvOptions(
            delimiter="\t" if self.delimiter in ("tab", "\\t") else self.delimiter,
            quote=self.quote,
            header=self.header,
            names=self.names.split(",") if self.names else None,
            na_values=("", *words) if self.na_values else NA_VALUES,
            decimal=self.decimal,
            skip=self.skip,
        )

    def scan(self, paths: Sequence[str | Path]) -> Scan:
        """The rows of files, with the columns of --category typed."""
        from deciban.data.files.scan import scan

        rows = scan(
            paths,
            format=self.input_format,
            encoding=self.encoding,
            labels=self.labels,
            **vars(self.asked),
        )
        categories = columns_named(rows.names, self.category, "--category")
        return rows.with_types(dict.fromkeys(categories, "text")) if categories else rows


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with each parameter that is an OptionGroup replaced by the options of the group."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Any]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, OptionGroup):
            groups[parameter.name] = kind
            parameters += _options_of(kind)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**options: Any) -> None:
        values = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**options, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _options_of(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(group)
    ]


# Columns by name -----------------------------------------------------------------------------------------------------


def columns_named(names: Sequence[str], values: Sequence[str] | None, option: str) -> list[str]:
    """The columns that an option lists, separated by commas or by repeating the option.

    >>> columns_named(["a", "b", "x,y"], ["a,b", "x,y"], "--drop")
    ['a', 'b', 'x,y']
    """
    columns = [name for value in values or () for name in ([value] if value in names else value.split(","))]
    for name in columns:
        require_column(names, name, option)
    return columns


def require_column(names: Sequence[str], name: str, option: str) -> None:
    from deciban.errors import DecibanError

    if name not in names:
        raise DecibanError(f"{option}: there is no column {name!r}; there are {', '.join(names)}")


def label_named(names: Sequence[str], label: str) -> str:
    """The name of the label column, from its name or its position.

    >>> label_named(["a", "b"], "b"), label_named(["a", "b"], "1"), label_named(["a", "b"], "-1")
    ('b', 'a', 'b')
    """
    if label in names or not label.removeprefix("-").isdecimal():
        require_column(names, label, "--label")
        return label
    position = int(label)
    if not 1 <= abs(position) <= len(names):
        require_column(names, label, "--label")
    return names[position - 1 if position > 0 else position]
