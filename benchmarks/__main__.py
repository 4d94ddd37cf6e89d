"""``python -m benchmarks [--only NAME ...] [--quick] [--runs N] [--json PATH]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import harness, report
from benchmarks.sizes import QUICK


def main() -> int:
    """Run the jobs; 1 if one failed or disagrees with its peer (a missed target is only reported)."""
    harness.discover()
    options = _parse()
    bench = harness.Bench(runs=options.runs, quick=options.quick)
    bench.run(options.only or harness.JOBS)
    print("\n" + report.text(bench))
    report.write_json(bench, options.json)
    return int(bool(bench.failures) or not all(row.valid for row in bench.comparisons))


def _parse() -> argparse.Namespace:
    names = list(harness.JOBS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Time deciban beside peers.")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help=f"1/{QUICK} of the rows: does everything work?")
    parser.add_argument("--runs", type=int, default=5, help="runs of deciban; the minimum counts")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results.json"), metavar="PATH")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
