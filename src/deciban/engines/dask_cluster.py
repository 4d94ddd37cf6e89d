"""Files that Dask reads, and a cluster of its to read them on: what `deciban fit --engine dask` needs."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from deciban.engines.dask import Partitions, rows  # which says what is missing, if it is
from deciban.engines.files import Files, Piece, require_lines, require_once, table_files, text_files, uninterrupted
from deciban.errors import DecibanError
from deciban.sources.arrow import table_frame
from deciban.sources.dialect import Asked
from deciban.sources.text import SAMPLE

try:
    import dask
    import dask.dataframe as dd
    import distributed
    from dask.bytes import read_bytes
    from fsspec.core import get_fs_token_paths, has_magic, open_files
except ImportError as error:
    raise ImportError(f"a cluster of Dask needs distributed: pip install deciban[dask] ({error})") from error

BLOCK = 1 << 26  # bytes of text that are a partition


def reading(paths: Sequence[str], format: str, asked: Asked, encoding: str = "utf-8", block_size: int = BLOCK) -> Files:
    """Files of csv, JSON lines or parquet, wherever fsspec finds them; its `rows` are what a model learns from."""
    urls = _found(paths, folders=format == "parquet")
    if format == "parquet":
        frame = dd.read_parquet(urls, dtype_backend="pyarrow", index=False)
        return table_files(
            table_frame(frame._meta).table.schema, lambda names, label, weight: rows(frame[names], label, weight)
        )
    require_lines(encoding)
    opened = open_files(urls, "rb", compression="infer")
    packed = any(file.compression for file in opened)  # which cannot be cut
    _, blocks, _ = read_bytes(
        urls,
        delimiter=b"\n",
        blocksize=None if packed else block_size,
        sample=False,
        compression="infer" if packed else None,
        include_path=True,
    )
    parts = tuple(
        (_plain(url), encoding, place, block)
        for url, of_file in zip(urls, blocks, strict=True)
        for place, block in enumerate(of_file)
    )
    start = next((head for head in map(_head, opened) if head.strip()), b"")
    sample = Piece(_plain(urls[0]), encoding, data=start)
    return text_files(sample, format, asked, lambda columns, reader: Partitions(columns, reader, parts), _pieces)


def _found(paths: Sequence[str], *, folders: bool) -> list[str]:
    """The URLs of files that paths and patterns name, or those in a folder."""
    urls: list[str] = []
    for path in paths:
        system, _, found = get_fs_token_paths(path if "://" in path else os.path.expanduser(path))
        if has_magic(path):
            found = sorted(each for each in system.glob(path) if folders or not system.isdir(each))
        if not found or not system.exists(found[0]):
            raise DecibanError(f"no file matches {path!r}" if has_magic(path) else f"there is no file {path!r}")
        for each in found:
            inside = _inside(system, each) if not folders and system.isdir(each) else [each]
            urls += map(system.unstrip_protocol, inside)
    require_once([_plain(url) for url in urls])
    return urls


def _inside(system: Any, folder: str) -> list[str]:
    """The files of a folder, but for those that engines write beside their rows: .part-0.csv.crc, _SUCCESS."""
    return sorted(path for path in system.find(folder) if path.rpartition("/")[2][:1] not in (".", "_"))


def _plain(url: str) -> str:
    return url.removeprefix("file://")


def _head(opened: Any) -> bytes:
    """The first lines of a file."""
    with opened as file:
        head: bytes = file.read(SAMPLE)
        while not head.endswith(b"\n") and (more := file.readline()):
            head += more
    return head


def _pieces(number: int, part: tuple[str, str, int, bytes]) -> Iterator[Piece]:
    path, encoding, place, data = part
    called = f"{path}, block {place}" if place else path
    yield Piece(path, encoding, called=called, data=data, begins=place == 0)


# A cluster -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Session:
    """A cluster that works for this process."""

    client: Any
    dashboard: str | None = None

    def progress(self) -> tuple[str, int, int] | None:
        """The pass that is going on, how many partitions are done in it, and of how many; None between passes."""
        found: tuple[str, int, int] | None = self.client.run_on_scheduler(_progress)
        return found


def _progress(dask_scheduler: Any) -> tuple[str, int, int] | None:
    for name, group in dask_scheduler.task_groups.items():
        if str(name).startswith("deciban-collect-") and any(group.states.values()):
            waiting = sum(group.states[state] for state in ("waiting", "queued", "no-worker", "processing"))
            return str(name), len(group) - waiting, len(group)
    return None


@contextmanager
def session(*, shown: bool = False) -> Iterator[Session]:
    """The cluster of the scheduler that Dask's settings name ("scheduler-address"), or one of local processes.

    - `shown`: whether somebody looks: a local cluster then has a dashboard, if bokeh is there.

    What goes wrong with files or the cluster is an error in one line.
    """
    failures = OSError, ImportError, pa.ArrowException, distributed.KilledWorker
    visible = shown and find_spec("bokeh") is not None
    with ExitStack() as stack:
        try:
            stack.enter_context(_unlogged("asyncio"))  # of what it waited for when it was interrupted
            with uninterrupted(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a port that is in use, a dashboard that cannot start
                address = dask.config.get("scheduler-address", None)
                if address is None:
                    place = "127.0.0.1:8787" if visible else None
                    local = distributed.LocalCluster(dashboard_address=place, silence_logs="CRITICAL")
                    address = stack.enter_context(local)
                client = stack.enter_context(distributed.Client(address))
            yield Session(client, client.dashboard_link if visible else None)
        except DecibanError:
            raise
        except failures as error:
            raise DecibanError(f"dask: {_one_line(error)}") from error


@contextmanager
def _unlogged(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _one_line(error: BaseException) -> str:
    """What went wrong in the first place."""
    while error.__cause__ is not None and not isinstance(error, ImportError):  # which says what to install
        error = error.__cause__
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
