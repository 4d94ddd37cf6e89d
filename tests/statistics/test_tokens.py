"""Tokens: how often each class used each term."""

import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deciban.data.batch import Texts
from deciban.data.terms import Terms
from deciban.errors import DecibanError, NegativeEvidence
from deciban.families import Text
from deciban.statistics import Sum, Tokens
from deciban.statistics.tokens import TermRows
from tests import exact
from tests.cases import cases
from tests.kernels.test_text_kernels import terms_of
from tests.laws import Subject, equal_statistics, rows

WORDS = ["a", "b", "c", "do", "don't", "1,5", "été", "😀", "x" * 9, "x" * 9 + "y", "-", ""]
CUTS = [{}, {"words": (1, 2)}, {"words": None, "characters": (1, 2)}]

sentences = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


def documents(n, d):
    """Columns of documents, some of which are missing."""
    column = st.lists(sentences | st.none(), min_size=n, max_size=n)
    return st.lists(column, min_size=d, max_size=d).map(lambda columns: Texts.of(*columns))


def collecting(cut, once):
    def collect(values, labels, weights, classes):
        return Tokens.of(values, cut, labels, weights, classes, once=once)

    return collect


def subject(name, once, **cut):
    collect = collecting(Text(**cut).cut, once)
    return Subject(Tokens, f"Tokens {name}", collect, documents, equal_statistics, joint=True, fixed=True)


SUBJECTS = [
    subject("of words", False),
    subject("of words, once", True),
    subject("of n-grams of both", False, words=(1, 2), characters=(2, 3)),
    subject("of hashes", False, hash_bits=3),
    subject("of hashes, once", True, words=(1, 2), hash_bits=2),
]


def of(*columns, labels=None, weights=None, once=False, **cut):
    labels = [0] * len(columns[0]) if labels is None else labels
    weights = None if weights is None else np.array(weights, np.float64)
    labels = np.array(labels, np.int32)
    return Tokens.of(Texts.of(*columns), Text(**cut).cut, labels, weights, int(labels.max(initial=0)) + 1, once=once)


def table_of(tokens):
    return dict(zip(tokens.terms, tokens.counts.value.T.tolist(), strict=True))


@given(cut=st.sampled_from(CUTS), once=st.booleans(), data=st.data())
def test_counts_are_those_of_fractions(cut, once, data):
    """Of documents that the plain tokenizer has cut, weighted with any doubles."""
    drawn = data.draw(rows(SUBJECTS[0]))
    weights = data.draw(st.none() | hnp.arrays(np.float64, len(drawn), elements=st.floats(1e-9, 1e9)))
    result = Tokens.of(drawn.values, Text(**cut).cut, drawn.labels, weights, drawn.classes, once=once)
    cells = [[drawn.values.cell(i, j) for j in range(drawn.values.shape[1])] for i in range(len(drawn))]
    bags = [Counter(t for cell in row if cell for t in terms_of(cell.decode(), **cut)) for row in cells]
    names = sorted({term for bag in bags for term in bag}, key=str.encode)
    x = np.array([[min(bag[t], 1) if once else bag[t] for t in names] for bag in bags], np.float64)
    _, sum_x, _ = exact.moments(x.reshape(len(drawn), len(names)), drawn.labels, weights, drawn.classes)
    assert list(result.terms) == names
    np.testing.assert_array_equal(result.counts.words, exact.as_words(sum_x))
    there = np.array([[1.0] if any(c is not None for c in row) else [0.0] for row in cells]).reshape(-1, 1)
    _, present, _ = exact.moments(there, drawn.labels, weights, drawn.classes)
    np.testing.assert_array_equal(result.documents.words, exact.as_words(present)[:, :, 0])


def test_counts_by_class():
    result = of(["buy book buy", None, "", "Buy!"], labels=[0, 0, 1, 1])
    assert table_of(result) == {"book": [1.0, 0.0], "buy": [2.0, 1.0]}
    assert result.documents.value.tolist() == [1.0, 2.0]
    assert table_of(of(["buy book buy", None, "", "Buy!"], labels=[0, 0, 1, 1], once=True))["buy"] == [1.0, 1.0]


def test_columns_are_one_bag():
    result = of(["a b", None, None], ["a", "c", None], once=True)
    assert table_of(result) == {"a": [1.0], "b": [1.0], "c": [1.0]}
    assert result.documents.value.tolist() == [2.0]


def test_a_union_is_in_order_and_what_is_forgotten_leaves_no_name():
    a, b = of(["buy book"]), of(["a book zebra"])
    assert list((a + b).terms) == ["a", "book", "buy", "zebra"]
    assert list(((a + b) - a).terms) == ["a", "book", "zebra"]
    assert list((a - a).terms) == []


