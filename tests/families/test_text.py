"""Text: documents, as bags of terms."""

import pickle
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deciban.data.batch import Texts
from deciban.data.terms import Terms
from deciban.errors import DecibanError
from deciban.families import Context, Text
from deciban.families.family import Fitted
from deciban.families.labelled_values import LabelledValues
from deciban.families.priors import Dirichlet, Laplace, Virtual
from deciban.statistics import Sum, Tokens
from tests.families.refits import assert_left_out_is_refitted
from tests.families.test_categorical import Own
from tests.kernels.test_text_kernels import terms_of
from tests.laws import context, equal_statistics, family_subject, rows
from tests.statistics.test_tokens import documents

EVENTS = ("multinomial", "bernoulli", "complement")
each_event = pytest.mark.parametrize("events", EVENTS)
MLE = {"smoothing": 0.0}


def subject(family, note="", **more):
    return family_subject(family, documents, note, fixed=True, **more)


SUBJECTS = [
    subject(Text()),
    subject(Text(), " MLE", settings=MLE),
    subject(Text("bernoulli")),
    subject(Text("bernoulli"), " MLE", settings=MLE),
    subject(Text("complement")),
    subject(Text("complement"), " alpha 0.1", settings={"smoothing": 0.1}),
    subject(Text(words=(1, 2), characters=(2, 3))),
    subject(Text("bernoulli", words=None, characters=(1, 2))),
    subject(Text(max_terms=3)),
    subject(Text("bernoulli", max_terms=2)),
    subject(Text("complement", max_terms=2, hash_bits=2)),
    subject(Text(hash_bits=3)),
    subject(Text("bernoulli", hash_bits=2, words=(1, 2))),
    subject(Text(shapes=True, prior=Virtual(3.0))),
    subject(Text("bernoulli", prior=Own())),
    subject(Text("complement", prior=Dirichlet(1.5))),
]

MAILS = ["Do math today", "Buy", "Buy book", "Today do math drugs", "Buy drugs book today"]
LABELS = [0, 1, 0, 1, 1]


def fit(family, mails=MAILS, labels=LABELS, weights=None, **settings):
    labels = np.array(labels, np.int32)
    classes = int(labels.max()) + 1
    weights = None if weights is None else np.array(weights, np.float64)
    return family.estimate(
        family.collect(Texts.of(mails), labels, weights, classes), Context((*range(classes),), ("mail",), **settings)
    )


def density(family, params, mails):
    return family.log_density(params, Texts.of(mails), len(params.log_p))


# The estimate --------------------------------------------------------------------------------------------------------


def plain_log_density(family, all_rows, asked, alpha):
    """(n, K) by the formulas, in Python; a missing document adds nothing, and neither does an unknown term."""
    cut = {"words": family.words, "characters": family.characters, "shapes": family.shapes}
    once = family.events == "bernoulli"

    def bag(values, i):
        cells = [values.cell(i, j) for j in range(values.shape[1])]
        terms = Counter(t for cell in cells if cell for t in terms_of(cell.decode(), **cut))
        return None if all(cell is None for cell in cells) else {t: 1 if once else k for t, k in terms.items()}

    n, classes = len(all_rows), all_rows.classes
    weights = [Fraction(w) for w in (np.ones(n) if all_rows.weights is None else all_rows.weights).tolist()]
    counts, sizes = [Counter() for _ in range(classes)], [Fraction(0)] * classes
    for i in range(n):
        result = bag(all_rows.values, i)
        if result is not None and weights[i]:
            sizes[all_rows.labels[i]] += weights[i]
            for term, k in result.items():
                counts[all_rows.labels[i]][term] += weights[i] * k
    total = sum(counts, Counter())
    order = sorted(total, key=lambda t: (-total[t], t.encode()))
    known = order if family.max_terms is None else order[: family.max_terms]
    out = np.zeros((asked.shape[0], classes))
    for i in range(asked.shape[0]):
        result = bag(asked, i)
        for c in range(classes):
            if result is None:
                continue
            if once:
                for t in known:
                    phi = (counts[c][t] + alpha) / (sizes[c] + 2 * alpha)
                    out[i, c] += np.log(float(phi if t in result else 1 - phi))
                continue
            of = {t: total[t] - counts[c][t] if family.events == "complement" else counts[c][t] for t in known}
            whole = sum(of.values()) + alpha * len(known)
            terms = ((t, k) for t, k in result.items() if t in of)
            out[i, c] = sum(k * np.log(float((of[t] + alpha) / whole)) for t, k in terms)
    return -out if family.events == "complement" else out


