"""Text in models: as scikit-learn counts it, as the lectures do, beside other columns, and line by line."""

import copy
import os
import pickle
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline

import deciban as db
from deciban import _kernels
from deciban.contributions import DECIBANS
from deciban.errors import DecibanError
from deciban.families import Text
from tests.laws import assert_same_bits, flattened

EVENTS = ("multinomial", "bernoulli", "complement")
PEERS = {"multinomial": MultinomialNB, "bernoulli": BernoulliNB, "complement": ComplementNB}
each_event = pytest.mark.parametrize("events", EVENTS)
ODD = {
    "NULs": "\0\0buy\0now\0",
    "emoji": "👍🏽👨‍👩‍👧 🇨🇭 ❤️ buy",
    "right to left": "שלום עולם مرحبا بالعالم \u202ebuy\u202c",
    "combining marks": "e\u0301te\u0301 Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞ buy",
    "lone surrogates": "\ud800buy\udfff",
    "one long word": "x" * 20_000,
    "one long line": "buy now " * 5_000,
    "controls": "".join(map(chr, range(32))) + "\x7f\x85\u2028\ufeff",
    "nothing": "",
}


def made_texts(n, classes=2, seed=0, words=12):
    """Documents of words that some classes like better than others; every fifth has one of its own."""
    rng = np.random.default_rng(seed)
    names = np.array(["buy", "book", "math", "today", "drugs", "don't", "1,000", "été", "you", "a", "of", "free"])
    liked = 1.0 / np.arange(1, len(names) + 1)
    y = np.arange(n) % classes
    rng.shuffle(y)
    texts = []
    for i, c in enumerate(y):
        p = np.roll(liked, 3 * c)
        said = rng.choice(names, rng.integers(1, words), p=p / p.sum()).tolist()
        texts.append(" ".join([*said, *([f"only{i}"] if i % 5 == 0 else [])]))
    return texts, y


@cache
def all_sms():
    folder = os.environ.get("DECIBAN_DATA")
    if folder is None:
        pytest.skip("real messages: set DECIBAN_DATA")
    text = (Path(folder) / "text" / "SMSSpamCollection").read_text(encoding="utf-8")
    pairs = [line.split("\t", 1) for line in text.splitlines() if "\t" in line]
    return [message for _, message in pairs], np.array([label for label, _ in pairs])


def sms():
    texts, labels = all_sms()
    return texts[:600], labels[:600]


def bayes(events="multinomial", smoothing=1.0, class_prior="empirical", **cut):
    return db.NaiveBayes(families=Text(events, **cut), smoothing=smoothing, class_prior=class_prior)


def weighted_evidence(**settings):
    return db.EvidenceClassifier(**({"pairs": 2, "trees": 3} | settings))


# As others count
CUTS = {
    "words": {},
    "two words": {"words": (1, 2)},
    "characters": {"words": None, "characters": (2, 4)},
    "shapes": {"shapes": True},
}


def assert_as_scikit_learn(texts, y, events, alpha, cut, weights=None):
    half = len(texts) // 2
    model = bayes(events, alpha, "uniform" if events == "complement" else "empirical", **cut)
    model.fit(texts[:half], y[:half], weights)
    counts = CountVectorizer(analyzer=Text(**cut).terms)
    peer = PEERS[events](alpha=alpha).fit(counts.fit_transform(texts[:half]), y[:half], weights)
    asked = counts.transform(texts)
    np.testing.assert_allclose(model.predict_proba(texts), peer.predict_proba(asked), rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.predict_log_proba(texts), peer.predict_log_proba(asked), rtol=1e-10, atol=1e-9)
    assert model.predict(texts).tolist() == peer.predict(asked).tolist()


@pytest.mark.parametrize(
    ("events", "cut", "alpha"),
    [
        ("multinomial", "words", 1.0),
        ("bernoulli", "two words", 0.03),
        ("complement", "characters", 1.0),
        ("multinomial", "shapes", 0.03),
    ],
)
def test_real_messages_are_predicted_as_by_scikit_learn(events, cut, alpha):
    assert_as_scikit_learn(*sms(), events, alpha, CUTS[cut])


