"""Terms of texts: every kernel against plain Python."""

import importlib.util
import re
import resource
import subprocess
import sys
import unicodedata
from bisect import bisect_left
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deciban import _kernels
from deciban.data.arrow import text_of
from deciban.data.batch import Texts
from deciban.data.terms import Terms
from deciban.families import Text
from tests.cases import cases
from tests.kernels.test_kernels import threads

__all__ = ["threads"]

CPP = Path(__file__).parents[2] / "cpp"
LONGEST, WINDOW, ROOM = 128, 4096, 1 << 16  # MAX_WORD_BYTES, WINDOW_BYTES and BUFFER_BYTES of cpp/kernels/terms.hpp
PLAIN = (1, 1, 1, 0, False, 0)


# ---- what characters are ----------------------------------------------------------------------------------------


def from_file(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = from_file(CPP / "unicode.py")
HEADER = (CPP / "kernels" / "unicode.hpp").read_text()
VERSION = re.search(r"from Unicode ([\d.]+) ", HEADER)[1]
RUNS = [int(cell) for cell in re.findall(r"(\d+)u", re.search(r"RUNS\[\] = \{.*?\n(.*?)\};", HEADER, re.S)[1])]
FOLDS = {int(a): b for a, b in re.findall(r"\{(\d+)u, \{([^}]*)\}\}", HEADER)}


def kinds_of_the_header():
    ends = [*(run >> 3 for run in RUNS[1:]), sys.maxunicode + 1]
    return [kind for run, end in zip(RUNS, ends, strict=True) for kind in [run & 7] * (end - (run >> 3))]


KINDS = kinds_of_the_header()
same_version = pytest.mark.skipif(
    unicodedata.unidata_version != VERSION, reason=f"the table is of Unicode {VERSION}: run by a Python that knows it"
)


@same_version
def test_the_table_of_kinds_is_what_its_maker_makes():
    assert [MAKER.kind_of(code) for code in range(sys.maxunicode + 1)] == KINDS


@same_version
def test_the_table_of_folds_is_casefold():
    folded = {code: chr(code).casefold() for code in range(sys.maxunicode + 1)}
    result = {code: "".join(chr(int(c)) for c in re.findall(r"(\d+)u", to) if c != "0") for code, to in FOLDS.items()}
    assert result == {code: to for code, to in folded.items() if to != chr(code)}


@pytest.mark.skipif(unicodedata.unidata_version == VERSION, reason="of another version of Unicode than the table")
def test_characters_that_were_known_are_hardly_ever_something_else_later():
    """Those that were not known yet are separators there."""
    known = [code for code, kind in enumerate(KINDS) if kind != MAKER.SEPARATOR]
    changed = [code for code in known if MAKER.kind_of(code) != KINDS[code]]
    assert len(changed) <= 100


# ---- a cutter in plain Python -----------------------------------------------------------------------------------

IDEOGRAPHS = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA")
A_WORD = re.compile(r"[a9](?:[a9]|(?<=a)'(?=a)|(?<=9)\.(?=9))*|1")  # in the letters of `letter`
OF_THE_WEB = re.compile(r"https?://|(?=www\.)", re.IGNORECASE | re.ASCII)
HOST = re.compile(r"[0-9a-z.-]*", re.IGNORECASE | re.ASCII)
BEFORE_AT = re.compile(r"[0-9a-z._+%-]{1,63}@", re.IGNORECASE | re.ASCII)


@cache
def letter(c):
    """a: of words, 9: digit, 1: a word by itself, ': between letters, .: between digits, -: not seen, blank: none."""
    category = unicodedata.category(c)
    if c in "'\u2019":
        return "'"
    if c in ".,":
        return "."
    if category == "Cf" or 0xFE00 <= ord(c) <= 0xFE0F or 0xE0100 <= ord(c) <= 0xE01EF:
        return "-"
    if category in ("So", "Sc") or unicodedata.name(c, "").startswith(IDEOGRAPHS):
        return "1"
    if category == "Nd":
        return "9"
    return "a" if category[0] in "LMN" or c == "_" else " "


def shape_at(text, at):
    """A shape that begins here, with its host and end."""
    web = OF_THE_WEB.match(text, at)
    begins = web or BEFORE_AT.match(text, at)
    if not begins:
        return None
    host = HOST.match(text, begins.end())[0].rstrip("." if web else ".-")
    if not 0 < len(host) <= 100 or not (web or "." in host):
        return None
    return "url:" if web else "address:", host.lower(), begins.end() + len(host)


def words_of(text, shapes=False):
    """Folded words; those that are too long as well."""
    kept = [i for i, c in enumerate(text) if letter(c) != "-"]
    seen = "".join(text[i] for i in kept)
    letters = "".join(map(letter, seen))
    at = 0
    while result := A_WORD.search(letters, at):
        at = result.end()
        first = seen[result.start()]
        begins = shapes and (first.isalnum() or first == "_") and first < "\x80"
        shape = shape_at(text, kept[result.start()]) if begins else None  # which ends at an invisible character
        if shape:
            name, host, end = shape
            at = bisect_left(kept, end)
            yield from (name, name + host)
            continue
        word = seen[result.start() : at].replace("\u2019", "'").casefold()
        number = shapes and re.fullmatch(r"[0-9.,]+", word) and len(word) <= LONGEST
        yield re.sub("[1-9]", "0", word) if number else word


def terms_of(text, words=(1, 1), characters=None, shapes=False):
    """What the kernel says of a text, in its order."""
    result, said, spelled = [], [], [" "]
    for word in words_of(text, shapes):
        for c in word + " " if characters else "":
            spelled.append(c)
            grams = ("".join(spelled[-n:]) for n in range(characters[0], min(characters[1], len(spelled)) + 1))
            result += [f"~{gram}" for gram in grams if gram != " "]
        if words and len(word.encode()) <= LONGEST:
            said.append(word)
            result += [" ".join(said[-n:]) for n in range(words[0], min(words[1], len(said)) + 1)]
    return result


def decoded(document):
    """As a kernel reads bytes: each one that is not of UTF-8 stands alone, and is no part of a word."""
    return document.decode("utf-8", "surrogateescape")


CUTS = {
    "words": {},
    "two and three words": {"words": (2, 3)},
    "characters": {"words": None, "characters": (1, 4)},
    "words and characters": {"words": (1, 2), "characters": (3, 3)},
}
SHAPED = {"words": {"shapes": True}, "words and characters": {"words": (1, 2), "characters": (2, 3), "shapes": True}}
each_cut = pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
each_shaped = pytest.mark.parametrize("cut", SHAPED.values(), ids=SHAPED)

# characters that are not as they were then are left out
characters = st.characters(exclude_categories=()).filter(
    lambda c: unicodedata.unidata_version == VERSION or MAKER.kind_of(ord(c)) == KINDS[ord(c)]
)
telling = st.sampled_from("aZé9٣_'’.,$€😀中ßﬁŉΣςİ\u0345\u0301\u00ad\u200d\ufe0f\ud800\ufffd -@\n\0")
pieces = st.sampled_from(
    [*("don't", "1,000.5", "$5", "Straße", "rock'n'roll", "x", "é", "中", "😀", "\u00ad", "a.b"), *"- '.,…"]
)
pieces |= st.integers(120, 136).map(lambda n: "y" * n)
ascii_text = st.text(st.characters(max_codepoint=127), max_size=200)
texts = st.text(characters) | st.text(telling, max_size=40) | st.lists(pieces, max_size=30).map("".join) | ascii_text


@each_cut
@settings(max_examples=40)
@given(text=texts)
@example(text="don'\u00adt 1,\u200b000 a\u00ad'b")
@example(text="a\ud800b")
def test_terms_are_those_of_the_plain_cutter(cut, text):
    assert Text(**cut).terms(text) == terms_of(text, **cut)


shapely = st.sampled_from(
    [
        *("http://", "HTTPS://", "www.", "http", ":", "a.b", "Example.com", "me", "@", "/x?y=1", *"_+%-.é'😀 "),
        *("1,500", "19.99", "007", "٣٤", "x1", "h" * 95, "n" * 60, "9" * 130),
    ]
)


@each_shaped
@settings(max_examples=40)
@given(text=st.lists(shapely, max_size=12).map("".join) | ascii_text)
@example(text="a" * 129 + "www.example.com")
@example(text="é" * 65 + "me@example.com")
@example(text="https://\u00adww.example.com www.exa\u00admple.com")
@example(text="me@abcd" + ".abc" * 24 + ".com")
@example(text="www.abcd" + ".abc" * 23 + ".com")
@example(text="me@" + "abc." * 20 + "." * 40 + "com, www." + "abc." * 24 + "...")
def test_shapes_are_those_of_the_plain_cutter(cut, text):
    assert Text(**cut).terms(text) == terms_of(text, **cut)


def test_shapes_by_example():
    text = "Call 0800-1,500 or see HTTPS://www.Example.com/a?b=1, www.x.org. Write to Jo.Do+1@mail.example.com!"
    assert Text(shapes=True).terms(text) == [
        *("call", "0000", "0,000", "or", "see", "url:", "url:www.example.com", "a", "b", "0", "url:", "url:www.x.org"),
        *("write", "to", "address:", "address:mail.example.com"),
    ]


def test_words_by_example():
    text = "Straße ISN’T naïve—Ελλάς 3.14 1,000,000 v1.2 'quoted' 5'6 U.S. £5 "
    text += "日本 かな カナ 👍🏽 co\u00adop _x_ ﬁt हिन्दी 안녕 מה"
    assert Text().terms(text) == [
        *("strasse", "isn't", "naïve", "ελλάσ", "3.14", "1,000,000", "v1.2", "quoted", "5", "6", "u", "s", "£", "5"),
        *("日", "本", "か", "な", "カナ", "👍", "coop", "_x_", "fit", "हिन्दी", "안녕", "מה"),
    ]


# ---- long texts -------------------------------------------------------------------------------------------------


@cases("piece", ["don't", "1,000.5", "$5$", "a.b", "é", "中a", "x'", "'x", "Straße", "..", "’s"])
def test_words_across_the_edge_of_a_window(piece):
    """After long words, so that the reference is fast; the other cuts read the same characters."""
    for start in range(WINDOW - len(piece.encode()) - 2, WINDOW + 2):
        for last in (" ", "z"):
            text = (
                ("y" * 99 + " ") * (start // 100) + "y" * (start % 100 - 1) + last * (start % 100 > 0) + piece + " end"
            )
            assert len(text.encode()) == start + len(f"{piece} end".encode())
            assert Text().terms(text) == terms_of(text)
    cut = {"words": (1, 2), "characters": (3, 3)}
    assert Text(**cut).terms(text) == terms_of(text, **cut)


@cases("unit", ["x", "é", "x.", "9.", "a'", "ß", "中", "\u0301", "€", "\u200d"])
def test_runs_of_any_length(unit):
    for size in (127, 128, 129, 255, 256, 257, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW + 5):
        run = (unit * size)[:size]
        for text in (run, f"a {run} b", f"{run}'s", f"a{run}.5")[size % 2 :: 2]:
            assert Text().terms(text) == terms_of(text)
    cut = {"words": (1, 2), "characters": (2, 2)}
    for text in (unit * 129, f"a {run[:WINDOW]}'s b"):
        assert Text(**cut).terms(text) == terms_of(text, **cut)


@settings(max_examples=40)
@given(st.lists(st.tuples(pieces | st.sampled_from([" "]), st.sampled_from([1, 2, 63, 64, 1500, 4090])), max_size=8))
def test_long_texts_of_any_pieces(parts):
    text = "".join(piece * times for piece, times in parts)[: 5 * WINDOW]
    for cut in ({}, {"words": (1, 3)}):
        assert Text(**cut).terms(text) == terms_of(text, **cut)


@cases(
    "cut",
    [
        {"words": (1, 5)},
        {"words": (32, 32)},
        {"words": None, "characters": (32, 32)},
        {"characters": (3, 3), "shapes": True},
    ],
)
def test_ngrams_continue_when_the_buffer_is_full(cut):
    rng = np.random.default_rng(0)
    words = rng.choice(["a", "bé", "don't", "1,5", "x" * 90, "中", "end."], size=ROOM // 8)
    text = " ".join(words.tolist())
    assert len(text) > 1.9 * ROOM
    assert Text(**cut).terms(text) == terms_of(text, **cut)


# ---- bytes ------------------------------------------------------------------------------------------------------


def arrow_of(documents):
    """An Arrow column of bytes that nobody has looked at."""
    ends = np.cumsum([0, *map(len, documents)]).astype(np.int32)
    data = [pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(documents))]
    return pa.StringArray.from_buffers(len(documents), *data)


def counted(array, cut=PLAIN, labels=None, classes=1, once=False):
    """{term: counts by class}."""
    buffers, places = text_of(array)
    labels = np.zeros(len(array), np.int32) if labels is None else labels
    text, ends, counts = _kernels.count_terms(buffers, places[:, np.newaxis], cut, labels, classes, once)
    result = np.split(text, ends[:-1]) if len(ends) else []
    names = [part.tobytes() for part in result]
    assert names == sorted(set(names))
    return dict(zip((name.decode() for name in names), counts[0].T.tolist(), strict=True))


def expected_counts(documents, cut, labels, classes, once=False):
    result = {}
    for document, label in zip(documents, labels, strict=True):
        terms = Counter(terms_of(decoded(document), **cut))
        for term, times in terms.items():
            result.setdefault(term, [0.0] * classes)[label] += 1 if once else times
    return result


BROKEN = (
    b"a,Z9, ,',.,\0,\xff,\xc3,\xa9,\xc3\xa9,\xe2\x82,\xe2\x82\xac,\xf0\x9f\x98,\xf0\x9f\x98\x80,\xed\xa0\x80,\xc0\x80"
)
broken_utf8 = st.sampled_from([*BROKEN.split(b","), b"\xf4\x90\x80\x80", b"\xe0\x80\x80"])
byte_strings = st.binary(max_size=60) | st.lists(broken_utf8, max_size=20).map(b"".join)


@settings(max_examples=50)
@given(documents=st.lists(byte_strings, max_size=6), binary=st.booleans())
def test_bytes_that_are_not_text_separate_words(documents, binary):
    labels = np.arange(len(documents), dtype=np.int32) % 2
    for cut in ({}, {"words": (1, 2), "characters": (2, 3), "shapes": True}):
        counts = counted(arrow_of(documents), Text(**cut).cut, labels, 2, binary)
        assert counts == expected_counts(documents, cut, labels, 2, binary)


def test_many_random_bytes():
    data = np.random.default_rng(0).integers(0, 256, 100_000, dtype=np.uint8).tobytes()
    assert counted(arrow_of([data])) == expected_counts([data], {}, [0], 1)


def test_a_character_is_not_finished_in_the_next_document():
    assert counted(arrow_of([b"a\xc3", b"\xa9b", b"\xe2\x82", b"\xac"])) == {"a": [1.0], "b": [1.0]}


# ---- hashes -----------------------------------------------------------------------------------------------------

U64 = 2**64 - 1


def mixed(a, b):
    return (a * b & U64) ^ (a * b >> 64)


def hash_of(term):
    """Models with hash_bits hold numbers made of it, so that it can never be another."""
    gram = term.startswith("~")
    data = term.encode()[gram:]
    parts = [int.from_bytes(data[i : i + 8], "little") for i in range(0, max(1, len(data)), 8)]
    seed = 0x9E3779B97F4A7C15 if gram else 0xD6E8FEB86659FD93
    result = mixed((seed + len(data) & U64) ^ parts[0], 0xA0761D6478BD642F)
    for part in parts[1:]:
        result = mixed(result ^ part, 0xE7037ED1A0B428DB)
    return result ^ result >> 32


def test_hashed_terms_are_hexadecimal_numbers():
    text = "Buy drugs today, don't read a Straße of 1,000 extraordinarily-long hippopotomonstrosesquippedaliophobias "
    cut = {"words": (1, 2), "characters": (2, 9)}
    hashes = [hash_of(term) for term in terms_of(text, **cut)]
    for bits in (1, 3, 4, 5, 16, 18, 31):
        hashed = Text(**cut, hash_bits=bits).cut
        expected = [f"#{value >> (64 - bits):0{-(-bits // 4)}x}" for value in hashes]
        assert _kernels.tokenize(np.frombuffer(text.encode(), np.uint8), hashed) == expected
        assert counted(pa.array([text]), hashed) == {term: [float(k)] for term, k in Counter(expected).items()}


# ---- counting, looking up, adding up ----------------------------------------------------------------------------

VOCABULARY = ["a", "b", "it's", "été", "𐐷", *(f"word{i:03d}" for i in range(40)), "z" * 100]


def made_documents(n, seed=0, words=30):
    rng = np.random.default_rng(seed)
    documents = [" ".join(rng.choice(VOCABULARY, rng.integers(0, words)).tolist()) for _ in range(n)]
    return [None if rng.random() < 0.1 else document for document in documents], rng


def texts_of(*columns):
    result = Texts.of(*columns)
    return result.buffers, result.places


def many(column, cut=PLAIN, classes=3, once=False):
    buffers, places = texts_of(column)
    labels = np.arange(len(column), dtype=np.int32) % classes
    return _kernels.count_terms(buffers, places, cut, labels, classes, once)


@cases("once", [False, True])
def test_counts_do_not_depend_on_the_number_of_threads(threads, once):
    documents, _ = made_documents(600, words=60)
    cut = Text(words=(1, 2)).cut
    threads(1)
    expected = many(documents, cut, once=once)
    for count in (2, 3):
        threads(count)
        for a, b in zip(many(documents, cut, once=once), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    reference = expected_counts(
        [(d or "").encode() for d in documents], {"words": (1, 2)}, [i % 3 for i in range(600)], 3, once
    )
    names = [part.tobytes().decode() for part in np.split(expected[0], expected[1][:-1])]
    assert dict(zip(names, expected[2][0].T.tolist(), strict=True)) == reference


@cases("classes, once", [(1, False), (2, True), (4, True), (5, False)])
def test_evidence_of_terms_is_added_to_the_output(threads, classes, once):
    documents, rng = made_documents(400)
    known = Terms.of(VOCABULARY[::2])
    evidence = rng.normal(size=(len(known), classes))
    padded = np.zeros((len(known), -(-classes // 4) * 4))
    padded[:, :classes] = evidence
    index = {term: i for i, term in enumerate(known)}
    expected = np.full((len(documents), classes), 3.0)
    for i, document in enumerate(documents):
        terms = [index[t] for t in terms_of(document or "") if t in index]
        expected[i] += evidence[sorted(set(terms)) if once else terms].sum(axis=0)
    result = []
    for count in (1, 2, 3):
        threads(count)
        out = np.full(expected.shape, 3.0)
        _kernels.add_terms(*texts_of(documents), PLAIN, known.index, padded, once, out)
        result.append(out)
    np.testing.assert_allclose(result[0], expected, rtol=1e-12)
    assert result[0].tobytes() == result[1].tobytes() == result[2].tobytes()


def test_rows_of_terms(threads):
    threads(3)
    documents, _ = made_documents(400, words=100)
    others = documents[::-1]
    known = Terms.of(VOCABULARY[1::2])
    data, indices, indptr = _kernels.term_rows(*texts_of(documents, others), PLAIN, known.index)
    assert (indptr[0], indptr[-1], len(indptr)) == (0, len(data), len(documents) + 1)
    names = list(known)
    for i, pair in enumerate(zip(documents, others, strict=True)):
        row = slice(indptr[i], indptr[i + 1])
        terms = Counter(t for document in pair for t in terms_of(document or "") if t in names)
        assert indices[row].tolist() == sorted(indices[row].tolist())
        assert {names[j]: x for j, x in zip(indices[row], data[row], strict=True)} == terms


def test_ngrams_do_not_reach_from_one_column_into_another():
    result = many_columns(["a b", None, "c"], ["d", "e f", None], Text(words=(2, 2), characters=(3, 3)).cut)
    assert result == {"a b": 1.0, "e f": 1.0, "~ a ": 1.0, "~a b": 1.0, "~ b ": 1.0, "~ d ": 1.0, "~ e ": 1.0,
                     "~e f": 1.0, "~ f ": 1.0, "~ c ": 1.0}  # fmt: skip


def many_columns(first, second, cut):
    buffers, places = texts_of(first, second)
    text, ends, counts = _kernels.count_terms(buffers, places, cut, np.zeros(len(first), np.int32), 1, False)
    names = [part.tobytes().decode() for part in np.split(text, ends[:-1])]
    return dict(zip(names, counts[0, 0].tolist(), strict=True))


def test_a_gram_of_characters_and_a_word_that_look_alike_are_two_terms():
    """~ab is of characters, and no word has a ~."""
    known = Terms.of(["ab", "~ab"])
    data, indices, _ = _kernels.term_rows(*texts_of(["ab xab"]), Text(characters=(2, 2)).cut, known.index)
    assert [known[i] for i in indices.tolist()] == ["ab", "~ab"]
    assert data.tolist() == [1.0, 2.0]


terms_in_order = st.lists(st.text(min_size=1, max_size=12) | st.sampled_from(VOCABULARY), max_size=12).map(Terms.of)


@settings(max_examples=40)
@given(terms_in_order, terms_in_order)
def test_the_union_of_terms(a, b):
    text, ends, first, second = _kernels.merge_terms(a.text, a.ends, b.text, b.ends)
    names = [part.tobytes() for part in np.split(text, ends[:-1])] if len(ends) else []
    terms_a, terms_b = ([t.encode() for t in terms] for terms in (a, b))
    assert names == sorted({*terms_a, *terms_b})
    assert [names[i] for i in first.tolist()] == terms_a
    assert [names[i] for i in second.tolist()] == terms_b


@given(st.lists(st.binary(max_size=3), max_size=6))
def test_terms_in_order_are_recognised(terms):
    text, ends = np.frombuffer(b"".join(terms), np.uint8), np.cumsum([len(t) for t in terms], dtype=np.int64)
    assert _kernels.ascending_terms(text, ends) == (terms == sorted(set(terms)))


def test_a_vocabulary_knows_its_size():
    assert len(_kernels.Vocabulary(Terms.of(VOCABULARY).text, Terms.of(VOCABULARY).ends)) == len(VOCABULARY)
    assert len(_kernels.Vocabulary(np.zeros(0, np.uint8), np.zeros(0, np.int64))) == 0


def test_a_large_vocabulary_is_found_again():
    terms = Terms.of([f"t{i}" for i in range(30_000)] + [f"{'long' * 5}{i}" for i in range(3_000)])
    data, indices, _ = _kernels.term_rows(*texts_of([" ".join(terms)]), PLAIN, terms.index)
    assert (data == 1.0).all()
    assert indices.tolist() == list(range(33_000))


# ---- what is refused --------------------------------------------------------------------------------------------

BUFFERS, PLACES = texts_of(["a b", "c"])
LABELS = np.zeros(2, np.int32)
KNOWN = Terms.of(["a", "b", "c"])
BAD_PLACES = {
    "a buffer that is not there": [1, 0, 1],
    "a buffer below 0": [-1, 0, 1],
    "a start below 0": [0, -1, 1],
    "a start behind the end": [0, 5, 0],
    "an end behind the end": [0, 3, 2],
    "a length that overflows": [0, 1, 2**63 - 1],
    "a start that overflows": [0, 2**63 - 1, 1],
}
BAD_CUTS = {
    "n-grams of no word": (0, 1, 1, 0, False, 0),
    "n-grams of no character": (1, 1, 0, 1, False, 0),
    "too many words": (1, 33, 1, 0, False, 0),
    "too many characters": (1, 1, 1, 33, False, 0),
    "too many bits": (1, 1, 1, 0, False, 32),
}
CALLS = {
    "count_terms": lambda places, cut: _kernels.count_terms(BUFFERS, places, cut, LABELS, 1, False),
    "add_terms": lambda places, cut: _kernels.add_terms(
        BUFFERS, places, cut, KNOWN.index, np.zeros((3, 4)), False, np.zeros((2, 2))
    ),
    "term_rows": lambda places, cut: _kernels.term_rows(BUFFERS, places, cut, KNOWN.index),
}
each_call = cases("call", CALLS)


@each_call
@cases("bad", BAD_PLACES)
def test_places_outside_of_buffers_are_refused(call, bad):
    places = PLACES.copy()
    call(places, PLAIN)
    places[1, 0] = bad
    with pytest.raises(ValueError, match="not within its buffer"):
        call(places, PLAIN)
    places[1, 0, 2] = -1  # nobody looks where a document that is missing is
    call(places, PLAIN)


@each_call
def test_places_are_three_numbers(call):
    for width in (2, 4):
        with pytest.raises(ValueError, match="buffer, start, length"):
            call(np.zeros((2, 1, width), np.int64), PLAIN)
    for other in (
        PLACES.astype(np.int32),
        PLACES[:, 0],
        np.asfortranarray(np.repeat(PLACES, 2, axis=1)),
        PLACES.tolist(),
    ):
        with pytest.raises(TypeError):
            call(other, PLAIN)


@each_call
def test_cuts_that_cannot_be_made_are_refused(call):
    for cut in BAD_CUTS.values():
        for refuses in (lambda cut=cut: call(PLACES, cut), lambda cut=cut: _kernels.tokenize(BUFFERS[0], cut)):
            with pytest.raises(ValueError, match="options:"):
                refuses()
    for cut in ((1, 1), (-1, 1, 1, 0, False, 0), ("1", 1, 1, 0, False, 0), None):
        with pytest.raises(TypeError):
            call(PLACES, cut)


@cases(
    "labels, classes",
    [([0], 2), ([0, 0, 0], 2), ([0, 2], 2), ([-1, 0], 2), *(([-1, 0], k) for k in (0, 2**31, 2**62, 2**64 - 1))],
)
def test_labels_that_are_no_classes_are_refused(labels, classes):
    with pytest.raises(ValueError):
        _kernels.count_terms(BUFFERS, PLACES, PLAIN, np.array(labels, np.int32), classes, False)


@cases("ends", [[1, 0, 3], [-1, 1, 3], [1, 2, 4], [1, 2, 2], [1, 2], [2**62, 2, 3], [4, 2, 3]])
def test_ends_that_are_not_those_of_the_text_are_refused(ends):
    text, ends = np.frombuffer(b"abc", np.uint8), np.array(ends, np.int64)
    for call in (
        lambda: _kernels.Vocabulary(text, ends),
        lambda: _kernels.ascending_terms(text, ends),
        lambda: _kernels.merge_terms(text, ends, KNOWN.text, KNOWN.ends),
        lambda: _kernels.merge_terms(KNOWN.text, KNOWN.ends, text, ends),
    ):
        with pytest.raises(ValueError, match="ends of terms"):
            call()


def test_a_vocabulary_that_is_none_is_refused():
    with pytest.raises(ValueError, match="twice"):
        _kernels.Vocabulary(np.frombuffer(b"aba", np.uint8), np.arange(1, 4))
    with pytest.raises(ValueError, match="too long"):
        _kernels.Vocabulary(np.zeros(1 << 15, np.uint8), np.array([1 << 15]))


@cases("shape", [(3, 2), (3, 8), (2, 4), (4, 4), (0, 4)])
def test_evidence_that_is_not_of_the_terms_is_refused(shape):
    with pytest.raises(ValueError):
        _kernels.add_terms(BUFFERS, PLACES, PLAIN, KNOWN.index, np.zeros(shape), False, np.zeros((2, 2)))


@cases("out", [np.zeros((2, 2), order="F"), np.zeros((2, 4))[:, ::2], np.zeros((2, 2), np.float32)])
def test_an_output_that_cannot_be_written_in_place_is_refused(out):
    with pytest.raises(TypeError):
        _kernels.add_terms(BUFFERS, PLACES, PLAIN, KNOWN.index, np.zeros((3, 4)), False, out)


# ---- long texts in bounded memory and time ----------------------------------------------------------------------

MEASURE = """
import resource, sys
import numpy as np
from deciban.data.batch import Texts
from deciban.families import Context, Text

BYTES = {
    "one run": b"x",
    "runs of digits": b"9.",
    "nothing": b"\\0",
    "combining marks": "\\u0301".encode(),
    "hosts": b"www.",
    "random bytes": np.random.default_rng(0).integers(0, 256, 1_000_000, dtype=np.uint8).tobytes(),
}
labels = np.array([0, 1], np.int32)


def fit(family, texts):
    statistic = family.collect(texts, labels, None, 2)
    params = family.estimate(statistic, Context((0, 1), ("text",)))
    return family.log_density(params, texts, 2)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


fit(Text(), Texts.of(["a b c", "d"]))  # imports are not memory of the text
before = peak()
for kind, size, family in CASES:
    data = np.frombuffer(BYTES[kind] * (size // len(BYTES[kind]) + 1), np.uint8)[:size]
    half = len(data) // 2
    spans = np.array([[[0, 0, half]], [[0, half, len(data) - half]]])
    assert np.isfinite(fit(eval(family), Texts((data,), spans))).all(), kind
    assert peak() - before < size + 60_000_000, (kind, peak() - before)
    del data
"""
LONG = [  # from short to long, so that no peak hides a later one
    ("hosts", 2_000_000, "Text(shapes=True)"),
    ("one run", 6_000_000, "Text(words=(1, 3), characters=(2, 5))"),
    ("runs of digits", 6_000_000, "Text()"),
    ("random bytes", 6_000_000, "Text(shapes=True, hash_bits=18)"),
    ("nothing", 6_000_000, "Text(characters=(1, 2))"),
    ("combining marks", 6_000_000, "Text(events='bernoulli')"),
    ("one run", 100_000_000, "Text(shapes=True)"),
]


def test_long_lines_need_little_memory_and_time():
    code = f"CASES = {LONG!r}\n{MEASURE}"

    def limited():
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=limited)
    assert done.returncode == 0, done.stderr or f"ended by signal {-done.returncode}"