@each_event
@settings(max_examples=20)
@given(
    more=st.sampled_from([{}, {"words": (1, 2)}, {"max_terms": 3}]),
    alpha=st.sampled_from([1, Fraction(1, 10)]),
    data=st.data(),
)
def test_the_density_is_that_of_the_formula(events, more, alpha, data):
    family = Text(events, **more)
    learned = data.draw(rows(SUBJECTS[0]))
    asked = data.draw(documents(4, learned.values.shape[1]))
    statistic = family.collect(learned.values, learned.labels, learned.weights, learned.classes)
    params = family.estimate(statistic, context(learned, smoothing=float(alpha)))
    result = family.log_density(params, asked, learned.classes)
    expected = plain_log_density(family, learned, asked, alpha)
    if family.events == "complement":  # classes that are alone have no others: then all terms are as likely
        expected[:, [c for c in range(learned.classes) if learned.classes == 1]] = result[:, :1]
    np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-12)


def test_words_of_the_lectures():
    params = fit(Text())
    assert list(params.terms) == ["book", "buy", "do", "drugs", "math", "today"]
    np.testing.assert_allclose(np.exp(params.log_p[0]) * 11, [2, 2, 2, 1, 2, 2], rtol=1e-14)
    np.testing.assert_allclose(np.exp(params.log_p[1]) * 15, [2, 3, 2, 3, 2, 3], rtol=1e-14)


@pytest.mark.parametrize("prior", [Laplace(0.5), Dirichlet(1.5)])
@each_event
def test_a_prior_takes_the_place_of_smoothing(events, prior):
    """Dirichlet's a − 1 = ½ are the counts that Laplace adds."""
    if events == "bernoulli" and isinstance(prior, Dirichlet):
        prior = Dirichlet([1.5, 1.5])
    a, b = fit(Text(events, prior=prior), smoothing=7.0), fit(Text(events), smoothing=0.5)
    np.testing.assert_allclose(a.log_p, b.log_p, rtol=1e-14)
    np.testing.assert_allclose(a.absent, b.absent, rtol=1e-14)


def test_a_prior_by_name():
    terms = ["book", "buy", "do", "drugs", "math", "today"]
    params = fit(Text(prior=Dirichlet({t: 3.0 if t == "drugs" else 1.0 for t in terms})))
    np.testing.assert_allclose(np.exp(params.log_p[0]) * (5 + 2), [1, 1, 1, 2, 1, 1], rtol=1e-14)


# Terms that count ----------------------------------------------------------------------------------------------------


def test_max_terms_keeps_the_most_frequent_and_of_equals_the_first():
    mails = ["c c c b b a a d", "e"]
    assert list(fit(Text(max_terms=2), mails, [0, 1]).terms) == ["a", "c"]  # a and b are there twice
    assert list(fit(Text(max_terms=3), mails, [0, 1]).terms) == ["a", "b", "c"]
    assert list(fit(Text(max_terms=4), mails, [0, 1]).terms) == ["a", "b", "c", "d"]
    assert list(fit(Text(max_terms=9), mails, [0, 1]).terms) == ["a", "b", "c", "d", "e"]
    # of documents, each counts once
    assert list(fit(Text("bernoulli", max_terms=1), ["z z z a", "a"], [0, 1]).terms) == ["a"]
    # of all classes together, by weight
    assert list(fit(Text(max_terms=1), ["a a", "b", "b"], [0, 1, 2], [1.0, 2.0, 0.5]).terms) == ["b"]


