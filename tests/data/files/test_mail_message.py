"""One mail: the same texts as the standard library's email package gives, also of mail that is damaged or hostile."""

import ast
import base64
import email
import email.policy
import io
import sys
import tracemalloc
import zipfile
from email.header import decode_header, make_header
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deciban.data.files import mail_message as reading
from deciban.data.files.mail_message import COLUMNS, MAX_BYTES, NotMail, parse
from deciban.errors import DecibanError

HEAD = b"From: a@example.org\nSubject: x\n"


def texts(data):
    return parse(data).texts


def html_mail(html, charset="utf-8"):
    return HEAD + f"Content-Type: text/html; charset={charset}\n\n".encode() + html.encode(charset)


def body_of(html):
    return texts(html_mail(html))["body"]


def words(text):
    return text.split()


# Headers -------------------------------------------------------------------------------------------------------------


def test_headers_are_columns():
    mail = parse(
        b"Return-Path: <bounce@example.org>\n"
        b"Received: from b by c;\n\tMon, 1 Jan 2024\nReceived: from a by b\n"
        b"FROM: Ann <ann@example.org>\nto: Bob <bob@example.org>\nReply-To: <x@example.org>\n"
        b"Subject: a long\n  subject \nX-Mailer: Pine\nX-Other: y\n\nbody\nsecond line\n"
    )
    assert tuple(mail.texts) == COLUMNS
    assert mail.texts == {
        "from": "Ann <ann@example.org>",
        "to": "Bob <bob@example.org>",
        "subject": "a long  subject",
        "reply_to": "<x@example.org>",
        "return_path": "<bounce@example.org>",
        "received": "from b by c;\tMon, 1 Jan 2024\nfrom a by b",
        "mailer": "Pine",
        "content_type": None,
        "links": "",
        "attachments": "",
        "body": "body\nsecond line\n",
    }
    assert (mail.replaced, mail.problems) == (0, ())
    assert texts(b"User-Agent: Mutt\n\n")["mailer"] == "Mutt"


def test_encoded_words():
    for header, text in (
        ("=?utf-8?q?caf=C3=A9?=", "café"),
        ("=?UTF-8?B?Y2Fmw6k=?= au lait", "café au lait"),
        ("=?iso-8859-1?q?a_b?= =?iso-8859-1?q?c?=", "a bc"),
        ("=?utf-8?b?ww==?= =?utf-8?b?qQ==?=", "é"),  # one character in two words
        ("=?utf-8*en?q?x?=", "x"),
        ("=?utf-8?q?x", "=?utf-8?q?x"),
        ("plain = ? text", "plain = ? text"),
        ("a =?utf-8?q?b?=\n =?koi8-r?b?8NLJ18XU?= c", "a bПривет c"),
    ):
        assert texts(f"Subject: {header}\n\n".encode())["subject"] == text


@given(st.lists(st.tuples(st.text("aé☃Ж _=?", min_size=1), st.sampled_from(["utf-8", "gb18030", "utf-7"])), max_size=5))
def test_encoded_words_as_the_email_package_decodes_them(pieces):
    encoded = [(base64.b64encode(text.encode(charset)).decode(), charset) for text, charset in pieces]
    header = " ".join(f"=?{charset}?b?{word}?=" for word, charset in encoded)
    expected = str(make_header(decode_header(header))).strip()
    assert texts(f"Subject: {header}\n\n".encode())["subject"] == expected


def test_headers_of_bytes_beyond_ascii():
    assert texts("Subject: café\n\n".encode())["subject"] == "café"
    mail = parse(b"Subject: caf\xe9\n\n")
    assert (mail.texts["subject"], mail.replaced) == ("caf\ufffd", 1)


