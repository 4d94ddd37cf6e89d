"""Builds the extension for aarch64, and runs the tests of the kernels with it under an emulator: `make cross`.

1. Debian's Python for arm64 and the libraries it needs are downloaded and unpacked in build/aarch64/sysroot.
2. Wheels for aarch64 of all that deciban and these tests import are installed in build/aarch64/site.
3. The extension is compiled by Debian's cross compiler into build/aarch64/package, beside a copy of src/deciban.
4. pytest runs tests/kernels with that Python, in qemu.

The first two are not repeated, unless requirements changed. Nothing is installed outside build/aarch64.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import nanobind

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "aarch64"
SYSROOT, SITE, PACKAGE, PYTHON = WORK / "sysroot", WORK / "site", WORK / "package", WORK / "python"
VERSION = "3.11"  # of Debian 12
PACKAGES = [f"python{VERSION}-minimal", *(f"libpython{VERSION}-{part}" for part in ("minimal", "stdlib", "dev"))]
PACKAGES += ["libc6", "libgcc-s1", "libstdc++6"]
PACKAGES += ["libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libssl3", "libuuid1", "zlib1g"]  # for its modules
WHEELS = ["manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"]
OF_TESTS = {"pytest", "pytest-xdist", "hypothesis"}
INSTALL = "apt-get install g++-aarch64-linux-gnu qemu-user-static"
ARM64 = "dpkg --add-architecture arm64 && apt-get update"


def run(*command: object, hint: str = "", **settings: object) -> None:
    """Runs a command, and shows what it printed if it fails."""
    words = [*map(str, command)]
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **settings)
    if done.returncode:
        raise SystemExit(f"{done.stdout}{shlex.join(words)}: exit code {done.returncode}{hint}")


def make_sysroot() -> None:
    """Python for arm64, from Debian's packages."""
    with TemporaryDirectory(dir=WORK) as folder:
        names = [f"{name}:arm64" for name in PACKAGES]
        run("apt-get", "download", *names, cwd=folder, hint=f"\nDebian 12 has these packages after: {ARM64}")
        for path in Path(folder).glob("*.deb"):
            run("dpkg", "-x", path, Path(folder, "new"))
        Path(folder, "new").rename(SYSROOT)


def requirements() -> list[str]:
    """What deciban needs, and what these tests need besides."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    test = project["optional-dependencies"]["test"]
    return project["dependencies"] + [each for each in test if re.match(r"[\w-]+", each).group() in OF_TESTS]


def make_site(needed: str) -> None:
    """The libraries, as wheels for aarch64."""
    shutil.rmtree(SITE, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", SITE, "--only-binary", ":all:"]
    pip += [f"--platform={wheel}" for wheel in WHEELS]
    run(*pip, "--python-version", VERSION, *needed.splitlines())
    (SITE / "requirements.txt").write_text(needed, encoding="utf-8")


def make_python() -> None:
    """A program that runs Python in the emulator; it is sys.executable there, so tests can start it."""
    paths = {"root": SYSROOT, "program": SYSROOT / "usr" / "bin" / f"python{VERSION}", "itself": PYTHON}
    lines = ["#!/bin/sh", *(f"{name}={shlex.quote(str(path))}" for name, path in paths.items())]
    lines += [f'export PYTHONHOME="$root/usr" PYTHONPATH={shlex.quote(f"{PACKAGE}:{SITE}")}']
    lines += ['exec qemu-aarch64-static -L "$root" -0 "$itself" "$program" "$@"', ""]
    PYTHON.write_text("\n".join(lines), encoding="utf-8")
    PYTHON.chmod(0o755)


def make_package() -> None:
    """The extension for aarch64, and the rest of deciban."""
    shutil.rmtree(PACKAGE, ignore_errors=True)
    settings = {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": "aarch64",
        "CMAKE_CXX_COMPILER": "aarch64-linux-gnu-g++",
        "CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES": SYSROOT / "usr" / "include",  # pyconfig.h of arm64
        "Python_EXECUTABLE": PYTHON,
        "nanobind_DIR": nanobind.cmake_dir(),
        "SKBUILD_PROJECT_VERSION_FULL": version("deciban"),
    }
    programs = Path(sys.executable).parent  # cmake and ninja
    path = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    built = WORK / "cmake"
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", built, *(f"-D{k}={v}" for k, v in settings.items()), env=path)
    run("cmake", "--build", built, env=path)
    run("cmake", "--install", built, "--prefix", PACKAGE, env=path)
    shutil.copytree(ROOT / "src" / "deciban", PACKAGE / "deciban", dirs_exist_ok=True)


def main() -> int:
    if not (shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-aarch64-static")):
        raise SystemExit(f"there is no compiler or no emulator for aarch64: {INSTALL}")
    WORK.mkdir(parents=True, exist_ok=True)
    if not SYSROOT.exists():
        make_sysroot()
    needed, known = "\n".join(requirements()), SITE / "requirements.txt"
    if not known.exists() or known.read_text(encoding="utf-8") != needed:
        make_site(needed)
    make_python()
    make_package()
    tests = ["-n", "auto", "-m", "not slow", "-p", "no:cacheprovider", "tests/kernels"]
    return subprocess.run([PYTHON, "-m", "pytest", *tests], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
