"""Three hospitals train separately and share no rows; one withdraws, without a refit."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import deciban as db

cells = load_breast_cancer(as_frame=True)
table = cells.data.assign(kind=cells.target_names[cells.target])
parts = [table[i::3] for i in range(3)]

# Each writes a model file from its own rows. Files hold sums, not rows.
for i, part in enumerate(parts):
    db.NaiveBayes().fit(part, "kind").save(f"hospital-{i}.deciban")

# The sum of the models is the model of all rows, bit for bit.
first, second, third = (db.load(f"hospital-{i}.deciban") for i in range(3))
together = first + second + third
whole = db.NaiveBayes().fit(table, "kind")
print("merged equals fitted in one place:", bool((together.predict_proba(table) == whole.predict_proba(table)).all()))

# The third withdraws its rows: the model is as if it had never been trained on them.
together.forget(parts[2], "kind")
pair = db.NaiveBayes().fit(pd.concat(parts[:2]), "kind")
print("forgotten equals never trained on:", bool((together.predict_proba(table) == pair.predict_proba(table)).all()))

# Rows that it was not trained on cannot be forgotten, and the model stays as it was.
try:
    together.forget(table, "kind")
except db.NegativeEvidence as error:
    print(f"refused: {error}")
print("rows now:", int(together.class_count_.sum()))

# EvidenceClassifiers merge too, if all have the same layout: fit one, and send out empty copies.
model = db.EvidenceClassifier().fit(parts[0], "kind")
merged = model + model.empty_copy().partial_fit(parts[1], "kind")
back = merged.forget(parts[1], "kind")
print("and back again:", np.allclose(back.predict_proba(table), model.predict_proba(table), rtol=0, atol=1e-9))
