"""The command as a whole: help, version, messages and exit codes, imports."""

import importlib.metadata
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import deciban as db
from deciban import cli
from deciban.cli.error_reporting import OTHER_NAMES, reported
from deciban.errors import DecibanError, warn
from tests.cli.runs import MAIN, NAIVE_BAYES, command, files_in, fitted, people, run

COMMANDS = ("fit", "predict", "explain", "evaluate", "merge", "forget", "refit-weights", "show", "report", "demo")
MAIL = ("mail",)  # see test_mail.py


def test_the_demo_shows_the_lectures_numbers():
    shown = run("demo").stdout
    for words in (
        "4.4267637899e-04",
        "1.8366850019e-14",
        "Predicted: No",
        "4.08248",
        "in decibans",
        "IRIS",
        "sepal length",
    ):
        assert words in shown


def test_predict_without_arguments_asks_for_them():
    assert "Missing argument" in run("predict", code=2).stderr


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("fit t.csv --target y", "--label"),
        ("fit t.csv --y y", "--label"),
        ("fit t.csv -y y", "--label"),
        ("fit t.csv --label-column=y", "--label"),
        ("evaluate m t.csv --target y", "--label"),
        ("fit t.csv --out m", "--output"),
        ("predict m t.csv --save m", "--output"),
        ("fit t.csv --sep ;", "--delimiter"),
        ("fit t.csv --cv 5", "--folds"),
        ("fit t.csv --seed 5", "--random-state"),
    ],
)
def test_an_option_of_another_tool_is_answered_with_ours(line, right):
    shown = run(*line.split(), code=2).stderr
    wrong = line.split()[-2 if "=" not in line else -1].partition("=")[0]
    assert f"No such option: {wrong} (Possible options: {right})" in shown


def test_other_names_are_no_options_and_ours_are():
    options = {name for each in get_command(cli.app).commands.values() for part in each.params for name in part.opts}
    assert OTHER_NAMES.keys() <= options
    assert options.isdisjoint(name for others in OTHER_NAMES.values() for name in others)


def test_a_command_is_not_told_options_that_it_lacks():
    assert "Possible" not in run("predict", "m", "t.csv", "--y", "y", code=2).stderr


def test_names_that_are_not_utf8_are_printed_and_options_refused(tmp_path):
    (tmp_path / "m.deciban").write_bytes(fitted(*NAIVE_BAYES))
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n")
    line = [sys.executable, "-c", MAIN, "merge", "m.deciban", "m.deciban", "-o", b"\x80.deciban"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout[:9], done.stderr) == (0, b"\x80.deciban"[:9], b"")
    options = ["fit", "t.csv", "--label", "y", "--na-values", b"\xe0", "-o", "out"]
    done = subprocess.run([*line[:3], *options], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"deciban: na_values must be text in UTF-8")


def test_version():
    version, kernels, libraries = run("--version").stdout.splitlines()
    assert version == f"deciban {db.__version__}"
    assert re.fullmatch(r"kernels: \w+ [\d.]+, [\w-]+( \(chosen at load\))?", kernels)
    assert libraries.startswith(f"Python {platform.python_version()} on {platform.system()}, numpy {np.__version__}, ")


def test_the_version_is_that_of_the_installed_package():
    assert importlib.metadata.version("deciban") == db.__version__


def test_help_names_every_command():
    shown = run("--help").stdout
    assert all(re.search(rf"^│ {name} ", shown, re.MULTILINE) for name in (*COMMANDS, *MAIL))
    names = {each.name or each.callback.__name__.replace("_", "-") for each in cli.app.registered_commands}
    assert {*COMMANDS, *MAIL} == names | {each.name for each in cli.app.registered_groups}


# Examples ------------------------------------------------------------------------------------------------------------


def examples(name):
    called = next(c.callback for c in cli.app.registered_commands if c.callback.__name__ == name.replace("-", "_"))
    return [line.strip() for line in called.__doc__.partition("Examples:")[2].splitlines() if line.strip()]


