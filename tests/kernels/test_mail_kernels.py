"""Kernels of the mail filter: headers against plain Python, and tables of terms that may be damaged."""

import re
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban import _kernels

FIELD = re.compile(rb"([!-9;-~]*):[ \t]*").match
ENVELOPE = (b"From ", b">From ")
WANTED = frozenset({b"from", b"subject", b"content-type", b""})


def plain_headers(data, start, end, wanted, max_lines):
    """As `read_headers`, line by line."""
    if data.startswith(b"\n", start, end):
        return {}, start + 1, False
    stop = data.find(b"\n\n", start, end)
    stop, body = (end, end) if stop < 0 else (stop, stop + 2)
    lines = data[start:stop].split(b"\n", max_lines)
    rest = lines.pop() if len(lines) > max_lines else b""
    values, folded = {}, []
    for number, line in enumerate(lines):
        match = FIELD(line)
        if match:
            folded = [line[match.end() :]]
            if match[1].lower() in wanted:
                values.setdefault(match[1].lower(), []).append(folded)
        elif line[:1] in (b" ", b"\t"):
            folded.append(line)
        elif line and not line.startswith(ENVELOPE):
            return unfolded(values), start + sum(len(line) + 1 for line in lines[:number]), False
    return unfolded(values), body, bool(rest)


def unfolded(values):
    return {name: [b"".join(folded) for folded in lines] for name, lines in values.items()}


PIECES = [
    b"From: a",
    b"SUBJECT:",
    b"Content-Type: \t x",
    b": y",
    b"From me",
    b">From you",
    b" folded",
    b"\tfolded",
    b"x",
]
LINES = st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=12).map(b"\n".join)


@given(LINES, st.integers(0, 40), st.integers(0, 40), st.integers(1, 8))
def test_headers_are_those_of_plain_python(data, start, end, max_lines):
    start, end = sorted((min(start, len(data)), min(end, len(data))))
    for a, b in ((start, end), (0, len(data))):
        result = _kernels.read_headers(data, a, b, WANTED, max_lines)
        assert result == plain_headers(data, a, b, WANTED, max_lines)
        assert list(result[0]) == list(plain_headers(data, a, b, WANTED, max_lines)[0])


@pytest.mark.parametrize(("start", "end"), [(1, 0), (0, 3), (3, 3)])
def test_a_range_that_is_not_within_the_data_is_refused(start, end):
    with pytest.raises(ValueError, match="not within the data"):
        _kernels.read_headers(b"ab", start, end, WANTED, 10)


# Tables of terms -----------------------------------------------------------------------------------------------------


def texts_of(*texts):
    return struct.pack("=Q", len(texts)) + b"".join(struct.pack("=Q", len(text)) + text for text in texts)


def tables(often, once, absent=(0.0, 0.0), share=0.0, needed=(), column=0):
    """Tables of one column of two, with the terms "buy" and "lunch" and two classes."""
    parts = [texts_of(b"subject", b"body"), texts_of(b"ham", b"spam")]
    parts.append(np.array([0.5, -0.5, np.log(0.75), np.log(0.25), share]).tobytes())
    parts.append(np.array([len(needed), *needed, 1], np.int64).tobytes())
    parts.append(np.array([1, column, 1, 1, 1, 0, 0, 0, 2, 8, 3, 3, 8], np.int64).tobytes())
    parts += [np.array(part, np.float64).tobytes() for part in (often, once, absent)]
    return b"".join([*parts, b"buylunch"])


EXAMPLE = tables([[-1.0, 2.0], [0.5, -0.25]], [[0.0, 0.125], [0.0, 0.0]], absent=(0.0, 1.0))


