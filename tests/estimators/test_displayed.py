"""What a notebook shows of a model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

import deciban as db

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 2))
Y = np.where(X[:, 0] + RNG.normal(size=60) > 0, "up", "down")
MODELS = [
    db.NaiveBayes(),
    db.GaussianDiscriminant(),
    db.EvidenceClassifier(),
    db.LogisticRegression(),
    db.SoftmaxRegression(),
    db.GeneralizedLinearModel("bernoulli"),
    db.CalibratedClassifier(db.NaiveBayes()),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_fitted_model_shows_its_summary(model):
    before = model._repr_html_()
    assert "sk-container" in before
    assert "<caption" not in before
    fitted = model.fit(X, Y)
    page = fitted._repr_html_()
    assert page.startswith(f"<p><code>{type(model).__name__}(")
    for table in fitted.summary().tables:
        assert table._repr_html_() in page
    assert fitted._repr_mimebundle_()["text/html"].count("<table>") >= len(fitted.summary().tables)


def test_a_model_without_a_summary_shows_its_settings():
    for model in (db.Halfspace(), db.CalibratedClassifier(GaussianNB())):
        page = model.fit(X, Y)._repr_html_()
        assert "sk-container" in page
        assert "<caption" not in page


def test_a_model_that_forgot_all_rows_says_so():
    model = db.NaiveBayes().fit(X, Y).forget(X, Y)
    assert "every row was forgotten" in model._repr_html_()


def test_hostile_names_are_text():
    attack = "</script><img src=x onerror=alert(1)>"
    table = {attack: [attack, "u", attack, "u"], "y": ["a", attack, "a", attack]}
    page = db.NaiveBayes().fit(pd.DataFrame(table), "y")._repr_html_()
    assert "<img" not in page
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in page
