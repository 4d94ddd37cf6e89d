"""`deciban mail filter`, `learn` and `forget`: mail by mail, each in a process that starts at once."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from deciban.filtering import Filter, Verdict
    from deciban.sources.mail import Mail

COMMANDS = {
    "filter": "Judge mail: a line for each file, or the mail itself with a header X-Deciban.",
    "learn": "Learn mail as a class, safely while others do the same.",
    "forget": "Forget mail that was learned as a class, exactly.",
}
TARGET, OTHER, UNSURE, FAILED = 0, 1, 2, 3  # exit codes, as bogofilter has them
HEADER = b"X-Deciban"
BATCH, MOST_BATCH = 256, 1 << 24  # mails that are judged at a time, and bytes of them
WIDTH = 76  # of a line of a header
# Ours, wherever some reader may see one: after a lone CR too, with space before the colon; and the lines it goes on in
SPOOFED = rb"(?i)(?<![^\r\n])X-Deciban[ \t]*+:[^\r\n]*+(?:(?:\r\n|\r|\n)[ \t][^\r\n]*+)*+(?:\r\n|\r|\n|\Z)"

FILTER = """Judge mail by a model.

Without files a mail is read from standard input and written to standard output, with a header such as

    X-Deciban: spam p=0.9987 decibans=28.9 (subject: free +9.1; body: claim +6.2)

What is not mail, or cannot be judged, is passed on as it is. With files, a line is printed for each.

Exit codes: 0 the class is --pos-label, 1 it is another, 2 no class is sure, 3 an error."""
LEARN = """Learn mail as a class, from standard input or files. Without a model file, a new one is made (naive Bayes).

