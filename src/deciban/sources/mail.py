"""One mail → named texts: its headers, its links, the names of its attachments, and its body.

Headers and parts are told apart as the standard library's email package does, but in time and memory that grow with the
length of a mail and nothing else, and without importing that package, which takes longer than reading a mail does.
"""

from __future__ import annotations

import binascii
import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from deciban.errors import DecibanError

COLUMNS = (
    "from",
    "to",
    "subject",
    "reply_to",
    "return_path",
    "received",
    "mailer",
    "content_type",
    "links",
    "attachments",
    "body",
)
MOST_BYTES = 1 << 22  # of a mail that are read
MOST_LINES = 10_000  # of headers in one part
MOST_PARTS = 1_000
MOST_DEPTH = 32  # of parts within parts
MOST_PARAMETERS = 1 << 12  # characters of a header that holds a part's type or name

CUT = f"longer than {MOST_BYTES >> 20} MB: the rest was left out"

BOM = b"\xef\xbb\xbf"
HEADERS = {  # column: the headers that it is made of
    "from": ("from",),
    "to": ("to",),
    "subject": ("subject",),
    "reply_to": ("reply-to",),
    "return_path": ("return-path",),
    "received": ("received",),
    "mailer": ("x-mailer", "user-agent"),
}
TEXTS = ("text/plain", "text/html")
ENVELOPE = (b"From ", b">From ")  # lines of a mailbox
OF_PARTS = frozenset({b"content-type", b"content-transfer-encoding", b"content-disposition"})
OF_MAILS = OF_PARTS | {name.encode() for names in HEADERS.values() for name in names}

# bytes.decode() would take them, but they are no charsets of mail: two take quadratic time, one warns
NO_CHARSETS = frozenset({"punycode", "idna", "unicode_escape", "raw_unicode_escape", "unicode-escape", "undefined"})

# A tag of these ends a word; others, and those that do not exist, may stand inside of one: "vi<b></b>sit"
_BREAKING = """address article aside blockquote body br button center dd div dl dt fieldset footer form frame h1 h2 h3
    h4 h5 h6 head header hr html iframe img input li main meta nav ol optgroup option p pre section select table tbody
    td textarea tfoot th thead title tr ul"""
_LINKING = "a area audio base body embed form frame iframe img input link source table td th tr video"
BREAKING, LINKING = frozenset(_BREAKING.split()), frozenset(_LINKING.split())

# A mail of an mbox ends at an empty line before "From …", if a header follows: text may begin so too
END = re.compile(rb"\n\r?\n(?=From [^\n]{0,1000}\n(?:[A-Za-z][!-9;-~]{0,200}:|>From ))")
FIELD = re.compile(rb"([!-9;-~]*):[ \t]*").match
BEGINNING = re.compile(rb"(?:From [^\n]*\n)?(?:>From [^\n]*\n)*+[A-Za-z][A-Za-z0-9_.-]*:").match
ENCODED_WORD = re.compile(r"=\?([^?\s]*)\?([bBqQ])\?([^?]*)\?=")
PARAMETER = re.compile(r';\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*+)"|([^;]*))', re.DOTALL)
CHARSET = re.compile(r"[\w.:()+-]{1,40}", re.ASCII).fullmatch
LONG_NUMBER = re.compile(r"&#0*([0-9]{8})[0-9]*")  # no character has it, and Python refuses to read very long ones
# These two are compiled by the first mail of HTML: for the only mail of a command that takes longer than reading it.
# Every branch runs to the end of the text if it is not closed, and gives nothing back: so the time is linear
MARKUP = r"""(?xia)
      <!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>|\Z))
    | <script\b[^<]*+(?:<(?!/script)[^<]*+)*+(?:</script[^>]*+(?:>|\Z)|\Z)
    | <style\b[^<]*+(?:<(?!/style)[^<]*+)*+(?:</style[^>]*+(?:>|\Z)|\Z)
    | </?([a-z!?][^\s>/]*+)(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+(?:>|\Z)
    """
LINK = r"""(?ia)[\s"'/](?:href|src|action|background)\s*+=\s*+(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""


class NotMail(DecibanError):
    """These bytes do not begin as a mail does."""


@dataclass(frozen=True)
class Mail:
    """What a mail says.

    texts : {column: text}; None where there is no such header, "" where there are no links, attachments or body
    replaced : unknown charsets, and places that could not be decoded: each is U+FFFD in the text
    problems : what was left out or could not be read as it was meant
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
    data = data[:MOST_BYTES].removeprefix(BOM).lstrip(b"\r\n")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    _require_mail(data)
    reader = _Reader(data)
    if length > MOST_BYTES:
        reader.problem(CUT)
    headers, body = reader.headed(0, len(data), OF_MAILS)
    reader.read(headers, body, len(data), 0, "text/plain")
    texts: dict[str, str | None] = dict.fromkeys(COLUMNS)
    for column, names in HEADERS.items():
        values = [reader.value(value) for name in names for value in headers.get(name.encode(), ())]
        texts[column] = "\n".join(values) if values else None
    if b"content-type" in headers:
        texts["content_type"] = "\n".join(reader.kinds)
    texts["links"] = " ".join(reader.links)
    texts["attachments"] = "\n".join(reader.attachments)
    texts["body"] = "\n".join(reader.bodies)
    return Mail(texts, reader.replaced, tuple(reader.problems))