def test_max_terms_forgets_nothing():
    """What is counted stays exact: terms that were rare may be frequent later."""
    family = Text(max_terms=1)
    whole = family.collect(Texts.of(["a", "a", "b", "b", "b"]), np.zeros(5, np.int32), None, 1)
    parts = [family.collect(Texts.of([t]), np.zeros(1, np.int32), None, 1) for t in "aabbb"]
    equal_statistics(sum(parts[1:], parts[0]), whole, None)
    assert list(family.estimate(whole, Context((0,), ("x",))).terms) == ["b"]


@each_event
def test_hash_bits_bound_the_vocabulary(events):
    mails = [" ".join(f"w{i}" for i in range(1000)), "other words"]
    for bits in (1, 4, 6):
        family = Text(events, hash_bits=bits)
        params = fit(family, mails, [0, 1])
        assert len(params.terms) <= 2**bits
        assert np.isfinite(density(family, params, mails)).all()
    assert len(fit(Text(events, hash_bits=31), mails, [0, 1]).terms) == 1002


# Without smoothing ---------------------------------------------------------------------------------------------------


def test_a_class_without_a_term_is_impossible_without_smoothing():
    family = Text()
    params = fit(family, ["a b", "b"], [0, 1], smoothing=0.0)
    result = density(family, params, ["a", "b", "", "a b b", "never", None])
    np.testing.assert_allclose(
        result, [[np.log(0.5), -np.inf], [np.log(0.5), 0], [0, 0], [3 * np.log(0.5), -np.inf], [0, 0], [0, 0]]
    )


def test_a_document_without_a_term_that_all_have_is_impossible_without_smoothing():
    """Of class 0 all have a (φ = 1), of class 1 none has a or b (φ = 0)."""
    family = Text("bernoulli")
    params = fit(family, ["a b", "a", "c", "c d"], [0, 0, 1, 1], smoothing=0.0)
    result = density(family, params, ["a", "b", "c", "a c", "", "a b never", None, "c d"])
    half = np.log(0.5)
    impossible = -np.inf
    expected = [
        [half, impossible], [impossible, impossible], [impossible, half], [impossible, impossible],
        [impossible, impossible], [half, impossible], [0, 0], [impossible, half],
    ]  # fmt: skip
    np.testing.assert_allclose(result, expected, atol=1e-15)


def test_the_complement_needs_smoothing():
    """A term that no other class has would speak for its class without bound."""
    with pytest.raises(DecibanError, match="complement events need smoothing above 0"):
        fit(Text("complement"), ["a b", "b c"], [0, 1], smoothing=0.0)


@each_event
def test_a_class_without_documents_is_like_all_together(events):
    family = Text(events)
    params = fit(family, ["a b", "b", None], [0, 0, 1])
    assert np.isfinite(density(family, params, ["a", "b", "", "a b c"])).all()
    if events != "complement":
        params = fit(family, ["a b", "b", None], [0, 0, 1], smoothing=0.0)
        assert not np.isnan(density(family, params, ["a", "b", "", "a b c"])).any()


@each_event
def test_no_terms_at_all(events):
    family = Text(events)
    params = fit(family, ["", None, "--"], [0, 1, 1])
    np.testing.assert_array_equal(density(family, params, ["a", "", None]), 0.0)
    assert family.silent(params) == [0]
    assert family.n_parameters(params) == 0


# Leaving out ---------------------------------------------------------------------------------------------------------

MANY = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "rare1", "rare2", "rare3", "x y", "a a a"]), max_size=8)


