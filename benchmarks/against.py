"""Our side of the jobs, in this tree and in that of another commit, in turn.

    python -m benchmarks.against main~20 --only table text --rounds 3

The other commit is checked out and built in build/against, with the libraries of this environment. Each round runs
every job once in either tree, in a process of its own and without the peers. The minimum of all runs counts, of
processor time as well as of wall time, since only the former means something where other work runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "against"
# Runs in both trees, so it knows no more of them than the harness: Bench.compare and Bench.limit
OURS = """
import json, sys, time
from benchmarks import harness
rows = {}

def compare(bench, title, against, *, ours, peer, **rest):
    for _ in range(bench.runs):
        wall, cpu = time.perf_counter(), time.process_time()
        result = ours()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        least = rows.get(title, (wall, cpu))
        rows[title] = min(wall, least[0]), min(cpu, least[1])
    return result, None

def limit(bench, title, measured, at_most, unit):
    rows[f"{title}, {unit}"] = measured, measured

harness.discover()
harness.Bench.compare, harness.Bench.limit = compare, limit
bench = harness.Bench(runs=int(sys.argv[2]))
bench.run([sys.argv[1]])
print("ROWS", json.dumps(rows))
sys.exit(f"{bench.failures}" if bench.failures and not rows else 0)
"""

Rows = dict[str, tuple[float, float]]  # seconds of wall time and of processor time, by title


def build(commit: str) -> tuple[Path, Path]:
    """The tree of the commit, and a Python that has it installed beside our libraries."""
    name = _run("git", "rev-parse", "--short", f"{commit}^{{commit}}").strip()
    tree, environment = FOLDER / name, FOLDER / f"{name}-environment"
    python = environment / "bin" / "python"
    if not tree.exists():
        _run("git", "worktree", "add", "--detach", str(tree), name)
    if not python.exists():
        _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
        purelib = sysconfig.get_path("purelib", vars={"base": str(environment)})
        Path(purelib, "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
        options = [
            "--no-deps",
            "--no-build-isolation",
            "--force-reinstall",
            f"--config-settings=build-dir={name}-kernels",
        ]
        _run(str(python), "-m", "pip", "install", "--quiet", *options, str(tree), folder=FOLDER)
    return tree, python


def measure(tree: Path, python: Path, job: str, runs: int) -> Rows:
    """The rows of a job in one tree."""
    output = _run(str(python), "-c", OURS, job, str(runs), folder=tree)
    rows: Rows = json.loads(output.rpartition("ROWS ")[2])
    return rows


def _run(*command: str, folder: Path = ROOT) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def least(measured: list[Rows]) -> Rows:
    """The minimum of every row."""
    return {
        title: (min(rows[title][0] for rows in measured), min(rows[title][1] for rows in measured))
        for title in measured[0]
    }


def main() -> int:
    """Print the seconds of both trees and their ratio for each row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=str(__doc__).partition("\n")[0])
    parser.add_argument("commit", help="what to compare with")
    parser.add_argument("--only", nargs="+", required=True, metavar="JOB", help="jobs of python -m benchmarks")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each tree and job")
    parser.add_argument("--runs", type=int, default=2, help="runs in each process")
    options = parser.parse_args()
    trees = build(options.commit), (ROOT, Path(sys.executable))
    print("| row | before, s | now, s | wall, now / before | processor, now / before |\n|---|---|---|---|---|")
    for job in options.only:
        rounds = [[measure(*tree, job, options.runs) for tree in trees] for _ in range(options.rounds)]
        before, now = (least([both[side] for both in rounds]) for side in range(2))
        if len(before) != len(now):
            print(f"| {job}: other rows than before | | | | |")
            continue
        for title, (old_wall, old_cpu) in zip(now, before.values(), strict=True):  # titles may have changed
            wall, cpu = now[title]
            print(
                f"| {title} | {old_wall:.3f} | {wall:.3f} | {wall / old_wall:.2f} | {cpu / old_cpu:.2f} |", flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
