"""`deciban merge`, `deciban forget` and `deciban refit-weights`: models as sums of evidence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import deciban
from deciban.cli import show
from deciban.cli.options import Json, Model, OptionGroup, Quiet, Reading, Target, option, with_groups
from deciban.cli.progress import watched
from deciban.lazy import lazy

if TYPE_CHECKING:
    from deciban.data.files.scan import Scan

errors, model_rows, storage = map(lazy, ("deciban.errors", "deciban.cli.model_rows", "deciban.persist.storage"))


def merge(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL", help="Model files of the same kind.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    json: Json = False,
) -> None:
    """Merge models into one: the model of all their rows.

    naive-bayes, lda and qda equal one fit to all rows: covariances to rounding (1e-13), all else bit for bit.

    evidence averages the weights, and drops joint blocks of columns that differ between the models: see
    refit-weights. Models fitted with `deciban fit --like` merge without loss.

    All models must be of the same kind, with the same label, columns and settings.

    \b
    Examples:
      deciban merge january.deciban february.deciban -o both.deciban
      deciban merge january.deciban february.deciban march.deciban -o q1.deciban
    """
    if len(models) < 2:
        raise typer.BadParameter("merging needs at least two models", param_hint="MODEL")
    model_rows.require_writable(output)
    total = deciban.load(models[0])
    model_rows.require_able(total, "merge", "be merged: fit one model to all files")
    label, lossy = model_rows.training_label(total), False
    for path in models[1:]:
        model = deciban.load(path)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", errors.DroppedBlocksWarning)  # warned of once, below
                merged = total.merge(model)
            lossy = lossy or _drops_joint_blocks(merged, total, model)
            _require_same_settings(label, total, model)
        except deciban.DecibanError as error:
            raise deciban.DecibanError(f"{path}: {error}") from None
        total, label = merged, label or model_rows.training_label(model)
    total.save(output)
    if lossy:
        errors.warn(
            "joint blocks of columns that differ between the models were dropped. To keep them, fit the other files "
            "with fit --like and the first model, or add their rows with fit --resume; or refit the weights of the "
            "merged model with refit-weights"
        )
    show.print_fitted(total, output, {}, json=json)


def _drops_joint_blocks(merged: Any, *models: Any) -> bool:
    largest = max(len(model_rows.joint_blocks(model)) for model in models)
    return "refit_weights" in merged.base_model_.capabilities and len(model_rows.joint_blocks(merged)) < largest


def _require_same_settings(first_label: str | None, first: Any, model: Any) -> None:
    """Raises an error if the label or a parameter of the model differs from the first model's."""
    import numpy as np

    label = model_rows.training_label(model)
    if None not in (first_label, label) and first_label != label:
        raise deciban.DecibanError(
            f"its label is {label!r}, but the first model's is {first_label!r}: merge models with the same label"
        )
    expected = model_rows.settings_of(first)
    for name, value in model_rows.settings_of(model).items():
        arrays = isinstance(value, np.ndarray) or isinstance(expected[name], np.ndarray)
        if not (np.array_equal(value, expected[name]) if arrays else value == expected[name]):
            raise deciban.DecibanError(
                f"its {name} is {value!r}, but the first model's is {expected[name]!r}: fit both with the same settings"
            )


class Update(OptionGroup):
    """A model file to update, and the labelled rows to update it with."""

    model: Model
    rows: Annotated[list[Path], typer.Argument(metavar="ROWS", help="Files of labelled rows, or -.")]
    target: Target
    reading: Reading
    output: Path | None = option("--output", "-o", help="The model file to write; by default MODEL is replaced.")
    json: Json = False
    quiet: Quiet = False

    @contextmanager
    def opened(self, method: str, action: str) -> Iterator[tuple[Any, Scan, str]]:
        """The model, its rows and their label. The file is locked, and the model saved at the end."""
        path = self.output or self.model
        model_rows.require_writable(path)
        with storage.locked(path):
            model, scan = deciban.load(self.model), self.reading.scan(self.rows)
            model_rows.require_writable(path, [fragment.path for fragment in scan.fragments])
            with watched(scan, quiet=self.quiet):
                model_rows.require_able(model, method, action)
                label = model_rows.label_for(model, scan, self.target.label)
                yield model, model_rows.prepared(scan, label, self.target), label
                model.save(path)
        show.print_fitted(model, path, {}, json=self.json)


@with_groups
def forget(update: Update) -> None:
    """Remove training rows from a model, exactly: its counts are as if it had never seen them.

    naive-bayes, lda and qda equal a fit without these rows.

    evidence keeps its weights and joint blocks of columns, which were fitted with these rows: see refit-weights.

    Rows that the model was not trained on are an error, and the model stays as it is.

    For mail, see `deciban mail forget`.

    \b
    Examples:
      deciban forget people.deciban leavers.csv
      deciban forget people.deciban leavers.csv --label evade -o without.deciban
    """
    with update.opened("forget", "forget: fit again, without these rows") as (model, rows, label):
        model.forget(rows, label, sample_weight=update.target.weight)


@with_groups
def refit_weights(
    update: Update,
    held_out: Annotated[bool, typer.Option("--held-out", help="The model was not trained on these rows.")] = False,
) -> None:
    """Refit the weights of an evidence model, after it was trained on more rows, merged, or made to forget rows.

    The rows are training rows, each left out when it is scored; with --held-out, rows the model was not trained on.

    \b
    Examples:
      deciban refit-weights both.deciban january.csv february.csv
      deciban refit-weights both.deciban march.csv --held-out -o better.deciban
    """
    action = "have its weights refitted: only an EvidenceClassifier that is not calibrated has weights"
    with update.opened("refit_weights", action) as (model, rows, label):
        model_rows.require_rows(model, "refit weights for")
        try:
            model.refit_weights(rows, label, sample_weight=update.target.weight, held_out=held_out)
        except deciban.NegativeEvidence as error:
            problem = str(error).partition(":")[0]
            raise deciban.DecibanError(
                f"{problem}: give training rows of the model, or --held-out for others"
            ) from None
