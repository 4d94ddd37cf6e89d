"""The text and the links of HTML mail.

Every branch of the patterns runs to the end of the text if it is not closed, without backtracking: so time is linear.
"""

from __future__ import annotations

import re

from deciban.lazy import lazy

html_entities = lazy("html")  # most plain mails have none

# A tag of these ends a word; others, and unknown ones, may be inside a word: "vi<b></b>sit"
_BREAKING = """address article aside blockquote body br button center dd div dl dt fieldset footer form frame h1 h2 h3
    h4 h5 h6 head header hr html iframe img input li main meta nav ol optgroup option p pre section select table tbody
    td textarea tfoot th thead title tr ul"""
_LINKING = "a area audio base body embed form frame iframe img input link source table td th tr video"
BREAKING, LINKING = frozenset(_BREAKING.split()), frozenset(_LINKING.split())

MARKUP = re.compile(
    r"""(?xia)
      <!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>|\Z))
    | <script\b[^<]*+(?:<(?!/script)[^<]*+)*+(?:</script[^>]*+(?:>|\Z)|\Z)
    | <style\b[^<]*+(?:<(?!/style)[^<]*+)*+(?:</style[^>]*+(?:>|\Z)|\Z)
    | </?([a-z!?][^\s>/]*+)(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+(?:>|\Z)
    """
)
LINK = re.compile(r"""(?ia)[\s"'/](?:href|src|action|background)\s*+=\s*+(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
LONG_NUMBER = re.compile(r"&#0*([0-9]{8})[0-9]*")  # not a character, and Python refuses to read very long numbers


def visible_text(html: str) -> tuple[str, list[str]]:
    """The text without markup, scripts and styles; and the targets of its links.

    >>> visible_text('<p>Go to <a href="http://example.org">this</a> vi<b></b>sit</p>')
    ('\\nGo to this visit\\n', ['http://example.org'])
    """
    pieces, links, end = [], [], 0
    for match in MARKUP.finditer(html):
        pieces.append(html[end : match.start()])
        end = match.end()
        if match[1] is None:
            continue
        name = match[1].lower()
        if name in BREAKING:
            pieces.append("\n")
        if name in LINKING:
            links += [_link("".join(link)) for link in LINK.findall(html, *match.span())]
    pieces.append(html[end:])
    return _unescaped("".join(pieces)), links


def _link(link: str) -> str:
    if link[:5].lower() == "data:":  # a picture in the link itself
        link = link.partition(",")[0]
    return _unescaped("".join(link.split()))


def _unescaped(text: str) -> str:
    if "&" not in text:
        return text
    unescaped: str = html_entities.unescape(LONG_NUMBER.sub(r"&#\1", text) if "&#" in text else text)
    return unescaped
