"""The lecture's claim: where its assumption holds, a generative model needs fewer rows; where it does not, it loses."""

import warnings

import numpy as np
import pandas as pd

import deciban as db

MODELS = {"generative": db.GaussianDiscriminant(), "discriminative": db.LogisticRegression()}
FEW, MANY = 30, 2500
REPEATS = 25


def gaussian(rng, n):
    """Two classes, one covariance: what a GaussianDiscriminant takes for granted."""
    y = np.arange(n) % 2
    root = np.eye(5) + 0.3 * rng.normal(size=(5, 5))
    return (rng.normal(size=(n, 5)) + y[:, np.newaxis]) @ root, y


def poisson(rng, n):
    """Counts: two columns of small rates that differ by a factor, far from normal and of unequal variance."""
    y = np.arange(n) % 2
    rates = np.array([[0.2, 4.0], [1.5, 0.7]])
    return rng.poisson(rates[y]).astype(float), y


def differences(make, size):
    """(repeats) how much more the discriminative model loses, in nats, after so many rows."""
    x, y = make(np.random.default_rng(0), 5000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)  # a few rows may be separable
        curve = db.learning_curve(MODELS, x, y, sizes=[size], repeats=REPEATS, test_size=0.5, random_state=1)
    losses = pd.DataFrame(curve.rows, columns=curve.header).pivot(index="repeat", columns="model", values="log_loss")
    assert len(losses) == REPEATS
    return (losses["discriminative"] - losses["generative"]).to_numpy()


def standard_errors(values):
    """The mean, in its standard errors."""
    return values.mean() / (values.std(ddof=1) / np.sqrt(len(values)))


def test_the_generative_model_wins_on_few_gaussian_rows():
    gained = differences(gaussian, FEW)
    assert gained.mean() > 0.3
    assert standard_errors(gained) > 4
    assert (gained > 0).mean() > 0.8  # not the work of some separable samples alone
    assert np.median(gained) > 0.1


def test_with_many_gaussian_rows_they_are_the_same():
    """Both are then right: what is left is a few ten-thousandths of a nat."""
    assert abs(differences(gaussian, MANY).mean()) < 1e-3


def test_the_discriminative_model_wins_on_many_counts():
    lost = differences(poisson, 1000)
    assert lost.mean() < -0.005
    assert standard_errors(lost) < -8
    assert (lost < 0).mean() > 0.9


def test_the_right_generative_model_does_not_lose_on_counts():
    """It is the wrong density that costs, not the way of learning."""
    x, y = poisson(np.random.default_rng(0), 5000)
    models = {"right": db.NaiveBayes(db.families.Poisson()), "discriminative": db.LogisticRegression()}
    curve = db.learning_curve(models, x, y, sizes=[MANY], repeats=REPEATS, test_size=0.5, random_state=1)
    losses = pd.DataFrame(curve.rows, columns=curve.header).groupby("model")["log_loss"].mean()
    assert abs(losses["right"] - losses["discriminative"]) < 1e-3
