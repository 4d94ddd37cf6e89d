"""`deciban evaluate`: how good a model is on labelled rows."""

from __future__ import annotations

import warnings

import typer

import deciban
from deciban.cli.options import Data, Json, Model, Quiet, Reading, Target, with_groups
from deciban.cli.progress import watched
from deciban.lazy import lazy

errors, json_output, model_rows = map(lazy, ("deciban.errors", "deciban.cli.json_output", "deciban.cli.model_rows"))


@with_groups
def evaluate(
    model: Model, data: Data, target: Target, reading: Reading, json: Json = False, quiet: Quiet = False
) -> None:
    """Evaluate a model on held-out rows: accuracy, log-loss, AUC, calibration and more.

    The label column is the one the model was trained on, unless --label names another.

    \b
    Examples:
      deciban evaluate people.deciban later.csv
      deciban evaluate people.deciban later.csv --label evade --json
    """
    from deciban.evaluation.evaluation_rows import require_model

    loaded = deciban.load(model)
    require_model(loaded, type(loaded).__name__)
    model_rows.require_rows(loaded, "predict from")
    scan = reading.scan(data)
    with watched(scan, quiet=quiet), warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.UnknownLabelsWarning)  # an error, below
        column = model_rows.label_for(loaded, scan, target.label)
        stream = model_rows.for_model(loaded, model_rows.prepared(scan, column, target), column, target.weight)
        result = deciban.evaluate(loaded, stream, column, target.weight)
    labels = [level for level, count in zip(result.classes, result.count, strict=True) if count]
    model_rows.require_known(labels, loaded.classes_.tolist())
    if json:
        json_output.print_object(json_output.evaluation_object(result))
    else:
        typer.echo(str(result))
