"""The work of `deciban fit`: from the rows of files to a model and its evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deciban.cli.fit import ModelPlan
from deciban.cli.model_kinds import KINDS, cell_type, model_of, parse_columns
from deciban.cli.model_rows import for_model, label_for, prepared, require_able, require_writable
from deciban.cli.options import Reading, Target, columns_named, label_named, require_column
from deciban.cli.progress import watched
from deciban.data.cell_types import label_cell_types
from deciban.data.files.mailboxes import Mailboxes
from deciban.data.files.scan import Scan
from deciban.data.stream import read_table
from deciban.errors import DecibanError
from deciban.estimators import load
from deciban.evaluation import Evaluation, cross_validate

if TYPE_CHECKING:
    from deciban.engines.engine_files import EngineFiles


@contextmanager
def opened(
    data: Sequence[str], reading: Reading, output: Path, engine: str | None, *, quiet: bool
) -> Iterator[Scan | EngineFiles]:
    """The rows of files, once the output is known to be writable; shows progress while they are read."""
    if engine is None:
        scan = reading.scan(data)
        require_writable(output, [fragment.path for fragment in scan.fragments])
        with watched(scan, quiet=quiet):
            yield scan
        return
    from deciban.cli.engine_runs import engine_files

    require_writable(output, [path for path in data if Path(path).exists()])
    with engine_files(engine, data, reading, quiet=quiet) as files:
        yield files


def fit_new(plan: ModelPlan, scan: Scan | EngineFiles, target: Target) -> tuple[Any, dict[str, Evaluation]]:
    """A new model of the rows, and its evaluations by name."""
    assert target.label is not None
    label, weight = target.label, target.weight
    label = label_named(scan.resolve_columns([name for name in (label, weight) if name]).names, label)
    scan = prepared(scan, label, target)
    if plan.drop:
        scan = scan.drop(columns_named(scan.names, plan.drop, "--drop"))
    for name, option in ((label, "--label"), (weight, "--weight")):
        if name is not None:
            require_column(scan.names, name, option)
    features = [name for name in scan.names if name not in (label, weight)]
    if not features:
        raise DecibanError(f"there is no feature besides the label {label!r}: check --delimiter and --drop")
    words = _words(plan, scan, features)
    types = {column: cell_type(word) for column, word in words.items()}
    scan = scan.with_types({column: type_ for column, type_ in types.items() if type_})
    model = model_of(plan.kind, plan.settings.params, words, plan.calibrate)
    if not isinstance(scan, Scan):
        from deciban.cli.engine_runs import fit_distributed

        return fit_distributed(model, scan, label, weight, plan.folds)
    if KINDS[plan.kind].streams and not (plan.calibrate or plan.folds or plan.loo):
        return model.fit(scan, label, sample_weight=weight), {}
    if plan.loo and "leave_one_out" not in model.capabilities:
        raise DecibanError(
            f"a model of kind {type(model).__name__} cannot leave rows out: use --folds instead of --loo"
        )
    frame = read_table(scan)
    evaluations = {}
    with scan.error_context():
        model.fit(frame, label, sample_weight=weight)
        if plan.folds:
            evaluations["folds"] = cross_validate(model, frame, label, plan.folds, sample_weight=weight)
        if plan.loo:
            evaluations["leave_one_out"] = model.leave_one_out(frame, label, weight)
    return model, evaluations


def _words(plan: ModelPlan, scan: Scan | EngineFiles, features: list[str]) -> dict[str, str]:
    """The family or type of columns, by --columns, --text or the format: all columns of mail are text."""
    words = parse_columns(plan.columns, features)
    for column in columns_named(features, plan.text, "--text"):
        if words.setdefault(column, "text") != "text":
            raise DecibanError(f"--columns and --text disagree about column {column!r}")
    if isinstance(scan, Scan) and any(isinstance(fragment, Mailboxes) for fragment in scan.fragments):
        return dict.fromkeys(features, "text") | words
    return words


def resumed(path: Path, scan: Scan | EngineFiles, target: Target) -> Any:
    """A saved model, trained on more rows."""
    model = load(path)
    require_able(model, "partial_fit", "continue training: fit again, with all files")
    return _fit_more(model, model, scan, target)


def fit_like(path: Path, scan: Scan | EngineFiles, target: Target) -> Any:
    """A new model of these rows that reads columns as a saved model does, so that both merge without loss."""
    model = load(path)
    require_able(model, "empty_copy", "be followed by --like: fit one model, with all files")
    return _fit_more(model.empty_copy(), model, scan, target)


def _fit_more(model: Any, saved: Any, scan: Scan | EngineFiles, target: Target) -> Any:
    """The model after partial_fit, with the label and classes of the saved model."""
    label, weight = label_for(saved, scan, target.label), target.weight
    scan = prepared(scan, label, target)
    scan = scan.with_types(label_cell_types(label, tuple(saved.classes_.tolist())))
    if not isinstance(scan, Scan):
        from deciban.cli.engine_runs import resume_distributed

        return resume_distributed(model, scan, label, weight)
    if not model.calibrations_:
        return model.partial_fit(scan, label, sample_weight=weight)
    stream = for_model(model, scan, label, weight)
    frame = read_table(stream)
    with stream.error_context():
        return model.partial_fit(frame, label, sample_weight=weight)