@st.composite
def learned_texts(draw):
    """Rows of two classes, two of each at least; some documents are missing or have no term."""
    n = draw(st.integers(4, 10))
    cells = [draw(st.none() | MANY.map(" ".join)) for _ in range(n)]
    labels = [0, 1, 0, 1, *(draw(st.integers(0, 1)) for _ in range(n - 4))]
    weights = draw(st.none() | st.lists(st.sampled_from([0.25, 1.0, 2.0, 3.7, 1e-3, 1e3]), min_size=n, max_size=n))
    return Texts.of(cells), labels, weights


@each_event
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"hash_bits": 2},
        {"words": (1, 2)},
        {"max_terms": 4},
        {"prior": Virtual(2.0)},
        {"prior": Virtual(0.01), "words": (1, 2)},
        {"prior": Laplace(0.3)},
    ],
    ids=str,
)
@settings(max_examples=5)
@given(learned=learned_texts(), alpha=st.sampled_from([1.0, 0.01]))
def test_leaving_a_row_out_is_a_refit_without_it(events, more, learned, alpha):
    values, labels, weights = learned
    assert_left_out_is_refitted(Text(events, **more), values, labels, weights, smoothing=alpha)


@each_event
@pytest.mark.parametrize("weights", [None, [0.1, 0.2, 0.7, 1 / 3, 5.0, 1e-4]])
def test_terms_that_one_document_has_are_gone_without_it(events, weights):
    mails = Texts.of(["all only0", "all only1 only1b only1", "all", "only3", "all all all", None])
    assert_left_out_is_refitted(Text(events), mails, [0, 0, 1, 1, 0, 1], weights)


@pytest.mark.parametrize(
    ("events", "prior"), [("multinomial", None), ("bernoulli", None), *((events, Virtual(2.0)) for events in EVENTS)]
)
def test_without_smoothing_and_with_a_prior_every_row_is_estimated_again(events, prior):
    mails = Texts.of(["a b", "a b a", "a b b", "a a b", "b a", "a b"])
    smoothing = 0.0 if prior is None else 1.0
    assert_left_out_is_refitted(Text(events, prior=prior), mails, [0, 0, 0, 1, 1, 1], smoothing=smoothing)


@each_event
def test_many_rows_are_left_out_in_parts(events, monkeypatch):
    monkeypatch.setattr("deciban.families.text.CELLS", 7)
    rng = np.random.default_rng(0)
    mails = [" ".join(rng.choice(list("abcdefgh"), 4)) for _ in range(40)]
    assert_left_out_is_refitted(Text(events), Texts.of(mails), np.arange(40) % 3)


def test_the_left_out_row_is_taken_from_its_own_class():
    """θ = (k − x + α) / (n − Σx + αV) in the row's class; "rare" is nowhere else, so V is 2."""
    family = Text()
    labels, values = np.array([0, 0, 1], np.int32), Texts.of(["a a b rare", "a a a", "a b"])
    statistic = family.collect(values, labels, None, 2)
    setting = Context((0, 1), ("x",))
    out = np.zeros((3, 2))
    fitted = Fitted(statistic, family.estimate(statistic, setting), setting)
    family.leave_one_out(fitted, LabelledValues(values, labels), out)
    own = Fraction(3 + 1, 3 + 2) ** 2 * Fraction(0 + 1, 3 + 2)
    other = Fraction(1 + 1, 2 + 2) ** 2 * Fraction(1 + 1, 2 + 2)
    np.testing.assert_allclose(np.exp(out[0]), [float(own), float(other)], rtol=1e-14)


def test_every_term_is_recalled_as_a_document():
    family = Text()
    recalled = family.recall(family.collect(Texts.of(MAILS), np.array(LABELS, np.int32), None, 2))
    result = Counter()
    for i, term in enumerate(recalled.values.indices.tolist()):
        result[recalled.labels[i].item(), sorted({"book", "buy", "do", "drugs", "math", "today"})[term]] += (
            recalled.weights[i]
        )
    expected = Counter((label, t) for mail, label in zip(MAILS, LABELS, strict=True) for t in terms_of(mail))
    assert result == expected
    assert Text("bernoulli").recall(family.collect(Texts.of(MAILS), np.array(LABELS, np.int32), None, 2)) is None


