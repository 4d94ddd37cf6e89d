"""Mail: whatever the bytes, a mail is texts in UTF-8, its headers are as in plain Python, and a mailbox is mails."""

from __future__ import annotations

from deciban import _kernels
from deciban.data.files.mail_message import MAIL_HEADERS, NotMail, parse
from tests.fuzz.row_files import table, written
from tests.kernels.test_mail_kernels import plain_headers

HEAD = b"From: a@b.org\nTo: c@d.org\nSubject: =?utf-8?q?gr=C3=BC=C3=9Fe?= =?iso-8859-1?b?5Pb8?=\n"
SEEDS = [
    HEAD + b"\nHello,\n\nSee http://example.com\n",
    HEAD + b"Content-Type: text/html; charset=utf-8\n\n<p>Hi <a href='http://x.org/?a=1&amp;b'>you</a><!-- c --></p>",
    HEAD + b"Content-Type: text/plain; charset=latin-1\nContent-Transfer-Encoding: quoted-printable\n\ncaf=E9 =\n=3D",
    HEAD + b"Content-Transfer-Encoding: base64\nContent-Type: text/plain; charset=utf-16\n\naGVsbG8gd29ybGQ=\n",
    HEAD + b'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain\n\none\n--b\n'
    b"Content-Disposition: attachment; filename*0*=utf-8''a%20; filename*1=b.pdf\n\nAAAA\n--b--\n",
    HEAD + b"Content-Type: message/rfc822\n\nSubject: inner\n\nforwarded\n",
    b"From a@b Mon Jan  1 00:00:00 2024\n" + HEAD + b"\none\n>From two\n\nFrom c@d Tue Jan  2 00:00:00 2024\n"
    b"Subject: second\n folded\n\ntwo\n",
    b"\xef\xbb\xbfSubject: \xff\xfe\r\n\r\n\xff\x00\r\n",
]


def seeds() -> list[bytes]:
    return SEEDS


def run(data: bytes) -> None:
    for start, end, most in ((0, len(data), 10_000), (len(data) // 3, len(data) - len(data) // 4, 4)):
        result = _kernels.read_headers(data, start, end, MAIL_HEADERS, most)
        expected = plain_headers(data, start, end, MAIL_HEADERS, most)
        if result != expected:
            raise AssertionError(f"the kernel gives {result}, and Python gives {expected}")
    try:
        mail = parse(data)
    except NotMail:
        mail = None
    for text in mail.texts.values() if mail is not None else ():
        if text is not None and text.encode().decode() != text:
            raise AssertionError(f"{text!r} is not UTF-8")
    table(written("t.mbox", data), format="mail")
