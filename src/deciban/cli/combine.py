"""`deciban merge`, `deciban forget` and `deciban refit-weights`: models as sums of evidence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deciban.cli.options import Json, Model, Quiet, Reading, TargetOptions, with_groups
from deciban.cli.progress import watched

if TYPE_CHECKING:
    from deciban.data.files.scan import Scan

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The model file to write; by default MODEL is replaced.")
]


def merge(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL", help="Model files of the same kind.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    json: Json = False,
) -> None:
    """Add models up: the result is the model of all their rows.

    naive-bayes, lda and qda equal one fit to all rows: covariances to rounding (1e-13), all else bit for bit.

    evidence takes the mean of the weights, and drops joint blocks of columns that differ between the models: see
    refit-weights. Models fitted like another one (see deciban fit) merge without loss.

    All models must be of the same kind, with the same label, columns and settings.

    \b
    Examples:
      deciban merge january.deciban february.deciban -o both.deciban
      deciban merge january.deciban february.deciban march.deciban -o q1.deciban
    """
    from deciban.cli.model_rows import label_known, require_able, require_writable, settings_of
    from deciban.cli.show import print_fitted
    from deciban.errors import DecibanError, warn
    from deciban.estimators import load

    if len(models) < 2:
        raise typer.BadParameter("merging needs at least two models", param_hint="MODEL")
    require_writable(output)
    total = load(models[0])
    require_able(total, "merge", "be merged: fit one model to all files")
    label, lossy = label_known(total), False
    for path in models[1:]:
        model = load(path)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "blocks over several columns")  # warned of once, below
                merged = total.merge(model)
            lossy = lossy or _drops_joint_blocks(merged, total, model)
            _require_one_label(label, label_known(model))
            _require_same_settings(settings_of(total), settings_of(model))
        except DecibanError as error:
            raise DecibanError(f"{path}: {error}") from None
        total, label = merged, label or label_known(model)
    total.save(output)
    if lossy:
        warn(
            "joint blocks of columns that differ between the models were dropped. To keep them, fit the other files "
            "with fit --like and the first model, or add their rows with fit --resume; or refit the weights of the "
            "merged model with refit-weights"
        )
    print_fitted(total, output, {}, json=json)


def _drops_joint_blocks(merged: Any, *models: Any) -> bool:
    from deciban.cli.model_rows import joint_blocks

    most = max(len(joint_blocks(model)) for model in models)
    return "refit_weights" in merged.base_model_.capabilities and len(joint_blocks(merged)) < most


def _require_one_label(first: str | None, label: str | None) -> None:
    from deciban.errors import DecibanError

    if None not in (first, label) and first != label:
        raise DecibanError(f"its label is {label!r}, that of the first model {first!r}: merge models of one label")


def _require_same_settings(first: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    from deciban.errors import DecibanError

    for name, value in settings.items():
        if not _same(value, first[name]):
            raise DecibanError(f"its {name} is {value!r}, that of the first model {first[name]!r}: fit both alike")


def _same(a: Any, b: Any) -> bool:
    import numpy as np

    return np.array_equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else bool(a == b)


@with_groups
def forget(
    model: Model,
    rows: Annotated[list[Path], typer.Argument(metavar="ROWS", help="Files of the rows to forget, or -.")],
    target: TargetOptions,
    reading: Reading,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Remove training rows from a model, exactly: its counts are as if it had never seen them.

    naive-bayes, lda and qda equal a fit without these rows.

    evidence keeps its weights and its joint blocks of columns, which the rows had a part in: see refit-weights.

    Rows that the model was not trained on are an error, and the model stays as it is.

    For mail, see `deciban mail forget`.

    \b
    Examples:
      deciban forget people.deciban leavers.csv
      deciban forget people.deciban leavers.csv --label evade -o without.deciban
    """
    from deciban.cli.model_rows import label_for, prepared, require_able
    from deciban.cli.show import print_fitted

    path = output or model
    with _updated(model, reading, rows, path, quiet=quiet) as (loaded, scan):
        require_able(loaded, "forget", "forget: fit again, without these rows")
        column = label_for(loaded, scan, target.label)
        loaded.forget(prepared(scan, column, target), column, sample_weight=target.weight)
    print_fitted(loaded, path, {}, json=json)


@contextmanager
def _updated(
    model: Path, reading: Reading, rows: Sequence[Path], path: Path, *, quiet: bool
) -> Iterator[tuple[Any, Scan]]:
    """A model to change, and rows; it is saved at the end, and locked until then."""
    from deciban.cli.model_rows import require_writable
    from deciban.estimators import load
    from deciban.persist.storage import locked

    require_writable(path)
    with locked(path):
        loaded, scan = load(model), reading.scan(rows)
        require_writable(path, [part.path for part in scan.fragments])
        with watched(scan, quiet=quiet):
            yield loaded, scan
            loaded.save(path)


@with_groups
def refit_weights(
    model: Model,
    rows: Annotated[list[Path], typer.Argument(metavar="ROWS", help="Files of labelled rows, or -.")],
    target: TargetOptions,
    reading: Reading,
    output: Output = None,
    held_out: Annotated[bool, typer.Option("--held-out", help="The model was not trained on these rows.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Refit the weights of evidence, after a model was trained on more rows, merged, or made to forget rows.

    The rows are training rows of the model, each left out when it is scored; with --held-out they are other rows.

    \b
    Examples:
      deciban refit-weights both.deciban january.csv february.csv
      deciban refit-weights both.deciban march.csv --held-out -o better.deciban
    """
    from deciban.cli.model_rows import label_for, prepared, require_able, require_rows
    from deciban.cli.show import print_fitted
    from deciban.errors import DecibanError, NegativeEvidence

    path = output or model
    with _updated(model, reading, rows, path, quiet=quiet) as (loaded, scan):
        only = "only an EvidenceClassifier that is not calibrated has weights"
        require_able(loaded, "refit_weights", f"have its weights refitted: {only}")
        require_rows(loaded, "refit weights for")
        column = label_for(loaded, scan, target.label)
        stream = prepared(scan, column, target)
        try:
            loaded.refit_weights(stream, column, sample_weight=target.weight, held_out=held_out)
        except NegativeEvidence as error:
            problem = str(error).partition(":")[0]
            raise DecibanError(f"{problem}: give training rows of the model, or --held-out for others") from None
    print_fitted(loaded, path, {}, json=json)