def test_headers_end_where_the_email_package_says():
    for data in (
        b"Subject: x\nthis is no header\n\nbody\n",
        b"Subject: x\nTo : y\n\nbody\n",
        b"Subject: x",
        b"Subject: x\n",
        b"Subject: x\n\n",
        b"Subject: x\n \n\n\nbody",
        b"Subject:x\n\n From: y\n\nz",
        b"From a@b Mon Jan  1 00:00:00 2024\nSubject: x\n\nbody",
    ):
        message = email.message_from_bytes(data)
        actual = texts(data)
        assert actual["subject"] == str(message["subject"]).replace("\n", "").strip()
        assert actual["to"] is None
        assert actual["body"] == message.get_payload()


def test_what_may_stand_before_a_mail_and_how_lines_may_end():
    plain = b"Subject: a\n b\nTo: c\n\nfirst\nsecond\n"
    for before in (b"", b"\xef\xbb\xbf", b"\r\n\n", b"From a@b Mon Jan  1 00:00:00 2024\n", b"From a\n>From b\n"):
        for line_break in (b"\n", b"\r\n", b"\r"):
            assert parse((before + plain).replace(b"\n", line_break)) == parse(plain)


# Bodies --------------------------------------------------------------------------------------------------------------


def test_parts_attachments_and_their_names():
    message = EmailMessage()
    message["Subject"] = "x"
    message.set_content("plain text\n")
    message.add_alternative('<p>rich <a href="http://example.org/?a=1&amp;b=2">text</a></p>', subtype="html")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", bytes(1_000_000))
    message.add_attachment(packed.getvalue(), maintype="application", subtype="zip", filename="invoice.zip")
    message.add_attachment("not read", filename="rés umé.txt")
    message.add_attachment(b"GIF89a", maintype="image", subtype="gif")
    forwarded = EmailMessage()
    forwarded["Subject"] = "inner"
    forwarded.set_content("forwarded text\n")
    message.add_attachment(forwarded)
    for policy in (email.policy.default, email.policy.SMTP):
        actual = texts(message.as_bytes(policy=policy))
        assert words(actual["body"]) == ["plain", "text", "rich", "text", "forwarded", "text"]
        assert actual["links"] == "http://example.org/?a=1&b=2"
        assert actual["attachments"] == "invoice.zip application/zip\nrés umé.txt text/plain\nimage/gif"
        assert actual["content_type"].splitlines()[:4] == [
            "multipart/mixed",
            "multipart/alternative",
            "text/plain utf-8 7bit",
            "text/html utf-8 7bit",
        ]


def test_names_of_attachments():
    for header, name in (
        ('attachment; filename="a b.zip"', "a b.zip"),
        ("attachment; filename=a b.zip; size=3", "a b.zip"),
        ("attachment; filename*=utf-8''r%C3%A9sum%C3%A9.zip", "résumé.zip"),
        ("attachment; filename*0*=utf-8''r%C3%A9; filename*1=sum; filename*2*=%C3%A9.zip", "résumé.zip"),
        ('attachment; filename*0="long "; filename*1="name.zip"', "long name.zip"),
        ('attachment; filename="=?utf-8?q?r=C3=A9sum=C3=A9.zip?="', "résumé.zip"),
        (r'attachment; filename="a \"b\";c.zip"', 'a "b";c.zip'),
        ("attachment;\n\tfilename=folded.zip", "folded.zip"),
        ('attachment; filename="open.zip', "open.zip"),
    ):
        data = HEAD + f"Content-Type: application/zip\nContent-Disposition: {header}\n\nUEs=\n".encode()
        assert texts(data)["attachments"] == f"{name} application/zip"


CONTENTS = st.text("ab é☃Ж\n=.\t-&", max_size=200)


@st.composite
def well_formed(draw):
    def written(subject):
        message = EmailMessage()
        message["Subject"] = subject
        charset = draw(st.sampled_from(["utf-8", "utf-7", "gb18030"]))  # the package breaks the lines of utf-16
        message.set_content(draw(CONTENTS), charset=charset, cte=draw(st.sampled_from(["base64", "quoted-printable"])))
        return message

    message = written(draw(st.text("ab é☃Ж", min_size=1, max_size=60)))
    for _ in range(draw(st.integers(0, 3))):
        message.add_attachment(written("inner"))
    return message


