"""What is printed by --json: plain objects."""

from __future__ import annotations

import json
from math import isfinite, isnan
from typing import Any

import numpy as np
import typer

from deciban.evaluation import Evaluation
from deciban.summary import Summary
from deciban.table import Table


def plain(value: Any) -> Any:
    """As JSON has it: NaN is null, an infinite number is text.

    >>> plain({"auc": float("nan"), "odds": -np.inf, 3: (np.float64(0.5), np.arange(2))})
    {'auc': None, 'odds': '-inf', '3': [0.5, [0, 1]]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def print_object(value: Any) -> None:
    typer.echo(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def table_object(table: Table) -> dict[str, Any]:
    return {"title": table.title, "header": table.header, "rows": table.rows, "note": table.note}


def summary_object(summary: Summary) -> dict[str, Any]:
    return {"title": summary.title, "tables": [*map(table_object, summary.tables)], "notes": summary.notes}


def evaluation_object(evaluation: Evaluation) -> dict[str, Any]:
    """Metrics by name, the confusion matrix (rows are true), the classes, and the metrics of every fold."""
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
