"""terms.js against the kernel: the same terms of any text, in the same order."""

import json
import os
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import deciban as db
from deciban import _kernels
from deciban.families import Text
from tests.kernels.test_text_kernels import MAKER, same_version
from tests.report.browser import ONE_BROWSER, SLOW, some_slow

pytestmark = ONE_BROWSER

SCRIPT = Path(db.__file__).parent / "report" / "page" / "terms.js"
CUTS = {
    "words": Text(),
    "two and three words": Text(words=(2, 3)),
    "many words": Text(words=(31, 32)),
    "characters": Text(words=None, characters=(1, 4)),
    "many characters": Text(words=None, characters=(32, 32)),
    "words and characters": Text(words=(1, 2), characters=(3, 3)),
    "shapes": Text(shapes=True),
    "shapes of words and characters": Text(words=(1, 2), characters=(2, 3), shapes=True),
    "one bit": Text(characters=(1, 2), hash_bits=1),
    "numbers": Text(words=(1, 3), characters=(3, 4), hash_bits=18),
    "large numbers": Text(words=(1, 2), shapes=True, hash_bits=31),
}
SOME = ("words", "many characters", "shapes of words and characters", "numbers")
each_cut = pytest.mark.parametrize("cut", some_slow(CUTS, *SOME))


@pytest.fixture(scope="module")
def page(browser_page):
    browser_page.add_script_tag(content=SCRIPT.read_text())
    return browser_page


def terms_in_the_page(page, texts, cut):
    """Texts go there and terms come back as JSON, where half a surrogate pair is an escape."""
    script = "([texts, cut]) => JSON.stringify(JSON.parse(texts).map((text) => Terms.cut(text, cut)))"
    return json.loads(page.evaluate(script, [json.dumps(texts), list(cut)]))


def terms_in_the_kernel(text, cut):
    return _kernels.tokenize(np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8), cut)


def assert_same(page, texts, cut):
    result = terms_in_the_page(page, texts, cut)
    for text, terms in zip(texts, result, strict=True):
        assert terms == terms_in_the_kernel(text, cut), (text[:200], cut)


# ---- every character --------------------------------------------------------------------------------------------

PLANE = 1 << 16
OF_A_PLANE = """([around, first, size, cut]) => {
    const lines = Array.from({ length: size }, (_, i) => around.join(String.fromCodePoint(first + i)));
    return Terms.cut(lines.join("\\n"), cut).join("\\n");
}"""


@pytest.mark.parametrize("around", ["{0}\na{0}b\n1{0}2", "a'{0}b\n1.{0}2\na{0}'b", "www.{0}b\na{0}@b.c"])
@pytest.mark.parametrize("planes", [(0, 1, 14), pytest.param([*range(2, 14), 15, 16], marks=SLOW)], ids=len)
def test_every_character_is_cut_and_folded_as_in_the_kernel(page, around, planes):
    """Lines for each, alone and beside others; none is a part of its neighbours', since a line's end separates.

    Planes 0, 1 and 14 hold all characters except ideographs and those for private use.
    """
    cut = Text(shapes="www" in around).cut
    for first in (plane * PLANE for plane in planes):
        result = page.evaluate(OF_A_PLANE, [around.split("{0}"), first, PLANE, list(cut)]).split("\n")
        text = "\n".join(around.format(chr(code)) for code in range(first, first + PLANE))
        expected = terms_in_the_kernel(text, cut)
        different = [pair for pair in zip(result, expected, strict=False) if pair[0] != pair[1]]
        assert not different[:1], hex(first)
        assert len(result) == len(expected)


@same_version
def test_both_tables_are_what_their_maker_makes():
    made = MAKER.runs_of_kinds(), MAKER.full_folds()
    assert MAKER.PART_OF_SCRIPT.findall(SCRIPT.read_text()) == [MAKER.part_of_script(*made)]
    assert MAKER.HEADER.read_text() == MAKER.header(*made)


# ---- texts ------------------------------------------------------------------------------------------------------

SCRIPTS = ["abcXYZ", "àéßŉﬁİ", "αΣςΐᾳ", "абвЖЁ", "אבג", "عربي", "हिन्दी", "日本かなカナ", "안녕", "ႠᏸꭰԱև", "𐐀𝒜𞤀", "ⓐⒶⅧ"]
TELLING = "aZ9٣_'’.,$€😀中ßﬁŉΣςİ\u0345\u0301\u00ad\u200d\ufe0f\ud800\udc00\ufffd\U000e0100 -@\n\0\u2028\u00a0"
PIECES = [
    *("don't", "rock'n'roll", "’tis", "x'", "''", "a\u00ad'\u200bb", "co\u00adop", "Straße", "\ud83d", "\ude00", "…"),
    *("1,000.5", "1.", ".5", "1,\u200b000", "3.a", "٣.٤", "$5", "£1,000", "1,500", "19.99", "007", " ", "  ", "\n"),
    *("👩\u200d👩\u200d👧", "👍🏽", "🇩🇪", "❤\ufe0f", "1\ufe0f\u20e3", "🏴\U000e0067\U000e007f", "😀", "中"),
    *("http://", "HTTPS://", "httpſ://", "www.", "WWW.", "a.b", "Example.com", "xn--p1ai.рф", "me", "@", "/x?y=1"),
    *("_", "+", "%", "-", ".", ":", "h" * 50, "n" * 62, "N.n" * 21, "9" * 64, "é" * 32),
]