@given(well_formed(), st.sampled_from([email.policy.default, email.policy.SMTP]))
def test_the_same_text_as_the_modern_email_package(message, policy):
    data = message.as_bytes(policy=policy)
    reference = email.message_from_bytes(data, policy=email.policy.default)
    actual = parse(data)
    assert words(actual.texts["subject"]) == words(str(reference["subject"]))
    leaves = [part.get_content() for part in reference.walk() if part.get_content_type() == "text/plain"]
    assert actual.texts["body"] == "\n".join(leaves).replace("\r\n", "\n")
    assert (actual.replaced, actual.problems) == (0, ()), data


LINES = st.sampled_from(["", "text", "Key: value", " indented", "-- ", "--", "--0x", "=3D", "aGk=", "From x", "é"])
KINDS = st.sampled_from(
    ["text/plain", "text/plain; charset=latin-1", "TEXT/PLAIN", "text", "", "image/gif; name=a.gif", "message/rfc822"]
)


@st.composite
def written(draw, depth=3, name="0"):
    """A part by hand, perhaps with too little in it."""
    kind = draw(KINDS)
    lines = draw(st.lists(LINES, max_size=4))
    encoding = draw(st.sampled_from(["", "", "base64", "quoted-printable", "8bit", "odd"]))
    head = [f"Content-Transfer-Encoding: {encoding}"] if encoding else []
    if depth and draw(st.booleans()):
        subtype = draw(st.sampled_from(["mixed", "alternative", "digest"]))
        head.append(f'Content-Type: multipart/{subtype};\n boundary="{name}"' + draw(st.sampled_from(["", "; a=b"])))
        parts = draw(st.integers(0, 3))
        for i in range(parts):
            lines += [f"--{name}" + draw(st.sampled_from(["", " \t"])), *draw(written(depth - 1, f"{name}{i}"))]
        if parts and draw(st.booleans()):  # the email package drops the text around an end without a beginning
            lines += [f"--{name}--", *draw(st.lists(LINES, max_size=2))]
    elif kind == "message/rfc822":
        head = ["Content-Type: message/rfc822"]
        lines = ["Subject: inner", *(draw(written(depth - 1, f"{name}m")) if depth else ["", "x"])]
    elif kind:
        head.append(f"Content-Type: {kind}")
    return [*head, "", *lines]


def leaves(data):
    """What the email package finds to be texts."""
    for part in email.message_from_bytes(data).walk():
        kind = part.get_content_type()
        if part.is_multipart() or kind == "image/gif":
            continue
        unopened = part.get_content_maintype() in ("multipart", "message")
        raw = part._payload.encode("ascii", "surrogateescape") if unopened else part.get_payload(decode=True)
        yield raw.decode(part.get_content_charset("utf-8"), "replace")


def lines_of(text):
    """But empty ones: of parts that cannot be opened the package keeps a line break that it takes off others."""
    return [line for line in text.replace("\r", "\n").split("\n") if line]


@settings(max_examples=100)
@given(written(), st.sampled_from(["\n", "\r\n"]), st.integers(0, 2000))
def test_the_same_parts_as_the_email_package_also_of_damaged_mail(lines, line_break, length):
    data = ("Subject: x\n" + "\n".join(lines)).replace("\n", line_break).encode()[: 11 + length]
    assert lines_of(texts(data)["body"]) == lines_of("\n".join(leaves(data)))


def test_base64_that_is_damaged_is_read_as_far_as_the_email_package_does():
    head = HEAD + b"Content-Transfer-Encoding: base64\n\n"
    for payload in (
        b"aGVsbG8",
        b"aGVsbG8=\n",
        b"aGVs!bG8=",
        b"a",
        b"aGVsbG8=aGk=",
        b"",
        b"====",
        b"aGVsb\xe9G8",
        b"aGV!s",
    ):
        expected = email.message_from_bytes(head + payload).get_payload(decode=True).decode("utf-8", "replace")
        assert texts(head + payload)["body"] == expected


