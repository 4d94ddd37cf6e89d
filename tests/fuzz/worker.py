"""A process that runs a target on mutated inputs, until its time is over or it is stopped.

What it does is in a file that both processes map, so the input is known even if the process dies:
inputs tried, unexpected exceptions, bytes of resident memory at most, and the input with its length before it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import mmap
import os
import resource
import struct
import sys
import time
import traceback
import warnings
from pathlib import Path
from random import Random

from tests.fuzz import targets

HEAD = struct.Struct("=qqqq")
SIZE = 1 << 20  # of the shared file
MAX_ADDRESSES = 8 << 30  # bytes that a run may reserve on top of what importing reserves


class State:
    """The shared file."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), SIZE)
        self.tried = self.unexpected = self.peak = 0

    def read(self) -> bytes:
        """Fills the fields, and returns the current input."""
        self.tried, self.unexpected, self.peak, length = HEAD.unpack_from(self.memory)
        return self.memory[HEAD.size : HEAD.size + length]

    def write(self, data: bytes) -> None:
        self.memory[HEAD.size : HEAD.size + len(data)] = data
        HEAD.pack_into(self.memory, 0, self.tried, self.unexpected, self.peak, len(data))


def save(name: str, data: bytes) -> Path:
    """Adds a failing input to the corpus."""
    path = targets.CORPUS / name / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def main(name: str, state_path: str, seed: str, before: str, start: str, seconds: str) -> None:
    """Runs the inputs from number `start` on, without new ones of the corpus, and then mutations of all of them."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    target, state, random = targets.load(name, float(before)), State(Path(state_path)), Random(f"{name} {seed} {start}")
    state.tried = -1
    for data in target.inputs[:3]:  # imports what is imported lazily
        state.write(data)
        with contextlib.suppress(Exception):
            target.run(data)
    state.tried = 0
    reserved = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (reserved + MAX_ADDRESSES,) * 2)
    end, first = time.monotonic() + float(seconds), iter(target.inputs[int(start) :])
    seen: set[tuple[object, ...]] = set()
    while time.monotonic() < end:
        data = next(first, None)
        data = target.mutation(random) if data is None else data
        state.write(data)
        try:
            target.run(data)
        except BaseException as error:  # a MemoryError and a SystemExit too
            state.unexpected += 1
            place = (type(error), *traceback.extract_tb(error.__traceback__)[-1][:2])
            if place not in seen:  # the others are most likely the same
                seen.add(place)
                print(f"unexpected: {save(name, data)}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        state.tried += 1
        state.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    state.write(b"")


if __name__ == "__main__":
    main(*sys.argv[1:])
