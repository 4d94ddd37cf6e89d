"""Filter: verdicts as the estimator gives them, and learning in any order."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deciban as db
from deciban.data.files.mail_message import COLUMNS, parse
from deciban.errors import DecibanError, NegativeEvidence
from deciban.families import Text
from deciban.mail.filter import MOST_TERMS, SMOOTHING, Filter

WORDS = {
    "spam": ["free", "win", "claim", "prize", "pills", "cheap", "money", "click", "£1,000"],
    "ham": ["lunch", "meeting", "report", "noon", "tomorrow", "project", "thanks", "été"],
    "news": ["election", "weather", "sport", "press", "today", "minister", "lunch", "money"],
}


def mail_of(label, rng):
    """A mail that mostly has the words of its class; some have HTML, links and other headers."""
    others = [word for words in WORDS.values() for word in words]
    said = [str(rng.choice(WORDS[label] if rng.random() < 0.6 else others)) for _ in range(int(rng.integers(1, 25)))]
    lines = [f"From: {rng.choice(['ann', 'bob'])}@{label}.example.org", f"Subject: {' '.join(said[:3])}"]
    if rng.random() < 0.3:
        lines += ["X-Mailer: The Bat!", "Reply-To: other@example.com", "Content-Type: text/html; charset=utf-8"]
        said = [f'<a href="http://{label}.example.net/">{word}</a>' for word in said]
    return "\n".join([*lines, "", " ".join(said)]).encode()


def mails(n, classes, seed=0):
    rng = np.random.default_rng(seed)
    labels = [classes[i % len(classes)] for i in range(n)]
    return [parse(mail_of(label, rng)).texts for label in labels], labels


def table_of(texts):
    return pa.table({name: pa.array([each[name] for each in texts], pa.string()) for name in COLUMNS})


def naive_bayes(**settings):
    family = settings.pop("family", Text())
    return db.NaiveBayes(families=dict.fromkeys(COLUMNS, family), **settings)


MODELS = {
    "naive-bayes": naive_bayes,
    "evidence": lambda: db.EvidenceClassifier(text=list(COLUMNS)),
    "evidence, uniform": lambda: db.EvidenceClassifier(text=list(COLUMNS), class_prior="uniform"),
    "smoothing auto": lambda: naive_bayes(smoothing="auto"),
    "smoothing 0": lambda: naive_bayes(smoothing=0.0),
    "uniform": lambda: naive_bayes(class_prior="uniform"),
    "bernoulli": lambda: naive_bayes(family=Text(events="bernoulli")),
    "complement, pairs of words": lambda: naive_bayes(family=Text(events="complement", words=(1, 2))),
    "characters": lambda: naive_bayes(family=Text(words=None, characters=(2, 3))),
    "hashed": lambda: naive_bayes(family=Text(hash_bits=8)),
    "all as one bag": lambda: db.NaiveBayes(families={COLUMNS: Text(shapes=True)}),
}


TWO, THREE = ("ham", "spam"), ("ham", "news", "spam")
CASES = [(kind, THREE if i % 2 else TWO) for i, kind in enumerate(MODELS)]


@pytest.mark.parametrize(("kind", "classes"), [*CASES, ("naive-bayes", THREE), ("evidence", TWO)])
def test_a_verdict_is_what_the_estimator_says(kind, classes, tmp_path):
    texts, labels = mails(60, classes)
    MODELS[kind]().fit(table_of(texts), np.array(labels, dtype=object)).save(tmp_path / "m.deciban")
    new, _ = mails(20, classes, seed=1)
    nothing = dict.fromkeys(COLUMNS) | {"links": "", "attachments": "", "body": ""}
    new += [nothing, nothing | {"body": "nobody ever wrote thesewords"}]
    model, result = db.load(tmp_path / "m.deciban"), Filter.load(tmp_path / "m.deciban").explain(new)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*impossible under every class")  # without smoothing
        p, explained = model.predict_proba(table_of(new)), model.explain(table_of(new))
        assert [verdict.label for verdict in result] == model.predict(table_of(new)).tolist()
    np.testing.assert_array_equal([verdict.probability for verdict in result], p.max(axis=1))
    np.testing.assert_allclose([verdict.decibans for verdict in result], explained.log_odds(), rtol=1e-9, atol=1e-9)
    for verdict, lines, row in zip(result, explained.decibans(), explained.joint, strict=True):
        decibans = dict(verdict.terms)
        best = np.sort(row)[::-1]
        if len(best) > 2 and np.isfinite(best[2]) and best[1] - best[2] < 1e-9:
            continue  # two classes are equally unlikely: either may be the runner-up
        assert len(decibans) == len(verdict.terms) <= MOST_TERMS
        assert not any(math.isnan(value) for value in decibans.values())
        expected = {}
        for line, value in zip(explained.parts, lines.tolist(), strict=True):
            if line.times is not None:  # of a term
                expected[line.name] = expected.get(line.name, 0.0) + value
        sizes = sorted((abs(value) for value in expected.values() if value), reverse=True)
        sizes += [0.0] * (len(decibans) - len(sizes))
        assert [abs(value) for value in decibans.values()] == pytest.approx(sizes[: len(decibans)], rel=1e-9, abs=1e-9)
        assert {name: expected.get(name, 0.0) for name in decibans} == pytest.approx(decibans, rel=1e-9, abs=1e-9)
        assert len(decibans) == MOST_TERMS or sum(sizes) == pytest.approx(sum(sizes[: len(decibans)]))


@pytest.mark.parametrize("estimator", [db.NaiveBayes(families=Text()), db.EvidenceClassifier()], ids=repr)
def test_a_model_of_documents_reads_subject_and_body(estimator, tmp_path):
    estimator.fit(["free money", "lunch at noon", "claim free pills", "the report"], [1, 0, 1, 0])
    estimator.save(tmp_path / "m.deciban")
    mail = parse(b"From: lunch@noon.example\nSubject: free report\n\nclaim money\n").texts
    verdict = Filter.load(tmp_path / "m.deciban").classify([mail])[0]
    expected = estimator.predict_proba(["free report claim money"])[0]
    assert verdict.label == int(expected.argmax())
    assert verdict.probability == expected.max()


@pytest.mark.parametrize("kind", ["naive-bayes", "evidence"])
def test_a_mail_without_what_all_others_have(kind, tmp_path):
    """As one that is sent to another address."""
    texts, labels = mails(60, ("ham", "spam"))
    texts = [each | {"to": "me@example.org"} for each in texts]
    MODELS[kind]().fit(table_of(texts), np.array(labels, dtype=object)).save(tmp_path / "m.deciban")
    result = Filter.load(tmp_path / "m.deciban")
    for each, other in zip(
        result.classify(texts), result.classify([each | {"to": "you@other.example"} for each in texts]), strict=True
    ):
        assert other.probability == pytest.approx(each.probability, rel=1e-6)
    strange = dict.fromkeys(COLUMNS, "strange")
    assert 0.5 <= result.classify([strange])[0].probability <= 1.0


def test_classify_leaves_out_terms():
    texts, labels = mails(10, ("ham", "spam"))
    result = Filter.new().learn(texts[::2], "ham").learn(texts[1::2], "spam")
    explained, classified = result.explain(texts), result.classify(texts)
    assert all(verdict.terms for verdict in explained)
    assert classified == [replace(verdict, terms=()) for verdict in explained]
    assert [verdict.label for verdict in explained] == labels
    assert result.classify([]) == result.explain([]) == []


# Learning ------------------------------------------------------------------------------------------------------------


@given(st.permutations(range(12)), st.lists(st.integers(1, 11), max_size=4))
def test_any_order_and_any_batches_are_one_fit(tmp_path_factory, order, cuts):
    folder = tmp_path_factory.mktemp("orders")
    texts, labels = mails(12, ("ham", "spam", "news"))
    result = Filter.new()
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 12], strict=True):
        some = order[start:stop]
        for label in WORDS:
            result = result.learn([texts[i] for i in some if labels[i] == label], label)
    result.save(folder / "found.deciban")
    expected = naive_bayes(smoothing=SMOOTHING).fit(table_of(texts).append_column("folder", [labels]), "folder")
    expected._keep_rows(None)  # a filter keeps no rows to rank columns by
    expected.save(folder / "expected.deciban")
    assert (folder / "found.deciban").read_bytes() == (folder / "expected.deciban").read_bytes()


def test_what_is_learned_can_be_forgotten_and_nothing_else(tmp_path):
    texts, _ = mails(8, ("ham", "spam"))
    some = Filter.new().learn(texts[:3], "ham").learn(texts[3:6], "spam")

    def saved(result):
        result.save(tmp_path / "m.deciban")
        return (tmp_path / "m.deciban").read_bytes()

    for label in ("news", "ham"):
        assert saved(some.learn(texts[6:], label).forget(texts[6:], label)) == saved(some)
    assert saved(Filter.new().learn(texts, "ham").forget(texts, "ham")) == saved(Filter.new())
    for label in ("ham", "nobody"):
        with pytest.raises(NegativeEvidence):
            some.forget(texts[6:], label)


def test_classes_that_are_numbers_are_meant_by_their_names(tmp_path):
    texts, _ = mails(6, ("ham", "spam"))
    model = naive_bayes().fit(table_of(texts[:4]), np.array([0, 1, 0, 1]))
    model.save(tmp_path / "m.deciban")
    result = Filter.load(tmp_path / "m.deciban").learn(texts[4:], "1")
    assert result.classes == (0, 1)
    result.save(tmp_path / "m.deciban")
    model.partial_fit(table_of(texts[4:]), np.array([1, 1]))
    assert db.load(tmp_path / "m.deciban").class_count_.tolist() == model.class_count_.tolist() == [2, 4]


@pytest.mark.parametrize("taught", [[], ["spam"]], ids=len)
def test_a_model_that_knows_too_little_says_so(taught):
    texts, _ = mails(2, ("ham", "spam"))
    result = Filter.new()
    for label in taught:
        result = result.learn(texts, label)
    with pytest.raises(DecibanError, match="only 'spam' so far" if taught else "no mail so far"):
        result.classify(texts)


def test_models_that_read_no_mail(tmp_path):
    numbers = pa.table({"x": [1.0, 2.0, 3.0, 5.0], "y": [3.0, 1.0, 2.0, 2.0]})
    words = pa.table({"c": ["u", "v", "u", "w"]})
    labels = np.array(["a", "b", "a", "b"], dtype=object)
    texts, of = mails(20, ("ham", "spam"))
    calibrated = db.CalibratedClassifier(naive_bayes()).fit(table_of(texts), np.array(of, dtype=object))
    for model, match in (
        (db.GaussianDiscriminant().fit(numbers, labels), "^a GaussianDiscriminant reads no mail"),
        (db.LogisticRegression(l2=1.0).fit(numbers, labels), "^a LogisticRegression reads no mail"),
        (calibrated, "^a calibrated model reads no mail"),
        (db.NaiveBayes().fit(numbers, labels), "reads a column 'x', which mails do not have"),
        (db.EvidenceClassifier().fit(numbers, labels), "reads a column 'x', which mails do not have"),
        (db.NaiveBayes().fit(words, labels), "reads the column 'c' as Categorical: fit it on --text"),
        (db.NaiveBayes().fit(numbers.select(["x"]), labels), "reads the column 'x' as Gaussian: fit it on --text"),
        (db.NaiveBayes().fit(np.arange(8.0).reshape(4, 2), labels), "reads a column 0"),
    ):
        model.save(tmp_path / "m.deciban")
        with pytest.raises(DecibanError, match=match):
            Filter.load(tmp_path / "m.deciban")
    (tmp_path / "m.deciban").write_bytes(b"damaged")
    with pytest.raises(DecibanError, match="is no model of deciban"):
        Filter.load(tmp_path / "m.deciban")