# Charsets ------------------------------------------------------------------------------------------------------------


def test_charsets_are_replaced_and_counted():
    for charset, body, text, replaced in (
        ("iso-8859-1", b"caf\xe9", "café", 0),
        ("us-ascii", "café".encode(), "café", 0),
        ("utf-8", b"caf\xe9 \xff", "caf\ufffd \ufffd", 2),
        ('"utf-8"', "é".encode(), "é", 0),
        ("x-unknown", "é".encode(), "é", 1),
        ("x-unknown", b"\xe9", "\ufffd", 2),
        ("rot13", b"abc", "abc", 1),
        ("zlib", b"abc", "abc", 1),
        ("punycode", b"abc-", "abc-", 1),
        ("unicode_escape", b"\\q", "\\q", 1),
        ("aliases", b"abc", "abc", 1),
        ("../../x", b"abc", "abc", 1),
        ("utf-7", b"+2AA-", "\ufffd", 1),
        ("utf-16", b"\xff\xfea\x00\x00\xd8", "a\ufffd", 1),
    ):
        mail = parse(HEAD + f"Content-Type: text/plain; charset={charset}\n\n".encode() + body)
        assert (mail.texts["body"], mail.replaced) == (text, replaced)
        if charset == "x-unknown":
            assert mail.problems == ("unknown charset 'x-unknown'",)


# HTML ----------------------------------------------------------------------------------------------------------------


def test_html_without_its_markup():
    for html, text in (
        ("<p>one</p><p>two</p>", "one two"),
        ("vi<b></b>sit<!-- x --> u<x9>s", "visit us"),
        ("a<br/>b<BR>c<td>d", "a b c d"),
        ("<style>p { color: red }</style>a<script>if (1 < 2) b</script>c<SCRIPT src=x></script >d", "acd"),
        ("a <!-- b > --> c <!--> d --> e <!-- f", "a c d --> e"),
        ("&lt;b&gt; &amp;amp; &eacute; &#233; &#xe9; &nosuch; &#0000000065;", "<b> &amp; é é é &nosuch; A"),
        ("1 < 2 and 3 > 2, a<3", "1 < 2 and 3 > 2, a<3"),
        ('<a title="x > y" href="z">in</a>', "in"),
        ("<p align='center>in</p>", "in"),
        ("<![CDATA[x]]><?php y ?><!DOCTYPE html>in", "in"),
        ("in <b", "in"),
        ("<script>never closed", ""),
        ("<style>never </styl closed", ""),
        ("&#" + "9" * 10_000 + ";in", "\ufffdin"),
        ("&#x" + "9" * 10_000 + ";in", "\ufffdin"),
    ):
        assert words(body_of(html)) == words(text)


def test_links():
    for html, links in (
        ("<a href=http://a/b>x</a>", "http://a/b"),
        ("<A HREF = 'http://a/b'>x</A><img alt='' src=\"cid:1\">", "http://a/b cid:1"),
        ('<a title=">" href="http://a/">', "http://a/"),
        ('<a href="http://a/\n b">', "http://a/b"),
        ('<img src="data:image/png;base64,iVBORw0KGgo=">', "data:image/png;base64"),
        ("<body background=b.gif><form action='c'><iframe src=d>", "b.gif c d"),
        ("<p title='href=x'>href=y</p><!-- <a href=z> --><a data-href=u nohref=v>", ""),
        ("<a href=''>", ""),
    ):
        assert texts(html_mail(html))["links"].split() == links.split()


class Plain(HTMLParser):
    """The text of HTML by the standard library."""

    def __init__(self):
        super().__init__()
        self.pieces, self.silent = [], 0

    def handle_starttag(self, tag, attrs):
        self.silent += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.silent -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.silent:
            self.pieces.append(data)


PIECES = st.sampled_from(
    [
        *("a ", "é", "<p>", "</p>", "<br/>", "<b class=x>", "</b>", "<!-- <i> c -->", "&amp;", "&eacute;", "&#9731;"),
        *("<script>if (a < b) '<p>'</script>", "<style type='a'>b > c</style>", '<a href="u?v=1&amp;w=>">', "</a>"),
        *(" > ", "&x", "\n"),
    ]
)


