"""`deciban mail filter`, `learn` and `forget`: their options and exit codes. Each mail may be a process of its own."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from deciban.cli.process_exit import discard_stdout, exiting_on_signals, os_error_message, say

COMMANDS = {
    "filter": "Classify mail: print a line per file, or pass the mail on with an X-Deciban header.",
    "learn": "Train the model on mail of a class.",
    "forget": "Remove mail of a class from the model, exactly.",
}
POSITIVE, OTHER, UNSURE, FAILED = 0, 1, 2, 3  # exit codes of filter, as in bogofilter
ERROR, USAGE = 1, 2  # of learn and forget, as of all other commands

FILTER = """Classify mail with a model.

Without files, one mail is read from standard input and written to standard output, with a header such as

    X-Deciban: spam p=0.9987 decibans=28.9 (subject: free +9.1; body: claim +6.2)

Input that is not mail, or cannot be classified, is passed on unchanged. With files, a line is printed for each.

Exit codes: 0 the class is --pos-label, 1 it is another one, 2 it is unsure, 3 an error."""
LEARN = """Train the model on mail of a class, from standard input or files. A model file that does not exist
is created (naive Bayes).

Several processes may learn, forget and filter with one model at the same time.

Exit codes: 0, 1 an error, 2 a wrong option."""
FORGET = """Remove mail of a class from the model, exactly. Mail that was never learned is an error.

Exit codes: 0, 1 an error, 2 a wrong option."""
EXAMPLES = {
    "filter": "  deciban mail filter mail.deciban < new.eml\n  deciban mail filter mail.deciban inbox/*.eml\n"
    "  find new/ -type f | deciban mail filter mail.deciban --bulk",
    "learn": "  deciban mail learn mail.deciban --as spam < new.eml\n"
    "  deciban mail learn mail.deciban --as ham old.mbox --mbox",
    "forget": "  deciban mail forget mail.deciban --as spam < wrong.eml",
}


def is_mail_command(arguments: Sequence[str]) -> bool:
    return len(arguments) > 1 and arguments[0] == "mail" and arguments[1] in COMMANDS


def run(command: str, arguments: Sequence[str]) -> int:
    """Runs a command and returns its exit code."""
    from deciban.errors import DecibanError

    options = parser_of(command).parse_intermixed_args(arguments)  # files may follow options
    if command == "filter" and sys.stdout is None:
        say("standard output is closed")
        return FAILED
    try:
        if command == "filter":
            from deciban.cli.mail_filter import filter_mail

            return filter_mail(options)
        return _learn_or_forget(options)
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:
        discard_stdout()
    except DecibanError as error:
        say(str(error))
    except OSError as error:
        discard_stdout()
        say(os_error_message(error))
    except MemoryError:
        say("out of memory")
    except Exception as error:  # a crash would exit with 1, the code of a class
        say(f"{type(error).__name__}: {error}")
    return FAILED if command == "filter" else ERROR


def _learn_or_forget(options: argparse.Namespace) -> int:
    """Reads all mail, then updates the model under a lock."""
    from deciban.cli.mail_input import mails_of
    from deciban.data.files.mail_message import NotMail, parse
    from deciban.errors import DecibanError
    from deciban.mail.filter import Filter
    from deciban.persist.storage import locked

    forgets = options.command == "forget"
    mails, skipped = [], 0
    for name in options.mails or ["-"]:
        for title, data in mails_of(name, options):
            try:
                mails.append(parse(data).texts)
            except NotMail as error:
                if not (options.mbox or len(options.mails) > 1):
                    raise DecibanError(f"{title}: {error}") from None
                say(f"{title}: {error}")
                skipped += 1
    if not mails:
        raise DecibanError(f"there is no mail to {options.command}")
    with exiting_on_signals(), locked(options.model):
        new = not forgets and not os.path.exists(options.model)
        model = Filter.new() if new else Filter.load(options.model)
        changed = model.forget(mails, options.label) if forgets else model.learn(mails, options.label)
        changed.save(options.model)
    if new:
        say(f"{options.model} is a new model: naive Bayes for mail")
    return ERROR if skipped else 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        say(f"{message}; see `{self.prog} --help`")
        raise SystemExit(FAILED if self.get_default("command") == "filter" else USAGE)


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        columns = os.environ.get("COLUMNS", "")
        super().__init__(prog, width=(int(columns) if columns.isdecimal() and int(columns) > 20 else 80) - 2)


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser of one of the mail commands."""
    parser = _Parser(
        prog=f"deciban mail {command}",
        description={"filter": FILTER, "learn": LEARN, "forget": FORGET}[command],
        epilog=f"examples:\n{EXAMPLES[command]}",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.set_defaults(command=command)
    parser.add_argument("model", metavar="MODEL", help="a model file")
    parser.add_argument("mails", metavar="MAIL", nargs="*", help="files of one mail each; by default standard input")
    parser.add_argument("--mbox", action="store_true", help="the input is an mbox with many mails")
    if command != "filter":
        parser.add_argument(
            "--as", dest="label", type=_class_name, metavar="CLASS", required=True, help="the class of the mail"
        )
        return parser
    parser.add_argument("--bulk", "-b", action="store_true", help="read file names from standard input")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each mail")
    parser.add_argument("--pos-label", metavar="CLASS", help="the class of exit code 0 (default spam)")
    unsure = "a class is unsure below this probability (default %(default)s)"
    parser.add_argument("--sure", type=_probability, default=0.9, metavar="P", help=unsure)
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever the class; errors exit with 3")
    return parser


def _class_name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("a class needs a name")
    return text


def _probability(text: str) -> float:
    with suppress(ValueError):
        if 0.0 <= float(text) <= 1.0:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a probability from 0 to 1, not {text!r}")
