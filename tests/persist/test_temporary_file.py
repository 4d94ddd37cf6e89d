"""Temporary files: what a killed process leaves behind is removed by the next save, and nothing else."""

import errno
import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from deciban.errors import DecibanError
from deciban.persist import temporary_file
from deciban.persist.storage import replacing

SAVING = """
import sys
from deciban.persist.storage import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half of it")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
    file.write(b", and the rest")
"""
STALE = ".0123456789abcdef.deciban-tmp"


@contextmanager
def saving(path):
    """A process that is in the middle of a save, until its input ends or it is killed."""
    command = [sys.executable, "-c", SAVING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        yield process


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.deciban"


def save(path, data=b"new"):
    with replacing(path) as file:
        file.write(data)


def test_what_a_killed_process_left_behind_is_removed_by_the_next_save(path):
    path.write_bytes(b"old")
    for _ in range(2):
        with saving(path) as process:
            process.kill()
    assert len(os.listdir(path.parent)) == 2  # the second process has removed what the first one left
    assert path.read_bytes() == b"old"
    save(path.with_name("other.deciban"))
    assert sorted(os.listdir(path.parent)) == ["other.deciban", "some.deciban"]


def test_what_a_process_is_writing_is_left_alone(path):
    with saving(path) as process:
        save(path)
        save(path.with_name("other.deciban"))
        assert len(os.listdir(path.parent)) == 3
        process.stdin.close()
        assert process.wait() == 0
    assert path.read_bytes() == b"half of it, and the rest"
    assert sorted(os.listdir(path.parent)) == ["other.deciban", "some.deciban"]


def test_a_thread_leaves_the_file_of_another_alone(path):
    with replacing(path) as file:
        file.write(b"outer")
        save(path.with_name("other.deciban"))
    assert path.read_bytes() == b"outer"


def test_only_temporary_files_are_removed(path):
    names = ["0123456789abcdef.deciban-tmp", ".0123456789abcdef.deciban", ".0123.deciban-tmp", f"{STALE}.gz"]
    for name in names:
        path.with_name(name).write_bytes(b"mine")
    path.with_name(".fedcba9876543210.deciban-tmp").mkdir()
    elsewhere = path.with_name("elsewhere")
    elsewhere.write_bytes(b"mine")
    path.with_name(STALE).symlink_to(elsewhere)
    os.mkfifo(path.with_name(".1111111111111111.deciban-tmp"))
    before = sorted(os.listdir(path.parent))
    save(path)
    assert sorted(os.listdir(path.parent)) == sorted([*before, path.name])


def test_a_file_that_another_process_took_for_abandoned_is_made_again(path, monkeypatch):
    """Between its creation and its lock a file looks abandoned."""
    opened, created = os.open, []

    def create(name, *arguments, **more):
        descriptor = opened(name, *arguments, **more)
        if temporary_file.is_temporary(name):
            created.append(name)
            if len(created) == 1:
                temporary_file.remove_abandoned(path.parent)
        return descriptor

    monkeypatch.setattr(os, "open", create)
    save(path)
    assert len({os.fspath(name) for name in created}) == 2
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == [path.name]


def test_a_file_system_without_locks_keeps_what_was_left_behind(path, monkeypatch):
    def refused(descriptor, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    path.with_name(STALE).write_bytes(b"")
    monkeypatch.setattr("fcntl.flock", refused)
    save(path)
    assert path.read_bytes() == b"new"
    assert sorted(os.listdir(path.parent)) == [STALE, path.name]


def test_without_locks_only_old_files_are_removed(path, monkeypatch):
    """As on Windows, which has no such locks, and removes no file that is open."""
    monkeypatch.setattr(temporary_file, "fcntl", None)
    path.with_name(STALE).write_bytes(b"")
    save(path)
    assert sorted(os.listdir(path.parent)) == [STALE, path.name]
    day_ago = time.time() - 86400
    os.utime(path.with_name(STALE), (day_ago, day_ago))
    save(path)
    assert os.listdir(path.parent) == [path.name]


def test_a_file_that_cannot_be_locked_leaves_nothing_behind(path, monkeypatch):
    def refused(descriptor):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    with monkeypatch.context() as patched:
        patched.setattr(os, "dup", refused)
        with pytest.raises(DecibanError, match="cannot be written: Too many open files"):
            save(path)
    assert not os.listdir(path.parent)
    if before:
        assert len(os.listdir("/proc/self/fd")) == before
