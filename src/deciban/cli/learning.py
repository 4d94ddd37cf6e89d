"""The work of `deciban fit`: rows of files into a model, and how good it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deciban.cli.data import for_model, in_memory, label_for, prepared, require_able, require_writable
from deciban.cli.kinds import KINDS, READ_AS, model_of, words_of
from deciban.cli.options import Reading, columns_named, label_named, require_column
from deciban.cli.progress import watched
from deciban.errors import DecibanError
from deciban.evaluation import Evaluation, cross_validate
from deciban.models import CalibratedClassifier, load
from deciban.sources.cells import cells_of_classes
from deciban.sources.files import Scan
from deciban.sources.mailboxes import Mailboxes

if TYPE_CHECKING:
    from deciban.engines.files import Files


@contextmanager
def opened(
    data: Sequence[str], reading: Reading, output: Path, engine: str | None, *, quiet: bool
) -> Iterator[Scan | Files]:
    """The rows of files, once it is clear that the result can be written; progress is shown while they are read."""
    if engine is None:
        scan = reading.scan(data)
        require_writable(output, [part.path for part in scan.parts])
        with watched(scan, quiet=quiet):
            yield scan
        return
    from deciban.cli.engines import engine_files

    require_writable(output, [path for path in data if Path(path).exists()])
    with engine_files(engine, data, reading, quiet=quiet) as files:
        yield files


def learned(
    scan: Scan | Files,
    label: str,
    *,
    trim_label: str | None,
    weight: str | None,
    drop: Sequence[str] | None,
    columns: Sequence[str] | None,
    text: Sequence[str] | None,
    kind: str,
    settings: Mapping[str, Any],
    calibrate: str | None,
    folds: int | None,
    loo: bool,
) -> tuple[Any, dict[str, Evaluation]]:
    """A model of the rows, and how they were judged."""
    label = label_named(scan.knowing([name for name in (label, weight) if name]).names, label)
    scan = prepared(scan, label, trim_label, weight)
    if drop:
        scan = scan.drop(columns_named(scan.names, drop, "--drop"))
    for name, option in ((label, "--label"), (weight, "--weight")):
        if name is not None:
            require_column(scan.names, name, option)
    features = [name for name in scan.names if name not in (label, weight)]
    if not features:
        raise DecibanError(f"beside the label {label!r} there is no column to learn from: see --delimiter and --drop")
    words = words_of(columns, features)
    documents = columns_named(features, text, "--text")
    for column in documents:
        if words.setdefault(column, "text") != "text":
            raise DecibanError(f"--columns and --text say different things of {column!r}")
    if any(isinstance(part, Mailboxes) for part in getattr(scan, "parts", ())):
        words = dict.fromkeys(features, "text") | words
    scan = scan.typed({column: READ_AS[word] for column, word in words.items() if word in READ_AS})
    model = model_of(kind, settings, words, calibrate)
    if not isinstance(scan, Scan):
        from deciban.cli.engines import fit_parts

        return fit_parts(model, scan, label, weight, folds)
    if KINDS[kind].streams and not (calibrate or folds or loo):
        return model.fit(scan, label, sample_weight=weight), {}
    if loo:
        require_able(model, "leave_one_out", "leave rows out: use --folds instead of --loo")
    return model, _fit_in_memory(model, scan, label, weight, folds=folds, loo=loo)


def _fit_in_memory(
    model: Any, scan: Scan, label: str, weight: str | None, *, folds: int | None, loo: bool
) -> dict[str, Evaluation]:
    frame, weights = in_memory(scan, weight)
    judged = {}
    with scan.located():
        model.fit(frame, label, sample_weight=weights)
        if folds:
            judged["folds"] = cross_validate(model, frame, label, folds, sample_weight=weights)
        if loo:
            judged["leave_one_out"] = model.leave_one_out(frame, label, weights)
    return judged


def resumed(path: Path, scan: Scan | Files, label: str | None, trim_label: str | None, weight: str | None) -> Any:
    """A model that has learned the rows beside those that it knew."""
    model = load(path)
    require_able(model, "partial_fit", "go on learning: fit again, with all files")
    return _learn_more(model, model, scan, label, trim_label, weight)


def learned_like(path: Path, scan: Scan | Files, label: str | None, trim_label: str | None, weight: str | None) -> Any:
    """A model of these rows alone, that reads them as another does: both can be merged without loss."""
    model = load(path)
    require_able(model, "empty_copy", "be followed by --like: fit one model, with all files")
    return _learn_more(model.empty_copy(), model, scan, label, trim_label, weight)


def _learn_more(
    model: Any, known: Any, scan: Scan | Files, label: str | None, trim_label: str | None, weight: str | None
) -> Any:
    """The model, once it has learned the rows; their label and its classes are as another model knows them."""
    label = label_for(known, scan, label)
    scan = prepared(scan, label, trim_label, weight)
    scan = scan.typed(cells_of_classes(label, tuple(known.classes_.tolist())))
    if not isinstance(scan, Scan):
        from deciban.cli.engines import resume_parts

        return resume_parts(model, scan, label, weight)
    if not isinstance(model, CalibratedClassifier):
        return model.partial_fit(scan, label, sample_weight=weight)
    stream = for_model(model, scan, label, weight)
    frame, weights = in_memory(stream, weight)
    with stream.located():
        return model.partial_fit(frame, label, sample_weight=weights)
