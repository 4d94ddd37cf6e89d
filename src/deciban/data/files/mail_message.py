"""A mail parser: headers, links, names of attachments, and body.

It separates headers and parts as the email package of the standard library does, but in time and memory linear in the
length of a mail, and without importing that package, which takes longer than parsing a mail.
"""

from __future__ import annotations

import binascii
import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from deciban import _kernels
from deciban.errors import DecibanError
from deciban.lazy import lazy

mail_html = lazy("deciban.data.files.mail_html")  # its patterns are compiled for the first mail of HTML

MAX_BYTES = 1 << 22  # of a mail; the rest is not read
MAX_LINES = 10_000  # of headers in one part
MAX_PARTS = 1_000
MAX_DEPTH = 32  # of nested parts
MAX_PARAMETERS = 1 << 12  # characters of a header that holds a part's type or name

TRUNCATED = f"longer than {MAX_BYTES >> 20} MB: the rest was not read"

BOM = b"\xef\xbb\xbf"
HEADERS = {  # column: its headers
    "from": ("from",),
    "to": ("to",),
    "subject": ("subject",),
    "reply_to": ("reply-to",),
    "return_path": ("return-path",),
    "received": ("received",),
    "mailer": ("x-mailer", "user-agent"),
}
FIELDS = tuple((column, tuple(name.encode() for name in names)) for column, names in HEADERS.items())
COLUMNS = (*HEADERS, "content_type", "links", "attachments", "body")
TEXTS = ("text/plain", "text/html")
UTF_8 = frozenset({"", "us-ascii", "ascii", "utf-8"})  # charsets that are read as UTF-8
PART_HEADERS = frozenset({b"content-type", b"content-transfer-encoding", b"content-disposition"})
MAIL_HEADERS = PART_HEADERS.union(*(names for _, names in FIELDS))

# codecs of Python that are not charsets of mail: two take quadratic time, one warns
NOT_CHARSETS = frozenset({"punycode", "idna", "unicode_escape", "raw_unicode_escape", "unicode-escape", "undefined"})

# A mail of an mbox ends at an empty line before "From …" if a header follows: text may begin like that as well
END = re.compile(rb"\n\r?\n(?=From [^\n]{0,1000}\n(?:[A-Za-z][!-9;-~]{0,200}:|>From ))")
BEGINNING = re.compile(rb"(?:From [^\n]*\n)?(?:>From [^\n]*\n)*+[A-Za-z][A-Za-z0-9_.-]*:").match
ENCODED_WORD = re.compile(r"=\?([^?\s]*)\?([bBqQ])\?([^?]*)\?=")
PARAMETER = re.compile(r';\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*+)"|([^;]*))', re.DOTALL)
CHARSET = re.compile(r"[\w.:()+-]{1,40}", re.ASCII).fullmatch


class NotMail(DecibanError):
    """These bytes do not begin as a mail does."""


class Mail(NamedTuple):
    """The texts of a mail.

    texts : {column: text}; None without such a header, "" without links, attachments or body
    replaced : number of unknown charsets and undecodable characters; each is U+FFFD in the text
    problems : what was not read, or not as intended
    """

    texts: dict[str, str | None]
    replaced: int = 0
    problems: tuple[str, ...] = ()


def parse(data: bytes) -> Mail:
    """The texts of a mail.

    Text parts are decoded, HTML without its markup; attachments are named with their types and never decoded. In
    "content_type" every part has a line: type, charset and encoding, without the boundary, which no other mail shares.

    >>> mail = parse(b"From: Ann <ann@example.org>\\nSubject: =?utf-8?q?caf=C3=A9?=\\n\\nAt noon?\\n")
    >>> mail.texts["subject"], mail.texts["body"], mail.texts["reply_to"]
    ('café', 'At noon?\\n', None)
    """
    length = len(data)
    data = data[:MAX_BYTES].removeprefix(BOM).lstrip(b"\r\n")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not data:
        raise NotMail("it is empty")
    if not BEGINNING(data):
        raise NotMail("it does not begin with a header, such as 'From: …'")
    reader = _Reader(data)
    if length > MAX_BYTES:
        reader.problem(TRUNCATED)
    headers, body = reader.read_headers(0, len(data), MAIL_HEADERS)
    reader.read(headers, body, len(data), 0, "text/plain")
    texts: dict[str, str | None] = dict.fromkeys(COLUMNS)
    for column, names in FIELDS:
        values = [reader.header_text(value) for name in names if name in headers for value in headers[name]]
        if values:
            texts[column] = "\n".join(values)
    if b"content-type" in headers:
        texts["content_type"] = "\n".join(reader.kinds)
    texts["links"] = " ".join(reader.links)
    texts["attachments"] = "\n".join(reader.attachments)
    texts["body"] = "\n".join(reader.bodies)
    return Mail(texts, reader.replaced, tuple(reader.problems))


