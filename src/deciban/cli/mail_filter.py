"""`deciban mail filter`: classifies mails, and passes them on or prints their classes.

Nothing heavy is imported before the mail is read: whatever fails after that, it is passed on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deciban.cli.mail import FAILED, OTHER, POSITIVE, UNSURE
from deciban.cli.mail_input import batches, mails_of, names_from_stdin, read_stdin, split_mbox
from deciban.cli.mail_verdict import as_header, as_json, as_line, with_header
from deciban.cli.process_exit import say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from deciban.data.files.mail_message import Mail
    from deciban.mail.filter import Filter, Verdict
    from deciban.mail.score_tables import Score

    Classify = Callable[[Sequence[dict[str, str | None]]], Sequence[Verdict | Score]]
    AsBytes = Callable[[Any, float, str, Mail], bytes]

MANY = 64  # mails, from which on it pays to keep score tables


def filter_mail(options: argparse.Namespace) -> int:
    if options.mails or options.bulk:
        return _filter_files(options)
    data = read_stdin()
    if options.mbox:
        return _filter_mbox(options, data)
    output = data
    try:
        output, verdict = _passed_on(options, _loaded(options), data)
        return _exit_code(verdict, options)
    finally:  # after any error: no mail is lost
        if not options.json or output is not data:
            sys.stdout.buffer.write(output)
            sys.stdout.buffer.flush()


def _filter_files(options: argparse.Namespace) -> int:
    """Prints a line for each mail. The exit code is that of a single mail; for several, whether all could be read."""
    from deciban.mail import score_tables

    tables = None if options.json else score_tables.cached(options.model)
    if tables is not None:
        _require_pos_label(options, tables.classes)
        return _filter_batches(options, tables.classify, as_line)[0]
    before = score_tables.key_of(options.model)
    model = _loaded(options)
    if options.json:
        return _filter_batches(options, model.explain, as_json)[0]
    code, count = _filter_batches(options, model.classify, as_line)
    if count >= MANY and before is not None:
        new = model.tables()
        if new is not None and score_tables.key_of(options.model) == before:  # else another process has changed it
            score_tables.keep(options.model, before, new)
    return code


def _filter_batches(options: argparse.Namespace, classify: Classify, as_bytes: AsBytes) -> tuple[int, int]:
    """Prints what is to be said of each mail; returns the exit code, and how many mails there were."""
    code, failed, count = POSITIVE, False, 0
    for batch in batches(_parsed_files(options)):
        mails = [(name, mail) for name, mail in batch if mail is not None]
        failed = failed or len(mails) < len(batch)
        verdicts = classify([mail.texts for _, mail in mails])
        for (name, mail), verdict in zip(mails, verdicts, strict=True):
            sys.stdout.buffer.write(as_bytes(verdict, options.sure, name, mail))
            code = _exit_code(verdict, options)
        count += len(mails)
        sys.stdout.buffer.flush()
    return FAILED if failed else code if count == 1 else POSITIVE, count


def _parsed_files(options: argparse.Namespace) -> Iterator[tuple[str, Mail | None]]:
    """The mails of files with their names; None, and a message, where one cannot be read."""
    from deciban.data.files.mail_message import NotMail, parse

    for name in options.mails or names_from_stdin():
        try:
            for title, data in mails_of(name, options):
                try:
                    yield title, parse(data)
                except NotMail as error:
                    say(f"{title}: {error}")
                    yield title, None
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            say(f"{name}: {getattr(error, 'strerror', None) or error}")
            yield name, None


def _filter_mbox(options: argparse.Namespace, data: bytes) -> int:
    """Passes on all mails of an mbox, each with its header."""
    from deciban.data.files.mail_message import NotMail

    failed, done = False, 0
    try:
        model = _loaded(options)
        for number, (mail, separator) in enumerate(split_mbox(data), 1):
            output = b"" if options.json else mail + separator
            try:
                output = _passed_on(options, model, mail)[0] + (b"" if options.json else separator)
            except NotMail as error:
                say(f"mail {number}: {error}")
                failed = True
            done += len(mail) + len(separator)
            sys.stdout.buffer.write(output)
    finally:  # after any error: no mail is lost
        if not options.json:
            sys.stdout.buffer.write(data[done:])
        sys.stdout.buffer.flush()
    return FAILED if failed else POSITIVE


def _loaded(options: argparse.Namespace) -> Filter:
    from deciban.mail.filter import Filter

    model = Filter.load(options.model)
    _require_pos_label(options, [str(label) for label in model.classes])
    return model


def _require_pos_label(options: argparse.Namespace, classes: Sequence[str]) -> None:
    if options.pos_label is not None and options.pos_label not in classes:
        from deciban.errors import DecibanError

        raise DecibanError(f"--pos-label {options.pos_label}: the model has only the classes {', '.join(classes)}")


def _passed_on(options: argparse.Namespace, model: Filter, data: bytes) -> tuple[bytes, Verdict]:
    """A mail with its header, or the JSON for it, and the verdict."""
    from deciban.data.files.mail_message import parse

    mail = parse(data)
    verdict = model.explain([mail.texts])[0]
    if options.json:
        return as_json(verdict, options.sure, None, mail), verdict
    return with_header(data, as_header(verdict, options.sure)), verdict


def _exit_code(verdict: Verdict | Score, options: argparse.Namespace) -> int:
    if options.exit_zero:
        return 0
    positive = "spam" if options.pos_label is None else options.pos_label
    return UNSURE if verdict.probability < options.sure else POSITIVE if str(verdict.label) == positive else OTHER
