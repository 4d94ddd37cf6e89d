"""Densities, one file each. A family says which statistic it needs, how it is estimated, and its log-density."""

from deciban.families.base import Context, Family, Natural, Table
from deciban.families.bernoulli import Bernoulli
from deciban.families.binned import Binned
from deciban.families.categorical import Categorical
from deciban.families.exponential import Exponential
from deciban.families.gaussian import Gaussian
from deciban.families.multinomial import Multinomial
from deciban.families.multivariate_gaussian import MultivariateGaussian
from deciban.families.poisson import Poisson
from deciban.families.uniform import Uniform

__all__ = [
    "Bernoulli",
    "Binned",
    "Categorical",
    "Context",
    "Exponential",
    "Family",
    "Gaussian",
    "Multinomial",
    "MultivariateGaussian",
    "Natural",
    "Poisson",
    "Table",
    "Uniform",
]