MONTHS = ("january", "february", "march")


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """A folder with all the files that the examples in the help use."""
    folder = tmp_path_factory.mktemp("office")
    for seed, name in enumerate(("people", "more", "later", "new", *MONTHS)):
        table = people(60, seed).rename(columns={"id": "name"}).drop(columns=["member"])
        table.assign(evade=table.evade.map({"yes": "Yes", "no": "No"})).to_csv(folder / f"{name}.csv", index=False)
    rows = (folder / "people.csv").read_text().splitlines(keepends=True)
    (folder / "leavers.csv").write_text("".join(rows[:4]))
    run("fit", folder / "people.csv", "--label", "evade", "-o", folder / "people.deciban")
    for month in MONTHS:
        run("fit", folder / f"{month}.csv", "--label", "evade", "--drop", "name", "-o", folder / f"{month}.deciban")
    run("merge", folder / "january.deciban", folder / "february.deciban", "-o", folder / "both.deciban")
    return files_in(folder)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_each_command_ends_with_two_examples_that_work(name, office, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines, help_ = examples(name), re.sub(r"[ │]+\n", "\n", run(name, "--help").stdout)
    assert len(lines) == 2
    for line in lines:
        for file, data in office.items():  # no example needs the one before
            (tmp_path / file).write_bytes(data)
        program, *args = shlex.split(line.partition(" | ")[0])
        assert program == "deciban"
        run(*args)
        assert line in help_


# Exit codes ----------------------------------------------------------------------------------------------------------


WRONG = """
nonsense
fit
fit a.csv --model perceptron --label x -o m
fit a.csv --folds 1 --label x -o m
fit a.csv --label x
fit a.csv -o m.deciban
predict m.deciban a.csv --format xls
predict m.deciban a.csv --explain 0
merge a.deciban -o b.deciban
merge a.deciban b.deciban
refit-weights a.deciban
explain m.deciban a.csv
explain m.deciban a.csv --row -1
"""


def test_a_wrong_use_is_exit_code_2():
    for line in WRONG.split("\n")[1:-1]:
        done = run(*line.split(), code=2)
        assert not done.stdout, line
        assert "Traceback" not in done.stderr, line


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (DecibanError("column 'x', row 3: no"), 1, "column 'x', row 3: no"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "a.csv"), 1, "a.csv: Permission denied"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (MemoryError(), 1, "out of memory"),
    ],
    ids=repr,
)
def test_a_mistake_is_a_message_and_an_exit_code_not_a_traceback(monkeypatch, error, code, words):
    def fail(path):
        raise error

    monkeypatch.setattr("deciban.estimators.load", fail)
    done = run("show", "m.deciban", code=code)
    assert done.stdout == ""
    assert done.stderr == f"deciban: {words}\n"


def test_a_bug_is_not_hidden(monkeypatch):
    monkeypatch.setattr("deciban.estimators.load", lambda path: int("broken"))
    with pytest.raises(ValueError, match="broken"):
        run("show", "m.deciban")


def test_warnings_are_lines_and_one_of_a_kind_is_enough(capsys):
    def careless():
        for rows in (3, 5, 8):
            warn(f"{rows} rows are impossible")
        for _ in range(3):
            warn("something else")
        warnings.warn("not of deciban", ResourceWarning, stacklevel=1)

    with pytest.raises(ResourceWarning):
        reported(careless)()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "deciban: warning: 3 rows are impossible",
        "deciban: warning: something else",
        "deciban: warning: 2 more like 'rows are impossible'…",
    ]


def test_standard_output_and_stderr_are_separate(tmp_path):
    people(50).to_csv(tmp_path / "a.csv", index=False)
    args = ["--label", "evade", *NAIVE_BAYES]
    good = command("fit", "a.csv", *args, "--json", "-o", "m.deciban", cwd=tmp_path)
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["path"] == "m.deciban"
    bad = command("fit", "b.csv", *args, "-o", "n.deciban", cwd=tmp_path)
    assert (bad.returncode, bad.stdout, bad.stderr) == (1, "", "deciban: there is no file 'b.csv'\n")
    assert not (tmp_path / "n.deciban").exists()
    assert command("fit", cwd=tmp_path).returncode == 2


