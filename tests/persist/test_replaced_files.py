"""Files that change while they are read: what is loaded is one of the models, or the file is refused."""

import os
import threading
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

from deciban.errors import DecibanError
from deciban.persist.storage import read, replacing, write

READS = 100


@pytest.fixture
def versions(tmp_path):
    """The bytes of two model files of different lengths."""
    path = tmp_path / "other.deciban"
    data = []
    for number in range(2):
        write(path, {"number": number}, {"x": np.full(20_000 * (1 + number), number + 0.1)})
        data.append(path.read_bytes())
    return data


@contextmanager
def changing(change, versions):
    """Another thread changes a file again and again."""
    ended = threading.Event()

    def work():
        while not ended.is_set():
            for data in versions:
                change(data)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def is_whole(path):
    tree, arrays = read(path)
    assert np.array_equal(arrays["x"], np.full(20_000 * (1 + tree["number"]), tree["number"] + 0.1))


def test_a_file_that_is_replaced_while_it_is_read_is_whole(tmp_path, versions, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    path = tmp_path / "model.deciban"
    path.write_bytes(versions[0])

    def replace(data):
        with replacing(path) as file:
            file.write(data)

    with changing(replace, versions):
        for _ in range(READS):
            is_whole(path)


@pytest.mark.parametrize(("before", "after", "refused"), [(0, 1, True), (1, 0, False)])
def test_a_file_that_is_written_over_while_it_is_read_is_whole_or_refused(
    before, after, refused, tmp_path, versions, monkeypatch
):
    """After its size was asked for, it has another."""
    path, status = tmp_path / "model.deciban", os.fstat
    path.write_bytes(versions[before])

    def overwritten(descriptor):
        result = status(descriptor)
        if result.st_ino == path.stat().st_ino:
            path.write_bytes(versions[after])
        return result

    monkeypatch.setattr(os, "fstat", overwritten)
    with pytest.raises(DecibanError, match=f"{path} is damaged") if refused else nullcontext():
        is_whole(path)
