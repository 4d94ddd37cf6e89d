"""Options that several commands share, in groups."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, dataclass_transform, get_type_hints

import typer

import deciban
from deciban.lazy import lazy

if TYPE_CHECKING:
    from deciban.data.files.dialect import CsvOptions
    from deciban.data.files.scan import Scan

errors = lazy("deciban.errors")

FORMATS = ("csv", "jsonl", "parquet", "arrow", "mail", "text")


def choice(*names: str, among: Iterable[str], **settings: Any) -> Any:
    """An option whose value is one of several words."""
    words = tuple(among)

    def check(value: str | None) -> str | None:
        if value is not None and value not in words:
            raise typer.BadParameter(f"{value!r} is none of {', '.join(words)}")
        return value

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return typer.Option(*names, metavar="|".join(words), callback=check, autocompletion=complete, **settings)


Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, written by `deciban fit`.")]
Data = Annotated[
    list[str],  # a Path would drop a slash of s3://
    typer.Argument(
        metavar="DATA",
        help="Data files (csv, tsv, jsonl, parquet, arrow), mail folders, glob patterns, or - for standard input.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Hide the progress bar (there is none in pipes).")]


@dataclass_transform(frozen_default=True, kw_only_default=True)
class OptionGroup:
    """A dataclass of options: `with_groups` turns a parameter of this type into one option per field."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


def option(*names: str, default: Any = None, among: Iterable[str] | None = None, **settings: Any) -> Any:
    """An option as a field of a group; if `among` lists words, its value is one of them."""
    typer_option = typer.Option(*names, **settings) if among is None else choice(*names, among=among, **settings)
    return field(default=default, metadata={"option": typer_option})


file_option = partial(option, rich_help_panel="Reading files")


class Target(OptionGroup):
    """The label to predict, and the weight of each row."""

    label: str | None = option(
        metavar="COL", help="The label column: its name, or its position (1 is the first, -1 the last)."
    )
    weight: str | None = option(
        metavar="COL", help="A column of sample weights: 2 counts a row twice, 0 leaves it out."
    )
    trim_label: str | None = option(help='Characters to strip from the end of labels, such as ".".')


class Reading(OptionGroup):
    """How files are read; the defaults are inferred from the first rows."""

    delimiter: str | None = file_option(help='The character that separates the fields of csv, or "tab".')
    header: bool | None = file_option("--header/--no-header", help="Whether the first line of csv holds column names.")
    names: str | None = file_option(
        metavar="COL,COL", help="Column names for csv; by default from its header, or c1, c2, ..."
    )
    na_values: list[str] | None = file_option(
        metavar="WORD,WORD", help="Words that mean a missing value, besides an empty field. Repeatable."
    )
    quote: str = file_option(default='"', help='The quotation mark of csv; "" for none.', show_default=False)
    decimal: str | None = file_option(help="The decimal point of csv; inferred by default.")
    encoding: str = file_option(default="utf-8", help="The encoding of text files.")
    skip: int = file_option(default=0, help="Lines to skip at the top of each file.", min=0)
    input_format: str | None = file_option(
        "--input-format", among=FORMATS, help="The format of DATA, where file names do not show it."
    )
    category: list[str] | None = file_option(
        metavar="COL,COL", help="Columns to read as categories even if they hold numbers. Repeatable."
    )
    labels: Path | None = file_option(
        help="A file with the labels of mail: lines of LABEL PATH, or csv with path,label."
    )

    @property
    def csv_options(self) -> CsvOptions:
        """The options for csv files."""
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
        """The rows of files, with the columns of --category read as categories."""
        from deciban.data.files.scan import scan

        rows = scan(
            paths, format=self.input_format, encoding=self.encoding, labels=self.labels, **vars(self.csv_options)
        )
        categories = columns_named(rows.names, self.category, "--category")
        return rows.with_types(dict.fromkeys(categories, "text")) if categories else rows


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with each parameter that is an OptionGroup replaced by the options of the group."""
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if _is_group(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            parameters += _options_of(parameter.annotation)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**options: Any) -> None:
        values = {name: _group_of(group, options) for name, group in groups.items()}
        command(**options, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, OptionGroup)


def _options_of(group: type[Any]) -> list[inspect.Parameter]:
    """The options of a group, and of the groups in it."""
    options, hints = list[inspect.Parameter](), get_type_hints(group, include_extras=True)
    for each in fields(group):
        hint, typer_option = hints[each.name], each.metadata.get("option")
        if _is_group(hint):
            options += _options_of(hint)
            continue
        default = inspect.Parameter.empty if each.default is MISSING else each.default
        hint = hint if typer_option is None else Annotated[hint, typer_option]
        options.append(inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint))
    return options


def _group_of(group: type[Any], options: dict[str, Any]) -> Any:
    """A group with the values of its options, which are removed from `options`."""
    hints = {each.name: get_type_hints(group)[each.name] for each in fields(group)}
    values = {name: _group_of(hint, options) if _is_group(hint) else options.pop(name) for name, hint in hints.items()}
    return group(**values)


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
    if name not in names:
        near = errors.did_you_mean(name, among=names)
        raise deciban.DecibanError(f"{option}: there is no column {name!r}{near}; there are {', '.join(names)}")


def label_named(names: Sequence[str], label: str) -> str:
    """The name of the label column, from its name or its position.

    >>> label_named(["a", "b"], "b"), label_named(["a", "b"], "1"), label_named(["a", "b"], "-1")
    ('b', 'a', 'b')
    """
    position = int(label) if label not in names and label.removeprefix("-").isdecimal() else 0
    if 1 <= abs(position) <= len(names):
        return names[position - 1 if position > 0 else position]
    require_column(names, label, "--label")
    return label