def test_a_reader_that_has_enough_is_no_error(tmp_path):
    people(5_000).to_csv(tmp_path / "a.csv", index=False)  # more than a pipe holds
    (tmp_path / "m.deciban").write_bytes(fitted(*NAIVE_BAYES))
    line = [sys.executable, "-c", MAIN, "predict", "m.deciban", "a.csv"]
    with subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert len(process.stdout.readline()) > 10
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() != -signal.SIGPIPE


def ended(process, number):
    """The exit code after a signal; one that comes just before a read of a pipe is heard with the next."""
    while True:
        process.send_signal(number)
        try:
            return process.wait(10)
        except subprocess.TimeoutExpired:
            continue


def test_a_signal_is_an_orderly_end(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    line = [sys.executable, "-c", MAIN, "fit", "-", "--label", "y", "-o", "m.deciban"]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, cwd=tmp_path, env=os.environ | {"TMPDIR": str(temporary)}, **options) as process:
        process.stdin.write(b"x,y\n" + b"1,a\n2,b\n" * 1000)
        process.stdin.flush()
        while not list(temporary.glob("deciban-*/*")):
            assert process.poll() is None
            time.sleep(0.02)
        assert ended(process, signal.SIGTERM) == 143
        assert process.stdout.read() == process.stderr.read() == b""
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]
    assert not list(temporary.iterdir())


def test_a_signal_leaves_no_half_of_a_file(tmp_path):
    code = (
        "import os, signal, sys\n"
        "from deciban.cli import app, main\n"
        "from deciban.cli.error_reporting import reported\n"
        "from deciban.persist.storage import replacing\n"
        "@app.command()\n"
        "@reported\n"
        "def die() -> None:\n"
        "    with replacing('out.csv') as file:\n"
        "        file.write(b'half')\n"
        "        assert len(os.listdir()) == 1\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        signal.pause()\n"
        "sys.argv = ['deciban', 'die']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "")
    assert not list(tmp_path.iterdir())


def test_a_signal_that_is_ignored_stays_so():
    code = (
        "from signal import *; from deciban.cli.process_exit import exiting_on_signals\n"
        "signal(SIGHUP, SIG_IGN)\n"
        "with exiting_on_signals():\n"
        "    print(getsignal(SIGHUP) == SIG_IGN, getsignal(SIGTERM) != SIG_DFL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"


# Imports and completion ----------------------------------------------------------------------------------------------

HELP = """
import sys
from deciban.cli import main
for words in sys.argv[1:]:
    sys.argv = ["deciban", *words.split()]
    try:
        main()
    except SystemExit as ended:
        print("ended:", ended.code, words, *sorted({"numpy", "sklearn", "pyarrow", "scipy"} & {*sys.modules}))
"""


def test_help_is_plain_ascii_and_imports_nothing_heavy():
    asked = ["-h", "--help", "--version", *(f"{name} -h" for name in COMMANDS)]
    env = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", HELP, *asked], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Usage: deciban") == len(asked) - 1
    assert re.findall(r"^ended: (.*)", done.stdout, re.MULTILINE) == [f"0 {words}" for words in asked]


def completed(*words):
    """What the shell would be offered; nothing means that it offers the names of files."""
    asked = {"COMP_WORDS": " ".join(["deciban", *words]), "COMP_CWORD": str(len(words))}
    asked["_DECIBAN_COMPLETE"] = "complete_bash"
    return CliRunner().invoke(cli.app, [], prog_name="deciban", env=asked).stdout.split()


def test_the_shell_completes_commands_options_values_and_files():
    assert set(completed("f")) == {"fit", "forget"}
    assert completed("ref") == ["refit-weights"]
    assert "--label" in completed("fit", "--la")
    assert completed("fit", "a.csv", "--model", "l") == ["lda", "logistic"]
    assert completed("fit", "a.csv", "--model", "e") == ["evidence"]
    assert completed("fit", "a") == []
    assert completed("show", "m") == []
    env = {"_DECIBAN_COMPLETE": "complete_bash", "COMP_WORDS": "deciban ref", "COMP_CWORD": "1"}
    assert command(env=env).stdout.split() == ["refit-weights"]
