"""`deciban demo`: a mixed table of ten people, and iris."""

from __future__ import annotations

from collections.abc import Callable

import typer

REFUND = ["Yes", "No", "No", "Yes", "No", "No", "Yes", "No", "No", "No"]
STATUS = ["Single", "Married", "Single", "Married", "Divorced", "Married", "Divorced", "Single", "Married", "Single"]
INCOME = [125, 100, 70, 120, 95, 60, 220, 85, 75, 90]
EVADE = ["No", "No", "No", "No", "Yes", "No", "No", "Yes", "No", "Yes"]


def demo() -> None:
    """Fit the lectures' mixed table and iris; print the tables, predictions and an explanation in decibans.

    \b
    Examples:
      deciban demo
      deciban demo | less
    """
    show(typer.echo)


def show(write: Callable[[str], None]) -> None:
    """Writes the demonstration, paragraph by paragraph."""
    for part in (_mixed_table, _iris):
        part(write)


def _mixed_table(write: Callable[[str], None]) -> None:
    import numpy as np
    import pyarrow as pa

    from deciban.models import NaiveBayes

    people = pa.table({"Refund": REFUND, "Status": STATUS, "Income": INCOME, "Evade": EVADE})
    write("TEN PEOPLE: text and numbers in one table. Who evades taxes?\n")
    model = NaiveBayes(smoothing=0).fit(people, "Evade")
    write(str(model.summary()))
    asked = pa.table({"Refund": ["No"], "Status": ["Divorced"], "Income": [120]})
    joint = np.exp(model.predict_joint_log_proba(asked)[0])
    write("\nA new person: no refund, divorced, income 120. Joint probabilities, by maximum likelihood:")
    for label, p in zip(model.classes_, joint, strict=True):
        write(f"  {label:<4} {p:.10e}")
    write(f"Predicted: {model.predict(asked)[0]}\n")
    write(str(model.explain(asked)))
    write("\nForget the last two people, exactly:")
    model.forget(people.slice(8), "Evade")
    write(f"  {model.class_count_.sum():g} rows left; P(Yes | that person) = {model.predict_proba(asked)[0, 1]:.3g}\n")


def _iris(write: Callable[[str], None]) -> None:
    import numpy as np
    import pyarrow as pa
    from sklearn.datasets import load_iris

    from deciban.models import GaussianDiscriminant, NaiveBayes

    iris = load_iris()
    labels = np.array([str(name) for name in iris.target_names])[iris.target]
    columns = [name.removesuffix(" (cm)") for name in iris.feature_names]
    flowers = pa.table({name: iris.data[:, j] for j, name in enumerate(columns)})
    rows = np.random.default_rng(2).permutation(len(labels))
    train, test = rows[:100], rows[100:]
    learn, ask = flowers.take(train), flowers.take(test)
    write("IRIS: 100 flowers to learn from, 50 to test.\n")
    naive = NaiveBayes().fit(learn, labels[train])
    write(str(naive.summary()))
    write("")
    models = {
        "naive Bayes": naive,
        "shared covariance": GaussianDiscriminant().fit(learn, labels[train]),
        "covariance per class": GaussianDiscriminant("per-class").fit(learn, labels[train]),
    }
    for name, model in models.items():
        right = model.predict(ask) == labels[test]
        write(f"{name:<21} {right.sum()} of {len(test)} right, {model.n_parameters_} parameters")
    unsure = int(np.argmin(naive.predict_proba(ask).max(axis=1)))
    write(f"\nThe flower that naive Bayes is least sure of is {labels[test][unsure]}:")
    write(str(naive.explain(ask.slice(unsure, 1))))
