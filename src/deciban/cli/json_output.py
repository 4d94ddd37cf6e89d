"""The objects that --json prints."""

from __future__ import annotations

import json
from typing import Any

import typer

from deciban.display.summary import Summary
from deciban.evaluation import Evaluation
from deciban.plots.figures import plain
from deciban.table import Table


def print_object(value: Any) -> None:
    typer.echo(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def table_object(table: Table) -> dict[str, Any]:
    return {"title": table.title, "header": table.header, "rows": table.rows, "note": table.note}


def summary_object(summary: Summary) -> dict[str, Any]:
    return {"title": summary.title, "tables": [*map(table_object, summary.tables)], "notes": summary.notes}


def evaluation_object(evaluation: Evaluation) -> dict[str, Any]:
    """Metrics by name, classes, the confusion matrix (rows are true classes), and the metrics of each fold."""
    by_class = evaluation.by_class()
    return {
        "metrics": _metrics(evaluation),
        "classes": evaluation.classes,
        "confusion": evaluation.confusion,
        "by_class": [dict(zip(by_class.header, row, strict=True)) for row in by_class.rows],
        "folds": [_metrics(part) for part in evaluation.parts],
        "notes": evaluation.summary().notes,
    }


def _metrics(evaluation: Evaluation) -> dict[str, float]:
    return {row["metric"]: row["value"] for row in evaluation.to_frame().to_pylist()}