def _require_mail(data: bytes) -> None:
    if not data:
        raise NotMail("it is empty")
    if not BEGINNING(data):
        raise NotMail("it does not begin with a header, such as 'From: …'")


@dataclass
class _Reader:
    """Gathers the texts of a mail, part by part. Parts are places in it, not copies: there may be many, nested."""

    data: bytes
    bodies: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    replaced: int = 0
    problems: dict[str, None] = field(default_factory=dict)  # in order, each once

    def problem(self, what: str) -> None:
        self.problems[what] = None

    # Parts ---------------------------------------------------------------------------------------------------------

    def headed(self, start: int, end: int, wanted: frozenset[bytes]) -> tuple[dict[bytes, list[bytes]], int]:
        """The wanted headers of a part, unfolded, and where its body begins: after an empty line, or at a line that
        is no header."""
        if self.data.startswith(b"\n", start, end):
            return {}, start + 1
        stop = self.data.find(b"\n\n", start, end)
        stop, body = (end, end) if stop < 0 else (stop, stop + 2)
        lines = self.data[start:stop].split(b"\n", MOST_LINES)
        rest = lines.pop() if len(lines) > MOST_LINES else b""
        found: dict[bytes, list[list[bytes]]] = {}
        folded: list[bytes] = []  # lines of the header at hand
        for number, line in enumerate(lines):
            match = FIELD(line)
            if match:
                folded = [line[match.end() :]]
                name = match[1].lower()
                if name in wanted:
                    found.setdefault(name, []).append(folded)
            elif line[:1] in (b" ", b"\t"):
                folded.append(line)
            elif line and not line.startswith(ENVELOPE):
                body = start + sum(len(line) + 1 for line in lines[:number])
                break
        else:
            if rest:
                self.problem(f"more than {MOST_LINES} lines of headers: the rest was left out")
        return {name: [b"".join(folded) for folded in values] for name, values in found.items()}, body

    def read(self, headers: Mapping[bytes, list[bytes]], start: int, end: int, depth: int, default: str) -> None:
        """A part whose body is here, and those in it."""
        kind, parameters = self.parameters(headers, b"content-type")
        if kind.count("/") != 1:
            kind = "text/plain" if b"content-type" in headers else default
        disposition, of_disposition = self.parameters(headers, b"content-disposition")
        encoding = self.first(headers, b"content-transfer-encoding").strip().lower()
        charset = (self.named(parameters, "charset") or "").strip().lower()
        name = self.named(of_disposition, "filename") or self.named(parameters, "name")
        attached = disposition == "attachment"
        self.kinds.append(" ".join(filter(None, (kind, charset, encoding))))
        if kind.startswith("multipart/") or kind == "message/rfc822":
            if name:
                self.attachments.append(f"{name} {kind}")
            if self.opened(kind, parameters, start, end, depth):
                return
            kind, encoding, attached = "text/plain", "", False  # what cannot be opened is read as it stands
        elif name or attached or kind not in TEXTS:
            self.attachments.append(f"{name} {kind}" if name else kind)
        if attached or kind not in TEXTS:
            return
        text = self.decoded(_unwrapped(self.data[start:end], encoding), charset)
        self.bodies.append(self.visible(text) if kind == "text/html" else text)

    def opened(self, kind: str, parameters: Mapping[str, str], start: int, end: int, depth: int) -> bool:
        """Whether the parts within one could be read."""
        if depth == MOST_DEPTH:
            self.problem(f"parts within parts, more than {MOST_DEPTH} deep: read as text")
            return False
        if kind == "message/rfc822":
            headers, body = self.headed(start, end, OF_PARTS)
            self.read(headers, body, end, depth + 1, "text/plain")
            return True
        boundary = self.named(parameters, "boundary")
        if boundary is None:
            self.problem("parts without a boundary: read as text")
            return False
        default = "message/rfc822" if kind == "multipart/digest" else "text/plain"
        found = False
        for first, last in self.parts(b"--" + boundary.rstrip().encode("utf-8", "replace"), start, end):
            found = True
            if len(self.kinds) >= MOST_PARTS:
                self.problem(f"more than {MOST_PARTS} parts: the rest was left out")
                break
            headers, body = self.headed(first, last, OF_PARTS)
            self.read(headers, body, last, depth + 1, default)
        if not found:
            self.problem("a boundary that does not occur: read as text")
        return found

    def parts(self, mark: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
        """What stands between lines of the boundary; the line break before such a line belongs to it."""
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

    def first(self, headers: Mapping[bytes, list[bytes]], name: bytes) -> str:
        """The first header of a name, as it stands."""
        values = headers.get(name)
        return values[0][:MOST_PARAMETERS].decode("utf-8", "replace") if values else ""

    def value(self, value: bytes) -> str:
        """A header's text."""
        text = self.decoded(value, "")
        return (self.words(text) if "=?" in text else text).strip()

    def words(self, text: str) -> str:
        """The text with its encoded words, =?charset?q?…?=, decoded; no space is between two of them."""
        out: list[str] = []
        pending: list[bytes] = []  # words of one charset: a character may be cut in two
        of = ""
        at = 0
        for match in ENCODED_WORD.finditer(text):
            charset, way, encoded = match.groups()
            charset = charset.partition("*")[0].lower()
            between = text[at : match.start()]
            if pending and (charset != of or between.strip()):
                out.append(self.decoded(b"".join(pending), of))
                pending = []
            if between.strip() or not at:
                out.append(between)
            raw = encoded.encode("utf-8", "replace")
            pending.append(_from_base64(raw) if way in "bB" else binascii.a2b_qp(raw, header=True))
            of, at = charset, match.end()
        if pending:
            out.append(self.decoded(b"".join(pending), of))
        return "".join([*out, text[at:]])

    def parameters(self, headers: Mapping[bytes, list[bytes]], name: bytes) -> tuple[str, dict[str, str]]:
        """A header such as `text/plain; charset="utf-8"`: what comes first, in lower case, and {name: value}."""
        value = self.first(headers, name)
        found: dict[str, str] = {}
        for key, quoted, plain in PARAMETER.findall(value):
            if "\\" in quoted:
                quoted = re.sub(r"\\(.)", r"\1", quoted)
            found.setdefault(key.lower(), quoted or plain.strip().strip('"'))
        return value.partition(";")[0].strip().lower(), found

    def named(self, parameters: Mapping[str, str], key: str) -> str | None:
        """A parameter, which may be in several pieces, percent-encoded, or of encoded words."""
        if key in parameters:
            text = parameters[key]
            return self.words(text) if "=?" in text else text
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
        return self.decoded(raw, charset.lower())

    # Texts ---------------------------------------------------------------------------------------------------------

    def decoded(self, data: bytes, charset: str) -> str:
        """Bytes as text; what cannot be is replaced and counted. ASCII, and what has no charset, may be UTF-8."""
        if charset in ("", "us-ascii", "ascii"):
            charset = "utf-8"
        codec = _codec(charset)
        if codec is None:
            self.replaced += 1
            self.problem(f"unknown charset {charset[:40]!r}")
            codec = "utf-8"
        try:
            text = data.decode(codec)
            if codec != "utf-8":
                text.encode()  # utf-7 lets halves of surrogate pairs through, which are no text
        except UnicodeError:
            text = data.decode(codec, "replace")
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            self.replaced += text.count("\ufffd")
        return text.replace("\r\n", "\n") if "\r" in text else text

    def visible(self, html: str) -> str:
        """The text of HTML without markup, scripts and styles; where it leads to is kept among the links."""
        pieces, at, links = [], 0, re.compile(LINK)
        for match in re.finditer(MARKUP, html):
            start, end = match.span()
            pieces.append(html[at:start])
            at = end
            if match[1] is None:
                continue
            name = match[1].lower()
            if name in BREAKING:
                pieces.append("\n")
            if name in LINKING:
                for link in links.findall(html, start, end):
                    self.links.append(_link("".join(link)))
        pieces.append(html[at:])
        return _unescaped("".join(pieces))


def _unwrapped(data: bytes, encoding: str) -> bytes:
    """A body without its transfer encoding."""
    if encoding == "quoted-printable":
        return binascii.a2b_qp(data)
    return _from_base64(data.translate(None, b"\n")) if encoding == "base64" else data


def _from_base64(data: bytes) -> bytes:
    """As much as can be decoded: padding may lack, and other characters may stand between."""
    try:
        return binascii.a2b_base64(data + b"==="[: -len(data) % 4], strict_mode=True)
    except binascii.Error:
        pass
    for padding in (b"", b"=="):
        try:
            return binascii.a2b_base64(data + padding)
        except binascii.Error:
            continue
    return data


@lru_cache(maxsize=256)
def _codec(charset: str) -> str | None:
    """What Python calls a charset, None if it is not known."""
    charset = charset.strip("'\" ")
    if not CHARSET(charset):
        return None
    try:
        name = codecs.lookup(charset).name
        b" ".decode(name, "ignore")  # base64 and its like are codecs too, but not of text
    except (LookupError, ValueError):
        return None
    return None if name in NO_CHARSETS else name


def _link(link: str) -> str:
    if link[:5].lower() == "data:":  # a picture in the link itself
        link = link.partition(",")[0]
    return _unescaped("".join(link.split()))


def _unescaped(text: str) -> str:
    if "&" not in text:
        return text
    from html import unescape

    return unescape(LONG_NUMBER.sub(r"&#\1", text) if "&#" in text else text)
