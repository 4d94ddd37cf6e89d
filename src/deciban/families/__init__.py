"""Densities, one file each. A family says which statistic it needs, how it is estimated, and its log-density.

They are imported when they are asked for: a model that is loaded needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deciban.late import names_of

if TYPE_CHECKING:
    from deciban.families.base import Context, Family, Natural, Table
    from deciban.families.bernoulli import Bernoulli
    from deciban.families.binned import Binned
    from deciban.families.categorical import Categorical
    from deciban.families.exponential import Exponential
    from deciban.families.gaussian import Gaussian
    from deciban.families.multinomial import Multinomial
    from deciban.families.multivariate_gaussian import MultivariateGaussian
    from deciban.families.poisson import Poisson
    from deciban.families.text import Text
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
    "Text",
    "Uniform",
]

_HOMES = {
    "Bernoulli": "bernoulli",
    "Binned": "binned",
    "Categorical": "categorical",
    "Context": "base",
    "Exponential": "exponential",
    "Family": "base",
    "Gaussian": "gaussian",
    "Multinomial": "multinomial",
    "MultivariateGaussian": "multivariate_gaussian",
    "Natural": "base",
    "Poisson": "poisson",
    "Table": "base",
    "Text": "text",
    "Uniform": "uniform",
}
__getattr__ = names_of(__name__, _HOMES)
