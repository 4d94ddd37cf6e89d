"""Options of the command line: one argument on each line; exit codes are 0, 1 and 2, and there is no traceback."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from typer.testing import CliRunner

from deciban import cli
from tests.cli.runs import fitted, people
from tests.fuzz.row_files import folder

EXCLUDED = ("engine", "spark", "dask", "completion", "demo")  # clusters, shell start-up files, and nothing to mutate
SEEDS = [
    "fit people.csv --label evade --model naive-bayes -o m2.deciban",
    "fit people.csv --label -1 --model lda --drop status,member --shrinkage oas --json -o m2.deciban",
    "fit people.csv --label evade --model naive-bayes --columns age=poisson,income=uniform --smoothing auto -o out",
    "fit people.csv --label evade --model logistic --l2 0.5 --category age --na-values NA,-  -o m2.deciban",
    "fit people.csv --label evade --delimiter , --quote ' --decimal . --encoding latin-1 --skip 0 --header -o out",
    "fit people.csv --label c6 --no-header --names a,b,c,d,e,c6 --trim-label . --weight c -o m2.deciban",
    "fit people.csv --resume m.deciban --label evade -q",
    "predict m.deciban people.csv --keep age --explain 2 --format jsonl",
    "predict m.deciban - -o out.parquet --no-probabilities --input-format csv",
    "explain m.deciban people.csv --row 0 --row 3 --pos-label yes --against no --json",
    "evaluate m.deciban people.csv --label evade --json",
    "merge m.deciban m.deciban -o m2.deciban",
    "forget m.deciban people.csv --label evade -o m2.deciban",
    "show m.deciban --json",
    "mail filter m.deciban -",
    "--version",
]


def seeds() -> list[bytes]:
    return [line.replace(" ", "\n").encode() for line in SEEDS]


@cache
def _files() -> dict[str, bytes]:
    rows = people(20).drop(columns="id").to_csv(index=False).encode()
    return {"people.csv": rows, "m.deciban": fitted("--model", "naive-bayes", rows=40)}


def run(data: bytes) -> None:
    """Files are those of a folder of this process; an argument cannot name another."""
    text = data.decode("utf-8", "surrogateescape").replace("/", "_").replace("~", "_").replace("\0", "_")
    arguments = text.split("\n")
    if any(word in argument for word in EXCLUDED for argument in arguments):
        return
    files, home = _files(), Path.cwd()
    os.chdir(folder())
    try:
        for path in Path.cwd().iterdir():
            path.unlink()
        for name, content in files.items():
            Path(name).write_bytes(content)
        done = CliRunner().invoke(cli.app, arguments, input=files["people.csv"])
    finally:
        os.chdir(home)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    errors = (1, 2, 3) if arguments[:2] == ["mail", "filter"] else (1, 2)  # a filter has codes for verdicts
    if done.exit_code not in (0, *errors) or "Traceback" in done.stderr:
        raise AssertionError(f"exit code {done.exit_code}: {done.stderr}")