# Lines ---------------------------------------------------------------------------------------------------------------


@each_event
@settings(max_examples=15)
@given(more=st.sampled_from([{}, {"hash_bits": 3}, {"words": (1, 2), "max_terms": 4}]), data=st.data())
def test_lines_sum_to_the_log_density(events, more, data):
    family = Text(events, **more)
    learned = data.draw(rows(SUBJECTS[0]))
    asked = data.draw(documents(3, learned.values.shape[1]))
    statistic = family.collect(learned.values, learned.labels, learned.weights, learned.classes)
    params = family.estimate(statistic, context(learned))
    lines = list(family.lines(params, asked, learned.classes))
    total = sum((line.nats for line in lines), np.zeros((3, learned.classes)))
    np.testing.assert_allclose(total, family.log_density(params, asked, learned.classes), rtol=1e-12, atol=1e-12)
    assert len({line.name for line in lines}) == len(lines)
    assert all(line.nats.shape == (3, learned.classes) for line in lines)
    assert all(line.nats[line.times == 0].sum() == 0 for line in lines if line.times is not None)


def nats_of(family, params, documents):
    return {line.name: line.nats for line in family.lines(params, Texts.of(documents), 2)}


def test_lines_know_how_often_a_term_is_there():
    family = Text("bernoulli")
    lines = family.lines(fit(family), Texts.of(["Buy book, buy!", "today"]), 2)
    times = {line.name: None if line.times is None else line.times.tolist() for line in lines}
    assert times == {"book": [1, 0], "buy": [2, 0], "today": [0, 1], "absent words": None}


