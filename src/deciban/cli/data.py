"""Rows of files for a model: its label, its weights, its columns."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from deciban.cli.options import label_named, require_column
from deciban.errors import DecibanError
from deciban.generative import Block, Generative
from deciban.models.calibrated import CalibratedClassifier
from deciban.schema import columns_named
from deciban.sources.arrow import TableFrame
from deciban.sources.cells import cells_of_classes
from deciban.sources.files import Scan
from deciban.sources.intake import split_weights
from deciban.sources.stream import table_of
from deciban.storage import require_replaceable
from deciban.types import FloatArray, Level

if TYPE_CHECKING:
    from deciban.engines.files import Files

S = TypeVar("S", bound="Scan | Files")  # which have the same methods


def prepared(scan: S, label: str, trim_label: str | None, weight: str | None) -> S:
    """The same files: labels without some characters at their end, weights read as numbers."""
    scan = scan.trimmed(label, trim_label) if trim_label else scan  # type: ignore[assignment]
    if weight is None:
        return scan
    require_column(scan.names, weight, "--weight")
    if weight == label:
        raise DecibanError(f"--weight and --label name the same column, {label!r}")
    return scan.typed({weight: "number"})  # type: ignore[return-value]


def in_memory(scan: Scan, weight: str | None) -> tuple[TableFrame, FloatArray | None]:
    """All rows, and their weights."""
    frame, weights = split_weights(table_of(scan), weight)
    assert isinstance(frame, TableFrame)
    return frame, weights


# Models --------------------------------------------------------------------------------------------------------------


def inner(model: Any) -> Any:
    """What reads the columns: of a calibrated model the one inside."""
    return model.model_ if isinstance(model, CalibratedClassifier) else model


def columns_for(model: Any, scan: S, also: Collection[str] = ()) -> S:
    """The columns that a model reads, typed as those that it learned from, and some others."""
    reader = inner(model)
    if reader._schema().positional:
        raise DecibanError("the model was learned from an array, whose columns have no names: fit it on a table")
    stream: S = reader._stream(scan, first=False, also=also)
    lacking = [name for name in reader._schema().names if name not in stream.names]
    if lacking:
        raise DecibanError(f"the table lacks {columns_named(lacking)}; it has {columns_named(scan.names)}")
    return stream


def for_model(model: Any, scan: Scan, label: str, weight: str | None = None) -> Scan:
    """The same with a label, typed as the classes that the model knows, and a weight."""
    stream = columns_for(model, scan, [name for name in (label, weight) if name is not None])
    return stream.typed(cells_of_classes(label, tuple(model.classes_.tolist())))


def label_for(model: Any, scan: Scan | Files, given: str | None) -> str:
    """The column of classes: as given, or as it was called when the model was learned."""
    known = label_known(model)
    if given is not None:
        label = label_named(scan.knowing([given]).names, given)
        if label in inner(model)._schema().names:
            classes = "" if known is None else f"; its classes are those of {known!r}"
            raise DecibanError(f"--label: {label!r} is a column that the model predicts from{classes}")
        return label
    if known is None:
        raise DecibanError("the model does not know which column holds the classes: give --label")
    require_column(scan.knowing([known]).names, known, "--label, as the model knows it")
    return known


def label_known(model: Any) -> str | None:
    """What the column of classes was called when the model was learned, if it had a name."""
    known: str | None = model.label_name_ or inner(model).label_name_
    return known


def settings_of(model: Any) -> dict[str, Any]:
    """By name; of a calibrated model also those of the one inside.

    >>> import deciban as db
    >>> settings_of(db.CalibratedClassifier(db.NaiveBayes(smoothing=5)).fit([[1.0], [2.0]], ["a", "b"]))["smoothing"]
    5
    """
    settings: dict[str, Any] = model.get_params(deep=False)
    if not isinstance(model, CalibratedClassifier):
        return settings
    return {name: value for name, value in settings.items() if name != "model"} | settings_of(model.model_)


def class_named(model: Any, text: str | None, option: str) -> Level:
    """The class that is written so; None if none is asked for."""
    levels: list[Level] = model.classes_.tolist()
    found = [level for level in levels if str(level) == text]
    if text is not None and not found:
        raise DecibanError(f"{option}: there is no class {text!r}; there are {', '.join(map(str, levels))}")
    return found[0] if found else None


def kind_of_model(model: Any) -> str:
    """In words.

    >>> import deciban as db
    >>> kind_of_model(db.CalibratedClassifier(db.NaiveBayes()).fit([[1.0], [2.0]], ["a", "b"]))
    'NaiveBayes, calibrated (temperature)'
    """
    return type(inner(model)).__name__ + (
        f", calibrated ({model.method})" if isinstance(model, CalibratedClassifier) else ""
    )


def require_able(model: Any, method: str, purpose: str) -> None:
    """Models that have no such method say so."""
    if not hasattr(model, method):
        name = type(model).__name__ if not hasattr(model, "classes_") else kind_of_model(model)
        raise DecibanError(f"a model of the kind {name} cannot {purpose}")


def require_rows(model: Any, purpose: str) -> None:
    """A model that has forgotten all rows says so."""
    if not len(getattr(model, "classes_", [0])):
        raise DecibanError(f"every row was forgotten: there is nothing {purpose} until fit --resume")


def require_known(labels: list[Level], known: list[Level]) -> None:
    """Labels of which the model knows none are most likely those of another column."""
    if not {*labels} & {*known}:
        raise DecibanError(
            f"none of the labels is a class of the model: the labels are {_some(labels)}; the classes are "
            f"{_some(known)}. Is --label the right column? --trim-label takes characters off the end of labels"
        )


def _some(levels: list[Level]) -> str:
    return ", ".join(repr(level) for level in levels[:10]) + ("" if len(levels) <= 10 else ", …")


def blocks_together(model: Any) -> list[Block]:
    """What a generative model knows of several columns together."""
    evidence: Generative | None = getattr(inner(model), "generative_", None)
    return [] if evidence is None else [block for block in evidence.blocks if block.plan.family.joint]


# Files ---------------------------------------------------------------------------------------------------------------


def require_writable(path: Path, read: Collection[str] = ()) -> None:
    """Before long work: its result can be written, to an ordinary file that is none of those that it reads."""
    if str(path) == "-":
        raise DecibanError("a model is not for standard output: give -o the name of a file")
    require_replaceable(path)
    if path.exists() and any(path.samefile(other) for other in read):
        raise DecibanError(f"{path} is one of the files that are read: give the result another name")
