"""The worked examples of the lectures (LECTURES.md, sections 1, 4 and 8), from the public API."""

from fractions import Fraction
from math import prod

import mpmath
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy.stats import norm
from sklearn.datasets import load_iris

import deciban as db

EXACT = 1e-12


# Spam
WORDS = ("do", "math", "today", "buy", "book", "drugs")
MAILS = [("do math today", 0), ("buy", 1), ("buy book", 0), ("today do math drugs", 1), ("buy drugs book today", 1)]
NEW = "buy book today"
LABELS = [label for _, label in MAILS]

INPUTS = {
    "dense": np.array,
    "sparse": lambda rows: sp.csr_array(np.array(rows)),
    "table": lambda rows: pd.DataFrame(rows, columns=list(WORDS)),
}


def counted(mail):
    return [mail.split().count(word) for word in WORDS]


def bernoulli_joint(label, alpha):
    """p(c) Π φ or 1 − φ, exactly."""
    rows = [counted(mail) for mail, of in MAILS if of == label]
    joint = Fraction(len(rows), len(MAILS))
    for j, present in enumerate(counted(NEW)):
        phi = Fraction(sum(row[j] for row in rows) + alpha, len(rows) + 2 * alpha)
        joint *= phi if present else 1 - phi
    return joint


def multinomial_joint(label, alpha):
    """p(c) Π θ over the words of the mail, exactly."""
    rows = [counted(mail) for mail, of in MAILS if of == label]
    total = sum(map(sum, rows)) + alpha * len(WORDS)
    theta = [Fraction(sum(row[j] for row in rows) + alpha, total) for j in range(len(WORDS))]
    return Fraction(len(rows), len(MAILS)) * prod(t for t, k in zip(theta, counted(NEW), strict=True) if k)


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize(
    ("family", "alpha", "joint", "spam"),
    [
        (db.families.Bernoulli(), 0, bernoulli_joint, Fraction(256, 499)),
        (db.families.Bernoulli(), 1, bernoulli_joint, Fraction(20736, 36361)),
        (db.families.Multinomial(), 1, multinomial_joint, Fraction(1331, 2331)),
    ],
    ids=["Bernoulli-MLE", "Bernoulli-Laplace", "Multinomial-Laplace"],
)
def test_spam_example_is_exact(kind, family, alpha, joint, spam):
    as_input = INPUTS[kind]
    model = db.NaiveBayes(families=family, smoothing=alpha)
    model.fit(as_input([counted(mail) for mail, _ in MAILS]), LABELS)
    row = as_input([counted(NEW)])
    expected = [joint(0, alpha), joint(1, alpha)]
    assert expected[1] / sum(expected) == spam
    np.testing.assert_allclose(np.exp(model.predict_joint_log_proba(row)[0]), list(map(float, expected)), rtol=EXACT)
    np.testing.assert_allclose(model.predict_proba(row)[0], [float(1 - spam), float(spam)], rtol=EXACT)
    assert model.predict(row) == [1]


def test_joints_of_the_spam_slide_are_those_of_exact_arithmetic():
    assert (bernoulli_joint(0, 0), bernoulli_joint(1, 0)) == (Fraction(1, 80), Fraction(16, 1215))


# Evade
S, M, D = "Single", "Married", "Divorced"
PEOPLE = {
    "Refund": ["Yes", "No", "No", "Yes", "No", "No", "Yes", "No", "No", "No"],
    "Status": [S, M, S, M, D, M, D, S, M, S],
    "Income": [125, 100, 70, 120, 95, 60, 220, 85, 75, 90],
    "Evade": ["No", "No", "No", "No", "Yes", "No", "No", "Yes", "No", "Yes"],
}
ASKED = {"Refund": ["No"], "Status": ["Divorced"], "Income": [120]}


@pytest.fixture(params=[pd.DataFrame, pa.table], ids=["pandas", "pyarrow"])
def table(request):
    return request.param


@pytest.fixture
def evade(table):
    return db.NaiveBayes(smoothing=0).fit(table(PEOPLE), "Evade")


def rows_of(name, label):
    return [value for value, of in zip(PEOPLE[name], PEOPLE["Evade"], strict=True) if of == label]


def evade_joint(label):
    """p(c) p(No|c) p(Divorced|c) N(120; mean, variance/n), to 30 digits."""
    with mpmath.workdps(30):
        n = len(rows_of("Income", label))
        income = [mpmath.mpf(x) for x in rows_of("Income", label)]
        mean = mpmath.fsum(income) / n
        sd = mpmath.sqrt(mpmath.fsum((x - mean) ** 2 for x in income) / n)
        shares = [mpmath.mpf(rows_of(name, label).count(ASKED[name][0])) / n for name in ("Refund", "Status")]
        return mpmath.mpf(n) / 10 * shares[0] * shares[1] * mpmath.npdf(120, mean, sd)


def cells(model, title):
    """{class: {column of the table: number}} of one table of the summary."""
    actual = next(t for t in model.summary().tables if t.title.startswith(title))
    return {row[0]: dict(zip(actual.header[1:], row[1:], strict=True)) for row in actual.rows}