@cases("rest, problem", [(["buy zebra"], "some terms are new"), (["buy buy"], "below zero"), ([""] * 3, "below zero")])
def test_what_was_never_learned_cannot_be_forgotten(rest, problem):
    with pytest.raises(NegativeEvidence, match=problem):
        of(["buy book", "x"]) - of(rest)


# Terms ---------------------------------------------------------------------------------------------------------------

names = st.lists(st.text(min_size=1), max_size=8)


@given(names)
def test_terms_stand_in_the_order_of_their_bytes(given_names):
    terms = Terms.of(given_names)
    assert list(terms) == sorted(set(given_names), key=str.encode)
    assert [terms[i] for i in range(len(terms))] == list(terms)
    terms.check()
    assert terms == Terms.of(given_names[::-1])
    assert terms == pickle.loads(pickle.dumps(terms))
    assert len(terms.index) == len(terms)


@given(names, st.data())
def test_some_of_the_terms(given_names, data):
    terms = Terms.of(given_names)
    kept = np.flatnonzero(data.draw(hnp.arrays(np.bool_, len(terms))))
    assert list(terms.take(kept)) == [terms[i] for i in kept]


@given(names, names)
def test_a_union_and_the_places_in_it(a, b):
    both, mine, theirs = Terms.of(a).union(Terms.of(b))
    assert both == Terms.of(a + b)
    assert [both[i] for i in mine] == list(Terms.of(a))
    assert [both[i] for i in theirs] == list(Terms.of(b))


def test_terms_are_not_equal_to_what_they_are_not():
    assert Terms.of(["ab", "c"]) != Terms.of(["a", "bc"])
    assert Terms.of(["a"]) != ["a"]


def raw(text, ends):
    return Terms(np.frombuffer(text, np.uint8), np.array(ends, np.int64))


@cases(
    "terms, problem",
    [
        (raw(b"ab", [1, 1, 2]), "ends of terms"),
        (raw(b"ab", [2, 1]), "ends of terms"),
        (raw(b"ab", [1]), "ends of terms"),
        (raw(b"ab", [1, 3]), "ends of terms"),
        (raw(b"ab", [[1, 2]]), "ends of terms"),
        (raw(b"ab", [-1, 2]), "ends of terms"),
        (raw(b"ba", [1, 2]), "order"),
        (raw(b"aa", [1, 2]), "order"),
        (raw(b"aba", [2, 3]), "order"),
    ],
)
def test_terms_of_a_file_are_checked(terms, problem):
    with pytest.raises(DecibanError, match=problem):
        terms.check()


# Of a file -----------------------------------------------------------------------------------------------------------


def test_what_was_collected_passes_its_check():
    of(["a b", None, "c"], labels=[0, 1, 1]).check(2, 1)
    Tokens.of(Texts.of([]), Text().cut, np.zeros(0, np.int32), None, 3, once=False).check(3, 1)


def changed(**arrays):
    tokens = of(["a b", "c"], labels=[0, 1])
    sums = {name: Sum(arrays[name]) for name in arrays.keys() & {"counts", "documents"}}
    terms = Terms(arrays.get("text", tokens.terms.text), arrays.get("ends", tokens.terms.ends))
    return replace(tokens, terms=terms, **sums)


@cases(
    "arrays",
    [
        {"counts": np.zeros((1, 2, 2))},
        {"counts": np.zeros((1, 2, 3))},
        {"counts": np.full((1, 2, 3), np.nan)},
        {"counts": np.array([[[1.0, 1.0, 2.0], [0.0, 0.0, -1.0]]])},
        {"documents": np.zeros((1, 3))},
        {"documents": np.array([[-1.0, 1.0]])},
        {"ends": np.array([1, 2])},
        {"ends": np.array([1, 2, 4])},
        {"text": np.frombuffer(b"cba", np.uint8)},
        {"text": np.zeros(0, np.uint8), "ends": np.zeros(0, np.int64)},
    ],
)
def test_arrays_that_do_not_go_together_are_refused(arrays):
    with pytest.raises(DecibanError):
        changed(**arrays).check(2, 1)


# Rows ----------------------------------------------------------------------------------------------------------------


@given(documents(6, 2), st.integers(0, 6), st.integers(0, 6))
def test_some_rows_of_terms(texts, start, stop):
    known = Terms.of(WORDS[:6])
    whole, part = (TermRows.of(values, Text().cut, known) for values in (texts, texts[start:stop]))
    some = whole[start:stop] if stop >= start else whole[start:start]
    assert len(whole) == 6
    assert whole.shape == (6, 1)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(some, name), getattr(part, name))
    assert np.bincount(whole.rows, minlength=6).tolist() == np.diff(whole.indptr).tolist()
