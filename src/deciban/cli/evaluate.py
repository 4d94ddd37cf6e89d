"""`deciban evaluate`: how good a model is on rows whose classes are known."""

from __future__ import annotations

import warnings

import typer

from deciban.cli.options import Data, Json, Label, Model, Quiet, Reading, TrimLabel, Weight, reads_files
from deciban.cli.progress import watched


@reads_files
def evaluate(
    model: Model,
    data: Data,
    reading: Reading,
    label: Label = None,
    weight: Weight = None,
    trim_label: TrimLabel = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge a model on rows that it has not learned: accuracy, log-loss, AUC, calibration and more.

    The label is the column that the model learned, if --label names no other.

    \b
    Examples:
      deciban evaluate people.deciban later.csv
      deciban evaluate people.deciban later.csv --label evade --json
    """
    from deciban.cli.data import for_model, label_for, prepared, require_known, require_rows
    from deciban.cli.objects import evaluation_object, print_object
    from deciban.evaluation.judging import evaluate as judged
    from deciban.evaluation.rows import require_model
    from deciban.models import load

    found = load(model)
    require_model(found, type(found).__name__)
    require_rows(found, "to predict from")
    scan = reading.scan(data)
    with watched(scan, quiet=quiet), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no label is among")  # here that is an error
        column = label_for(found, scan, label)
        stream = for_model(found, prepared(scan, column, trim_label, weight), column, weight)
        result = judged(found, stream, column, weight)
    labels = [level for level, count in zip(result.classes, result.count, strict=True) if count]
    require_known(labels, found.classes_.tolist())
    if json:
        print_object(evaluation_object(result))
    else:
        typer.echo(str(result))