class _Reader:
    """Collects the texts of a mail part by part. Parts are ranges of bytes, not copies: there may be many, nested."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.bodies: list[str] = []
        self.links: list[str] = []
        self.attachments: list[str] = []
        self.kinds: list[str] = []
        self.replaced = 0
        self.problems: dict[str, None] = {}  # in order, without duplicates

    def problem(self, text: str) -> None:
        self.problems[text] = None

    # Parts ---------------------------------------------------------------------------------------------------------

    def read_headers(self, start: int, end: int, names: frozenset[bytes]) -> tuple[dict[bytes, list[bytes]], int]:
        """Some headers of a part, unfolded, and the start of its body: after an empty line, or at a line that is not a
        header."""
        headers, body, truncated = _kernels.read_headers(self.data, start, end, names, MAX_LINES)
        if truncated:
            self.problem(f"more than {MAX_LINES} lines of headers: the rest was not read")
        return headers, body

    def read(self, headers: Mapping[bytes, list[bytes]], start: int, end: int, depth: int, default: str) -> None:
        """Collects a part with this body, and the parts in it."""
        kind, parameters = _first_word(headers.get(b"content-type"))
        if kind.count("/") != 1:
            kind = "text/plain" if b"content-type" in headers else default
        disposition, disposition_parameters = _first_word(headers.get(b"content-disposition"))
        encoding = _first_text(headers.get(b"content-transfer-encoding")).strip().lower()
        charset = (self.parameter(parameters, "charset") or "").strip().lower()
        name = self.parameter(disposition_parameters, "filename") or self.parameter(parameters, "name")
        attached = disposition == "attachment"
        self.kinds.append(" ".join([word for word in (kind, charset, encoding) if word]))
        if kind.startswith("multipart/") or kind == "message/rfc822":
            if name:
                self.attachments.append(f"{name} {kind}")
            if self.read_nested(kind, parameters, start, end, depth):
                return
            kind, encoding, attached = "text/plain", "", False  # a part whose parts cannot be read is text
        elif name or attached or kind not in TEXTS:
            self.attachments.append(f"{name} {kind}" if name else kind)
        if attached or kind not in TEXTS:
            return
        data = self.data[start:end]
        if encoding == "quoted-printable":
            data = binascii.a2b_qp(data)
        elif encoding == "base64":
            data = _from_base64(data.translate(None, b"\n"))
        text = self.decode(data, charset)
        if kind == "text/html":
            text, links = mail_html.visible_text(text)
            self.links += links
        self.bodies.append(text)

    def read_nested(self, kind: str, parameters: Mapping[str, str], start: int, end: int, depth: int) -> bool:
        """The parts within a part; returns whether they could be read."""
        if depth == MAX_DEPTH:
            self.problem(f"parts nested more than {MAX_DEPTH} deep: read as text")
            return False
        if kind == "message/rfc822":
            headers, body = self.read_headers(start, end, PART_HEADERS)
            self.read(headers, body, end, depth + 1, "text/plain")
            return True
        boundary = self.parameter(parameters, "boundary")
        if boundary is None:
            self.problem("parts without a boundary: read as text")
            return False
        default = "message/rfc822" if kind == "multipart/digest" else "text/plain"
        has_parts = False
        for first, last in self.parts(b"--" + boundary.rstrip().encode("utf-8", "replace"), start, end):
            has_parts = True
            if len(self.kinds) >= MAX_PARTS:
                self.problem(f"more than {MAX_PARTS} parts: the rest was not read")
                break
            headers, body = self.read_headers(first, last, PART_HEADERS)
            self.read(headers, body, last, depth + 1, default)
        if not has_parts:
            self.problem("a boundary that does not occur: read as text")
        return has_parts

    def parts(self, mark: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The ranges between lines of the boundary; the line break before such a line belongs to it."""
        data, first, at = self.data, -1, self.data.find(mark, start, end)
        while at >= 0:
            after = at + len(mark)
            if at == start or data[at - 1] == 10:
                stop = data.find(b"\n", at, end)
                stop = end if stop < 0 else stop
                rest = data[after:stop].rstrip(b" \t")
                if rest in (b"", b"--"):
                    if 0 <= first < at:
                        yield first, at - 1
                    if rest:
                        return
                    first = stop + 1
                after = stop
            at = data.find(mark, after, end)
        if first >= 0:
            self.problem("parts without an end")
            yield min(first, end), end - data.endswith(b"\n", first, end)

    # Headers -------------------------------------------------------------------------------------------------------

    def header_text(self, value: bytes) -> str:
        """The text of a header."""
        text = self.decode(value, "")
        return (self.decode_words(text) if "=?" in text else text).strip()

    def decode_words(self, text: str) -> str:
        """The text with encoded words, =?charset?q?…?=, decoded, and without spaces between two of them."""
        out: list[str] = []
        pending: list[bytes] = []  # words of one charset: a character may be split between two
        pending_charset = ""
        at = 0
        for match in ENCODED_WORD.finditer(text):
            charset, encoding, encoded = match.groups()
            charset = charset.partition("*")[0].lower()
            between = text[at : match.start()]
            if pending and (charset != pending_charset or between.strip()):
                out.append(self.decode(b"".join(pending), pending_charset))
                pending = []
            if between.strip() or not at:
                out.append(between)
            raw = encoded.encode("utf-8", "replace")
            pending.append(_from_base64(raw) if encoding in "bB" else binascii.a2b_qp(raw, header=True))
            pending_charset, at = charset, match.end()
        if pending:
            out.append(self.decode(b"".join(pending), pending_charset))
        return "".join([*out, text[at:]])

    def parameter(self, parameters: Mapping[str, str], key: str) -> str | None:
        """A parameter, which may be in several pieces, percent-encoded, or made of encoded words."""
        if not parameters:
            return None
        if key in parameters:
            text = parameters[key]
            return self.decode_words(text) if "=?" in text else text
        if f"{key}*" in parameters:
            pieces = [(True, parameters[f"{key}*"])]
        else:
            pieces = []
            while (encoded := f"{key}*{len(pieces)}*") in parameters or encoded[:-1] in parameters:
                pieces.append((encoded in parameters, parameters.get(encoded) or parameters.get(encoded[:-1], "")))
        if not pieces:
            return None
        from urllib.parse import unquote_to_bytes

        charset = ""
        if pieces[0][0] and pieces[0][1].count("'") >= 2:
            charset, _, rest = pieces[0][1].split("'", 2)
            pieces[0] = (True, rest)
        raw = b"".join(unquote_to_bytes(piece) if encoded else piece.encode() for encoded, piece in pieces)
        return self.decode(raw, charset.lower())

    # Texts ---------------------------------------------------------------------------------------------------------

    def decode(self, data: bytes, charset: str) -> str:
        """Bytes as text; undecodable ones are replaced and counted. ASCII, or no charset, is read as UTF-8."""
        codec = "utf-8" if charset in UTF_8 else _codec(charset)
        if codec is None:
            self.replaced += 1
            self.problem(f"unknown charset {charset[:40]!r}")
            codec = "utf-8"
        try:
            text = data.decode(codec)
            if codec != "utf-8":
                text.encode()  # utf-7 may yield lone surrogates
        except UnicodeError:
            text = data.decode(codec, "replace")
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            self.replaced += text.count("\ufffd")
        return text.replace("\r\n", "\n") if "\r" in text else text


