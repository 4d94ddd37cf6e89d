"""The file: the same for the same, whole or not at all, and any byte that changed is found."""

import errno
import hashlib
import json
import os
import pickle
import re
import stat
import subprocess
import sys
import threading
import zipfile
import zlib
from contextlib import contextmanager

import numpy as np
import pytest
from safetensors.numpy import save as safetensors_save

import deciban
from deciban.errors import DecibanError
from deciban.persist import storage
from deciban.persist.storage import locked, read, replacing, require_replaceable, write

TREE = {"b": [1, 2.5, None, True, "é\ud800"], "a": {"c": []}}
ARRAYS = {
    "x": np.arange(6.0).reshape(2, 3),
    "none": np.zeros((0, 4)),
    "one": np.array(7, dtype=np.int8),
    "flags": np.array([True, False]),
}


def document(**changes):
    """What the metadata hold of a tree with no arrays."""
    plain = {"checksum": "0" * 64, "deciban": "0.1.0", "format": 1, "model": {}, "needs": "0.1.0"}
    return json.dumps(plain | changes, sort_keys=True, separators=(",", ":"))


def forged(header, body=b""):
    """A file with this header (a dict, or bytes) and a right checksum, whatever else is wrong with it."""
    if isinstance(header, dict):
        header = json.dumps({"__metadata__": {"deciban": document()}} | header, separators=(",", ":")).encode()
    data = len(header).to_bytes(8, "little") + header + body
    place = data.index(b'\\"checksum\\":\\"') + 15
    assert data[place : place + 64] == b"0" * 64
    return data[:place] + hashlib.sha256(data).hexdigest().encode() + data[place + 64 :]


