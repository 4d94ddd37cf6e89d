"""`deciban demo`: a mixed table of ten people, and iris."""

from __future__ import annotations

import typer

import deciban

REFUND = ["Yes", "No", "No", "Yes", "No", "No", "Yes", "No", "No", "No"]
STATUS = ["Single", "Married", "Single", "Married", "Divorced", "Married", "Divorced", "Single", "Married", "Single"]
INCOME = [125, 100, 70, 120, 95, 60, 220, 85, 75, 90]
EVADE = ["No", "No", "No", "No", "Yes", "No", "No", "Yes", "No", "Yes"]


def demo() -> None:
    """Fit a mixed table and iris, and print summaries, predictions and an explanation in decibans.

    \b
    Examples:
      deciban demo
      deciban demo | less
    """
    _mixed_table()
    _iris()


def _mixed_table() -> None:
    import numpy as np
    import pyarrow as pa

    people = pa.table({"Refund": REFUND, "Status": STATUS, "Income": INCOME, "Evade": EVADE})
    typer.echo("TEN PEOPLE: text and numbers in one table. Who evades taxes?\n")
    model = deciban.NaiveBayes(smoothing=0).fit(people, "Evade")
    typer.echo(str(model.summary()))
    person = pa.table({"Refund": ["No"], "Status": ["Divorced"], "Income": [120]})
    joint = np.exp(model.predict_joint_log_proba(person)[0])
    typer.echo("\nA new person: no refund, divorced, income 120. Joint probabilities, by maximum likelihood:")
    for label, likelihood in zip(model.classes_, joint, strict=True):
        typer.echo(f"  {label:<4} {likelihood:.10e}")
    typer.echo(f"Predicted: {model.predict(person)[0]}\n")
    typer.echo(str(model.explain(person)))
    typer.echo("\nForget the last two people, exactly:")
    model.forget(people.slice(8), "Evade")
    typer.echo(
        f"  {model.class_count_.sum():g} rows left; P(Yes | that person) = {model.predict_proba(person)[0, 1]:.3g}\n"
    )


def _iris() -> None:
    import numpy as np
    import pyarrow as pa
    from sklearn.datasets import load_iris

    iris = load_iris()
    labels = np.array([str(name) for name in iris.target_names])[iris.target]
    columns = [name.removesuffix(" (cm)") for name in iris.feature_names]
    flowers = pa.table({name: iris.data[:, j] for j, name in enumerate(columns)})
    rows = np.random.default_rng(2).permutation(len(labels))
    train, test = rows[:100], rows[100:]
    X_train, X_test = flowers.take(train), flowers.take(test)
    typer.echo("IRIS: 100 flowers to train on, 50 to test on.\n")
    naive = deciban.NaiveBayes().fit(X_train, labels[train])
    typer.echo(str(naive.summary()))
    typer.echo("")
    models = {
        "naive Bayes": naive,
        "shared covariance": deciban.GaussianDiscriminant().fit(X_train, labels[train]),
        "covariance per class": deciban.GaussianDiscriminant("per-class").fit(X_train, labels[train]),
    }
    for name, model in models.items():
        correct = model.predict(X_test) == labels[test]
        typer.echo(f"{name:<21} {correct.sum()} of {len(test)} correct, {model.n_parameters_} parameters")
    least_certain = int(np.argmin(naive.predict_proba(X_test).max(axis=1)))
    typer.echo(f"\nThe least certain prediction of naive Bayes, for a flower that is {labels[test][least_certain]}:")
    typer.echo(str(naive.explain(X_test.slice(least_certain, 1))))