@each_event
def test_made_texts_are_predicted_as_by_scikit_learn(events):
    for cut, alpha, classes in zip(CUTS.values(), (1e-5, 0.1, 1.0, 20.0), (2, 4, 2, 4), strict=True):
        assert_as_scikit_learn(*made_texts(100, classes), events, alpha, cut)
    weights = np.random.default_rng(1).uniform(0.1, 5.0, 50)
    assert_as_scikit_learn(*made_texts(100, 3), events, 0.5, {}, weights)


# As the lectures do
MAILS = ["Do math today", "Buy", "Buy book", "Today do math drugs", "Buy drugs book today"]
LABELS = [0, 1, 0, 1, 1]
NEW = ["Buy book today"]


FORMS = [list, np.array, pd.Series, lambda x: pa.table({"mail": x})]


@pytest.mark.parametrize(
    ("events", "alpha", "joint", "spam"),
    [
        ("bernoulli", 0, (Fraction(1, 80), Fraction(16, 1215)), Fraction(256, 499)),
        ("bernoulli", 1, None, Fraction(20736, 36361)),
        ("multinomial", 1, None, Fraction(1331, 2331)),
    ],
)
def test_spam_of_the_lectures_from_raw_strings(events, alpha, joint, spam):
    for form in FORMS:
        model = bayes(events, alpha).fit(form(MAILS), LABELS)
        np.testing.assert_allclose(model.predict_proba(form(NEW))[0], [float(1 - spam), float(spam)], rtol=1e-12)
    if joint:
        actual = np.exp(model.predict_joint_log_proba(form(NEW))[0])
        np.testing.assert_allclose(actual, [float(p) for p in joint], rtol=1e-12)
        assert joint[1] / sum(joint) == spam


def test_a_list_of_texts_is_text_by_default():
    by_default, said = db.NaiveBayes().fit(MAILS, LABELS), bayes().fit(MAILS, LABELS)
    np.testing.assert_array_equal(by_default.predict_proba(NEW), said.predict_proba(NEW))


# Evidence that adds up
def evidence_of(model):
    (block,) = model.generative_.blocks
    return {**flattened(block.statistic), "classes": model.class_count_}


SETTINGS = {
    **{events: {"events": events} for events in EVENTS},
    "n-grams": {"words": (1, 2), "characters": (3, 3)},
    "hashed": {"events": "bernoulli", "hash_bits": 4},
    "few": {"max_terms": 5},
}
each_setting = pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)


@pytest.fixture
def threads():
    yield _kernels.set_threads
    _kernels.set_threads(0)


def texts_with_missing(n=60, classes=3):
    texts, y = made_texts(n, classes)
    weights = np.random.default_rng(3).choice([0.1, 1.0, 2.5, 1e-9], n)
    return [None if i % 11 == 4 else text for i, text in enumerate(texts)], y, weights


@pytest.mark.parametrize("setting", [*SETTINGS.values(), {}], ids=[*SETTINGS, "unweighted"])
def test_any_order_batches_and_merges_make_the_same_model(setting):
    texts, y, weights = texts_with_missing()
    w = weights if setting else np.ones(len(y))
    whole = bayes(**setting).fit(texts, y, weights if setting else None)
    order = np.random.default_rng(4).permutation(len(y))
    parts = [order[:7], order[7:8], order[8:40], order[40:]]

    def some(rows):
        return [texts[i] for i in rows], y[rows]

    shuffled = bayes(**setting).fit(*some(order), w[order])
    batches = bayes(**setting)
    for rows in parts:
        batches.partial_fit(*some(rows), classes=[0, 1, 2], sample_weight=w[rows])
    models = [bayes(**setting).fit(*some(rows), w[rows]) for rows in parts]
    merged = models[3] + models[0] + models[2] + models[1]
    rest = bayes(**setting).fit(*some(order[:50]), w[order[:50]])
    forgetful = copy.deepcopy(whole).forget(*some(order[50:]), w[order[50:]])
    for actual in (shuffled, batches, merged):
        assert_same_bits(evidence_of(actual), evidence_of(whole))
        assert actual.predict_proba(texts).tobytes() == whole.predict_proba(texts).tobytes()
    assert_same_bits(evidence_of(forgetful), evidence_of(rest))
    assert forgetful.predict_proba(texts).tobytes() == rest.predict_proba(texts).tobytes()


