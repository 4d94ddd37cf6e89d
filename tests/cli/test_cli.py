"""The command: what it shows, and how it fails."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from deciban import cli
from deciban.errors import DecibanError


def test_the_demo_shows_the_lectures_numbers():
    shown = CliRunner().invoke(cli.app, ["demo"])
    assert shown.exit_code == 0
    for words in (
        "4.4267637899e-04",
        "1.8366850019e-14",
        "Predicted: No",
        "4.08248",
        "in decibans",
        "IRIS",
        "sepal length",
    ):
        assert words in shown.output


def test_an_unknown_command_is_a_usage_error():
    assert CliRunner().invoke(cli.app, ["nonsense"]).exit_code == 2


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [(DecibanError("column 'x', row 3: no"), 1, "column 'x', row 3: no"), (KeyboardInterrupt(), 130, "interrupted")],
)
def test_a_mistake_is_a_message_and_an_exit_code_not_a_traceback(monkeypatch, capsys, error, code, words):
    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as done:
        cli.main()
    assert done.value.code == code
    assert capsys.readouterr().err == f"deciban: {words}\n"


def test_help_imports_nothing_heavy():
    code = "import sys, deciban.cli; print([m for m in ('sklearn', 'pyarrow', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
