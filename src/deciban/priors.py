"""The priors under their public name: deciban.priors."""

from deciban.families.priors import (
    Beta,
    Dirichlet,
    InverseGamma,
    InverseWishart,
    Laplace,
    Normal,
    Virtual,
)

__all__ = ["Beta", "Dirichlet", "InverseGamma", "InverseWishart", "Laplace", "Normal", "Virtual"]