@each_event
def test_any_number_of_threads_makes_the_same_model(threads, events):
    texts, y = made_texts(1500, 3, words=40)
    actual = []
    for count in (1, 2, 3):
        threads(count)
        model = bayes(events, words=(1, 2)).fit(texts, y)
        actual.append((evidence_of(model), model.predict_proba(texts).tobytes()))
    for evidence, proba in actual[1:]:
        assert_same_bits(evidence, actual[0][0])
        assert proba == actual[0][1]


def test_a_table_in_batches_is_the_same_model(tmp_path):
    texts, y, _ = texts_with_missing()
    table = pa.table({"mail": texts, "spam": y})
    model = db.NaiveBayes(families={"mail": Text()})
    whole = copy.deepcopy(model).fit(table, "spam")
    stream = copy.deepcopy(model).fit(pa.RecordBatchReader.from_batches(table.schema, table.to_batches(7)), "spam")
    assert_same_bits(evidence_of(stream), evidence_of(whole))
    asked = table.drop_columns("spam")
    batches = pa.RecordBatchReader.from_batches(asked.schema, asked.to_batches(7))
    assert stream.predict_proba(batches).tobytes() == whole.predict_proba(asked).tobytes()


# Left out
def test_smoothing_can_be_chosen():
    texts, y = made_texts(120)
    model = db.NaiveBayes(families=Text(), smoothing="auto").fit(texts, y)
    assert model.smoothing_ > 0
    assert "chosen by leave-one-out" in str(model.summary())
    same = bayes(smoothing=model.smoothing_).fit(texts, y)
    assert model.predict_proba(texts).tobytes() == same.predict_proba(texts).tobytes()
    other = db.NaiveBayes(families=Text("bernoulli"), smoothing="auto").fit(texts, y)
    assert np.isfinite(other.predict_log_proba(texts)).all()


# Line by line
def assert_lines_are_the_log_odds(model, x, atol=1e-8):
    explanation = model.explain(x)
    logs = model.predict_log_proba(x)
    classes = model.classes_.tolist()
    assert len(set(explanation.names)) == len(explanation.names)
    for a, b in ((0, 1), (1, 0), (len(classes) - 1, 0)):
        odds = (logs[:, a] - logs[:, b]) * DECIBANS
        np.testing.assert_allclose(explanation.decibans(classes[a], classes[b]).sum(axis=1), odds, rtol=1e-8, atol=atol)
    return explanation


@each_setting
def test_every_term_is_a_line(setting):
    texts, y, _ = texts_with_missing()
    model = bayes(**setting).fit(texts, y)
    explanation = assert_lines_are_the_log_odds(model, [*texts, "never heard words", ""])
    known = {term for text in texts if text for term in Text(**setting).terms(text)}
    names = set(explanation.names) - {"prior", "absent words"}
    assert names <= known | {"never", "heard", "words"}
    if not {"max_terms", "hash_bits"} & setting.keys():
        assert names == known
    assert ("absent words" in explanation.names) == (setting.get("events") == "bernoulli")


def test_lines_by_example():
    explanation = bayes().fit(MAILS, LABELS).explain(["Buy book today, buy!", "math"])
    assert explanation.names == ("prior", "book", "buy", "math", "today")
    actual = explanation.decibans(1, 0)
    expected = [Fraction(3, 2), Fraction(11, 15), Fraction(33, 30) ** 2, 1, Fraction(33, 30)]
    np.testing.assert_allclose(actual[0], 10 * np.log10([float(p) for p in expected]), atol=1e-12)
    np.testing.assert_allclose(actual[1], 10 * np.log10([1.5, 1, 1, 11 / 15, 1]), atol=1e-12)
    assert "buy" in explanation.text(0)


