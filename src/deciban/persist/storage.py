"""Storage: a tree of plain values and named arrays as one file, written whole or not at all, read only if undamaged."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from numpy.typing import NDArray
from safetensors.numpy import load as decode_arrays
from safetensors.numpy import save as encode_arrays

import deciban
from deciban.errors import DecibanError
from deciban.persist.packing import Arrays, pack_all, unpack_all

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 2  # 1 had no packed arrays
NEEDS = "0.1.0"  # the least version of deciban that reads this format
KEY = "deciban"  # of the metadata, whose order is left to chance: so there is one entry only
MOST_HEADER = 1 << 25  # bytes: what is parsed takes some thirty times as much
BLANK = b"0" * 64  # stands for the checksum while it is made
MARK = b'\\"checksum\\":\\"'  # the first key of the text, so its first occurrence in the file is ours

FilePath = str | os.PathLike[str]

LOOKS = (
    (rb'.{8}\{"__metadata__":\{"deciban"', "a model file whose end is missing: copy it again"),
    (rb".{8}\{", "a file of safetensors that holds no model of deciban"),
    (rb"\x80[\x02-\x05]", "a pickle, which may run any code when it is loaded; save the model by model.save(path)"),
    (rb"PK\x03\x04", "a zip archive"),
    (rb"\x1f\x8b", "a file packed by gzip"),
    (rb"\x93NUMPY", "an array of numpy"),
    (rb"PAR1", "a table in Parquet"),
    (rb"(?i)\s*<(!doctype|html|\?xml)", "a web page: was the address right?"),
    (rb"version https://git-lfs", "a pointer to a file in Git LFS: fetch the file itself by `git lfs pull`"),
    (rb"[\t\n\r -~]+", "text"),
    (rb"\Z", "an empty file"),
)


@contextmanager
def locked(path: FilePath, seconds: float = 60.0) -> Iterator[None]:
    """An exclusive lock for reading, changing and writing a file; waits until nobody else has it.

    The lock is on the folder, since the file itself is replaced, and so that nothing is left behind. It ends with the
    process, however that ends.
    """
    folder = os.path.dirname(os.path.realpath(path))
    descriptor = None
    try:
        try:
            descriptor = os.open(folder, os.O_RDONLY)
            _wait_for(descriptor, path, seconds)
        except OSError as error:
            raise DecibanError(f"{path} cannot be locked: {folder}: {error.strerror or error}") from error
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):  # which ends the lock all the same
                os.close(descriptor)


def _wait_for(descriptor: int, path: FilePath, seconds: float) -> None:
    import fcntl  # on Unix only
    import time

    end, pause = time.monotonic() + seconds, 0.001
    while True:
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if time.monotonic() > end:
            raise DecibanError(f"{path} is being changed by others for {seconds:.0f} s: try again later")
        time.sleep(pause)
        pause = min(0.05, 2 * pause)


@contextmanager
def replacing(path: FilePath) -> Iterator[BinaryIO]:
    """A new file, which replaces the one at `path` when all of it is written.

    Whatever goes wrong, a full disk or an interruption, the old file is unchanged. What a process that was killed has
    left in the folder is removed.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "numbers.csv"
    >>> with replacing(path) as file:
    ...     size = file.write(b"1,2")
    >>> path.read_bytes(), len(list(path.parent.iterdir()))
    (b'1,2', 1)
    """
    from pathlib import Path

    from deciban.persist.temporary_file import TemporaryFile, is_temporary

    target = Path(os.path.realpath(path))  # of a link, what it points to
    try:
        mode = _mode_of(target)
        with TemporaryFile(target.parent) as temporary:
            with os.fdopen(temporary.descriptor, "wb") as file:
                yield file
                file.flush()
                if mode is not None:
                    os.chmod(temporary.path, mode)
                os.fsync(temporary.descriptor)
            os.replace(temporary.path, str(target))
    except OSError as error:
        if error.filename in (None, str(target)) or is_temporary(error.filename):  # not of another file
            raise DecibanError(f"{path} cannot be written: {_advice(error, target)}") from error
        raise
    _sync(target.parent)


def require_replaceable(path: FilePath) -> None:
    """Raises what `replacing` would raise, before long work begins."""
    from pathlib import Path

    target = Path(os.path.realpath(path))
    try:
        _mode_of(target)
        if not target.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "")
    except OSError as error:
        raise DecibanError(f"{path} cannot be written: {_advice(error, target)}") from None


def _mode_of(target: Path) -> int | None:
    """The permissions of the file that is replaced; None if there is none. Only ordinary files are replaced."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "", str(target))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a device or a pipe: give the name of a file", str(target))
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "", str(target))
    return stat.S_IMODE(status.st_mode)