Several processes may learn, forget and filter with one model at once: none is lost."""
FORGET = """Forget mail that was learned as a class, exactly. What was never learned is an error."""
EXAMPLES = {
    "filter": "  deciban mail filter mail.deciban < new.eml\n  deciban mail filter mail.deciban inbox/*.eml\n"
    "  find new/ -type f | deciban mail filter mail.deciban --bulk",
    "learn": "  deciban mail learn mail.deciban --as spam < new.eml\n"
    "  deciban mail learn mail.deciban --as ham old.mbox --mbox",
    "forget": "  deciban mail forget mail.deciban --as spam < wrong.eml",
}


def is_asked_for(arguments: Sequence[str]) -> bool:
    """Whether a command line is one of these."""
    return len(arguments) > 1 and arguments[0] == "mail" and arguments[1] in COMMANDS


def run(command: str, arguments: Sequence[str]) -> int:
    """The exit code of a command."""
    from deciban.errors import DecibanError

    asked = _parser(command).parse_intermixed_args(arguments)  # files may follow options
    if command == "filter" and sys.stdout is None:
        _say("standard output is closed")
        return FAILED
    try:
        code = {"filter": _filter, "learn": _learn, "forget": _learn}[command](asked)
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except BrokenPipeError:
        _leave_stdout()
    except DecibanError as error:
        _say(str(error))
    except OSError as error:
        _leave_stdout()
        _say(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
    except MemoryError:
        _say("there is not enough memory for this")
    except Exception as error:  # whatever it is, its exit code must not be that of a class
        _say(f"{type(error).__name__}: {error}")
    else:
        return code
    return FAILED


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        _say(f"{message}. `{self.prog} --help` shows what can be asked")
        raise SystemExit(FAILED)


def _parser(command: str) -> argparse.ArgumentParser:
    text = {"filter": FILTER, "learn": LEARN, "forget": FORGET}[command]
    parser = _Parser(
        prog=f"deciban mail {command}",
        description=text,
        epilog=f"examples:\n{EXAMPLES[command]}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=command)
    parser.add_argument("model", metavar="MODEL", help="a model file")
    parser.add_argument("mails", metavar="MAIL", nargs="*", help="files of one mail each; standard input if none")
    parser.add_argument("--mbox", action="store_true", help="the input is an mbox: many mails")
    if command != "filter":
        parser.add_argument(
            "--as", dest="label", type=_name_of_class, metavar="CLASS", required=True, help="the class of the mails"
        )
        return parser
    parser.add_argument("--bulk", "-b", action="store_true", help="read names of files from standard input")
    parser.add_argument(
        "--json", action="store_true", help="an object in JSON for each mail, instead of a line or a mail"
    )
    parser.add_argument(
        "--pos-label", dest="target", metavar="CLASS", help="the class of exit code 0; spam if not given"
    )
    parser.add_argument(
        "--sure", type=_share, default=0.9, metavar="P", help="below this probability a class is unsure; %(default)s"
    )
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0, whatever the class is, unless it fails")
    return parser


def _name_of_class(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("a class needs a name")
    return text


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"a probability from 0 to 1, not {text!r}")
    return value


# Filtering -----------------------------------------------------------------------------------------------------------


def _filter(asked: argparse.Namespace) -> int:
    if asked.mails or asked.bulk:
        return _filter_files(asked)
    data = _stdin()
    if asked.mbox:
        return _filter_mbox(asked, data)
    passed = data
    try:
        model = _loaded(asked.model)
        _require_class(model, asked)
        mail, verdict = _one(model, data)
        code = _code(verdict, asked)
        described = _described(verdict, asked.sure)
        passed = _json(verdict, asked.sure, None, mail) if asked.json else headed(data, described)
    finally:  # whatever goes wrong, mail is not lost
        if not asked.json or passed is not data:
            sys.stdout.buffer.write(passed)
            sys.stdout.buffer.flush()
    return code


def _one(model: Filter, data: bytes) -> tuple[Mail, Verdict]:
    from deciban.sources.mail import parse

    mail = parse(data)
    return mail, model.judged([mail.texts])[0]


def _filter_files(asked: argparse.Namespace) -> int:
    """A line for each mail. The exit code is that of the only mail; of several, only whether all could be read."""
    model = _loaded(asked.model)
    _require_class(model, asked)
    code, failed, count = TARGET, False, 0
    for some in _batches(_parsed(asked)):
        mails = [(name, mail) for name, mail in some if mail is not None]
        failed = failed or len(mails) < len(some)
        verdicts = model.judged([mail.texts for _, mail in mails], terms=asked.json)
        for (name, mail), verdict in zip(mails, verdicts, strict=True):
            count += 1
            code = _code(verdict, asked)
            line = _json(verdict, asked.sure, name, mail) if asked.json else _line(verdict, asked.sure, name)
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    return FAILED if failed else code if count == 1 else TARGET


def _parsed(asked: argparse.Namespace) -> Iterator[tuple[str, Mail | None]]:
    """The mails of files by name; None where there is none, which is said."""
    from deciban.sources.mail import NotMail, parse

    for name in asked.mails or _lines():
        try:
            for title, data in _mails_of(name, asked):
                try:
                    yield title, parse(data)
                except NotMail as error:
                    _say(f"{title}: {error}")
                    yield title, None
        except (OSError, ValueError) as error:  # of a name with a NUL
            _say(f"{name}: {getattr(error, 'strerror', None) or error}")
            yield name, None


def _filter_mbox(asked: argparse.Namespace, data: bytes) -> int:
    """All mails of an mbox, each with its header."""
    from deciban.sources.mail import NotMail

    failed, at = False, 0
    try:
        model = _loaded(asked.model)
        _require_class(model, asked)
        for number, (mail, after) in enumerate(_mails(data), 1):
            passed = b"" if asked.json else mail + after
            try:
                parsed, verdict = _one(model, mail)
                described = _described(verdict, asked.sure)
                passed = _json(verdict, asked.sure, None, parsed) if asked.json else headed(mail, described) + after
            except NotMail as error:
                _say(f"mail {number}: {error}")
                failed = True
            at += len(mail) + len(after)
            sys.stdout.buffer.write(passed)
    finally:  # whatever goes wrong, mail is not lost
        if not asked.json:
            sys.stdout.buffer.write(data[at:])
        sys.stdout.buffer.flush()
    return FAILED if failed else TARGET


def _require_class(model: Filter, asked: argparse.Namespace) -> None:
    if asked.target is not None and asked.target not in map(str, model.classes):
        from deciban.errors import DecibanError

        raise DecibanError(
            f"--pos-label {asked.target}: the model has no such class; it has {', '.join(map(str, model.classes))}"
        )


def _code(verdict: Verdict, asked: argparse.Namespace) -> int:
    if asked.exit_zero:
        return 0
    target = "spam" if asked.target is None else asked.target
    return UNSURE if verdict.probability < asked.sure else TARGET if str(verdict.label) == target else OTHER


def headed(mail: bytes, text: str) -> bytes:
    """The mail with a header X-Deciban, instead of those that it came with; all else as it is.

    >>> headed(b"X-Deciban: ham\\nSubject: hi\\n\\nX-Deciban: stays\\n", "spam")
    b'X-Deciban: spam\\nSubject: hi\\n\\nX-Deciban: stays\\n'
    """
    import re

    from deciban.sources.mail import BOM

    start = len(BOM) if mail.startswith(BOM) else 0
    while mail[start : start + 1] in (b"\r", b"\n"):  # no more than are read as if they were not there
        start += 1
    line = mail.find(b"\n", start) + 1 or mail.find(b"\r", start) + 1
    end = (b"\r\n" if mail[line - 2 : line] == b"\r\n" else mail[line - 1 : line]) if line else b"\n"
    if line and mail.startswith(b"From ", start):  # the envelope of an mbox
        start = line
    elif mail[:start] == BOM:  # before it, so that ours is a header to everyone
        start = 0
    stop = mail.find(b"\n\n", start) + 1 or len(mail)
    stop = mail.find(b"\n\r\n", start, stop) + 1 or stop
    headers = mail[start:stop]
    if HEADER.lower() in headers.lower():
        headers = re.sub(SPOOFED, b"", headers)
    ours = HEADER + b": " + end.join(_folded(text)) + end
    return b"".join((mail[:start], ours, headers, memoryview(mail)[stop:]))


def _folded(text: str) -> list[bytes]:
    """Lines of a header: printable ASCII, the later ones indented. A word that no line has room for is cut."""
    lines, room = [""], WIDTH - len(HEADER) - 2
    for word in " ".join(text.split()).encode("unicode_escape").decode().split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append("")
            room = WIDTH - 1
        lines[-1] += f" {word}" if lines[-1] else word
        while len(lines[-1]) > room:
            lines[-1:] = [lines[-1][:room], lines[-1][room:]]
            room = WIDTH - 1
    return [("\t" if i else "").encode() + line.encode() for i, line in enumerate(lines)]


def _described(verdict: Verdict, sure: float) -> str:
    why = "; ".join(f"{term} {decibans:+.1f}" for term, decibans in verdict.terms)
    told = f"{_name(verdict, sure)} p={verdict.probability:.4f} decibans={verdict.decibans:.1f}"
    return f"{told} ({why})" if why else told


def _name(verdict: Verdict, sure: float) -> str:
    """The class, or that it is not sure."""
    label = " ".join(str(verdict.label).split())
    return label if verdict.probability >= sure else f"unsure ({label})"


def _line(verdict: Verdict, sure: float, name: str) -> bytes:
    told = f"{_name(verdict, sure)}\t{verdict.probability:.4f}\t{verdict.decibans:.1f}\t"
    return told.encode("utf-8", "replace") + os.fsencode(name) + b"\n"


def _json(verdict: Verdict, sure: float, name: str | None, mail: Mail) -> bytes:
    import json

    found = {
        "file": name,
        "class": verdict.label,
        "sure": verdict.probability >= sure,
        "probability": verdict.probability,
        "decibans": _finite(verdict.decibans),
        "terms": {term: _finite(decibans) for term, decibans in verdict.terms},
        "replaced": mail.replaced,
        "problems": list(mail.problems),
    }
    return json.dumps({key: value for key, value in found.items() if value is not None}).encode() + b"\n"


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if abs(value) < float("inf") else None


# Learning and forgetting ---------------------------------------------------------------------------------------------


def _learn(asked: argparse.Namespace) -> int:
    """Reads first, then changes the model while nobody else does."""
    from deciban.errors import DecibanError
    from deciban.filtering import Filter
    from deciban.sources.mail import NotMail, parse
    from deciban.storage import locked

    forgets = asked.command == "forget"
    mails, left_out = [], 0
    for name in asked.mails or ["-"]:
        for title, data in _mails_of(name, asked):
            try:
                mails.append(parse(data).texts)
            except NotMail as error:
                if not (asked.mbox or len(asked.mails) > 1):
                    raise
                _say(f"{title}: {error}")
                left_out += 1
    if not mails:
        raise DecibanError(f"there is no mail to {asked.command}")
    with _ending_orderly(), locked(asked.model):
        new = not forgets and not os.path.exists(asked.model)
        model = Filter.new() if new else Filter.load(asked.model)
        changed = model.forgotten(mails, asked.label) if forgets else model.learned(mails, asked.label)
        changed.save(asked.model)
    if new:
        _say(f"{asked.model} is new: naive Bayes of mail")
    return FAILED if left_out else 0


@contextmanager
def _ending_orderly() -> Iterator[None]:
    """SIGTERM and SIGHUP are exits: a file that is half written goes. (That of reporting.py would import typer.)"""
    import signal

    def stop(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    asked = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heard = [number for number in asked if signal.getsignal(number) == signal.SIG_DFL]  # nohup ignores one of them
    for number in heard:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)


# Reading and saying --------------------------------------------------------------------------------------------------


def _loaded(path: str) -> Filter:
    from deciban.filtering import Filter

    return Filter.load(path)


def _mails_of(name: str, asked: argparse.Namespace) -> Iterator[tuple[str, bytes]]:
    """The mails of a file, or of standard input, and what they are called."""
    if name == "-":
        data = _stdin()
    else:
        from deciban.sources.mail import MOST_BYTES

        with open(name, "rb") as file:
            data = file.read(-1 if asked.mbox else MOST_BYTES + 1)
    if not asked.mbox:
        yield name, data
        return
    for number, (mail, _) in enumerate(_mails(data), 1):
        yield f"{name}, mail {number}", mail


def _mails(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The mails of an mbox, and what is between each and the next: all bytes of it."""
    from deciban.sources.mail import END

    at = 0
    for match in END.finditer(data):
        yield data[at : match.start() + 1], data[match.start() + 1 : match.end()]
        at = match.end()
    yield data[at:], b""


def _stdin() -> bytes:
    return b"" if sys.stdin is None else sys.stdin.buffer.read()  # None: it is closed


def _lines() -> Iterator[str]:
    for line in () if sys.stdin is None else sys.stdin.buffer:
        if line.strip():
            yield os.fsdecode(line.rstrip(b"\n"))


def _batches(mails: Iterable[tuple[str, Mail | None]]) -> Iterator[list[tuple[str, Mail | None]]]:
    some, size = list[tuple[str, "Mail | None"]](), 0
    for name, mail in mails:
        some.append((name, mail))
        size += 0 if mail is None else sum(map(len, filter(None, mail.texts.values())))
        if len(some) == BATCH or size > MOST_BATCH:
            yield some
            some, size = [], 0
    yield some


def _leave_stdout() -> None:
    """Whoever read it is gone, or a disk is full: what is in its buffer must not fail again when the program ends."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(message: str) -> None:
    if sys.stderr is not None:  # print would take standard output instead
        print(f"deciban: {message}", file=sys.stderr)
