"""The objects that --json prints."""

from __future__ import annotations

import json
from typing import Any

import typer

from deciban.display.summary import Summary
from deciban.evaluation import Evaluation
from deciban.plots.figures import plain


def print_object(value: Any) -> None:
    typer.echo(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def summary_object(summary: Summary) -> dict[str, Any]:
    tables = [{"title": t.title, "header": t.header, "rows": t.rows, "note": t.note} for t in summary.tables]
    return {"title": summary.title, "tables": tables, "notes": summary.notes}


def evaluation_object(evaluation: Evaluation) -> dict[str, Any]:
    """Metrics by name, classes, the confusion matrix (rows are true classes), and the metrics of each fold."""
    by_class = evaluation.by_class()
    return {
        "metrics": _metrics(evaluation),
        "classes": evaluation.classes,
        "confusion": evaluation.confusion,
        "by_class": [dict(zip(by_class.header, row, strict=True)) for row in by_class.rows],
        "folds": [_metrics(fold) for fold in evaluation.parts],
        "notes": evaluation.summary().notes,
    }


def _metrics(evaluation: Evaluation) -> dict[str, float]:
    return {row["metric"]: row["value"] for row in evaluation.to_frame().to_pylist()}
