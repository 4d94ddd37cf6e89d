"""The driver notices crashes, hangs and unexpected exceptions, keeps their inputs, and goes on."""

from pathlib import Path
from random import Random

import pytest

from tests.fuzz import __main__ as driver
from tests.fuzz import mutation, targets, worker

TARGET = """
import os, time

def seeds():
    return [b"1", b"2", b"3", b"raise", b"crash", b"memory", b"hang", b"last"]

def run(data):
    if data == b"raise": raise KeyError(data)
    if data == b"crash": os.abort()
    if data == b"memory": bytearray(1 << 40)
    if data == b"hang": time.sleep(100)
    if data == b"last": raise ValueError(data)

def mutate(data, random):
    return b"fine"
"""


@pytest.mark.slow
def test_failures_are_noticed_and_kept(tmp_path, monkeypatch, capfd):
    package = tmp_path / "tests" / "fuzz"
    package.mkdir(parents=True)
    for module in (driver, mutation, targets, worker):
        source = Path(module.__file__)
        (package / source.name).write_text(source.read_text())
    (package / "toy_target.py").write_text(TARGET)
    monkeypatch.setattr(targets, "FOLDER", package)
    monkeypatch.setattr(targets, "CORPUS", package / "corpus")
    monkeypatch.setattr(driver, "WAIT", 3.0)
    totals = driver.fuzz("toy", 15.0, 1)
    kept = {path.read_bytes() for path in (package / "corpus" / "toy").iterdir()}
    assert kept == {b"raise", b"crash", b"memory", b"hang", b"last"}
    assert (totals.crashes, totals.hangs, totals.unexpected, totals.failures) == (1, 1, 3, 5)
    assert totals.tried > 8
    capfd.readouterr()


def test_mutations_follow_from_their_seed():
    made = [mutation.mutated(b"some bytes to change", Random(i), [b"other bytes"]) for i in range(200)]
    assert made == [mutation.mutated(b"some bytes to change", Random(i), [b"other bytes"]) for i in range(200)]
    assert len(set(made)) > 150
