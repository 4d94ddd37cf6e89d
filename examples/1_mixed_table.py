"""A mixed table from end to end: fit, evaluate, explain, save."""

import numpy as np
import pandas as pd

import deciban as db


def loans(n: int, seed: int) -> pd.DataFrame:
    """Customers who pay late or in time, which depends on debt / income; some values are missing."""
    rng = np.random.default_rng(seed)
    income, debt = rng.lognormal(10, 0.5, n), rng.lognormal(9.5, 0.8, n)
    job, years = rng.choice(["clerk", "driver", "farmer", "nurse"], n), rng.exponential(5, n)
    late = rng.logistic(size=n) < 1.5 * np.log(debt / income) + (job == "driver") - 0.1 * years
    years[rng.random(n) < np.where(late, 0.2, 0.05)] = np.nan
    table = pd.DataFrame({"job": job, "income": income.round(-2), "debt": debt.round(-2), "years": years.round(1)})
    return table.assign(late=np.where(late, "late", "paid"))


old, new = loans(1500, seed=0), loans(500, seed=1)

# Three models take the table as it is. How well do they predict held-out rows?
models = [db.NaiveBayes(), db.LogisticRegression(l2=1), db.EvidenceClassifier()]
for model in models:
    result = db.evaluate(model.fit(old, "late"), new, "late")
    print(f"{type(model).__name__:<18} log-loss {result.log_loss:.3f}  AUC {result.auc():.3f}  ECE {result.ece():.3f}")

# Why is the first customer predicted to pay late, or not? And which features are most informative?
evidence = models[-1]
print()
print(evidence.explain(new[:1]))
print()
print(evidence.column_evidence_)

# A model file holds no code, and a loaded model can be updated.
evidence.save("loans.deciban")
loaded = db.load("loans.deciban")
assert (loaded.predict_proba(new) == evidence.predict_proba(new)).all()
loaded.partial_fit(new, "late")
print(f"\ntraining rows: {evidence.class_count_.sum():.0f}, after the update {loaded.class_count_.sum():.0f}")