def test_lines_of_a_table_carry_the_name_of_their_column():
    table = pa.table({"subject": MAILS, "body": MAILS[::-1], "size": [1.0, 2.0, 4.0, 3.0, 5.0]})
    model = db.NaiveBayes(families={"subject": Text(), "body": Text("bernoulli")}).fit(table, LABELS)
    names = assert_lines_are_the_log_odds(model, table).names
    assert {"prior", "size", "subject: buy", "body: buy", "body: absent words"} <= set(names)
    assert "subject: absent words" not in names
    both = db.NaiveBayes(families={("subject", "body"): Text()}).fit(table, LABELS)
    assert "subject + body: buy" in assert_lines_are_the_log_odds(both, table).names


def test_lines_of_weighted_evidence():
    texts, y = made_texts(100, 3)
    model = weighted_evidence().fit(texts, y)
    explanation = assert_lines_are_the_log_odds(model, [*texts[:40], "never heard", ""])
    assert {"prior", "absent words", "buy", "book"} <= set(explanation.names)
    table = pa.table({"mail": texts, "size": np.random.default_rng(0).normal(y), "kind": [f"k{c % 2}" for c in y]})
    model = weighted_evidence().fit(table, y)
    explanation = assert_lines_are_the_log_odds(model, table.slice(0, 40))
    assert {"prior", "size", "kind", "mail: buy", "mail: absent words"} <= set(explanation.names)


def test_without_smoothing_lines_can_be_certain():
    model = bayes(smoothing=0).fit(["a b", "b c"], ["x", "y"])
    explanation = model.explain(["a", "b", "c"])
    assert explanation.decibans("x", "y")[:, 1:].tolist() == [[np.inf, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, -np.inf]]
    assert model.predict_proba(["a", "b", "c", ""]).tolist() == [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.5, 0.5]]


def test_lines_of_a_document_that_lacks_what_all_have():
    """Without smoothing: every mail of x has a, so that one without it cannot be of x."""
    model = bayes("bernoulli", smoothing=0).fit(["a b", "a", "c", ""], ["x", "x", "y", "y"])
    assert model.predict_proba(["", "c", "a"]).tolist() == [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    explanation = model.explain(["", "c", "a"])
    assert explanation.log_odds("x", "y").tolist() == [-np.inf, -np.inf, np.inf]


# A twin, a summary
@each_event
def test_the_linear_twin_predicts_the_same(events):
    two, of_two = made_texts(60, 2)
    three, of_three, _ = texts_with_missing()
    table = pa.table({"mail": two, "size": np.random.default_rng(0).normal(of_two)})
    for model, rows in (
        (bayes(events).fit(two, of_two), [*two, "never heard", ""]),
        (bayes(events).fit(three, of_three), three),
        (db.NaiveBayes(families={"mail": Text(events)}).fit(table, of_two), table),
    ):
        proba = model.to_linear().predict_proba(rows)
        np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=1e-9, atol=1e-10)


def test_an_impossible_term_has_no_twin():
    with pytest.raises(DecibanError, match="smoothing above 0"):
        bayes(smoothing=0).fit(MAILS, LABELS).to_linear()


@pytest.mark.parametrize(
    ("events", "smoothing"), [("multinomial", 0.0), ("bernoulli", 0.0), *((events, 1.0) for events in EVENTS)]
)
def test_summaries_print(events, smoothing):
    for mails, labels in ((MAILS, LABELS), (["a", None], [0, 1]), (["a", "b"], [0, 0])):
        text = str(bayes(events, smoothing).fit(mails, labels).summary())
        assert "Text 0" in text
        assert "nan" not in text
    assert "drugs" in str(bayes(events, smoothing).fit(MAILS, LABELS).summary())
    assert "no evidence from 0" in str(bayes(events, smoothing).fit(["", ""], [0, 1]).summary())


