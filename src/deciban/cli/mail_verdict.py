"""The class of a mail as a header, a line or a JSON object."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deciban.data.files.mail_message import Mail
    from deciban.mail.filter import Verdict
    from deciban.mail.score_tables import Score

HEADER = b"X-Deciban"
WIDTH = 76  # of a header line
# X-Deciban headers that a mail came with, also after a lone CR or with space before the colon; with continuation lines
SPOOFED = rb"(?i)(?<![^\r\n])X-Deciban[ \t]*+:[^\r\n]*+(?:(?:\r\n|\r|\n)[ \t][^\r\n]*+)*+(?:\r\n|\r|\n|\Z)"


def with_header(mail: bytes, text: str) -> bytes:
    """The mail with an X-Deciban header in place of any that it came with; all other bytes unchanged.

    >>> with_header(b"X-Deciban: ham\\nSubject: hi\\n\\nX-Deciban: stays\\n", "spam")
    b'X-Deciban: spam\\nSubject: hi\\n\\nX-Deciban: stays\\n'
    """
    import re

    from deciban.data.files.mail_message import BOM

    start = len(BOM) if mail.startswith(BOM) else 0
    while mail[start : start + 1] in (b"\r", b"\n"):  # the parser skips these too
        start += 1
    line = mail.find(b"\n", start) + 1 or mail.find(b"\r", start) + 1
    end = (b"\r\n" if mail[line - 2 : line] == b"\r\n" else mail[line - 1 : line]) if line else b"\n"
    if line and mail.startswith(b"From ", start):  # the envelope line of an mbox
        start = line
    elif mail[:start] == BOM:  # before the BOM, so that every program reads our line as a header
        start = 0
    stop = mail.find(b"\n\n", start) + 1 or len(mail)
    stop = mail.find(b"\n\r\n", start, stop) + 1 or stop
    headers = mail[start:stop]
    if HEADER.lower() in headers.lower():
        headers = re.sub(SPOOFED, b"", headers)
    header = HEADER + b": " + end.join(_folded(text)) + end
    return b"".join((mail[:start], header, headers, memoryview(mail)[stop:]))


def _folded(text: str) -> list[bytes]:
    """The lines of a folded header: printable ASCII, continuation lines indented, long words split."""
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


def as_header(verdict: Verdict, sure: float) -> str:
    reasons = "; ".join(f"{term} {decibans:+.1f}" for term, decibans in verdict.terms)
    text = f"{_name(verdict, sure)} p={verdict.probability:.4f} decibans={verdict.decibans:.1f}"
    return f"{text} ({reasons})" if reasons else text


def _name(verdict: Verdict | Score, sure: float) -> str:
    """The class, marked if it is unsure."""
    label = " ".join(str(verdict.label).split())
    return label if verdict.probability >= sure else f"unsure ({label})"


def as_line(verdict: Verdict | Score, sure: float, name: str, mail: Mail | None = None) -> bytes:
    line = f"{_name(verdict, sure)}\t{verdict.probability:.4f}\t{verdict.decibans:.1f}\t"
    return line.encode("utf-8", "replace") + os.fsencode(name) + b"\n"


def as_json(verdict: Verdict, sure: float, name: str | None, mail: Mail) -> bytes:
    import json

    fields = {
        "file": name,
        "class": verdict.label,
        "sure": verdict.probability >= sure,
        "probability": verdict.probability,
        "decibans": _finite(verdict.decibans),
        "terms": {term: _finite(decibans) for term, decibans in verdict.terms},
        "replaced": mail.replaced,
        "problems": list(mail.problems),
    }
    return json.dumps({key: value for key, value in fields.items() if value is not None}).encode() + b"\n"


def _finite(value: float) -> float | None:
    """The value, or None if it is infinite, which JSON cannot hold."""
    return value if abs(value) < float("inf") else None
