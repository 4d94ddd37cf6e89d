"""`deciban merge`, `deciban forget` and `deciban refit-weights`: models as sums of evidence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deciban.cli.options import Json, Label, Model, Quiet, Reading, TrimLabel, Weight, reads_files
from deciban.cli.progress import watched

if TYPE_CHECKING:
    from deciban.sources.files import Scan


def merge(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL", help="Model files of one kind.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file for the model of all their rows.")],
    json: Json = False,
) -> None:
    """Add models up: the result is the model of all their rows.

    naive-bayes, lda and qda are as if fitted at once: covariances to rounding (1e-13), all else bit for bit.

    evidence has the mean of their weights, and of columns together only what all have laid out alike: see
    refit-weights. Parts that fit made like one of the models lose nothing.

    The models must be of one kind, with the same label, columns and settings.

    \b
    Examples:
      deciban merge january.deciban february.deciban -o both.deciban
      deciban merge january.deciban february.deciban march.deciban -o q1.deciban
    """
    from deciban.cli.data import label_known, require_able, require_writable, settings_of
    from deciban.cli.show import fitted
    from deciban.errors import DecibanError, warn
    from deciban.models import load

    if len(models) < 2:
        raise typer.BadParameter("two models at least are needed", param_hint="MODEL")
    require_writable(output)
    total = load(models[0])
    require_able(total, "merge", "be merged: fit one on all files")
    label, lost = label_known(total), False
    for path in models[1:]:
        model = load(path)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "blocks over several columns")  # said once, below
                merged = total.merge(model)
            lost = lost or _loses(merged, total, model)
            _require_one_label(label, label_known(model))
            _require_same_settings(settings_of(total), settings_of(model))
        except DecibanError as error:
            raise DecibanError(f"{path}: {error}") from None
        total, label = merged, label or label_known(model)
    total.save(output)
    if lost:
        warn(
            "what the models know of columns together is left out: each fit lays it out by its own rows. To keep it, "
            "fit the other files by fit --like and the first model, or add their rows to it by fit --resume; or refit "
            "the weights of what is left, by refit-weights"
        )
    fitted(total, output, {}, json=json)


def _loses(merged: Any, *models: Any) -> bool:
    """Whether evidence of columns together, that one of the models has, is not in their sum."""
    from deciban.cli.data import blocks_together, inner

    most = max(len(blocks_together(model)) for model in models)
    return hasattr(inner(merged), "refit_weights") and len(blocks_together(merged)) < most


def _require_one_label(before: str | None, label: str | None) -> None:
    from deciban.errors import DecibanError

    if None not in (before, label) and before != label:
        raise DecibanError(f"its label is {label!r}, and before it was {before!r}: merge models of one label")


def _require_same_settings(before: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    from deciban.errors import DecibanError

    for name, value in settings.items():
        if not _same(value, before[name]):
            raise DecibanError(f"its {name} is {value!r}, and before it was {before[name]!r}: fit both alike")


def _same(a: Any, b: Any) -> bool:
    import numpy as np

    return np.array_equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else bool(a == b)


@reads_files
def forget(
    model: Model,
    rows: Annotated[list[Path], typer.Argument(metavar="ROWS", help="Files of the rows to forget, or -.")],
    reading: Reading,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file for the model without them; else MODEL itself.")
    ] = None,
    label: Label = None,
    weight: Weight = None,
    trim_label: TrimLabel = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Unlearn rows, exactly: what was counted of them is as if the model had never seen them.

    naive-bayes, lda and qda are as if fitted without them.

    evidence keeps its weights, and which columns it reads together: rows have a part in both. See refit-weights.

    Rows that were not learned are an error, and the model stays as it is.

    For mail, see `deciban mail forget`.

    \b
    Examples:
      deciban forget people.deciban leavers.csv
      deciban forget people.deciban leavers.csv --label evade -o without.deciban
    """
    from deciban.cli.data import label_for, prepared, require_able
    from deciban.cli.show import fitted

    path = output or model
    with _changed(model, reading, rows, path, quiet=quiet) as (found, scan):
        require_able(found, "forget", "forget: fit again, without these rows")
        column = label_for(found, scan, label)
        found.forget(prepared(scan, column, trim_label, weight), column, sample_weight=weight)
    fitted(found, path, {}, json=json)


@contextmanager
def _changed(
    model: Path, reading: Reading, rows: Sequence[Path], path: Path, *, quiet: bool
) -> Iterator[tuple[Any, Scan]]:
    """A model to be changed, and rows; it is saved at the end, and others who would change it wait for that."""
    from deciban.cli.data import require_writable
    from deciban.models import load
    from deciban.storage import locked

    require_writable(path)
    with locked(path):
        found, scan = load(model), reading.scan(rows)
        require_writable(path, [part.path for part in scan.parts])
        with watched(scan, quiet=quiet):
            yield found, scan
            found.save(path)


@reads_files
def refit_weights(
    model: Model,
    rows: Annotated[list[Path], typer.Argument(metavar="ROWS", help="Files of rows, or -.")],
    reading: Reading,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file for the model with its new weights; else MODEL itself."),
    ] = None,
    held_out: Annotated[bool, typer.Option("--held-out", help="The model was not trained on these rows.")] = False,
    label: Label = None,
    weight: Weight = None,
    trim_label: TrimLabel = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit the weights of evidence again, after a model has learned, merged or forgotten rows.

    The rows are training rows of the model, each left out when it is judged; or, with --held-out, others.

    \b
    Examples:
      deciban refit-weights both.deciban january.csv february.csv
      deciban refit-weights both.deciban march.csv --held-out -o better.deciban
    """
    from deciban.cli.data import label_for, prepared, require_able, require_rows
    from deciban.cli.show import fitted
    from deciban.errors import DecibanError, NegativeEvidence

    path = output or model
    with _changed(model, reading, rows, path, quiet=quiet) as (found, scan):
        require_able(
            found,
            "refit_weights",
            "have its weights refitted: only an EvidenceClassifier that is not calibrated has weights",
        )
        require_rows(found, "to weigh")
        column = label_for(found, scan, label)
        try:
            found.refit_weights(
                prepared(scan, column, trim_label, weight), column, sample_weight=weight, held_out=held_out
            )
        except NegativeEvidence as error:
            problem = str(error).partition(":")[0]
            raise DecibanError(f"{problem}: give training rows of the model, or --held-out for others") from None
    fitted(found, path, {}, json=json)
