"""`deciban filter`, `learn` and `forget --as`: mail by mail, each in a process that starts at once."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from deciban.filtering import Filter, Verdict
    from deciban.sources.mail import Mail

COMMANDS = {
    "filter": "Judge mail: a line for each file, or the mail itself with a header X-Deciban.",
    "learn": "Learn mail as a class, safely while others do the same.",
}
TARGET, OTHER, UNSURE, FAILED = 0, 1, 2, 3  # exit codes, as bogofilter has them
HEADER = b"X-Deciban"
BATCH = 256  # mails that are judged at a time
WIDTH = 76  # of a line of a header

FILTER = """Judge mail by a model.

Without files a mail is read from standard input and written to standard output, with a header such as

    X-Deciban: spam p=0.9987 decibans=28.9 (subject: free +9.1; body: claim +6.2)

What is not mail, or cannot be judged, is passed on as it is. With files, a line is printed for each.

Exit codes: 0 the class is --class, 1 it is another, 2 no class is sure, 3 an error."""
LEARN = """Learn mail as a class, from standard input or files. Without a model file, a new one is made (naive Bayes).

Several processes may learn, forget and filter with one model at once: none is lost."""
FORGET = """Forget mail that was learned as a class, exactly. What was never learned is an error."""
EXAMPLES = {
    "filter": "  deciban filter mail.deciban < new.eml\n  deciban filter mail.deciban inbox/*.eml\n"
    "  find new/ -type f | deciban filter mail.deciban --bulk",
    "learn": "  deciban learn mail.deciban --as spam < new.eml\n  deciban learn mail.deciban --as ham old.mbox --mbox",
    "forget": "  deciban forget mail.deciban --as spam < wrong.eml",
}


def is_asked_for(arguments: Sequence[str]) -> bool:
    """Whether a command line is one of these; `forget` is, if mail is to be forgotten."""
    command = arguments[0] if arguments else ""
    return command in COMMANDS or (command == "forget" and any(a == "--as" or a.startswith("--as=") for a in arguments))


def run(command: str, arguments: Sequence[str]) -> int:
    """The exit code of a command."""
    from deciban.errors import DecibanError

    asked = _parser(command).parse_intermixed_args(arguments)  # files may follow options
    try:
        code = {"filter": _filter, "learn": _learn, "forget": _learn}[command](asked)
        sys.stdout.flush()
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except DecibanError as error:
        _say(str(error))
    except OSError as error:
        _say(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
    except MemoryError:
        _say("there is not enough memory for this")
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
        prog=f"deciban {command}",
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
        parser.add_argument("--as", dest="label", metavar="CLASS", required=True, help="the class of the mails")
        return parser
    parser.add_argument("--bulk", "-b", action="store_true", help="read names of files from standard input")
    parser.add_argument(
        "--json", action="store_true", help="an object in JSON for each mail, instead of a line or a mail"
    )
    parser.add_argument("--class", dest="target", metavar="CLASS", help="the class of exit code 0; spam if not given")
    parser.add_argument(
        "--sure", type=_share, default=0.9, metavar="P", help="below this probability a class is unsure; %(default)s"
    )
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0, whatever the class is, unless it fails")
    return parser


def _share(text: str) -> float:
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise ValueError
    return value


# Filtering -----------------------------------------------------------------------------------------------------------


def _filter(asked: argparse.Namespace) -> int:
    if asked.mails or asked.bulk:
        return _filter_files(asked)
    data = sys.stdin.buffer.read()
    if asked.mbox:
        return _filter_mbox(asked, data)
    passed = data
    try:
        model = _loaded(asked.model)
        mail, verdict = _one(model, data)
        code = _code(model, verdict, asked)
        passed = headed(data, _described(verdict, asked.sure))
        if asked.json:
            passed = _json(verdict, asked.sure, None, mail).encode() + b"\n"
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
    """A line for each file. The exit code is that of the only mail; of several, only whether all could be read."""
    from deciban.errors import DecibanError
    from deciban.sources.mail import parse

    model = _loaded(asked.model)
    code, failed, count = TARGET, False, 0
    for some in _batches(asked.mails or _lines()):
        names, mails = list[str](), list[Any]()
        for name in some:
            try:
                mails.append(parse(_bytes(name)))
                names.append(name)
            except (DecibanError, OSError) as error:
                _say(f"{name}: {getattr(error, 'strerror', None) or error}")
                failed = True
        verdicts = model.judged([mail.texts for mail in mails], terms=asked.json)
        for name, mail, verdict in zip(names, mails, verdicts, strict=True):
            count += 1
            code = _code(model, verdict, asked)
            print(_json(verdict, asked.sure, name, mail) if asked.json else _line(verdict, asked.sure, name))
    return FAILED if failed else code if count == 1 else TARGET


def _filter_mbox(asked: argparse.Namespace, data: bytes) -> int:
    """All mails of an mbox, each with its header."""
    from deciban.errors import DecibanError

    model = _loaded(asked.model)
    failed = False
    for mail, after in _mails(data):
        passed = mail
        try:
            parsed, verdict = _one(model, mail)
            passed = headed(mail, _described(verdict, asked.sure))
            if asked.json:
                passed, after = _json(verdict, asked.sure, None, parsed).encode(), b"\n"
        except DecibanError as error:
            _say(str(error))
            failed = True
        sys.stdout.buffer.write(passed + after)
    return FAILED if failed else TARGET


def _code(model: Filter, verdict: Verdict, asked: argparse.Namespace) -> int:
    target = "spam" if asked.target is None else asked.target
    if asked.target is not None and target not in map(str, model.classes):
        from deciban.errors import DecibanError

        raise DecibanError(
            f"--class {target}: the model has no such class; it has {', '.join(map(str, model.classes))}"
        )
    if asked.exit_zero:
        return 0
    return UNSURE if verdict.probability < asked.sure else TARGET if str(verdict.label) == target else OTHER


def headed(mail: bytes, text: str) -> bytes:
    """The mail with a header X-Deciban, instead of those that it came with; all else as it is.

    >>> headed(b"X-Deciban: ham\\nSubject: hi\\n\\nX-Deciban: stays\\n", "spam")
    b'X-Deciban: spam\\nSubject: hi\\n\\nX-Deciban: stays\\n'
    """
    end = b"\r\n" if b"\r\n" in mail[:2000] else b"\n"
    kept, at, ours = list[bytes](), 0, False
    while at < len(mail):
        stop = mail.find(b"\n", at) + 1 or len(mail)
        line = mail[at:stop]
        if not line.strip(b"\r\n"):
            break
        ours = ours if line[:1] in b" \t" else line[: len(HEADER) + 1].lower() == HEADER.lower() + b":"
        if not ours:
            kept.append(line)
        at = stop
    first = 1 if kept and kept[0].startswith(b"From ") else 0  # the envelope of an mbox
    kept.insert(first, HEADER + b": " + end.join(_folded(text)) + end)
    return b"".join(kept) + mail[at:]


def _folded(text: str) -> list[bytes]:
    """Lines of a header: ASCII, the later ones indented."""
    lines, room = [""], WIDTH - len(HEADER) - 2
    for word in text.encode("ascii", "backslashreplace").decode().split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append("")
            room = WIDTH - 1
        lines[-1] += f" {word}" if lines[-1] else word
    return [("\t" if i else "").encode() + line.encode() for i, line in enumerate(lines)]


def _described(verdict: Verdict, sure: float) -> str:
    why = "; ".join(f"{term} {decibans:+.1f}" for term, decibans in verdict.terms)
    told = f"{_name(verdict, sure)} p={verdict.probability:.4f} decibans={verdict.decibans:.1f}"
    return f"{told} ({why})" if why else told


def _name(verdict: Verdict, sure: float) -> str:
    """The class, or that it is not sure."""
    label = " ".join(str(verdict.label).split())
    return label if verdict.probability >= sure else f"unsure ({label})"


def _line(verdict: Verdict, sure: float, name: str) -> str:
    return f"{_name(verdict, sure)}\t{verdict.probability:.4f}\t{verdict.decibans:.1f}\t{name}"


def _json(verdict: Verdict, sure: float, name: str | None, mail: Mail) -> str:
    import json

    found = {
        "file": name,
        "class": verdict.label,
        "sure": verdict.probability >= sure,
        "probability": verdict.probability,
        "decibans": verdict.decibans if abs(verdict.decibans) < float("inf") else None,
        "terms": dict(verdict.terms),
        "replaced": mail.replaced,
        "problems": list(mail.problems),
    }
    return json.dumps({key: value for key, value in found.items() if value is not None})


# Learning and forgetting ---------------------------------------------------------------------------------------------


def _learn(asked: argparse.Namespace) -> int:
    """Reads first, then changes the model while nobody else does."""
    from deciban.errors import DecibanError
    from deciban.filtering import Filter
    from deciban.sources.mail import NotMail, parse
    from deciban.storage import locked

    forgets = asked.command == "forget"
    mails, left_out = [], 0
    for name, data in _inputs(asked):
        try:
            mails.append(parse(data).texts)
        except NotMail as error:
            if not (asked.mbox or len(asked.mails) > 1):
                raise
            _say(f"{name}: {error}")
            left_out += 1
    if not mails:
        raise DecibanError(f"there is no mail to {asked.command}")
    with locked(asked.model):
        new = not forgets and not os.path.exists(asked.model)
        model = Filter.new() if new else Filter.load(asked.model)
        changed = model.forgotten(mails, asked.label) if forgets else model.learned(mails, asked.label)
        changed.save(asked.model)
    if new:
        _say(f"{asked.model} is new: naive Bayes of mail")
    return FAILED if left_out else 0


def _inputs(asked: argparse.Namespace) -> Iterator[tuple[str, bytes]]:
    for name in asked.mails or ["-"]:
        data = sys.stdin.buffer.read() if name == "-" else _bytes(name)
        if asked.mbox:
            yield from ((f"{name}, mail {i + 1}", mail) for i, (mail, _) in enumerate(_mails(data)))
        else:
            yield name, data


# Reading and saying --------------------------------------------------------------------------------------------------


def _loaded(path: str) -> Filter:
    from deciban.filtering import Filter

    return Filter.load(path)


def _bytes(path: str) -> bytes:
    from deciban.sources.mail import MOST_BYTES

    with open(path, "rb") as file:
        return file.read(MOST_BYTES + 1)


def _mails(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The mails of an mbox, and what is between each and the next: all bytes of it."""
    from deciban.sources.mail import END

    at = 0
    for match in END.finditer(data):
        yield data[at : match.start() + 1], data[match.start() + 1 : match.end()]
        at = match.end()
    yield data[at:], b""


def _lines() -> Iterator[str]:
    for line in sys.stdin:
        if line.strip():
            yield line.rstrip("\n")


def _batches(names: Iterable[str]) -> Iterator[list[str]]:
    some: list[str] = []
    for name in names:
        some.append(name)
        if len(some) == BATCH:
            yield some
            some = []
    yield some


def _say(message: str) -> None:
    print(f"deciban: {message}", file=sys.stderr)