def test_summaries_of_weighted_evidence_print():
    texts, y = made_texts(80)
    summary = str(weighted_evidence().fit(texts, y).summary())
    assert "words" in summary
    assert "bernoulli words" in summary


# Beside other columns
def mixed_rows(n=160, classes=2, seed=0):
    texts, y = made_texts(n, classes, seed)
    rng = np.random.default_rng(seed + 1)
    missing = rng.random((3, n)) < 0.1
    kinds = [f"k{k % 3}" for k in y + rng.integers(0, 2, n)]
    table = pd.DataFrame(
        {
            "size": np.where(missing[0], np.nan, rng.normal(y)),
            "mail": pd.Series([None if h else t for h, t in zip(missing[1], texts, strict=True)], dtype="str"),
            "kind": pd.Series([None if h else k for h, k in zip(missing[2], kinds, strict=True)], dtype="str"),
            "flag": rng.random(n) < 0.3 + 0.4 * (y > 0),
        }
    )
    return table, y


@each_event
def test_evidence_of_text_is_added_to_that_of_others(events):
    """log p(c|x) = log p(c) + text + the other columns, up to a constant of the row."""
    table, y = mixed_rows(classes=3)
    model = db.NaiveBayes(families={"mail": Text(events)}).fit(table, y)
    prior = np.log(np.bincount(y) / len(y))
    texts = bayes(events).fit(table[["mail"]], y).predict_joint_log_proba(table[["mail"]]) - prior
    others = table.drop(columns="mail")
    rest = db.NaiveBayes().fit(others, y).predict_joint_log_proba(others)
    joint = texts + rest
    np.testing.assert_allclose(
        model.predict_log_proba(table), joint - logsumexp(joint, axis=1, keepdims=True), rtol=1e-9, atol=1e-9
    )
    assert_lines_are_the_log_odds(model, table)


def test_a_missing_document_adds_nothing():
    table, y = mixed_rows()
    model = db.NaiveBayes(families={"mail": Text("bernoulli")}, missing="category").fit(table, y)
    explanation = model.explain(table)
    row = int(np.flatnonzero(table["mail"].isna())[0])
    of_text = [i for i, name in enumerate(explanation.names) if name.startswith("mail: ")]
    assert len(of_text) > 10
    assert not explanation.nats[row, of_text].any()
    explanation = bayes().fit(MAILS, LABELS).predict_proba(["", "never"])
    np.testing.assert_allclose(explanation, [[0.4, 0.6]] * 2, rtol=1e-15)


def test_weighted_evidence_of_text_beside_other_columns():
    table, y = mixed_rows(160, 3)
    model = weighted_evidence().fit(table, y)
    assert text_columns(model) == {"mail"}
    assert {"words", "bernoulli words"} & set(model.weights_.kinds)
    assert model.score(table, y) > db.NaiveBayes().fit(table.drop(columns="mail"), y).score(
        table.drop(columns="mail"), y
    )
    assert_lines_are_the_log_odds(model, table)
    evaluation = model.leave_one_out(table, y)
    assert 0 < evaluation.log_loss < np.log(3)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_proba(table).tobytes() == model.predict_proba(table).tobytes()


def test_rows_learned_elsewhere_add_to_weighted_text():
    table, y = mixed_rows(100)
    more, z = mixed_rows(40, seed=5)
    model = weighted_evidence().fit(table, y)
    elsewhere = model.merge(model.empty_copy().partial_fit(more, z))
    here = copy.deepcopy(model).partial_fit(more, z)
    assert text_columns(elsewhere) == {"mail"}
    assert elsewhere.predict_proba(table).tobytes() == here.predict_proba(table).tobytes()


def test_models_that_cut_text_in_other_ways_do_not_merge():
    table, y = mixed_rows(40)
    models = [db.NaiveBayes(families={"mail": family}).fit(table, y) for family in (Text(), Text(words=(1, 2)))]
    with pytest.raises(DecibanError, match="different families"):
        models[0] + models[1]


