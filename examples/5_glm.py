"""A generalized linear model of claims, with exposures, standard errors and intervals, and a report."""

import numpy as np
import pandas as pd

import deciban as db

rng, n = np.random.default_rng(0), 2000
policies = pd.DataFrame(
    {
        "age": rng.integers(18, 80, n),
        "car": rng.choice(["estate", "saloon", "van"], n),
        "town": rng.random(n) < 0.4,
    }
)
years = rng.uniform(0.2, 1.0, n)
TRUE = {"age": -0.02, "car = van": 0.5, "town": 0.3}
effects = pd.DataFrame({"age": policies["age"], "car = van": policies["car"] == "van", "town": policies["town"]})
rate = np.exp(0.2 + effects.astype(float) @ pd.Series(TRUE))
claims = rng.poisson(rate * years)

model = db.GeneralizedLinearModel("poisson").fit(policies, claims, exposure=years)
print(model.summary())

# 95 % of such intervals should contain the true coefficient.
estimates = {name: numbers for name, *numbers in model.summary().tables[0].rows}
for name, true in TRUE.items():
    estimate, *_, low, high = estimates[name]
    print(f"{name:<10} true {true:+.2f}, estimate {estimate:+.3f}, 95% from {low:+.3f} to {high:+.3f}")

person = pd.DataFrame({"age": [30], "car": ["van"], "town": [True]})
print(f"claims per year, aged 30 with a van in a town: {model.predict(person)[0]:.2f}")

model.report(policies, claims, exposure=years, held_out=False).save("claims.html")
