"""A generative model and its discriminative twin, with few and many rows, and with right and wrong densities."""

import warnings

import numpy as np

import deciban as db

SIZES = [20, 80, 320, 1280]
rng = np.random.default_rng(0)
y = rng.integers(0, 2, 3000)
DATA = {
    "normal, one covariance (what the generative model assumes)": rng.normal(size=(3000, 8)) + 0.6 * y[:, np.newaxis],
    "counts (which it models as normal)": rng.poisson(np.where(y[:, np.newaxis], 4, 1), size=(3000, 2)),
}
TWINS = {"GaussianDiscriminant": db.GaussianDiscriminant(), "LogisticRegression": db.LogisticRegression()}

for name, X in DATA.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)  # 20 rows are often separable
        curve = db.learning_curve(TWINS, X, y, sizes=SIZES, repeats=5).to_frame().to_pandas()
    losses = curve.pivot_table("log_loss", "rows", "model")
    print(f"log-loss on held-out rows: {name}\n{losses.round(2).to_string()}\n")

# The linear twin equals the generative model; refine() continues to the maximum conditional likelihood.
X = DATA["counts (which it models as normal)"]
model = db.GaussianDiscriminant().fit(X[:1500], y[:1500])
twin = model.to_linear()
print("the twin predicts the same:", np.allclose(twin.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-12))
before = db.evaluate(twin, X[1500:], y[1500:]).log_loss
after = db.evaluate(twin.refine(X[:1500], y[:1500]), X[1500:], y[1500:]).log_loss
print(f"log-loss on held-out rows {before:.3f}, refined {after:.3f}")