def _first_text(values: Sequence[bytes] | None) -> str:
    """The first header of a name, not decoded."""
    return values[0][:MAX_PARAMETERS].decode("utf-8", "replace") if values else ""


def _first_word(values: Sequence[bytes] | None) -> tuple[str, Mapping[str, str]]:
    """The first word of the first header of a name, such as `text/plain; charset="utf-8"`, and its {name: value}."""
    return _parameters(values[0][:MAX_PARAMETERS]) if values else ("", {})


@lru_cache(maxsize=256)  # most parts are of a few types
def _parameters(header: bytes) -> tuple[str, Mapping[str, str]]:
    value = header.decode("utf-8", "replace")
    parameters: dict[str, str] = {}
    for key, quoted, plain in PARAMETER.findall(value) if ";" in value else ():
        if "\\" in quoted:
            quoted = re.sub(r"\\(.)", r"\1", quoted)
        parameters.setdefault(key.lower(), quoted or plain.strip().strip('"'))
    return value.partition(";")[0].strip().lower(), parameters


def _from_base64(data: bytes) -> bytes:
    """As much as can be decoded: padding may be missing, and other characters may be in between."""
    with suppress(binascii.Error):
        return binascii.a2b_base64(data + b"==="[: -len(data) % 4], strict_mode=True)
    for padding in (b"", b"=="):
        with suppress(binascii.Error):
            return binascii.a2b_base64(data + padding)
    return data


@lru_cache(maxsize=256)
def _codec(charset: str) -> str | None:
    """Python's name of a charset; None if it is unknown."""
    charset = charset.strip("'\" ")
    if not CHARSET(charset):
        return None
    try:
        name = codecs.lookup(charset).name
        b" ".decode(name, "ignore")  # base64 and the like are codecs, but not of text
    except (LookupError, ValueError):
        return None
    return None if name in NOT_CHARSETS else name
