"""`deciban fit --engine`: files that Dask or Spark reads, on this machine or on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from deciban.errors import DecibanError

if TYPE_CHECKING:
    from rich.progress import Progress

    from deciban.cli.options import Reading
    from deciban.engines.engine_files import EngineFiles
    from deciban.evaluation import Evaluation

POLL_SECONDS = 0.5  # between updates of the progress bar


@contextmanager
def engine_files(engine: str, data: Sequence[str], reading: Reading, *, quiet: bool) -> Iterator[EngineFiles]:
    """The files as the engine reads them, while its cluster runs."""
    from deciban.cli.options import FORMATS, columns_named
    from deciban.engines.engine_files import FORMATS as SUPPORTED
    from deciban.engines.engine_files import format_of

    unsupported = reading.input_format in FORMATS and reading.input_format not in SUPPORTED
    refuse({"--skip": reading.skip, "--labels": reading.labels, f"--input-format {reading.input_format}": unsupported})
    refuse({"- (standard input)": "-" in data})
    try:
        format = format_of(data, reading.input_format)
    except DecibanError as error:
        raise DecibanError(f"{error}: --input-format") from None
    try:
        cluster = import_module(f"deciban.engines.{engine}_cluster")
        interactive = not quiet and sys.stderr.isatty()
        with cluster.session(dashboard=interactive) as session, _watched(session) if interactive else nullcontext():
            files: EngineFiles = cluster.read_files(data, format, reading.csv_options, reading.encoding)
            categories = columns_named(files.names, reading.category, "--category")
            yield files.with_types(dict.fromkeys(categories, "text"))
    except ImportError as error:
        raise DecibanError(str(error)) from error


def refuse(options: Mapping[str, Any]) -> None:
    """Raises an error for options that an engine does not support."""
    used = [option for option, value in options.items() if value]
    if used:
        raise DecibanError(f"--engine does not support {', '.join(used)}: drop --engine")


# Fitting -------------------------------------------------------------------------------------------------------------


def fit_distributed(
    model: Any, files: EngineFiles, label: str, weight: str | None, folds: int | None
) -> tuple[Any, dict[str, Evaluation]]:
    """Fits the model on the cluster; returns it and its evaluations by name."""
    from deciban.evaluation import cross_validate

    rows = files.rows(label, weight)
    model.fit(rows)
    return model, {"folds": cross_validate(model, rows, None, folds)} if folds else {}


def resume_distributed(model: Any, files: EngineFiles, label: str, weight: str | None) -> Any:
    """The model after partial_fit on the cluster, with columns read as in training."""
    from deciban.cli.model_rows import columns_for, kind_of_model
    from deciban.data.cell_types import label_cell_types

    if model.calibrations_:
        raise DecibanError(f"{kind_of_model(model)} needs all rows in memory: drop --engine")
    others = [name for name in (label, weight) if name is not None]
    columns_for(model, files, others)  # raises if a column is missing  # type: ignore[arg-type]
    stream = model.columns_.to_learn().stream(files, others)
    typed: EngineFiles = stream.with_types(label_cell_types(label, tuple(model.classes_.tolist())))
    return model.partial_fit(typed.rows(label, weight))


# Progress ------------------------------------------------------------------------------------------------------------


@contextmanager
def _watched(session: Any) -> Iterator[None]:
    """Shows how many partitions of the pass are done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    console, ended = Console(stderr=True), Event()
    if session.dashboard:
        console.print(f"dashboard: {session.dashboard}", highlight=False, soft_wrap=True)
    with Progress(*columns, console=console, transient=True) as progress:
        poller = Thread(target=_poll, args=(session, progress, ended), daemon=True)
        poller.start()
        try:
            yield
        finally:
            ended.set()
            poller.join(timeout=10 * POLL_SECONDS)


def _poll(session: Any, progress: Progress, ended: Event) -> None:
    task, passes = progress.add_task("working", total=None), set[str]()
    while not ended.wait(POLL_SECONDS):
        with suppress(Exception):  # the scheduler may be busy, or closed
            state = session.progress()
            if state is None:
                progress.update(task, description="working")
                continue
            name, done, count = state
            passes.add(name)
            progress.update(task, description=f"pass {len(passes)}", completed=done, total=count)