def paired(text):
    """Halves of a surrogate pair that stand together are one character in JavaScript."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def mixed_texts(seed, count):
    """Texts of scripts, of characters that matter, of pieces, and of any characters at all."""
    draw = random.Random(seed)
    for _ in range(count):
        alphabet = draw.choice(
            [draw.choice(SCRIPTS) + "  ", "".join(SCRIPTS) + " '.,9", TELLING, "a9'., ", "aw.@-/:hpt", PIECES, PIECES]
        )
        yield paired("".join(draw.choices(alphabet, k=draw.randrange(30))))
        yield paired("".join(chr(draw.randrange(sys.maxunicode + 1)) for _ in range(draw.randrange(20))))


@each_cut
def test_texts_of_all_kinds_have_the_kernels_terms(page, cut):
    assert_same(page, list(mixed_texts(seed=1, count=500)), CUTS[cut].cut)


@each_cut
def test_long_words_and_hosts_end_where_the_kernels_do(page, cut):
    units = ["x", "é", "ß", "中", "9", "a'", "9.", "𐐀", "ŉ", "\u00ad", "x\u00ad"]
    words = [unit * (size // len(unit.encode())) + rest for unit in units for size in range(124, 136) for rest in "ax9"]
    hosts = [f"{before}{'h' * size}{after}" for before in BEFORE for size in range(88, 104) for after in AFTER]
    names = [f"{'n' * size}@{host}" for size in range(60, 67) for host in ("a.b", "a.b-", "a", "a.", ".", "-.-")]
    assert_same(page, [f"one {word} two" for word in words + hosts + names], CUTS[cut].cut)


BEFORE = ("http://", "https://", "www.", "http://www.", "me@", "me@x.", "1@", "_@")
AFTER = ("", ".", "..", "-", ".-", ".com", "...x", "é", "_", "/")


def test_a_long_text_has_the_kernels_terms(page):
    """Longer than what the kernel reads (4 KB) and keeps (64 KB) at a time."""
    draw = random.Random(2)
    text = " ".join(draw.choices([*PIECES, "bé", "x" * 90], k=15_000))
    assert len(text) > 1 << 17
    for name in ("words", "two and three words", "shapes of words and characters", "many characters"):
        assert_same(page, [text], CUTS[name].cut)


def test_terms_by_example(page):
    """The same as the kernel's own examples, which nothing has computed."""
    text = "Straße ISN’T naïve—Ελλάς 3.14 v1.2 £5 日本 co\u00adop ﬁt\ud800a"
    expected = ["strasse", "isn't", "naïve", "ελλάσ", "3.14", "v1.2", "£", "5", "日", "本", "coop", "fit", "a"]
    assert terms_in_the_page(page, [text], Text().cut) == [expected]
    text = "see HTTPS://www.Example.com/a, 1,500. Jo.Do+1@mail.example.com!"
    expected = ["see", "url:", "url:www.example.com", "a", "0,000", "address:", "address:mail.example.com"]
    assert terms_in_the_page(page, [text], Text(shapes=True).cut) == [expected]
    expected = ["~ a", "~a ", "a", "~ b", "~b ", "b", "a b"]
    assert terms_in_the_page(page, ["a B"], Text(words=(1, 2), characters=(2, 2)).cut) == [expected]


def test_no_text_has_no_terms(page):
    for text in CUTS.values():
        assert terms_in_the_page(page, ["", " ", "\u00ad", "'", "\udfff"], text.cut) == [[]] * 5


@pytest.mark.skipif("DECIBAN_DATA" not in os.environ, reason="real texts: set DECIBAN_DATA")
@each_cut
def test_real_texts_have_the_kernels_terms(page, cut):
    files = [path for path in sorted((Path(os.environ["DECIBAN_DATA"]) / "text").iterdir()) if path.is_file()]
    texts = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(texts) > 1_000
    assert_same(page, texts[::5], CUTS[cut].cut)


# ---- the script -------------------------------------------------------------------------------------------------


def test_the_script_is_small_and_asks_the_browser_nothing_about_characters():
    script = SCRIPT.read_text()
    assert len(script) < 25_000
    assert not re.findall(r"\\p\{|normalize\(|toUpperCase|toLocale", script)
    assert "</script" not in script.lower()