def tensor(dtype="F64", shape=(1,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": [*shape], "data_offsets": [*offsets]}


def refused(path, data, match):
    path.write_bytes(data)
    with pytest.raises(DecibanError, match=match) as caught:
        read(path)
    assert str(path) in str(caught.value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.deciban"


# Writing and reading -------------------------------------------------------------------------------------------------


def test_what_is_written_is_read(path):
    write(path, TREE, ARRAYS)
    tree, arrays = read(str(path))
    assert tree == TREE
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tobytes() == array.tobytes()
        assert arrays[name].flags.writeable


def test_a_file_is_the_same_for_the_same(path):
    write(path, TREE, ARRAYS)
    first = path.read_bytes()
    write(path, dict(reversed(TREE.items())), dict(reversed(ARRAYS.items())))
    assert path.read_bytes() == first
    code = (
        "import sys, numpy as np; from deciban.persist.storage import write; "
        "write(sys.argv[1], {'b': 1, 'a': 2}, {c: np.arange(3.0) for c in 'qwertz'})"
    )
    files = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=environment)
        files.append(path.read_bytes())
    assert files[0] == files[1]


def test_the_file_is_one_of_safetensors_and_says_who_wrote_it(path):
    from safetensors import safe_open

    write(path, TREE, ARRAYS)
    with safe_open(path, "np") as file:
        assert set(file.keys()) == set(ARRAYS)
        (text,) = file.metadata().values()
    said = json.loads(text)
    assert (said["format"], said["deciban"], said["needs"]) == (2, deciban.__version__, "0.1.0")
    data = path.read_bytes()
    assert said["checksum"] == hashlib.sha256(data.replace(said["checksum"].encode(), b"0" * 64)).hexdigest()


def test_a_file_of_the_first_format_is_read(path):
    data = forged({"x": tensor("F64", [1])}, np.array([0.1]).tobytes())
    assert b'\\"format\\":1' in data
    assert b"packed" not in data
    path.write_bytes(data)
    assert read(path)[1]["x"].tolist() == [0.1]


def test_arrays_take_less_room_in_the_file_and_come_back_to_the_last_bit(path):
    rng = np.random.default_rng(0)
    arrays = {
        "counts": rng.poisson(0.1, size=(26, 5000)).astype(np.float64),
        "nodes": rng.integers(-1, 16, 5000),
        "noise": rng.normal(size=5000),
    }
    write(path, {}, arrays)
    result = read(path)[1]
    for name, array in arrays.items():
        assert (result[name].dtype, result[name].shape) == (array.dtype, array.shape)
        assert result[name].tobytes() == array.tobytes()
    assert (
        path.stat().st_size < arrays["counts"].nbytes / 16 + arrays["nodes"].nbytes / 8 + arrays["noise"].nbytes + 2000
    )


def test_a_forged_file_is_right_where_nothing_is_wrong(path):
    path.write_bytes(forged({"x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}, bytes(8)))
    tree, arrays = read(path)
    assert tree == {}
    assert arrays["x"].tolist() == [0.0]


def test_too_long_a_header_is_not_written(path, monkeypatch):
    monkeypatch.setattr(storage, "MOST_HEADER", 1000)
    with pytest.raises(DecibanError, match="cannot be written: names and settings"):
        write(path, {"a": "x" * 1000}, {})
    assert not path.exists()


# Damage --------------------------------------------------------------------------------------------------------------


def test_a_file_cut_anywhere_is_refused(path):
    write(path, TREE, ARRAYS)
    whole = path.read_bytes()
    for length in range(len(whole)):
        refused(path, whole[:length], "damaged|no model")
    refused(path, whole + b"\0", "damaged")
    refused(path, whole[:60], "whose end is missing")


def test_any_flipped_bit_is_found(path):
    write(path, {"a": 1.5}, {"x": np.arange(2.0), "flag": np.array([True])})
    whole = path.read_bytes()
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 1 << position % 8
        refused(path, bytes(changed), "damaged|no model")


def test_bytes_that_changed_places_are_found(path):
    write(path, TREE, ARRAYS)
    whole = path.read_bytes()
    refused(path, whole[:-16] + whole[-8:] + whole[-16:-8], "checksum")


@pytest.mark.parametrize("length", [0, 1, 2, 1 << 31, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, "size - 8", "size - 7"])
def test_a_wrong_length_of_the_header_is_refused(path, length):
    write(path, TREE, ARRAYS)
    whole = path.read_bytes()
    number = len(whole) - int(length[-1]) if isinstance(length, str) else length
    refused(path, number.to_bytes(8, "little") + whole[8:], "damaged|no model")


FORGED = {
    "overlap": ({"a": tensor(), "b": tensor()}, 8),
    "part of an overlap": ({"a": tensor(shape=[2], offsets=(0, 16)), "b": tensor(offsets=(8, 16))}, 16),
    "gap": ({"a": tensor(offsets=(8, 16))}, 16),
    "gap at the end": ({"a": tensor()}, 16),
    "beyond the end": ({"a": tensor(shape=[2], offsets=(0, 16))}, 8),
    "backwards": ({"a": tensor(offsets=(8, 0))}, 8),
    "shape too small": ({"a": tensor(shape=[0])}, 8),
    "shape too large": ({"a": tensor(shape=[2])}, 8),
    "negative shape": ({"a": tensor(shape=[-1])}, 8),
    "two negative": ({"a": tensor(shape=[-1, -1])}, 8),
    "huge shape": ({"a": tensor(shape=[1 << 62, 1 << 62])}, 8),
    "wraps to 8 bytes": ({"a": tensor(shape=[(1 << 61) + 1])}, 8),
    "huge and empty": ({"a": tensor(shape=[1 << 63, 0], offsets=(0, 0))}, 0),
    "many dimensions": ({"a": tensor(shape=[1] * 1000)}, 8),
    "unknown type": ({"a": tensor("F80")}, 8),
    "type of eight bits": ({"a": tensor("F8_E4M3", [8])}, 8),
    "half a type": ({"a": tensor("BF16", [4])}, 8),
    "shape of text": ({"a": {"dtype": "F64", "shape": "1", "data_offsets": [0, 8]}}, 8),
    "fractions": ({"a": {"dtype": "F64", "shape": [1.5], "data_offsets": [0, 8]}}, 8),
    "no offsets": ({"a": {"dtype": "F64", "shape": [1]}}, 8),
    "no tensor": ({"a": 3}, 8),
    "second metadata": (
        b'{"__metadata__":{"deciban":' + json.dumps(document()).encode() + b'},"__metadata__":{"x":"y"}}',
        0,
    ),
    "a tensor twice": (
        b'{"__metadata__":{"deciban":%s},"a":%s,"a":%s}'
        % tuple(json.dumps(part).encode() for part in (document(), tensor(), tensor())),
        8,
    ),
    "metadata are a list": (b'{"__metadata__":[%s]}' % json.dumps(document()).encode(), 0),
    "nested header": (b'{"__metadata__":{"deciban":%s},"a":' % json.dumps(document()).encode() + b"[" * 100_000, 0),
    "not closed": (b'{"__metadata__":{"deciban":%s' % json.dumps(document()).encode(), 0),
    "not UTF-8": (b'{"__metadata__":{"deciban":%s},"\xff":1}' % json.dumps(document()).encode(), 0),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_header_is_refused(path, name):
    header, size = FORGED[name]
    refused(path, forged(header, bytes(size)), "is damaged")


@pytest.mark.parametrize(
    "text",
    [
        document()[:-1] + "," + '"model":' + "[" * 100_000 + "]" * 100_000 + "}",
        document()[:-1] + ',"format":1}',
        document(model="x").replace('"x"', "NaN"),
        document(model="x").replace('"x"', "Infinity"),
        document(model="x").replace('"x"', "9" * 5000),
        document().replace('"format":1,', ""),
        document(format="one"),
        document(format=None),
        document()[:-1],
        '["checksum":"' + "0" * 64 + '"]',
    ],
    ids=["deep", "twice", "NaN", "Infinity", "long", "no format", "a word", "null", "not closed", "a list"],
)
def test_a_forged_text_is_refused(path, text):
    header = b'{"__metadata__":{"deciban":%s}}' % json.dumps(text).encode()
    refused(path, forged(header), "is damaged")


def bomb(size, shape, dtype="float64", narrow="u1", padding=0):
    """A file that says its bytes, zeros that were compressed, are an array of this shape."""
    data = zlib.compress(bytes(size)) + bytes(padding)
    text = document(format=2, packed={"a": [dtype, narrow, shape]})
    header = {"__metadata__": {"deciban": text}, "a": tensor("U8", [len(data)], (0, len(data)))}
    return forged(json.dumps(header, separators=(",", ":")).encode(), data)


BOMBS = {  # made when they are needed: some take long to compress
    "far more than the file": (lambda: bomb(1 << 28, [1 << 28]), "too large"),
    "more than it says": (lambda: bomb(1 << 28, [1 << 10], padding=1 << 10), "not those of 1024 numbers"),
    "less than it says": (lambda: bomb(1000, [1 << 10], padding=1 << 10), "not those of 1024 numbers"),
    "nothing, very often": (lambda: bomb(0, [0, 1 << 62]), "non-empty array"),
    "a negative length": (lambda: bomb(64, [-8, -8]), "non-empty array"),
    "half a length": (lambda: bomb(64, [64.0]), "unknown way"),
    "a shape of text": (lambda: bomb(64, "64"), "unknown way"),
    "an unknown type": (lambda: bomb(64, [64], dtype="object"), "unknown way"),
    "a wider type": (lambda: bomb(64, [8], dtype="int8", narrow="u2"), "unknown way"),
    "numbers of another type": (lambda: bomb(64, None, narrow="u2"), "instead of"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_forged_packing_is_refused(path, name):
    make, match = BOMBS[name]
    refused(path, make(), match)


def test_a_forged_packing_of_an_array_that_is_not_there_is_refused(path):
    text = document(format=2, packed={"b": ["float64", "u1", [64]]})
    header = b'{"__metadata__":{"deciban":%s}}' % json.dumps(text).encode()
    refused(path, forged(header), "is damaged")
    refused(path, forged(header.replace(b'\\"u1\\",[64]', b'\\"u1\\"')), "is damaged")


def test_a_newer_format_is_refused(path):
    text = document(format=3, needs="3.1", model={"something": "new"})
    header = b'{"__metadata__":{"deciban":%s}}' % json.dumps(text).encode()
    version = re.escape(deciban.__version__)
    refused(path, forged(header), f"is of format 3: it needs deciban 3.1 or newer, this is {version}")


def test_reading_takes_no_more_memory_than_the_file(path):
    """In a process that may have 200 MB more than it has now."""
    files = [forged(header, bytes(size)) for header, size in FORGED.values()] + [make() for make, _ in BOMBS.values()]
    files.append(forged({"a": tensor(shape=[1 << 33], offsets=(0, 1 << 36))}, bytes(16)))
    files += [length.to_bytes(8, "little") + files[0][8:] for length in (1 << 31, 1 << 40, 1 << 63)]
    names = [path.with_name(f"{i}.deciban") for i in range(len(files))]
    for name, data in zip(names, files, strict=True):
        name.write_bytes(data)
    holes = path.with_name("holes.deciban")  # 1 TB of nothing, which takes no room
    with open(holes, "wb") as file:
        file.write(forged({"a": tensor("U8", [1 << 40], (0, 1 << 40))}))
        file.truncate(len(forged({"a": tensor("U8", [1 << 40], (0, 1 << 40))})) + (1 << 40))
    code = """
import resource, sys
from deciban.errors import DecibanError
from deciban.persist.storage import read
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (200 << 20),) * 2)
for name in sys.argv[1:]:
    try:
        read(name)
    except DecibanError as error:
        assert name in str(error)
    else:
        raise AssertionError(name)
print("all refused")
"""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("needs Linux")
    done = subprocess.run([sys.executable, "-c", code, *map(str, [*names, holes])], capture_output=True, text=True)
    assert done.stdout == "all refused\n", done.stderr


# Other files ---------------------------------------------------------------------------------------------------------


class Trap:
    """A pickle of it creates a file when it is loaded."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (os.mkdir, (self.target,))


def test_a_pickle_is_not_run(path, tmp_path):
    trap = tmp_path / "sprung"
    for protocol in range(2, 6):
        refused(path, pickle.dumps(Trap(str(trap)), protocol), "no model of deciban: it looks like a pickle")
    refused(path, pickle.dumps(Trap(str(trap)), 0), "no model of deciban")
    assert not trap.exists()
    pickle.loads(pickle.dumps(Trap(str(trap))))
    assert trap.exists()  # so it would have been


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "an empty file"),
        (b"{}", "text"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "a web page"),
        (b"\n  <html>" + b" " * 100, "a web page"),
        (b"\x1f\x8b\x08" + bytes(50), "gzip"),
        (b"\x93NUMPY\x01\x00" + bytes(50), "numpy"),
        (b"PAR1" + bytes(50), "Parquet"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1", "git lfs pull"),
        (b"a,b,c\n1,2,3\n", "text"),
        (bytes(100), "something else"),
        (safetensors_save({"x": np.zeros(3)}), "safetensors that holds no model"),
        (safetensors_save({"x": np.zeros(3)}, {"format": "pt"}), "safetensors that holds no model"),
    ],
)
def test_other_files_are_called_what_they_are(path, data, match):
    refused(path, data, f"is no model of deciban: it looks like .*{match}")


def test_a_zip_archive_is_called_one(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model", "x" * 100)
    refused(path, path.read_bytes(), "a zip archive")


def test_what_is_no_file_is_called_what_it_is(path, tmp_path):
    with pytest.raises(DecibanError, match=r"some\.deciban: there is no such file"):
        read(path)
    with pytest.raises(DecibanError, match="is a directory: give the name of a model file"):
        read(tmp_path)
    with pytest.raises(DecibanError, match="some"):
        read(path / "below")
    os.mkfifo(path)
    with pytest.raises(DecibanError, match="a device or a pipe"):
        read(path)


def test_a_file_that_may_not_be_read_is_an_error(path, monkeypatch):
    write(path, TREE, ARRAYS)

    def no(*arguments, **more):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("builtins.open", no)
    with pytest.raises(DecibanError, match="you may not read it"):
        read(path)


# Replacing -----------------------------------------------------------------------------------------------------------


def test_a_file_is_replaced_when_all_is_written(path):
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == [path.name]


def test_a_file_lasts_before_its_name_changes_and_so_does_the_name(path, monkeypatch):
    done = []
    replace, sync = os.replace, os.fsync

    def noted_sync(descriptor):
        done.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else os.fstat(descriptor).st_size)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", lambda *names: done.append("replace") or replace(*names))
    with replacing(path) as file:
        file.write(b"12345")
    assert done == [5, "replace", "directory"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RuntimeError, MemoryError])
@pytest.mark.parametrize("there", [True, False])
def test_what_goes_wrong_leaves_the_old_file(path, error, there):
    if there:
        path.write_bytes(b"old")
    with pytest.raises(error), replacing(path) as file:  # noqa: PT012
        file.write(b"new" * 100_000)
        raise error
    assert [p.read_bytes() for p in path.parent.iterdir()] == [b"old"] * there


@pytest.mark.parametrize(
    ("number", "match"),
    [
        (errno.ENOSPC, "the disk is full: make room"),
        (errno.EDQUOT, "the disk is full"),
        (errno.EACCES, "you may not write some.deciban in"),
        (errno.EROFS, "you may not write"),
        (errno.EIO, "Input/output error"),
    ],
)
@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_an_error_of_the_system_says_what_to_do(path, monkeypatch, number, match, call):
    path.write_bytes(b"old")

    def fails(*arguments, **more):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fails)
        with pytest.raises(DecibanError, match=f"cannot be written: {match}"):
            write(path, TREE, ARRAYS)
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk_leaves_the_old_file(path):
    """A limit on the size of files stands for the disk; the process meets it in the middle of the write."""
    path.write_bytes(b"old")
    code = """
import resource, signal, sys
import numpy as np
from deciban.errors import DecibanError
from deciban.persist.storage import write
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write(sys.argv[1], {}, {"x": np.random.default_rng(0).normal(size=100_000)})
except DecibanError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert "cannot be written: the disk is full: make room" in done.stdout, done.stderr
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_an_error_about_another_file_stays_what_it_was(path):
    with pytest.raises(FileNotFoundError), replacing(path):
        path.with_name("other").read_bytes()
    assert not os.listdir(path.parent)


def test_places_where_no_file_can_be(path, tmp_path):
    with pytest.raises(DecibanError, match=f"there is no directory {tmp_path}/no/such: make it first"):
        write(tmp_path / "no" / "such" / "m.deciban", TREE, ARRAYS)
    with pytest.raises(DecibanError, match="it is a directory: give the name of a file"):
        write(tmp_path, TREE, ARRAYS)
    with pytest.raises(DecibanError, match="the name is too long"):
        write(tmp_path / ("x" * 300), TREE, ARRAYS)
    path.write_bytes(b"")
    with pytest.raises(DecibanError, match="there is no directory"):
        write(path / "m.deciban", TREE, ARRAYS)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DecibanError, match="a device or a pipe"):
        write(path, TREE, ARRAYS)
    assert os.listdir(tmp_path) == [path.name]


def test_places_where_no_file_can_be_are_found_before_there_is_one(path, tmp_path, monkeypatch):
    require_replaceable(path)
    path.write_bytes(b"")
    require_replaceable(path)
    for place, words in (
        (tmp_path / "no" / "m.deciban", f"there is no directory {tmp_path}/no: make it first"),
        (path / "m.deciban", "there is no directory"),
        (tmp_path, "it is a directory: give the name of a file"),
        ("/dev/null", "it is a device or a pipe: give the name of a file"),
    ):
        with pytest.raises(DecibanError, match=f"^{place} cannot be written: {words}"):
            require_replaceable(place)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "no" / "m.deciban")
    with pytest.raises(DecibanError, match="there is no directory"):
        require_replaceable(link)
    monkeypatch.setattr(os, "access", lambda target, mode: str(target) != str(tmp_path))
    with pytest.raises(DecibanError, match="you may not write"):
        require_replaceable(path)
    assert sorted(os.listdir(tmp_path)) == ["link", path.name]


def test_a_file_that_may_not_be_written_is_not_replaced(path, monkeypatch):
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda target, mode: False)  # root may write everything
    with pytest.raises(DecibanError, match="you may not write"):
        write(path, TREE, ARRAYS)
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_of_any_new_file(path, mask):
    before = os.umask(mask)
    try:
        write(path, TREE, ARRAYS)
        other = path.with_name("other")
        other.write_bytes(b"")
    finally:
        os.umask(before)
    assert path.stat().st_mode == other.stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_a_file_replaced_keeps_its_mode(path, mode):
    path.write_bytes(b"")
    path.chmod(mode)
    write(path, TREE, ARRAYS)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_is_followed(path, tmp_path):
    real = tmp_path / "elsewhere" / "real.deciban"
    real.parent.mkdir()
    path.symlink_to(real)
    for _ in range(2):  # before there is such a file, and after
        write(path, TREE, ARRAYS)
        assert path.is_symlink()
        assert os.listdir(real.parent) == ["real.deciban"]
        assert read(path)[0] == read(real)[0] == TREE


# Locks ---------------------------------------------------------------------------------------------------------------

HOLDER = """
import sys
from deciban.persist.storage import locked
with locked(sys.argv[1]):
    print("locked", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(path):
    """Another process has the lock."""
    line = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.stdin.close()


def test_a_lock_keeps_others_out_until_it_ends(path, tmp_path):
    link = tmp_path / "sub" / "link.deciban"
    link.parent.mkdir()
    link.symlink_to(path)
    with held(path):
        for name in (path, link):  # of a link, what it points to
            with pytest.raises(DecibanError, match=f"^{name} is being changed by others for 0 s: try again later"):
                locked(name, 0.02).__enter__()
        with locked(link.parent / "other.deciban", 0.02):  # in another folder
            pass
    with locked(path, 0.02), locked(link.parent / "other.deciban", 0.02):
        pass
    assert os.listdir(tmp_path) == ["sub"]  # it leaves nothing behind


def test_a_lock_ends_with_its_process_and_with_errors(path):
    with held(path) as process:
        process.kill()
        process.wait()
        with locked(path, 0.02):
            pass
    with pytest.raises(ZeroDivisionError), locked(path, 0.02):
        raise ZeroDivisionError
    with pytest.raises(FileNotFoundError), locked(path, 0.02):  # not taken for one of the lock
        path.read_bytes()
    with locked(path, 0.02):
        pass


def test_who_waits_for_a_lock_gets_it(path):
    """Threads too: each adds one to a number in a file."""

    def add():
        with locked(path):
            path.write_text(str(int(path.read_text()) + 1))

    path.write_text("0")
    threads = [threading.Thread(target=add) for _ in range(10)]
    with held(path):
        for thread in threads:
            thread.start()
        assert path.read_text() == "0"
    for thread in threads:
        thread.join()
    assert path.read_text() == "10"


def test_what_cannot_be_locked(path, monkeypatch):
    place = path.parent / "no" / "m.deciban"
    with pytest.raises(DecibanError, match=f"^{place} cannot be locked: {place.parent}: No such file"):
        locked(place).__enter__()
    before = os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd") else []

    def refused(descriptor, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refused)  # as some network file systems do
    with pytest.raises(DecibanError, match=r"cannot be locked: .*: No locks available"):
        locked(path).__enter__()
    if before:
        assert len(os.listdir("/proc/self/fd")) == len(before)