def test_scores_are_sums_over_terms():
    scorer = _kernels.TermScorer(EXAMPLE)
    assert (scorer.columns, scorer.classes) == (("subject", "body"), ("ham", "spam"))
    rows = [
        {"subject": "Buy, buy lunch", "body": "buy"},
        {"subject": None, "body": "buy"},
        {"subject": "\ud800 unknown", "body": None},
    ]
    scores = [(0.5 - 1 - 1 + 0.5, -0.5 + 1 + 2 + 2 - 0.25 + 0.125), (0.5, -0.5), (0.5, 0.5)]
    for (label, p, nats), (ham, spam) in zip(scorer.best(rows), scores, strict=True):
        assert label == int(spam > ham)
        assert nats == pytest.approx(abs(spam - ham))
        assert p == pytest.approx(1 / (1 + np.exp(-abs(spam - ham))))
    assert scorer.best([]) == []


def test_a_prior_share_bounds_the_odds():
    scorer = _kernels.TermScorer(tables([[-50.0, 50.0], [0.0, 0.0]], np.zeros((2, 2)), share=0.1))
    ((label, p, nats),) = scorer.best([{"subject": "buy", "body": ""}])
    assert (label, p) == (1, pytest.approx(0.9 + 0.1 * 0.25))
    assert nats == pytest.approx(np.log(p / (1 - p)))


def test_rows_without_a_needed_column_are_not_scored():
    scorer = _kernels.TermScorer(tables(np.ones((2, 2)), np.ones((2, 2)), needed=(1,)))
    best = scorer.best([{"subject": "buy", "body": None}, {"subject": None, "body": ""}])
    assert best[0] is None
    assert best[1] is not None


@pytest.mark.parametrize("rows", [[{"subject": "x"}], [{"subject": "x", "body": 1}], [1]])
def test_rows_that_are_none_are_refused(rows):
    with pytest.raises((KeyError, TypeError, RuntimeError)):
        _kernels.TermScorer(EXAMPLE).best(rows)


@pytest.mark.parametrize("size", range(0, len(EXAMPLE), 7))
def test_tables_that_end_too_early_are_refused(size):
    with pytest.raises(ValueError, match="tables"):
        _kernels.TermScorer(EXAMPLE[:size])


@given(st.integers(0, len(EXAMPLE) // 8 - 1), st.sampled_from([0, 1, 2, 9, 1 << 31, (1 << 62) + 1, (1 << 64) - 1]))
def test_damaged_tables_are_refused_or_score(position, number):
    data = bytearray(EXAMPLE)
    data[8 * position : 8 * position + 8] = struct.pack("=Q", number)
    try:
        scorer = _kernels.TermScorer(bytes(data))
        scorer.best([dict.fromkeys(scorer.columns, "buy lunch")])
    except ValueError:
        pass


def test_other_damage():
    for data, match in (
        (EXAMPLE + b"x", "after the end"),
        (tables(np.zeros((2, 2)), np.zeros((2, 2)), column=2), "no such column"),
        (tables(np.zeros((2, 2)), np.zeros((2, 2)), needed=(2,)), "no such column"),
        (texts_of() + texts_of(b"spam"), "two classes"),
    ):
        with pytest.raises(ValueError, match=match):
            _kernels.TermScorer(data)
    no_text = _kernels.TermScorer(EXAMPLE.replace(b"subject", b"\xff\xfebject").replace(b"spam", b"\xed\xa0\x80m"))
    assert no_text.classes == ("ham", "\ud800m")
    with pytest.raises(UnicodeDecodeError):
        no_text.best([{"subject": "buy", "body": ""}])
    with pytest.raises(ValueError, match="not within"):
        _kernels.TermScorer(EXAMPLE, len(EXAMPLE) + 1)
    assert _kernels.TermScorer(b"xyz" + EXAMPLE, 3).classes == ("ham", "spam")


@given(st.binary(max_size=70), st.integers(0, 69), st.integers(1, 255))
def test_fingerprints_differ_where_bytes_do(data, position, change):
    assert len(_kernels.fingerprint(data)) == 16
    assert _kernels.fingerprint(b"ab" + data, 2) == _kernels.fingerprint(data)
    assert _kernels.fingerprint(data + b"\0") != _kernels.fingerprint(data)
    if position < len(data):
        other = bytearray(data)
        other[position] ^= change
        assert _kernels.fingerprint(bytes(other)) != _kernels.fingerprint(data)
