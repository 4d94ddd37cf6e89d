"""Registry: every class that a file may hold, by its name there, and where it is. A file imports what it names."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

Home = tuple[str, str]  # a module and a class in it


def named(prefix: str, module: str, *classes: str) -> dict[str, Home]:
    return {prefix + found: (module, found) for found in classes}


# A class that is renamed keeps its name here.
HOMES: dict[str, Home] = {
    **named("families.", "deciban.families.bernoulli", "Bernoulli"),
    **named("families.", "deciban.families.binned", "Binned"),
    **named("families.", "deciban.families.categorical", "Categorical"),
    **named("families.", "deciban.families.exponential", "Exponential"),
    **named("families.", "deciban.families.gaussian", "Gaussian"),
    **named("families.", "deciban.families.multinomial", "Multinomial"),
    **named("families.", "deciban.families.multivariate_gaussian", "MultivariateGaussian"),
    **named("families.", "deciban.families.poisson", "Poisson"),
    **named("families.", "deciban.families.text", "Text"),
    **named("families.", "deciban.families.uniform", "Uniform"),
    **named("families.", "deciban.families.celled", "Pairs"),
    **named("families.", "deciban.families.forest", "Forest"),
    **named("families.", "deciban.families.normals", "Normals"),
    **named("", "deciban.families.mixed", "Coding", "Encoding"),
    **named("priors.", "deciban.families.priors", "Beta", "Dirichlet", "InverseGamma", "InverseWishart", "Laplace"),
    **named("priors.", "deciban.families.priors", "Background", "Normal", "Virtual"),
    **named("", "deciban.statistics.cells", "Cells"),
    **named("", "deciban.statistics.counts", "Counts"),
    **named("", "deciban.statistics.extrema", "Extrema", "Least"),
    **named("", "deciban.statistics.histogram", "Histogram"),
    **named("", "deciban.statistics.moments", "Moments"),
    **named("", "deciban.statistics.scatter", "Scatter"),
    **named("", "deciban.statistics.sums", "Sum"),
    **named("", "deciban.statistics.tokens", "Terms", "Tokens"),
    **named("", "deciban.statistics.totals", "Totals"),
    **named("", "deciban.families.base", "Natural"),
    **named("", "deciban.families.bernoulli", "BernoulliParams"),
    **named("", "deciban.families.binned", "BinnedParams"),
    **named("", "deciban.families.categorical", "CategoricalParams"),
    **named("", "deciban.families.gaussian", "GaussianParams"),
    **named("", "deciban.families.multinomial", "MultinomialParams"),
    **named("", "deciban.families.multivariate_gaussian", "MultivariateGaussianParams"),
    **named("", "deciban.families.rates", "RateParams"),
    **named("", "deciban.families.text", "TextParams"),
    **named("", "deciban.batch", "Derived", "Notation"),
    **named("", "deciban.contributions", "ColumnEvidence"),
    **named("", "deciban.schema", "Schema"),
    **named("", "deciban.plans", "Plan"),
    **named("", "deciban.generative", "Block", "Generative"),
    **named("", "deciban.weighing.weights", "UnknownColumns", "Weights"),
    **named("", "deciban.weighing.reasons", "ColumnFacts"),
    **named("", "deciban.choices", "Choice", "Contest"),
    **named("", "deciban.design", "Numbers", "Indicators", "Sufficient", "Part", "Design"),
    **named("", "deciban.linear.predictor", "Predictor"),
    **named("", "deciban.linear.inference", "Inference"),
    **named("", "deciban.separation", "Certificate"),
    **named("", "deciban.table", "Table"),
}


@cache
def class_at(home: Home) -> type:
    module, name = home
    found: Any = getattr(import_module(module), name)
    assert isinstance(found, type)
    return found
