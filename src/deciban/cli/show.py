"""`deciban show`: what is in a model file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from deciban.cli.options import Json, Model

if TYPE_CHECKING:
    from deciban.evaluation import Evaluation
    from deciban.plans import Plan


def show(model: Model, json: Json = False) -> None:
    """Print what a model file holds: its kind, classes and columns, and what was learned.

    \b
    Examples:
      deciban show people.deciban
      deciban show people.deciban --json
    """
    from deciban.cli.objects import print_object, summary_object
    from deciban.models import load

    found = load(model)
    about = described(found, model)
    known = hasattr(found, "summary") and (about["classes"] is None or len(about["classes"]))  # not all forgotten
    summary = found.summary() if known else None
    if json:
        print_object(about | {"summary": None if summary is None else summary_object(summary)})
        return
    typer.echo(_text(about))
    if summary is not None:
        typer.echo(f"\n{summary}")


def described(model: Any, path: Path) -> dict[str, Any]:
    """A model and its file, as an object."""
    from deciban.cli.data import inner, kind_of_model

    schema, counts = inner(model)._schema(), getattr(inner(model), "class_count_", None)
    families = _families(inner(model))
    columns = [
        {"name": name, "kind": kind, "family": families.get(j)}
        for j, (name, kind) in enumerate(zip(schema.names, schema.kinds, strict=True))
    ]
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        **_stamp(path),
        "kind": kind_of_model(model),
        "label": model.label_name_,
        "classes": getattr(model, "classes_", None),
        "counts": counts,
        "columns": columns,
        "together": _together(inner(model)),
    }


def _stamp(path: Path) -> dict[str, Any]:
    """The format of the file, the version of deciban that wrote it, and the least one that reads it."""
    from json import loads

    from safetensors import safe_open

    from deciban.storage import KEY

    with safe_open(path, "np") as file:
        document = loads(file.metadata()[KEY])
    return {"format": document["format"], "version": document[KEY], "needs": document["needs"]}


def _families(model: Any) -> dict[int, str]:
    """The families that read each column of a generative model by itself; if none does, those that read it at all."""
    evidence = getattr(model, "generative_", None)
    plans = [] if evidence is None else [plan for plan in evidence.plans if not plan.presence]
    alone = _named([plan for plan in plans if not plan.family.joint])
    return _named(plans) | alone


def _named(plans: Sequence[Plan]) -> dict[int, str]:
    names: dict[int, list[str]] = {}
    for plan in plans:
        for j in plan.columns:
            names.setdefault(j, []).append(type(plan.family).__name__)
    return {j: ", ".join(found) for j, found in names.items()}


def _together(model: Any) -> list[dict[str, Any]]:
    """The families that read several columns together, and which."""
    from deciban.cli.data import blocks_together

    found = []
    for plan in (block.plan for block in blocks_together(model)):
        names = [model._schema().all_names[j] for j in plan.columns]
        sets = [[names[i] for i in pair] for pair in getattr(plan.family, "pairs", ())] or [names]
        found += [{"family": type(plan.family).__name__, "columns": columns} for columns in sets]
    return found


def _text(about: Mapping[str, Any]) -> str:
    from deciban.table import Table

    lines = [
        f"{about['path']}: {about['kind']}, {about['bytes']:,} bytes",
        f"format {about['format']}, written by deciban {about['version']}, read by {about['needs']} or newer",
    ]
    if about["label"] is not None:
        lines.append(f"label {about['label']}")
    if about["classes"] is not None:
        counts = [""] * len(about["classes"]) if about["counts"] is None else [f" ({n:.15g})" for n in about["counts"]]
        named = [f"{level}{count}" for level, count in zip(about["classes"], counts, strict=True)]
        lines.append(f"classes {', '.join(named) or 'none: every row was forgotten'}")
    rows = tuple((column["name"], column["kind"], column["family"] or "") for column in about["columns"])
    tables = [Table("columns", ("column", "kind", "family"), rows)]
    if about["together"]:
        sets = tuple((_joined(each["columns"]), each["family"]) for each in about["together"])
        tables.append(Table("read together", ("columns", "family"), sets))
    return "\n\n".join(["\n".join(lines), *map(str, tables)])


def _joined(columns: Sequence[Any]) -> str:
    """
    >>> _joined(["u", "v"]), _joined(range(20))
    ('u + v', '0 + 1 + 2 + 3 + 16 others')
    """
    shown = columns if len(columns) <= 5 else columns[:4]
    others = [f"{len(columns) - len(shown)} others"] if len(shown) < len(columns) else []
    return " + ".join([*map(str, shown), *others])


def fitted(model: Any, path: Path, judged: Mapping[str, Evaluation], *, json: bool) -> None:
    """Prints what a fit made, and how it was judged."""
    from deciban.cli.objects import evaluation_object, print_object

    about = described(model, path)
    if json:
        print_object(about | {how: evaluation_object(found) for how, found in judged.items()})
        return
    typer.echo(f"{path}: {about['kind']}, {_sizes(about)}, {about['bytes']:,} bytes")
    titles = {"folds": "by folds", "leave_one_out": "each row left out in its turn"}
    for how, found in judged.items():
        typer.echo(f"\n{titles[how]}: {found}")


def _sizes(about: Mapping[str, Any]) -> str:
    from deciban.summary import counted_word

    rows = [] if about["counts"] is None else [counted_word(float(about["counts"].sum()), "row")]
    return ", ".join(
        [*rows, counted_word(len(about["classes"]), "class"), counted_word(len(about["columns"]), "column")]
    )