def test_lines_are_of_terms():
    family = Text("bernoulli")
    params = fit(family)
    lines = nats_of(family, params, ["Buy book today", None])
    assert list(lines) == ["book", "buy", "today", "absent words"]
    phi = np.array([[2, 2, 2, 1, 2, 2], [2, 3, 2, 3, 2, 3]]) / [[4], [5]]  # (documents with it + 1) / (documents + 2)
    np.testing.assert_allclose(lines["absent words"][0], np.log(1 - phi).sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(lines["buy"][0], np.log(phi / (1 - phi))[:, 1], rtol=1e-13)
    assert not any(part[1].any() for part in lines.values())


def test_hashed_terms_are_called_by_their_names():
    family = Text(hash_bits=31, characters=(3, 3))
    params = fit(family)
    names = list(nats_of(family, params, ["Buy a book", None]))
    assert sorted(names) == sorted(["buy", "book", "~ bu", "~buy", "~uy ", "~ bo", "~boo", "~ook", "~ok "])


def test_hashed_terms_of_bytes_that_are_no_text_have_names():
    family = Text(hash_bits=31)
    params = fit(family, ["buy", "book"], [0, 1])
    data = np.frombuffer(b"\xffbuy\xc3 b\x80ook book", np.uint8)
    texts = Texts((data,), np.array([[[0, 0, len(data)]]]))
    assert sorted(line.name for line in family.lines(params, texts, 2)) == ["book", "buy"]


def test_hashed_terms_that_share_a_number_are_one_line():
    family = Text(hash_bits=1)
    params = fit(family, ["a b c d e f g h", "i j k"], [0, 1])
    lines = nats_of(family, params, ["a b c d e f g h i j k"])
    assert len(lines) == 2
    np.testing.assert_allclose(sum(lines.values()), density(family, params, ["a b c d e f g h i j k"]), rtol=1e-13)


# What it says of itself ----------------------------------------------------------------------------------------------


@each_event
def test_the_most_informative_terms_are_described(events):
    family = Text(events)
    (table,) = family.describe(fit(family), Context(("ham", "spam"), ("mail",)))
    assert table.title == "Text mail: 6 terms, the most informative"
    of = {label: [row[1] for row in table.rows if row[0] == label] for label in ("ham", "spam")}
    assert "drugs" in of["spam"]
    assert "math" in of["ham"]
    assert all(row[2] > 0 for row in table.rows)
    for label, term, decibans in table.rows:
        lines = nats_of(family, fit(family), [term])
        odds = lines[term][0, 1] - lines[term][0, 0]
        np.testing.assert_allclose(decibans, (odds if label == "spam" else -odds) * 10 / np.log(10), rtol=1e-12)


@pytest.mark.parametrize(
    ("events", "smoothing"), [("multinomial", 0.0), ("bernoulli", 0.0), *((events, 1.0) for events in EVENTS)]
)
def test_it_describes_itself_whatever_it_has_seen(events, smoothing):
    family = Text(events)
    for mails, labels in (
        (MAILS, LABELS),
        ([""], [0]),
        (["a", "b"], [0, 0]),
        ([None, "a"], [0, 1]),
        (["a", "b"], [0, 1]),
    ):
        params = fit(family, mails, labels, smoothing=smoothing)
        for table in family.describe(params, Context((*range(len(params.log_p)),), ("x",))):
            assert all(len(row) == len(table.header) for row in table.rows)
            assert not any(isinstance(cell, float) and np.isnan(cell) for row in table.rows for cell in row)


def test_parameters_are_counted():
    assert Text().n_parameters(fit(Text())) == 2 * 5
    assert Text("complement").n_parameters(fit(Text("complement"))) == 2 * 5
    assert Text("bernoulli").n_parameters(fit(Text("bernoulli"))) == 2 * 6


@pytest.mark.parametrize(
    ("family", "title"),
    [
        (Text(), "words"),
        (Text(words=None, characters=(3, 3)), "characters"),
        (Text("bernoulli", characters=(3, 3)), "bernoulli words and characters"),
        (Text("complement"), "complement words"),
    ],
    ids=str,
)
def test_titles(family, title):
    assert family.title == title


def test_a_family_is_a_value():
    assert Text(words=[1, 2]) == Text(words=(1, 2))
    assert hash(Text(words=[1, 2])) == hash(Text(words=(1, 2)))
    assert pickle.loads(pickle.dumps(Text("bernoulli", hash_bits=4))) == Text("bernoulli", hash_bits=4)


def test_evidence_that_no_documents_have_is_refused():
    """Of a file: more documents with a term than documents."""
    statistic = Tokens(Terms.of(["a"]), Sum.of([[2.0]]), Sum.of([1.0]))
    with pytest.raises(DecibanError):
        Text("bernoulli").estimate(statistic, Context((0,), ("x",), smoothing=0.5))


REFUSED = {
    "multinomial, bernoulli or complement": [{"events": "poisson"}],
    "words must be from 1 to 32": [{"words": (2, 1)}, {"words": (0, 1)}, {"words": (1, 33)}],
    r"words must be \(least, most\)": [{"words": 2}, {"words": (1, 2, 3)}, {"words": ("a", "b")}],
    "words": [{"words": (1.5, 2)}],
    "characters must be from 1 to 32": [{"characters": (3, 2)}],
    "characters": [{"characters": "35"}],
    "there are no terms": [{"words": None}],
    "max_terms must be a whole number": [{"max_terms": 0}, {"max_terms": 1.5}, {"max_terms": True}],
    "hash_bits must be a whole number": [{"hash_bits": 0}, {"hash_bits": 32}],
}


def test_settings_that_make_no_sense_are_refused():
    for problem, many in REFUSED.items():
        for refused in many:
            with pytest.raises(DecibanError, match=problem):
                Text(**refused)