@given(st.lists(PIECES))
def test_html_has_the_text_that_the_standard_library_finds(pieces):
    html = "".join([*pieces, "."])
    parser = Plain()
    parser.feed(html)
    parser.close()
    assert "".join(words(body_of(html))) == "".join(words("".join(parser.pieces)))


# What is no mail, or means harm --------------------------------------------------------------------------------------


def test_not_mail():
    for data in (
        *(b"", b"\n\n", b"\x89PNG\r\n\x1a\n" + bytes(100), b"PK\x03\x04 zip: x", b"hello, world\n", b'{"a": 1}\n'),
        *(b"<html>: x", b"a,b\n1,2\n", b" From: x\n\n", b"From here to there\n\nSubject: x\n", bytes(1000)),
    ):
        with pytest.raises(NotMail, match=r"it is empty|does not begin with a header"):
            parse(data)
    assert issubclass(NotMail, DecibanError)


@settings(max_examples=100)
@given(st.binary(max_size=300), st.sampled_from([b"", HEAD, HEAD + b"\n", HEAD + b"Content-Type: text/html\n\n<"]))
@example(b"\0" * 100, HEAD)
def test_any_bytes_are_texts_or_not_mail(data, head):
    try:
        mail = parse(head + data)
    except NotMail:
        assert not head
        return
    for text in mail.texts.values():
        assert text is None or text.encode().decode() == text  # it can be written


HOSTILE = st.sampled_from(
    [
        *(
            b"Content-Type: ",
            b"multipart/mixed; ",
            b"text/html",
            b"boundary=",
            b"charset=",
            b'"',
            b"\\",
            b";",
            b"utf-7",
        ),
        *(b"=?utf-8?b?", b"?=", b"\n", b"\n\n", b"--", b"--x", b"x", b"<", b"<a href=", b"<!--", b">", b"'", b"&#"),
        *(b"Content-Transfer-Encoding: base64", b"Content-Disposition: attachment; filename", b"%", b" ", b"*0*="),
        *(b"\xff", b"\0", b"\r", b"utf-7"),
    ]
)


@settings(max_examples=100)
@given(st.lists(HOSTILE, max_size=40))
def test_any_pieces_of_mail_are_texts(pieces):
    mail = parse(b"Subject: x\n" + b"".join(pieces))
    for text in mail.texts.values():
        assert text is None or text.encode().decode() == text


def nested(depth):
    opening = b"".join(b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (i, i) for i in range(depth))
    return b"Subject: x\n" + opening + b"\nthe innermost text\n"


