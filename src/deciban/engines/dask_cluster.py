"""Files that Dask reads, and a Dask cluster to read them: for `deciban fit --engine dask`."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from deciban.data.arrow import table_frame
from deciban.data.files.dialect import CsvOptions
from deciban.data.files.source_paths import require_unique_paths
from deciban.data.files.text_files import SAMPLE
from deciban.engines.cluster_session import ClusterSession, deferred_interrupts
from deciban.engines.dask import DaskRows, rows  # raises if Dask is not installed
from deciban.engines.engine_files import EngineFiles, table_files
from deciban.engines.text_partitions import TextBlock, require_line_breaks, text_files
from deciban.errors import DecibanError

try:
    import dask
    import dask.dataframe as dd
    import distributed
    from dask.bytes import read_bytes
    from fsspec.core import get_fs_token_paths, has_magic, open_files
except ImportError as error:
    raise ImportError(f"a Dask cluster needs distributed: pip install deciban[dask] ({error})") from error

BLOCK = 1 << 26  # bytes of text per partition


def read_files(
    paths: Sequence[str], format: str, csv: CsvOptions, encoding: str = "utf-8", block_size: int = BLOCK
) -> EngineFiles:
    """Files of csv, JSON lines or parquet, on any file system that fsspec knows."""
    urls = _resolve(paths, folders=format == "parquet")
    if format == "parquet":
        frame = dd.read_parquet(urls, dtype_backend="pyarrow", index=False)
        return table_files(
            table_frame(frame._meta).table.schema, lambda names, label, weight: rows(frame[names], label, weight)
        )
    require_line_breaks(encoding)
    opened = open_files(urls, "rb", compression="infer")
    compressed = any(file.compression for file in opened)  # such files cannot be split
    _, blocks, _ = read_bytes(
        urls,
        delimiter=b"\n",
        blocksize=None if compressed else block_size,
        sample=False,
        compression="infer" if compressed else None,
        include_path=True,
    )
    partitions = tuple(
        (_plain(url), encoding, index, block)
        for url, file_blocks in zip(urls, blocks, strict=True)
        for index, block in enumerate(file_blocks)
    )
    start = next((head for head in map(_head, opened) if head.strip()), b"")
    sample = TextBlock(_plain(urls[0]), encoding, data=start)
    return text_files(sample, format, csv, lambda columns, read: DaskRows(columns, read, partitions), _blocks)


def _resolve(paths: Sequence[str], *, folders: bool) -> list[str]:
    """The URLs of the files that paths and patterns name; with `folders`, folders stay whole."""
    urls: list[str] = []
    for path in paths:
        system, _, matches = get_fs_token_paths(path if "://" in path else os.path.expanduser(path))
        if has_magic(path):
            matches = sorted(match for match in system.glob(path) if folders or not system.isdir(match))
        if not matches or not system.exists(matches[0]):
            raise DecibanError(f"no file matches {path!r}" if has_magic(path) else f"there is no file {path!r}")
        for match in matches:
            files = _files_in(system, match) if not folders and system.isdir(match) else [match]
            urls += map(system.unstrip_protocol, files)
    require_unique_paths([_plain(url) for url in urls])
    return urls


def _files_in(system: Any, folder: str) -> list[str]:
    """The files of a folder, except those that engines write beside rows: .part-0.csv.crc, _SUCCESS."""
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


def _blocks(number: int, partition: tuple[str, str, int, bytes]) -> Iterator[TextBlock]:
    path, encoding, index, data = partition
    name = f"{path}, block {index}" if index else path
    yield TextBlock(path, encoding, name=name, data=data, starts_file=index == 0)


# A cluster -----------------------------------------------------------------------------------------------------------


def _progress(dask_scheduler: Any) -> tuple[str, int, int] | None:
    for name, group in dask_scheduler.task_groups.items():
        if str(name).startswith("deciban-collect-") and any(group.states.values()):
            waiting = sum(group.states[state] for state in ("waiting", "queued", "no-worker", "processing"))
            return str(name), len(group) - waiting, len(group)
    return None


@contextmanager
def session(*, dashboard: bool = False) -> Iterator[ClusterSession]:
    """The cluster of Dask's setting "scheduler-address", or one of local processes.

    A local cluster has a dashboard if bokeh is installed. Failures of files and of the cluster raise a DecibanError
    with a message of one line.
    """
    failures = OSError, ImportError, pa.ArrowException, distributed.KilledWorker
    dashboard = dashboard and find_spec("bokeh") is not None
    with ExitStack() as stack:
        try:
            logger = logging.getLogger("asyncio")
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)  # Ctrl-C cancels tasks, which asyncio would log
            with deferred_interrupts(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as a port in use, or a dashboard that cannot start
                address = dask.config.get("scheduler-address", None)
                if address is None:
                    url = "127.0.0.1:8787" if dashboard else None
                    local = distributed.LocalCluster(dashboard_address=url, silence_logs="CRITICAL")
                    address = stack.enter_context(local)
                client = stack.enter_context(distributed.Client(address))
            progress = partial(client.run_on_scheduler, _progress)
            yield ClusterSession(client.dashboard_link if dashboard else None, progress)
        except DecibanError:
            raise
        except failures as error:
            raise DecibanError(f"dask: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    """The first line of the root cause."""
    while error.__cause__ is not None and not isinstance(error, ImportError):  # its message says what to install
        error = error.__cause__
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