def _advice(error: OSError, target: Path) -> str:
    """What went wrong, and what to do."""
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return f"there is no directory {target.parent}: make it first"
        case errno.EISDIR:
            return "it is a directory: give the name of a file"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"you may not write {target.name} in {target.parent}: choose another folder"
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return "the disk is full: make room and try again; what was there is unchanged"
        case errno.ENAMETOOLONG:
            return "the name is too long"
        case _:
            return error.strerror or str(error)


def _sync(directory: Path) -> None:
    """Makes the new name survive a power cut, where directories can be synced."""
    with suppress(OSError):
        descriptor = os.open(str(directory), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write(path: FilePath, tree: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes a tree of JSON values and some arrays (of numbers or booleans, in C order); equal input, equal bytes.

    The file is one of safetensors. Its metadata are one JSON text: the tree, the format, the version that wrote it,
    the least version that reads it, how arrays are packed (see `packing.py`), and the SHA-256 of the whole file with
    zeros instead of the checksum.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "a.deciban"
    >>> import numpy as np
    >>> write(path, {"pi": 3.14}, {"x": np.arange(3.0)})
    >>> read(path)
    ({'pi': 3.14}, {'x': array([0., 1., 2.])})
    """
    packed, how = pack_all(arrays)
    document = {"checksum": BLANK.decode(), KEY: deciban.__version__, "format": FORMAT, "model": tree, "needs": NEEDS}
    text = json.dumps(document | {"packed": how}, sort_keys=True, separators=(",", ":"), allow_nan=False)
    data = encode_arrays(packed, {KEY: text})
    if int.from_bytes(data[:8], "little") > MOST_HEADER:
        most = f"{MOST_HEADER >> 20} MB"
        raise DecibanError(f"{path} cannot be written: names and settings take more than the {most} of a model file")
    start = data.index(MARK) + len(MARK)
    checksum = hashlib.sha256(data).hexdigest()
    with replacing(path) as file:
        for part in (data[:start], checksum.encode(), memoryview(data)[start + len(BLANK) :]):
            file.write(part)


def read(path: FilePath) -> tuple[Any, Arrays]:
    """The tree and the arrays of a file, after checking its size, header, checksum and format, in this order.

    Nothing in it is executed, and no array takes more than 64 times its bytes in the file. A file that is damaged, of a
    newer format or no model file raises a DecibanError.
    """
    data, length = _bytes_of(path)
    start = data.index(MARK) + len(MARK)
    after = start + len(BLANK)
    digest = hashlib.sha256(data[:start] + BLANK)
    digest.update(memoryview(data)[after:])
    if digest.hexdigest().encode() != data[start:after]:
        raise DecibanError(f"{path} is damaged: its checksum is wrong. Copy it again, or save it again")
    try:
        document = _parsed(_parsed(data[8 : 8 + length])["__metadata__"][KEY])
        version, needs = int(document["format"]), str(document["needs"])
    except Exception as error:
        _damaged(path, error)
    if version > FORMAT:
        raise DecibanError(
            f"{path} is of format {version}: it needs deciban {needs:.20} or newer, this is {deciban.__version__}"
        )
    try:
        return document["model"], unpack_all(decode_arrays(data), document.get("packed", {}))
    except Exception as error:
        _damaged(path, error)


def _bytes_of(path: FilePath) -> tuple[bytes, int]:
    """A whole model file, and the length of its header. Of any other file only the head is read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # to open a pipe is to wait
            kind = "a directory" if os.path.isdir(path) else "a device or a pipe"
            raise DecibanError(f"{path} is {kind}: give the name of a model file, such as model.deciban")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            ours = 8 + length <= size and length <= MOST_HEADER and MARK in file.read(length)
            file.seek(0)
            if not ours:
                raise DecibanError(f"{path} is no model of deciban: it looks like {_looks_like(file.read(1024))}")
            return file.read(size), length
    except FileNotFoundError:
        raise DecibanError(f"{path}: there is no such file") from None
    except PermissionError:
        raise DecibanError(f"{path}: you may not read it") from None
    except OSError as error:
        raise DecibanError(f"{path} cannot be read: {error.strerror or error}") from error
    except MemoryError:
        raise DecibanError(f"{path} is larger than the memory that is free") from None


def _looks_like(head: bytes) -> str:
    """What a file may be, by how it begins.

    >>> _looks_like(b"<!DOCTYPE html><html>"), _looks_like(bytes(99))
    ('a web page: was the address right?', 'something else')
    """
    kinds = (kind for pattern, kind in LOOKS if re.match(pattern, head, re.DOTALL))
    return next(kinds, "something else")


def _parsed(text: str | bytes) -> Any:
    """JSON in which keys are unique and all numbers are finite."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key is repeated")
        return dict(pairs)

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a finite number")

    return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)


def _damaged(path: FilePath, error: Exception) -> NoReturn:
    raise DecibanError(f"{path} is damaged: {problem_of(error)}") from error


def problem_of(error: Exception) -> str:
    """The message of an error, with its type unless it is ours."""
    return str(error) if isinstance(error, DecibanError) else f"{type(error).__name__}: {error}"