def test_documents_can_be_cross_validated():
    texts, y = made_texts(60)
    expected = cross_val_score(bayes(), pa.table({"mail": texts}).to_pandas(), y, cv=3)
    for asked in (texts, np.array(texts), pd.Series(texts)):
        np.testing.assert_array_equal(cross_val_score(bayes(), asked, y, cv=3), expected)


# Which columns are text
def text_columns(model):
    """The names of the columns that a model reads as documents."""
    names = model.generative_.schema.names
    blocks = model.generative_.blocks
    return {names[j] for block in blocks if isinstance(block.plan.family, Text) for j in block.plan.columns}


def columns_of_all_kinds(n=120):
    rng = np.random.default_rng(0)
    texts, y = made_texts(n)
    first, last = ["Ann", "Bob", "Cy", "Di", "Ed"], ["Ash", "Birch", "Cole", "Dale", "East", "Fox"]
    return {
        "body": [f"{text} number {i}" for i, text in enumerate(texts)],
        "sometimes": [f"{text} number {i}" if i % 3 else None for i, text in enumerate(texts)],
        "name": [f"{first[i % 5]} {last[i % 6]}{i}" for i in range(n)],
        "id": [f"id-{i:05d}" for i in range(n)],
        "city": rng.choice(["New York City NY", "Los Angeles in California", "Rome"], n).tolist(),
        "answer": rng.choice(["I do not agree at all", "I agree a bit", "I fully agree with it"], n).tolist(),
        "number": rng.normal(size=n).tolist(),
        "empty": [None] * n,
        "blank": [""] * n,
    }, y


def test_free_text_is_found_and_nothing_else():
    columns, y = columns_of_all_kinds()
    expected = {"body", "sometimes"}
    for order in (np.arange(len(y)), np.argsort(y, kind="stable"), np.random.default_rng(1).permutation(len(y))):
        table = pa.table(columns | {"empty": pa.nulls(len(y), pa.string())}).take(order)
        assert text_columns(weighted_evidence(pairs=0).fit(table, y[order])) == expected
    assert text_columns(weighted_evidence(pairs=0).fit(pd.DataFrame(columns), y)) == expected


def test_free_text_is_detected_in_every_type_of_arrow():
    columns, y = columns_of_all_kinds()
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        table = pa.table({"body": pa.array(columns["body"]).cast(kind), "id": columns["id"], "y": y})
        rows = table.to_reader(max_chunksize=50) if kind == pa.string() else table
        assert text_columns(weighted_evidence(pairs=0).fit(rows, "y")) == {"body"}, kind


def test_the_order_of_rows_does_not_matter_to_weighted_text():
    table, y = mixed_rows(80)
    order = np.random.default_rng(5).permutation(len(y))
    a, b = weighted_evidence().fit(table, y), weighted_evidence().fit(table.iloc[order], y[order])
    np.testing.assert_allclose(a.predict_proba(table), b.predict_proba(table), rtol=1e-6, atol=1e-9)


def test_columns_that_are_said_to_be_text():
    columns, y = columns_of_all_kinds()
    table = pa.table({name: columns[name] for name in ("body", "answer", "number")})
    assert text_columns(weighted_evidence(pairs=0, text=["answer"]).fit(table, y)) == {"answer"}
    assert text_columns(weighted_evidence(pairs=0, text=["answer", "body"]).fit(table, y)) == {"answer", "body"}
    assert text_columns(weighted_evidence(pairs=0, text=[]).fit(table, y)) == set()
    assert text_columns(weighted_evidence(pairs=0, text=[]).fit(columns["answer"], y)) == {0}


