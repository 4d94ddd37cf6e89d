"""Responses of generalised linear models: what y may be, one file for each."""

from deciban.responses.base import Response
from deciban.responses.bernoulli import Bernoulli
from deciban.responses.exponential import Exponential
from deciban.responses.gaussian import Gaussian
from deciban.responses.multinomial import Multinomial
from deciban.responses.poisson import Poisson

__all__ = ["Bernoulli", "Exponential", "Gaussian", "Multinomial", "Poisson", "Response"]
