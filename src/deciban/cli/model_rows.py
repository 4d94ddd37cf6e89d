"""The rows of files as a model reads them: its label, weights and columns."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from deciban.cli.options import Target, label_named, require_column
from deciban.data.cell_types import label_cell_types
from deciban.data.files.scan import Scan
from deciban.errors import DecibanError, did_you_mean
from deciban.estimators.calibrated import CalibratedClassifier
from deciban.evaluation.fitted_model import FittedModel
from deciban.generative.block import Block
from deciban.persist.storage import require_replaceable
from deciban.types import Level

if TYPE_CHECKING:
    from deciban.engines.engine_files import EngineFiles

S = TypeVar("S", bound="Scan | EngineFiles")  # both have these methods


def prepared(scan: S, label: str, target: Target) -> S:
    """The same rows, with labels trimmed and weights read as numbers."""
    scan = scan.with_trim(label, target.trim_label) if target.trim_label else scan  # type: ignore[assignment]
    if target.weight is None:
        return scan
    require_column(scan.names, target.weight, "--weight")
    if target.weight == label:
        raise DecibanError(f"--weight and --label name the same column, {label!r}")
    return scan.with_types({target.weight: "number"})  # type: ignore[return-value]


# Models --------------------------------------------------------------------------------------------------------------


def columns_for(model: FittedModel, scan: S, also: Collection[str] = ()) -> S:
    """The columns that a model reads, typed as in training, and the columns `also`."""
    schema = model.schema_
    if schema.positional:
        raise DecibanError("the model was fitted to an array, whose columns have no names: fit it to a table")
    stream: S = model.base_model_.columns_.stream(scan, also)  # type: ignore[assignment]
    missing = [name for name in schema.names if name not in stream.names]
    if missing:
        raise schema.lacking(missing, scan.names)
    return stream


def for_model(model: FittedModel, scan: Scan, label: str, weight: str | None = None) -> Scan:
    """The columns that a model reads, the label typed as its classes are, and the weight."""
    stream = columns_for(model, scan, [name for name in (label, weight) if name is not None])
    return stream.with_types(label_cell_types(label, tuple(model.classes_.tolist())))


def label_for(model: FittedModel, scan: Scan | EngineFiles, label: str | None) -> str:
    """The label column: as given, or the one of training."""
    trained_on = training_label(model)
    if label is not None:
        label = label_named(scan.resolve_columns([label]).names, label)
        if label in model.schema_.names:
            predicted = "" if trained_on is None else f", which predicts {trained_on!r}"
            raise DecibanError(f"--label: {label!r} is a feature of the model{predicted}")
        return label
    if trained_on is None:
        raise DecibanError("the model does not know the name of its label column: give --label")
    require_column(scan.resolve_columns([trained_on]).names, trained_on, "--label (as in training)")
    return trained_on


def training_label(model: FittedModel) -> str | None:
    """The name of the label column in training; None if it had no name."""
    return model.label_name_ or model.base_model_.label_name_


def settings_of(model: Any) -> dict[str, Any]:
    """The parameters by name; for a calibrated model also those of its base model.

    >>> import deciban as db
    >>> settings_of(db.CalibratedClassifier(db.NaiveBayes(smoothing=5)).fit([[1.0], [2.0]], ["a", "b"]))["smoothing"]
    5
    """
    settings: dict[str, Any] = model.get_params(deep=False)
    if not isinstance(model, CalibratedClassifier):
        return settings
    return {name: value for name, value in settings.items() if name != "model"} | settings_of(model.model_)


def class_named(model: FittedModel, text: str | None, option: str) -> Level:
    """The class with this name; None for None."""
    levels: list[Level] = model.classes_.tolist()
    matches = [level for level in levels if str(level) == text]
    if text is not None and not matches:
        near = did_you_mean(text, among=levels)
        raise DecibanError(f"{option}: there is no class {text!r}{near}; there are {', '.join(map(str, levels))}")
    return matches[0] if matches else None


def kind_of_model(model: FittedModel) -> str:
    """The kind of a model, for messages.

    >>> import deciban as db
    >>> kind_of_model(db.CalibratedClassifier(db.NaiveBayes()).fit([[1.0], [2.0]], ["a", "b"]))
    'NaiveBayes, calibrated (temperature)'
    """
    corrections = "".join(f", calibrated ({each.name})" for each in model.calibrations_)
    return type(model.base_model_).__name__ + corrections


def require_able(model: FittedModel, method: str, action: str) -> None:
    """Raises an error if the model does not have the method."""
    if method not in model.capabilities:
        raise DecibanError(f"a model of kind {kind_of_model(model)} cannot {action}")


def require_rows(model: FittedModel, action: str) -> None:
    """Raises an error if the model has forgotten all rows."""
    if model.task == "classification" and not len(model.classes_):
        raise DecibanError(f"every row was forgotten: there is nothing to {action} until fit --resume")


def require_known(labels: list[Level], classes: list[Level]) -> None:
    """Raises an error if no label is a class of the model: most likely they are from another column."""
    if not {*labels} & {*classes}:
        raise DecibanError(
            f"none of the labels is a class of the model: the labels are {_some(labels)}; the classes are "
            f"{_some(classes)}. Is --label the right column? --trim-label strips characters from the end of labels"
        )


def _some(levels: list[Level]) -> str:
    return ", ".join(repr(level) for level in levels[:10]) + ("" if len(levels) <= 10 else ", …")


def joint_blocks(model: FittedModel) -> list[Block]:
    """The blocks of a generative model that model several columns jointly."""
    evidence = model.base_model_.generative_
    return [] if evidence is None else [block for block in evidence.blocks if block.plan.family.joint]


# Files ---------------------------------------------------------------------------------------------------------------


def require_writable(path: Path, inputs: Collection[str] = ()) -> None:
    """Raises an error, before long work, if its result cannot be written or would replace an input file."""
    if str(path) == "-":
        raise DecibanError("a model cannot be written to standard output: give -o the name of a file")
    require_replaceable(path)
    if path.exists() and any(path.samefile(other) for other in inputs):
        raise DecibanError(f"{path} is one of the input files: give the result another name")
