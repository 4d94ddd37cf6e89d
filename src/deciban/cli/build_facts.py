"""What `deciban --version` prints: what a report of a bug should say of an installation."""

from __future__ import annotations

import platform
from importlib import metadata

import deciban
from deciban import _kernels
from deciban._version import compiler

LIBRARIES = ("numpy", "scipy", "scikit-learn", "pyarrow")


def build_facts() -> str:
    """The version, then the compiler and the instruction set of the kernels, then Python and libraries.

    Versions are read from what is installed: importing the libraries takes a second.
    """
    chosen = _kernels.instruction_set()
    processor = f"{chosen} (chosen at load)" if chosen else platform.machine()
    libraries = ", ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES)
    return (
        f"deciban {deciban.__version__}\n"
        f"kernels: {compiler}, {processor}\n"
        f"Python {platform.python_version()} on {platform.system()}, {libraries}"
    )
