"""Densities, one file each. A family defines its statistic, how parameters are estimated, and the log-density.

They are imported on first use: a loaded model needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from deciban.lazy import names_of

if TYPE_CHECKING:
    from deciban.families.bernoulli import Bernoulli as Bernoulli
    from deciban.families.binned import Binned as Binned
    from deciban.families.categorical import Categorical as Categorical
    from deciban.families.exponential import Exponential as Exponential
    from deciban.families.family import Context as Context
    from deciban.families.family import Family as Family
    from deciban.families.family import Natural as Natural
    from deciban.families.family import Table as Table
    from deciban.families.gaussian import Gaussian as Gaussian
    from deciban.families.multinomial import Multinomial as Multinomial
    from deciban.families.multivariate_gaussian import MultivariateGaussian as MultivariateGaussian
    from deciban.families.poisson import Poisson as Poisson
    from deciban.families.text import Text as Text
    from deciban.families.uniform import Uniform as Uniform


class Registered(NamedTuple):
    """The module of a family; everything else is in its class."""

    module: str
    word: str | None = None  # in `deciban fit --columns COLUMN=WORD`; None: the command does not offer it
    params: tuple[str, ...] = ()  # classes of the module that model files store beside the family


# One line for each family. Public names, model files and the command line follow from it.
FAMILIES: dict[str, Registered] = {
    "Bernoulli": Registered("deciban.families.bernoulli", "bernoulli", ("BernoulliParams",)),
    "Categorical": Registered("deciban.families.categorical", "categorical", ("CategoricalParams",)),
    "Gaussian": Registered("deciban.families.gaussian", "gaussian", ("GaussianParams",)),
    "Exponential": Registered("deciban.families.exponential", "exponential"),
    "Uniform": Registered("deciban.families.uniform", "uniform"),
    "Poisson": Registered("deciban.families.poisson", "poisson"),
    "Multinomial": Registered("deciban.families.multinomial", "multinomial", ("MultinomialParams",)),
    "Binned": Registered("deciban.families.binned", "binned", ("BinnedParams",)),
    "MultivariateGaussian": Registered(
        "deciban.families.multivariate_gaussian", params=("MultivariateGaussianParams",)
    ),
    "Text": Registered("deciban.families.text", params=("TextParams",)),
}
BASES = ("Context", "Family", "Natural", "Table")
__all__ = sorted([*FAMILIES, *BASES])
__getattr__ = names_of(
    __name__,
    {name: family.module for name, family in FAMILIES.items()} | dict.fromkeys(BASES, "deciban.families.family"),
)
