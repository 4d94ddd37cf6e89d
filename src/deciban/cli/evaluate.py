"""`deciban evaluate`: how good a model is on labelled rows."""

from __future__ import annotations

import warnings

import typer

from deciban.cli.options import Data, Json, Model, Quiet, Reading, TargetOptions, with_groups
from deciban.cli.progress import watched


@with_groups
def evaluate(
    model: Model, data: Data, target: TargetOptions, reading: Reading, json: Json = False, quiet: Quiet = False
) -> None:
    """Evaluate a model on held-out rows: accuracy, log-loss, AUC, calibration and more.

    The label column is the one the model was trained on, unless --label names another.

    \b
    Examples:
      deciban evaluate people.deciban later.csv
      deciban evaluate people.deciban later.csv --label evade --json
    """
    from deciban.cli.json_output import evaluation_object, print_object
    from deciban.cli.model_rows import for_model, label_for, prepared, require_known, require_rows
    from deciban.estimators import load
    from deciban.evaluation.cross_validation import evaluate as evaluated
    from deciban.evaluation.evaluation_rows import require_model

    loaded = load(model)
    require_model(loaded, type(loaded).__name__)
    require_rows(loaded, "predict from")
    scan = reading.scan(data)
    with watched(scan, quiet=quiet), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no label is a class of the model")  # an error, below
        column = label_for(loaded, scan, target.label)
        stream = for_model(loaded, prepared(scan, column, target), column, target.weight)
        result = evaluated(loaded, stream, column, target.weight)
    labels = [level for level, count in zip(result.classes, result.count, strict=True) if count]
    require_known(labels, loaded.classes_.tolist())
    if json:
        print_object(evaluation_object(result))
    else:
        typer.echo(str(result))