def test_evade_joints_are_those_of_30_digit_arithmetic(evade, table):
    expected = [evade_joint("No"), evade_joint("Yes")]
    assert [mpmath.nstr(p, 11) for p in expected] == ["0.00044267637899", "1.8366850019e-14"]
    joint = np.exp(evade.predict_joint_log_proba(table(ASKED))[0])
    np.testing.assert_allclose(joint, np.array(expected, dtype=float), rtol=EXACT)
    posterior = np.array([p / sum(expected) for p in expected], dtype=float)
    np.testing.assert_allclose(evade.predict_proba(table(ASKED))[0], posterior, rtol=EXACT)
    assert evade.predict(table(ASKED)) == ["No"]


def test_evade_parameters_are_the_shares_means_and_deviations(evade):
    assert evade.classes_.tolist() == ["No", "Yes"]
    assert cells(evade, "Refund")["Yes"]["No"] == 1
    assert cells(evade, "Status")["Yes"]["Married"] == 0
    assert cells(evade, "Status")["No"]["Single"] == pytest.approx(2 / 7, rel=EXACT)
    income = cells(evade, "Income")
    assert income["Yes"]["mean"] == pytest.approx(90, rel=EXACT)
    assert income["No"]["mean"] == pytest.approx(110, rel=EXACT)
    assert income["Yes"]["sd"] == pytest.approx(float(mpmath.sqrt(mpmath.mpf(50) / 3)), rel=EXACT)
    squares = sum((x - 110) ** 2 for x in rows_of("Income", "No"))
    assert income["No"]["sd"] == pytest.approx(float(mpmath.sqrt(mpmath.mpf(squares) / 7)), rel=EXACT)
    assert round(income["No"]["sd"], 5) == 50.49752


def test_evade_with_n_minus_1_has_the_deviation_5(table):
    model = db.NaiveBayes(families={"Income": db.families.Gaussian(ddof=1)}).fit(table(PEOPLE), "Evade")
    assert cells(model, "Income")["Yes"]["sd"] == pytest.approx(5, rel=EXACT)


# Iris
def confusion(actual, predicted):
    return [[int(((actual == a) & (predicted == b)).sum()) for b in range(3)] for a in range(3)]


def normal_naive_bayes(x, y, asked):
    """The textbook's classifier with n − 1, written with numpy and scipy alone."""
    scores = [
        np.log((y == c).mean()) + norm.logpdf(asked, x[y == c].mean(axis=0), x[y == c].std(axis=0, ddof=1)).sum(axis=1)
        for c in range(3)
    ]
    return np.argmax(scores, axis=0)


def test_iris_confusion_tables_on_both_parts_of_a_two_thirds_split():
    x, y = load_iris(return_X_y=True)
    third = np.arange(len(y)) % 3 == 0
    model = db.NaiveBayes(families=db.families.Gaussian(ddof=1)).fit(x[~third], y[~third])
    for part in (~third, third):
        expected = confusion(y[part], normal_naive_bayes(x[~third], y[~third], x[part]))
        assert confusion(y[part], model.predict(x[part])) == expected
        assert np.trace(expected) >= 0.9 * part.sum()


# Class priors and parameter counts
CLASS_PRIORS = {
    "empirical": [7 / 10, 3 / 10],
    "laplace": [8 / 12, 4 / 12],
    "uniform": [1 / 2, 1 / 2],
    (0.25, 0.75): [0.25, 0.75],
}


@pytest.mark.parametrize("prior", CLASS_PRIORS, ids=str)
def test_class_prior_is_that_of_the_slide(prior):
    model = db.NaiveBayes(class_prior=prior).fit(pd.DataFrame(PEOPLE), "Evade")
    nothing = pd.DataFrame({"Refund": [None], "Status": [None], "Income": [np.nan]})
    np.testing.assert_allclose(model.predict_proba(nothing)[0], CLASS_PRIORS[prior], rtol=EXACT)
    np.testing.assert_allclose(
        [row["probability"] for row in cells(model, "class prior").values()], CLASS_PRIORS[prior]
    )


K, D = 3, 4
TRUTH = np.array([[i >> j & 1 for j in range(D)] for i in range(2**D)])


@pytest.mark.parametrize(
    ("model", "rows", "count"),
    [
        (db.NaiveBayes(), TRUTH + 0.5, 2 * K * D),
        (db.NaiveBayes(families=db.families.Bernoulli()), TRUTH, K * D),
        (db.NaiveBayes(), TRUTH.astype(bool), K * D),
        (db.GaussianDiscriminant("per-class", shrinkage=0.1), TRUTH, K * D + K * D * (D + 1) // 2),
        (db.GaussianDiscriminant("shared"), TRUTH, K * D + D * (D + 1) // 2),
        (db.GaussianDiscriminant("diagonal"), TRUTH, 2 * K * D),
        (db.NaiveBayes(), np.array([["".join(map(str, row))] for row in TRUTH], dtype=object), K * (2**D - 1)),
    ],
    ids=["Gaussian", "Bernoulli", "bool", "per-class", "shared", "diagonal", "full table"],
)
def test_number_of_free_parameters_is_that_of_the_slide(model, rows, count):
    labels = np.arange(2**D) % K
    assert model.fit(rows, labels).n_parameters_ == count + K - 1
    assert model.set_params(class_prior="uniform").n_parameters_ == count