def many(piece, head=b"Content-Type: text/html\n\n"):
    return HEAD + head + piece * ((1 << 19) // len(piece))


LEAST = 1 << 20  # a quarter of what is read of a mail, so that a test takes a quarter of the time
LONG = MAX_BYTES + LEAST
PARTS = b"Content-Type: multipart/mixed; boundary=b\n\n"
HARM = {
    "nested 10,000 deep": nested(10_000),
    "nested around much": nested(100) + b"x" * LEAST,
    "forwarded 10,000 times": b"Subject: x\n"
    + b"Content-Type: message/rfc822\n\n" * 10_000
    + b"\nthe innermost text\n",
    "many headers": b"To: x\n" * 800_000 + b"\nbody\n",
    "many lines of one header": b"To: x\n" + b" y\n" * 500_000 + b"\nbody\n",
    "long folded lines": b"To: x\n" + (b" " + b"y" * 400 + b"\n") * 10_000 + b"\nbody\n",
    "a long line": HEAD + b"\n" + b"x" * LONG,
    "a long header": HEAD + b"To: " + b"x" * LONG,
    "a long name": b"x" * LONG,
    "NULs": HEAD + b"\n" + bytes(LONG),
    "line breaks": HEAD + b"\n" * LONG,
    "many parts": HEAD + PARTS + b"--b\n\n" * 500_000,
    "a boundary without end": HEAD + PARTS + b"--b\n\n" + b"x\n" * 500_000,
    "many tags": HEAD + b"Content-Type: text/html\n\n" + b"<p>" * 500_000,
}


@pytest.mark.parametrize("data", HARM.values(), ids=HARM)
def test_hostile_mail_takes_bounded_memory(data, monkeypatch):
    monkeypatch.setattr(reading, "MAX_BYTES", LEAST)
    tracemalloc.start()
    try:
        mail = parse(data)
        assert sum(len(text or "") for text in mail.texts.values()) < 2 * LEAST
    except NotMail:
        assert data.startswith(b"xxx")
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 25 * LEAST


SLOW = {
    "marks": many(b"--b x\n", PARTS),
    "marks within a line": many(b"--b", PARTS),
    "an empty boundary": many(b"--\n\n", b'Content-Type: multipart/mixed; boundary=""\n\n'),
    "parameters": many(b';a="\\', b"Content-Type: text/html"),
    "open encoded words": many(b"=?a?q?", b"X: y\nTo: "),
    "encoded words": many(b"=?a?q?a?= ", b"X: y\nTo: "),
    "blanks": many(b" ", b"X: y\nTo: =?utf-8?q?a?="),
    "punycode": many(b"a-", b"Content-Type: text/plain; charset=punycode\n\n"),
    "idna": many(b"xn--a", b"Content-Type: text/plain; charset=idna\n\n"),
    **{
        f"html {piece!r}": many(piece)
        for piece in (
            *(b"<", b"<a", b"<a ", b"<!--", b"<!-- -", b"<!-- --!", b"<script", b"<script>", b"<style </styl"),
            *(b"</script", b"<a href=", b"<a href='", b'<a href="', b"<a href= ", b"href=", b" =", b'="', b"='\""),
            *(b"&", b"&#", b"&#1", b"&#x", b"&a", b"&#0", b"</", b"<a b='c", b"<a\n", b"<a href=\"'", b"<img src=x>"),
            *(b"-->", b"--", b"<!", b"<?", b">", b"<a />", b"<script></script", b"<style></script>", b"<a ='", b"< "),
        )
    },
    "html, one number": many(b"9", b"Content-Type: text/html\n\n&#"),
    "html, one tag of blanks": many(b" ", b"Content-Type: text/html\n\n<a href"),
}


def test_hostile_mail_takes_time_in_proportion_to_its_length():
    """Were a step quadratic, this would take minutes."""
    for name, data in SLOW.items():
        assert parse(data).texts["from"] == "a@example.org", name


def test_what_is_left_out_is_reported():
    deep = parse(nested(10_000))
    assert "the innermost text" in deep.texts["body"]
    assert "parts nested more than 32 deep: read as text" in deep.problems
    assert parse(HARM["a long line"]).problems == ("longer than 4 MB: the rest was not read",)
    assert parse(HARM["many headers"]).problems[1:] == ("more than 10000 lines of headers: the rest was not read",)
    assert "more than 1000 parts: the rest was not read" in parse(HARM["many parts"]).problems
    assert parse(HEAD + b"no header\n" + b"x\n" * 20_000).problems == ()
    unclosed = HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n"
    assert parse(unclosed + b"--b\n\nx").problems == ("parts without an end",)
    assert parse(unclosed + b"x").problems == ("a boundary that does not occur: read as text",)
    assert parse(HEAD + b"Content-Type: multipart/mixed\n\nx").problems == ("parts without a boundary: read as text",)


def test_only_the_standard_library_is_imported_and_not_its_email_package():
    """The command that filters one mail starts in about the time that numpy takes, and one for many without numpy."""
    tree = ast.parse(Path(reading.__file__).read_text())
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules = plain | {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules -= {"deciban", "deciban.errors", "deciban.lazy"}  # from deciban: the kernels
    assert {name.partition(".")[0] for name in modules} <= sys.stdlib_module_names - {"email"}
