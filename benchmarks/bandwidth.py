"""The speed limit of a fit: the sum of an array, read once by several threads."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from benchmarks.data import Floats

FLAGS = "-std=c++17 -O3 -fno-math-errno -ffp-contract=off -Wno-psabi -shared -fPIC -pthread"


def read_bandwidth(x: Floats, threads: int) -> float:
    """Sum of a C-contiguous array of float64."""
    if x.dtype != float or not x.flags.c_contiguous:
        raise ValueError("x must be a C-contiguous array of float64")
    return float(_library().sum_array(ctypes.c_void_p(x.ctypes.data), ctypes.c_size_t(x.size), max(1, threads)))


@cache
def _library() -> ctypes.CDLL:
    source = Path(__file__).with_suffix(".cpp")
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "bandwidth.so"
        compiler = shlex.split(os.environ.get("CXX", "g++"))
        subprocess.run([*compiler, *FLAGS.split(), str(source), "-o", str(target)], check=True)
        library = ctypes.CDLL(str(target))
    library.sum_array.restype = ctypes.c_double
    return library
