"""Responses of generalised linear models: what y may be, one file each. The import of a response registers it."""

from deciban.linear.responses.bernoulli import Bernoulli as Bernoulli
from deciban.linear.responses.exponential import Exponential as Exponential
from deciban.linear.responses.gaussian import Gaussian as Gaussian
from deciban.linear.responses.multinomial import Multinomial as Multinomial
from deciban.linear.responses.poisson import Poisson as Poisson
from deciban.linear.responses.response import Response as Response

RESPONSES: dict[str, type[Response]] = {
    each.name: each for each in tuple(globals().values()) if isinstance(each, type) and hasattr(each, "name")
}
