"""``python -m tests.fuzz [NAME ...] [--seconds 60] [--jobs N] [--seed N]``: fuzz targets; exit code 1 if one fails."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import targets
from tests.fuzz.worker import SIZE, State, save

HANG = 10.0  # seconds that one input may compute
WAIT = 300.0  # seconds that one input may take, on a busy machine too
MAX_RESIDENT = 2 << 30  # bytes
START = 120.0  # seconds for a process to import everything


@dataclass
class Totals:
    """What became of the inputs of a target."""

    tried: int = 0
    crashes: int = 0
    hangs: int = 0
    unexpected: int = 0
    oversized: int = 0
    peak: int = 0
    computed: float = 0.0  # seconds of processor time

    @property
    def failures(self) -> int:
        return self.crashes + self.hangs + self.unexpected + self.oversized

    def __str__(self) -> str:
        return (
            f"{self.tried:,} inputs, {self.crashes} crashes, {self.hangs} hangs, "
            f"{self.unexpected} unexpected exceptions, {self.oversized} above {MAX_RESIDENT >> 20} MB, "
            f"peak {self.peak >> 20} MB, {self.computed:.0f} s of processor time"
        )


def fuzz(name: str, seconds: float, seed: int) -> Totals:
    """Runs a target, in another process whenever one has ended by a failure."""
    totals, end, began = Totals(), time.monotonic() + seconds, time.time()
    with tempfile.TemporaryDirectory(prefix="deciban-fuzz-") as folder:
        while (left := end - time.monotonic()) > 0:
            path = Path(folder) / "state"
            path.write_bytes(bytes(SIZE))
            arguments = map(str, (name, path, seed, began, totals.tried, left))
            command = [sys.executable, "-m", "tests.fuzz.worker", *arguments]
            with subprocess.Popen(command, cwd=folder, env=_environment(folder)) as process:
                _watch(name, process, State(path), totals)
    return totals


def _computed(pid: int) -> float:
    """Seconds that a process has computed; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _environment(folder: str) -> dict[str, str]:
    """One thread for each library, and a home of its own."""
    root = str(targets.FOLDER.parents[1])
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {**os.environ, **threads, "HOME": folder, "TMPDIR": folder, "PYTHONPATH": root}


def _watch(name: str, process: subprocess.Popen[bytes], state: State, totals: Totals) -> None:
    """Waits for the end of a process, and ends it if an input takes too long or too much memory."""
    tried, deadline, most, data, computed = -1, time.monotonic() + START, START, b"", 0.0
    while process.poll() is None:
        time.sleep(0.05)
        data, computed = state.read(), _computed(process.pid) or computed
        if data and state.tried > tried:
            tried, deadline, most = state.tried, time.monotonic() + WAIT, computed + HANG
        if state.peak > MAX_RESIDENT:
            totals.oversized += 1
        elif time.monotonic() > deadline or computed > most:
            totals.hangs += 1
        else:
            continue
        process.kill()
        process.wait()
        print(f"{name}: too long, or too much memory: {save(name, data)}", flush=True)
        break
    else:
        data = state.read()
        if process.returncode and not data:
            raise SystemExit(f"{name}: the process does not start")
        if process.returncode:
            totals.crashes += 1
            print(f"{name}: crashed with {process.returncode}: {save(name, data)}", flush=True)
    totals.tried += max(0, state.tried) + bool(process.returncode)  # with the one that ended it
    totals.unexpected += state.unexpected
    totals.peak = max(totals.peak, state.peak)
    totals.computed += computed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Run fuzz targets.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"targets; all by default: {', '.join(targets.names())}"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at a time")
    parser.add_argument("--seed", type=int, default=None, help="of the mutations; from the clock by default")
    options = parser.parse_args()
    unknown = set(options.names) - set(targets.names())
    if unknown:
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    seed, failures = int(time.time()) if options.seed is None else options.seed, 0
    names = options.names or targets.names()
    with ThreadPoolExecutor(options.jobs) as pool:
        for name, totals in zip(names, pool.map(lambda name: fuzz(name, options.seconds, seed), names), strict=True):
            failures += totals.failures
            print(f"{name}: {totals} (seed {seed})", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
