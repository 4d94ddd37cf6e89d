"""Responses of generalised linear models: what y may be, one file each."""

from deciban.linear.responses.bernoulli import Bernoulli
from deciban.linear.responses.exponential import Exponential
from deciban.linear.responses.gaussian import Gaussian
from deciban.linear.responses.multinomial import Multinomial
from deciban.linear.responses.poisson import Poisson
from deciban.linear.responses.response import Response

__all__ = ["RESPONSES", "Bernoulli", "Exponential", "Gaussian", "Multinomial", "Poisson", "Response"]

RESPONSES: dict[str, type[Response]] = {
    "bernoulli": Bernoulli,
    "exponential": Exponential,
    "gaussian": Gaussian,
    "multinomial": Multinomial,
    "poisson": Poisson,
}
