"""What targets of files share: a file in memory's own folder, and what reading or fitting it gives."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import deciban as db


@cache
def folder() -> Path:
    """A temporary folder of this process."""
    made = tempfile.TemporaryDirectory(prefix="deciban-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    _folders.append(made)
    return Path(made.name)


_folders: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


def written(name: str, data: bytes) -> Path:
    path = folder() / name
    path.write_bytes(data)
    return path


def outcome(work: Callable[[], Any]) -> Any:
    """The result, or None for an error that this library raises on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return work()
        except db.DecibanError:
            return None


def fitted(rows: Callable[[], Any], names: Callable[[], list[str]]) -> None:
    """Fits models to rows, and lets them predict; the label is column y, or the last one."""

    def fit(model: Any) -> Any:
        columns = names()
        return model.fit(rows(), "y" if "y" in columns or not columns else columns[-1])

    if (model := outcome(lambda: fit(db.NaiveBayes()))) is not None:
        outcome(lambda: model.predict_proba(rows()))
    outcome(lambda: fit(db.NaiveBayes({"t": db.families.Text()})))


def table(path: Path, **options: Any) -> Any:
    """All rows of a file; None if it is refused."""
    return outcome(lambda: db.scan(path, **options).read())


def require_same_cells(path: Path, **options: Any) -> None:
    """Raises unless a text file has the same cells, or is refused, for every size of blocks."""
    size = path.stat().st_size
    expected = _described(table(path, **options))
    for block_size in {1 + size // 7, 1 + size // 2, *([1] if size < 64 else [])}:
        result = _described(table(path, block_size=block_size, **options))
        if result != expected:
            raise AssertionError(f"blocks of {block_size} bytes give {result}, and one block gives {expected}")


def _described(rows: Any) -> str | None:
    return None if rows is None else repr(rows.to_pydict())
