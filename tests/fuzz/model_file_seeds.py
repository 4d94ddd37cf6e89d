"""Small models of every kind, and rows for them: where the fuzzing of model files starts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import deciban as db
from deciban import families as f
from deciban import priors
from deciban.data.files.mail_message import parse
from deciban.mail.filter import Filter
from tests.references.models_0_1 import labels, models, table

N = 40
RNG = np.random.default_rng(5)
CLASSES = RNG.integers(0, 3, N)
LABELS = np.array(["ham", "spam", "egg"])[CLASSES]
NUMBERS = RNG.normal(CLASSES[:, np.newaxis], 1.0, (N, 3))
COUNTS = RNG.poisson(1.0 + CLASSES[:, np.newaxis], (N, 3)).astype(float)
DOCUMENTS = [" ".join(RNG.choice(["buy", "a", "book", "don't", f"only{i % 9}", "été"], 4)) for i in range(N)]
MAILS = [
    b"From: a@example.org\nSubject: cheap pills\n\nBuy now, buy cheap",
    b"From: b@example.org\nSubject: lunch\n\nAt noon?",
    b"Subject: pills for lunch\n\nBuy a book",
]


def rows_for(model: Any) -> Any:
    """A few rows with the features of a model: some usual, some missing, never seen, or very large."""
    names = model.schema_.names if hasattr(model, "schema_") else getattr(model, "feature_names_in_", ())
    if not isinstance(names, range) and any(isinstance(name, str) for name in names):
        rows = table().iloc[:6].assign(mail=DOCUMENTS[:6])
        rows.loc[3, ["size", "weight"]] = [1e6, np.nan]
        rows.loc[4, "colour"] = "never seen"
        return rows
    if model.n_features_in_ == 1:
        return [*DOCUMENTS[:4], "never seen", ""]
    rows = np.abs(np.resize(NUMBERS, (6, min(64, model.n_features_in_))))
    return np.vstack([rows, np.rint(rows), 1e6 * rows, np.where(rows > 1.0, np.nan, rows), rows > 1.0])


def seed_models() -> Iterator[Any]:
    """Every estimator, family and kind of evidence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from models().values()
        yield from (model.fit(X, LABELS) for model, X in generative())
        yield from linear()
        yield mail_filter()


def generative() -> Iterator[tuple[Any, Any]]:
    for family in (f.Poisson(), f.Categorical(), f.Multinomial(), f.Binned(count=3), f.Uniform()):
        yield db.NaiveBayes(family), COUNTS
    yield db.NaiveBayes(f.Gaussian(1, priors.Normal(0.0, 2.0), priors.InverseGamma(2.0, 1.0))), NUMBERS
    yield db.NaiveBayes(f.Poisson(priors.Virtual(2.0)), class_prior=[0.2, 0.3, 0.5]), COUNTS
    yield db.NaiveBayes(f.Bernoulli(priors.Beta(2, 3), threshold=1.5), smoothing="auto"), COUNTS
    yield db.NaiveBayes(f.Exponential()), COUNTS + 0.5
    yield db.NaiveBayes({0: f.Binned("equal-width", count=4), 1: f.Binned("equal-frequency", count=4)}), NUMBERS
    yield db.NaiveBayes({(0, 2): f.MultivariateGaussian("per-class", 0.1)}), NUMBERS
    yield db.NaiveBayes(), DOCUMENTS
    yield db.NaiveBayes(f.Text("complement", words=(1, 2), hash_bits=9)), DOCUMENTS
    yield db.NaiveBayes(f.Text("bernoulli", characters=(3, 3), max_terms=20, prior=priors.Laplace(0.5))), DOCUMENTS
    mixed = table().iloc[:N].assign(mail=DOCUMENTS)
    yield db.NaiveBayes("auto", missing="category", class_prior={"ham": 0.5, "spam": 0.25, "egg": 0.25}), mixed
    yield db.NaiveBayes({"mail": f.Text()}, unseen="reserve", class_prior="laplace"), mixed
    yield db.NaiveBayes(f.Categorical(priors.Dirichlet({"red": 2.0, "blue": 1.5, "green": 3}))), mixed[["colour"]]
    yield db.GaussianDiscriminant(shrinkage="auto", prior=priors.InverseWishart(5.0, np.eye(3))), NUMBERS
    yield db.GaussianDiscriminant("diagonal", ddof="unbiased", class_prior="uniform"), NUMBERS
    yield db.EvidenceClassifier(pairs=2, trees=2), mixed
    yield db.EvidenceClassifier(trees=0, class_prior="uniform"), NUMBERS
    yield db.CalibratedClassifier(db.NaiveBayes(), "isotonic", cv=3), NUMBERS
    yield db.CalibratedClassifier(db.LogisticRegression(l2=1.0), "temperature", cv=3), NUMBERS


def linear() -> Iterator[Any]:
    mixed, two = table(), labels()
    yield db.NaiveBayes(f.Bernoulli(threshold=1.5)).fit(COUNTS, LABELS).to_linear()
    yield db.NaiveBayes(f.Binned(count=3)).fit(COUNTS, LABELS).to_linear()
    yield db.NaiveBayes().fit(mixed, two).to_linear()
    yield db.NaiveBayes().fit(DOCUMENTS, LABELS).to_linear()
    yield db.GaussianDiscriminant().fit(NUMBERS, LABELS).to_linear()
    yield db.LogisticRegression(l2=0.5).fit(mixed.iloc[:N], LABELS)
    yield db.GeneralizedLinearModel().fit(mixed[["size", "colour"]], range(len(mixed)))
    yield db.GeneralizedLinearModel("bernoulli", l2=0.1).fit(NUMBERS, LABELS == "spam")
    yield db.GeneralizedLinearModel("multinomial", l2=0.1).fit(NUMBERS, LABELS)
    yield db.GeneralizedLinearModel("exponential", l2=0.1).fit(COUNTS, COUNTS[:, 0] + 0.5)
    yield db.Halfspace().fit(NUMBERS, LABELS == "ham")


def mail_filter() -> Filter:
    pills, lunch, both = (parse(mail).texts for mail in MAILS)
    return Filter.new().learn([pills, both], "spam").learn([lunch], "ham")