def test_text_that_is_not_there_is_refused():
    table = pa.table({"body": ["a b c", "d e f"] * 4, "number": [1.0, 2.0] * 4})
    for text, problem in [
        ("body", "text must be 'auto' or a list of columns.* 'body'"),
        (["nobody"], "text names an unknown column 'nobody'"),
        (["number"], "column 'number' holds numbers, but its family, Text, needs text"),
        (5, "text must be 'auto' or a list of columns"),
        (None, "text must be 'auto' or a list of columns"),
    ]:
        with pytest.raises(ValueError, match=problem):
            weighted_evidence(text=text).fit(table, [0, 1] * 4)
    with pytest.raises(DecibanError, match="names columns of documents, but these rows are sparse counts"):
        weighted_evidence(text=[0]).fit(sp.csr_array(np.eye(8)), [0, 1] * 4)


# Little, and odd
MODELS = {"NaiveBayes": db.NaiveBayes, "EvidenceClassifier": weighted_evidence}
each_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@each_model
def test_few_documents_or_words_or_classes(make):
    without_words = make().fit(["", " ", "--", ""], ["a", "a", "a", "b"])
    np.testing.assert_allclose(without_words.predict_proba(["buy", ""]), [[0.75, 0.25]] * 2, atol=1e-6)
    one_class = make().fit(["a b c", "d"], ["only", "only"])
    assert one_class.predict_proba(["a", "z"]).tolist() == [[1.0], [1.0]]
    assert one_class.predict(["a"]).tolist() == ["only"]
    two_rows = make().fit(["buy a book", "do the math"], ["spam", "ham"])
    np.testing.assert_allclose(two_rows.predict_proba(["buy", "math", "zebra"]).sum(axis=1), 1.0)
    for fitted in (without_words, one_class, two_rows):
        assert "log-odds" in str(fitted.explain(["buy"])) or fitted is one_class
        assert str(fitted.summary())


@each_model
def test_missing_documents_have_the_prior(make):
    fitted = make().fit(["buy a book", "do the math", "do it now"] * 4, ["spam", "ham", "ham"] * 4)
    alone = fitted.predict_proba([None])
    assert alone.tobytes() == fitted.predict_proba([None, "buy"])[:1].tobytes()
    if make is db.NaiveBayes:
        np.testing.assert_allclose(alone, [[2 / 3, 1 / 3]])


@each_model
def test_no_documents_at_all_are_refused(make):
    with pytest.raises(ValueError):
        make().fit([], [])


@each_model
def test_odd_texts_are_fitted_and_predicted(make):
    for name, text in ODD.items():
        texts = [text, "do the math", f"{text} now", "math today"] * 3
        model = make().fit(texts, [1, 0, 1, 0] * 3)
        proba = model.predict_proba([*texts, "buy", None])
        assert np.isfinite(proba).all(), name
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        if Text().terms(text):
            assert model.predict(texts).tolist() == [1, 0, 1, 0] * 3, name
        assert str(model.explain([text]))
        assert str(model.summary())


# How good it is
def test_spam_is_ranked_as_well_as_by_peers_and_better_calibrated():
    """Two folds of SMS texts: AUC not below naive Bayes and logistic regression, loss and ECE below."""
    texts, labels = all_sms()
    texts, y = texts[:2500], (labels[:2500] == "spam").astype(int)
    makes = {
        "ours": weighted_evidence,
        "multinomial": lambda: make_pipeline(CountVectorizer(), MultinomialNB()),
        "bernoulli": lambda: make_pipeline(CountVectorizer(), BernoulliNB()),
        "logistic": lambda: make_pipeline(TfidfVectorizer(), LogisticRegression()),
    }
    p = {name: np.zeros((len(y), 2)) for name in makes}
    for learn, ask in StratifiedKFold(2, shuffle=True, random_state=0).split(y, y):
        for name, make in makes.items():
            p[name][ask] = make().fit([texts[i] for i in learn], y[learn]).predict_proba([texts[i] for i in ask])
    evaluation = {name: db.Evaluation.scored((0, 1), y.astype(np.int32), actual, None) for name, actual in p.items()}
    for name in ("multinomial", "bernoulli", "logistic"):
        assert evaluation["ours"].auc() >= evaluation[name].auc(), name
        assert evaluation["ours"].log_loss < evaluation[name].log_loss, name
        assert evaluation["ours"].ece() < evaluation[name].ece(), name
