"""`deciban fit --engine`: files that Dask or Spark reads, on this machine or on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from deciban.errors import DecibanError

if TYPE_CHECKING:
    from rich.progress import Progress

    from deciban.cli.options import Reading
    from deciban.engines.files import Files
    from deciban.evaluation import Evaluation

POLLED = 0.5  # seconds between looks at how far the work has come


@contextmanager
def engine_files(engine: str, data: Sequence[str], reading: Reading, *, quiet: bool) -> Iterator[Files]:
    """The files as the engine reads them; its cluster is there for as long."""
    from deciban.cli.options import FORMATS, columns_named
    from deciban.engines.files import FORMATS as READ
    from deciban.engines.files import format_of

    refuse({"--skip": reading.skip, "--labels": reading.labels})
    if reading.input_format in FORMATS and reading.input_format not in READ:
        refuse({f"--input-format {reading.input_format}": True})
    if "-" in data:
        refuse({"- (standard input)": True})
    try:
        format = format_of(data, reading.input_format)
    except DecibanError as error:
        raise DecibanError(f"{error}: --input-format") from None
    try:
        works = import_module(f"deciban.engines.{engine}_cluster")
        shown = not quiet and sys.stderr.isatty()
        with works.session(shown=shown) as session, _watched(session, shown=shown):
            found: Files = works.reading(data, format, reading.asked, reading.encoding)
            categories = columns_named(found.names, reading.category, "--category")
            yield found.typed(dict.fromkeys(categories, "text"))
    except ImportError as error:
        raise DecibanError(str(error)) from error


def refuse(options: Mapping[str, Any]) -> None:
    """Of what an engine does not do, what was asked for is named."""
    asked = [option for option, value in options.items() if value]
    if asked:
        raise DecibanError(f"--engine does not go with {', '.join(asked)}: leave out --engine")


# Learning ------------------------------------------------------------------------------------------------------------


def fit_parts(
    model: Any, files: Files, label: str, weight: str | None, folds: int | None
) -> tuple[Any, dict[str, Evaluation]]:
    """The model, fitted where the rows are, and how good it is."""
    from deciban.evaluation import cross_validate

    rows = files.rows(label, weight)
    model.fit(rows)
    return model, {"folds": cross_validate(model, rows, None, folds)} if folds else {}


def resume_parts(model: Any, files: Files, label: str, weight: str | None) -> Any:
    """The model, once it has learned these rows too: read as those that it knows."""
    from deciban.cli.data import columns_for, kind_of_model
    from deciban.models import CalibratedClassifier
    from deciban.sources.cells import cells_of_classes

    if isinstance(model, CalibratedClassifier):
        raise DecibanError(f"{kind_of_model(model)} needs all rows in one place: leave out --engine")
    named = [name for name in (label, weight) if name is not None]
    columns_for(model, files, named)  # it has them all  # type: ignore[arg-type]
    stream = model._stream(files, first=False, also=named, learns=True)
    known: Files = stream.typed(cells_of_classes(label, tuple(model.classes_.tolist())))
    return model.partial_fit(known.rows(label, weight))


# Progress ------------------------------------------------------------------------------------------------------------


@contextmanager
def _watched(session: Any, *, shown: bool) -> Iterator[None]:
    """Shows how many partitions of a pass are done."""
    if not shown:
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    console, ended = Console(stderr=True), Event()
    if session.dashboard:
        console.print(f"dashboard: {session.dashboard}", highlight=False, soft_wrap=True)
    with Progress(*columns, console=console, transient=True) as progress:
        looks = Thread(target=_look, args=(session, progress, ended), daemon=True)
        looks.start()
        try:
            yield
        finally:
            ended.set()
            looks.join(timeout=10 * POLLED)


def _look(session: Any, progress: Progress, ended: Event) -> None:
    task, met = progress.add_task("working", total=None), set[str]()
    while not ended.wait(POLLED):
        with suppress(Exception):  # a scheduler that is busy, or gone, shows nothing
            found = session.progress()
            if found is None:
                progress.update(task, description="working")
                continue
            name, done, count = found
            met.add(name)
            progress.update(task, description=f"pass {len(met)}", completed=done, total=count)
