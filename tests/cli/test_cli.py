"""The command as a whole: help, version, messages and exit codes, imports."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import warnings

import pytest

import deciban as db
from deciban import cli
from deciban.cli.error_reporting import reported
from deciban.errors import DecibanError, warn
from tests.cli.runs import command, people, run

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


def test_version():
    assert run("--version").stdout == f"deciban {db.__version__}\n"


def test_help_names_every_command():
    shown = run("--help").stdout
    assert all(re.search(rf"^│ {name} ", shown, re.MULTILINE) for name in (*COMMANDS, *MAIL))
    names = {found.name or found.callback.__name__.replace("_", "-") for found in cli.app.registered_commands}
    assert {*COMMANDS, *MAIL} == names | {found.name for found in cli.app.registered_groups}


# Examples ------------------------------------------------------------------------------------------------------------


def examples(name):
    found = next(c.callback for c in cli.app.registered_commands if c.callback.__name__ == name.replace("-", "_"))
    return [line.strip() for line in found.__doc__.partition("Examples:")[2].splitlines() if line.strip()]


MONTHS = ("january", "february", "march")


@pytest.fixture
def office(tmp_path, monkeypatch):
    """A folder with all the files that the examples of the help speak of."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("people", "more", "later", "new", *MONTHS)):
        table = people(60, seed).rename(columns={"id": "name"}).drop(columns=["member"])
        table.assign(evade=table.evade.map({"yes": "Yes", "no": "No"})).to_csv(f"{name}.csv", index=False)
    people_ = (tmp_path / "people.csv").read_text().splitlines(keepends=True)
    (tmp_path / "leavers.csv").write_text("".join(people_[:4]))
    for month in MONTHS:
        run("fit", f"{month}.csv", "--label", "evade", "--drop", "name", "-o", f"{month}.deciban")
    run("merge", "january.deciban", "february.deciban", "-o", "both.deciban")
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_each_command_ends_with_two_examples_that_work(name, office):
    found = examples(name)
    assert len(found) == 2
    for line in found:
        run("fit", "people.csv", "--label", "evade", "-o", "people.deciban")  # no example needs the one before
        program, *args = shlex.split(line.partition(" | ")[0])
        assert program == "deciban"
        run(*args)
        assert line in re.sub(r"[ │]+\n", "\n", run(name, "--help").stdout)


# Exit codes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["fit"],
        ["fit", "a.csv", "--model", "perceptron", "--label", "x", "-o", "m"],
        ["fit", "a.csv", "--folds", "1", "--label", "x", "-o", "m"],
        ["fit", "a.csv", "--label", "x"],
        ["fit", "a.csv", "-o", "m.deciban"],
        ["predict", "m.deciban", "a.csv", "--format", "xls"],
        ["predict", "m.deciban", "a.csv", "--explain", "0"],
        ["merge", "a.deciban", "-o", "b.deciban"],
        ["merge", "a.deciban", "b.deciban"],
        ["refit-weights", "a.deciban"],
        ["explain", "m.deciban", "a.csv"],
        ["explain", "m.deciban", "a.csv", "--row", "-1"],
    ],
    ids=" ".join,
)
def test_a_wrong_use_is_exit_code_2(args):
    done = run(*args, code=2)
    assert not done.stdout
    assert "Traceback" not in done.stderr


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


def test_a_mistake_of_ours_is_not_hidden(monkeypatch):
    def fail(path):
        raise ValueError("broken")

    monkeypatch.setattr("deciban.estimators.load", fail)
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


def test_streams_are_apart(tmp_path):
    people(50).to_csv(tmp_path / "a.csv", index=False)
    good = command("fit", "a.csv", "--label", "evade", "--json", "-o", "m.deciban", cwd=tmp_path)
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["path"] == "m.deciban"
    bad = command("fit", "b.csv", "--label", "evade", "-o", "n.deciban", cwd=tmp_path)
    assert (bad.returncode, bad.stdout, bad.stderr) == (1, "", "deciban: there is no file 'b.csv'\n")
    assert not (tmp_path / "n.deciban").exists()
    assert command("fit", cwd=tmp_path).returncode == 2


def test_a_reader_that_has_enough_is_no_error(tmp_path):
    people(20_000).to_csv(tmp_path / "a.csv", index=False)
    run("fit", tmp_path / "a.csv", "--label", "evade", "-o", tmp_path / "m.deciban")
    for args in (["predict", "m.deciban", "a.csv"], ["predict", "m.deciban", "a.csv", "--format", "jsonl"]):
        line = [sys.executable, "-c", "from deciban.cli import main; main()", *args]
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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_is_an_orderly_end(number, code, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    line = [sys.executable, "-c", "from deciban.cli import main; main()"]
    line += ["fit", "-", "--label", "y", "-o", "m.deciban"]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, cwd=tmp_path, env=os.environ | {"TMPDIR": str(temporary)}, **options) as process:
        process.stdin.write(b"x,y\n" + b"1,a\n2,b\n" * 1000)
        process.stdin.flush()
        while not list(temporary.glob("deciban-*/*")):
            assert process.poll() is None
        assert ended(process, number) == code
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
        "import signal; from deciban.cli.process_exit import exit_on_signals; "
        "signal.signal(signal.SIGHUP, signal.SIG_IGN); exit_on_signals(); "
        "print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, signal.getsignal(signal.SIGTERM) != signal.SIG_DFL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"


@pytest.mark.parametrize("args", [["-h"], *([name, "-h"] for name in COMMANDS)], ids=" ".join)
def test_help_is_plain_ascii(args):
    done = command(*args, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: deciban" in done.stdout


# Imports and completion ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_imports_nothing_heavy(args):
    code = (
        "import atexit, sys, deciban.cli; "
        "atexit.register(lambda: print('heavy:', *({'numpy', 'sklearn', 'pyarrow', 'scipy'} & {*sys.modules}))); "
        f"sys.argv = ['deciban', *{args}]; deciban.cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy:"


def completed(*words):
    """What the shell would be offered; nothing means that it offers the names of files."""
    line = " ".join(["deciban", *words])
    asked = {"_DECIBAN_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    code = "from deciban.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=asked, capture_output=True, text=True, check=False)
    return done.stdout.split()


def test_the_shell_completes_commands_options_values_and_files():
    assert set(completed("f")) == {"fit", "forget"}
    assert completed("ref") == ["refit-weights"]
    assert "--label" in completed("fit", "--la")
    assert completed("fit", "a.csv", "--model", "l") == ["lda", "logistic"]
    assert completed("fit", "a.csv", "--model", "e") == ["evidence"]
    assert completed("fit", "a") == []
    assert completed("show", "m") == []
