"""`deciban show`: the contents of a model file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import deciban
from deciban.cli.options import Json, Model
from deciban.lazy import lazy

if TYPE_CHECKING:
    from deciban.evaluation import Evaluation
    from deciban.evaluation.fitted_model import FittedModel

json_output, model_rows = map(lazy, ("deciban.cli.json_output", "deciban.cli.model_rows"))


def show(model: Model, json: Json = False) -> None:
    """Print what a model file contains: its kind, classes and columns, and a summary.

    \b
    Examples:
      deciban show people.deciban
      deciban show people.deciban --json
    """
    loaded = deciban.load(model)
    about = described(loaded, model)
    empty = about["classes"] is not None and not len(about["classes"])  # all rows were forgotten
    summary = loaded.summary() if "summary" in loaded.capabilities and not empty else None
    if json:
        summary_object = None if summary is None else json_output.summary_object(summary)
        json_output.print_object(about | {"summary": summary_object})
        return
    typer.echo(_text(about))
    if summary is not None:
        typer.echo(f"\n{summary}")


def described(model: FittedModel, path: Path) -> dict[str, Any]:
    """A model and its file, as a JSON object."""
    base, schema = model.base_model_, model.schema_
    families = _families(base)
    columns = [
        {"name": name, "kind": kind, "family": families.get(j)}
        for j, (name, kind) in enumerate(zip(schema.names, schema.kinds, strict=True))
    ]
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        **_stamp(path),
        "kind": model_rows.kind_of_model(model),
        "label": model.label_name_,
        "classes": model.classes_ if model.task == "classification" else None,
        "counts": base.class_count_,
        "columns": columns,
        "together": _joint(base),
    }


def _stamp(path: Path) -> dict[str, Any]:
    """The format of the file, the version of deciban that wrote it, and the oldest that reads it."""
    from json import loads

    from safetensors import safe_open

    from deciban.persist.storage import KEY

    with safe_open(path, "np") as file:
        document = loads(file.metadata()[KEY])
    return {"format": document["format"], "version": document[KEY], "needs": document["needs"]}


def _families(model: FittedModel) -> dict[int, str]:
    """The families that model each column alone; for a column without any, those that model it jointly."""
    evidence = model.generative_
    plans = [] if evidence is None else [plan for plan in evidence.plans if not plan.presence]
    columns = {j: [plan for plan in plans if j in plan.columns] for plan in plans for j in plan.columns}
    single = {j: [plan for plan in all_ if not plan.family.joint] for j, all_ in columns.items()}
    return {j: ", ".join(type(plan.family).__name__ for plan in single[j] or all_) for j, all_ in columns.items()}


def _joint(model: FittedModel) -> list[dict[str, Any]]:
    """The families that model several columns jointly, with the columns."""
    joint = []
    for plan in (block.plan for block in model_rows.joint_blocks(model)):
        names = [model.schema_.all_names[j] for j in plan.columns]
        sets = [[names[i] for i in pair] for pair in getattr(plan.family, "pairs", ())] or [names]
        joint += [{"family": type(plan.family).__name__, "columns": columns} for columns in sets]
    return joint


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
        classes = [f"{level}{count}" for level, count in zip(about["classes"], counts, strict=True)]
        lines.append(f"classes {', '.join(classes) or 'none: every row was forgotten'}")
    rows = tuple((column["name"], column["kind"], column["family"] or "") for column in about["columns"])
    tables = [Table("columns", ("column", "kind", "family"), rows)]
    if about["together"]:
        sets = tuple((_joined(each["columns"]), each["family"]) for each in about["together"])
        tables.append(Table("modelled jointly", ("columns", "family"), sets))
    return "\n\n".join(["\n".join(lines), *map(str, tables)])


def _joined(columns: Sequence[Any]) -> str:
    """
    >>> _joined(["u", "v"]), _joined(range(20))
    ('u + v', '0 + 1 + 2 + 3 + 16 others')
    """
    shown = columns if len(columns) <= 5 else columns[:4]
    others = [f"{len(columns) - len(shown)} others"] if len(shown) < len(columns) else []
    return " + ".join([*map(str, shown), *others])


def print_fitted(model: FittedModel, path: Path, evaluations: Mapping[str, Evaluation], *, json: bool) -> None:
    """Prints a fitted model and its evaluations."""
    from deciban.display.summary import counted_word

    about = described(model, path)
    if json:
        by_method = {method: json_output.evaluation_object(each) for method, each in evaluations.items()}
        json_output.print_object(about | by_method)
        return
    sizes = [] if about["counts"] is None else [counted_word(float(about["counts"].sum()), "row")]
    sizes += [counted_word(len(about["classes"]), "class"), counted_word(len(about["columns"]), "column")]
    typer.echo(f"{path}: {about['kind']}, {', '.join(sizes)}, {about['bytes']:,} bytes")
    titles = {"folds": "cross-validation", "leave_one_out": "leave-one-out"}
    for method, evaluation in evaluations.items():
        typer.echo(f"\n{titles[method]}: {evaluation}")
