"""Score tables: the verdicts of the filter that they come from, and a cache that is never out of date."""

import os
import stat

import numpy as np
import pytest

import deciban as db
from deciban.data.files.mail_message import COLUMNS
from deciban.mail import score_tables
from deciban.mail.filter import Filter
from deciban.mail.score_tables import MAGIC, ScoreTables
from tests.mail.test_filter import CASES, MODELS, mails, table_of

NO_TABLES = {"smoothing 0"}  # infinite evidence


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "deciban"


@pytest.fixture
def path(tmp_path):
    texts, _ = mails(30, ("ham", "spam"))
    path = tmp_path / "m.deciban"
    Filter.new().learn(texts[::2], "ham").learn(texts[1::2], "spam").save(path)
    return path


def kept(path):
    model = Filter.load(path)
    score_tables.keep(path, score_tables.key_of(path), model.tables())
    return model


@pytest.mark.parametrize(("kind", "classes"), CASES)
def test_verdicts_are_those_of_the_filter(kind, classes, tmp_path):
    texts, labels = mails(60, classes)
    path = tmp_path / "m.deciban"
    MODELS[kind]().fit(table_of(texts), np.array(labels, dtype=object)).save(path)
    model = Filter.load(path)
    tables = model.tables()
    assert (tables is None) == (kind in NO_TABLES)
    if tables is None:
        return
    new, _ = mails(20, classes, seed=1)
    nothing = dict.fromkeys(COLUMNS) | {"links": "", "attachments": "", "body": ""}
    new += [nothing, dict.fromkeys(COLUMNS), nothing | {"body": "nobody ever wrote thesewords \ud800"}]
    scorer = ScoreTables(tables, path)
    assert scorer.classes == classes
    for score, verdict in zip(scorer.classify(new), model.classify(new), strict=True):
        assert score.label == verdict.label
        assert score.probability == pytest.approx(verdict.probability, rel=1e-12)
        assert score.decibans == pytest.approx(verdict.decibans, rel=1e-9, abs=1e-9)
    assert scorer.classify([]) == []


def test_models_of_documents_have_no_tables(tmp_path):
    db.NaiveBayes().fit(["free money", "lunch"], ["spam", "ham"]).save(tmp_path / "m.deciban")
    assert Filter.load(tmp_path / "m.deciban").tables() is None
    assert Filter.new().tables() is None


def test_tables_are_kept_for_a_model_as_it_is(path, cache):
    assert score_tables.cached(path) is None
    kept(path)
    (file,) = cache.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    texts, _ = mails(5, ("ham", "spam"), seed=2)
    model = Filter.load(path)
    expected = [(verdict.label, pytest.approx(verdict.probability)) for verdict in model.classify(texts)]
    assert [(score.label, score.probability) for score in score_tables.cached(path).classify(texts)] == expected
    (path.parent / "link").symlink_to(path)
    assert score_tables.cached(path.parent / "link") is not None
    model.learn(texts, "ham").save(path)
    assert score_tables.cached(path) is None
    kept(path)
    assert score_tables.cached(path) is not None
    assert list(cache.iterdir()) == [file]
    model.save(path)  # as it was before
    assert score_tables.cached(path) is None


def test_damage_to_the_cache_is_not_noticed(path, cache):
    kept(path)
    (file,) = cache.iterdir()
    data = file.read_bytes()
    for damaged in (b"", MAGIC, data[:-1], data + b"x", data[:200] + bytes([data[200] ^ 1]) + data[201:]):
        file.write_bytes(damaged)
        assert score_tables.cached(path) is None
    file.unlink()
    file.mkdir()
    assert score_tables.cached(path) is None
    kept(path)
    assert [each.name for each in cache.iterdir()] == [file.name]


def test_without_a_cache_nothing_is_kept(path, cache, monkeypatch):
    for place in ("relative", str(path)):  # the second is a file
        monkeypatch.setenv("XDG_CACHE_HOME", place)
        kept(path)
        assert score_tables.cached(path) is None
    assert not os.path.exists("relative")
    assert not cache.exists()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners")
def test_the_cache_of_another_user_is_not_read(path, monkeypatch):
    kept(path)
    assert score_tables.cached(path) is not None
    monkeypatch.setattr(os, "getuid", lambda: -1)
    assert score_tables.cached(path) is None


def test_a_model_that_is_gone(path):
    kept(path)
    path.unlink()
    assert score_tables.key_of(path) is score_tables.cached(path) is None
