"""Sufficient statistics: zero, +, −. Families estimate parameters from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deciban.lazy import names_of

if TYPE_CHECKING:
    from deciban.statistics.counts import Counts
    from deciban.statistics.extrema import Extrema
    from deciban.statistics.histogram import Histogram
    from deciban.statistics.moments import Moments
    from deciban.statistics.scatter import Scatter
    from deciban.statistics.statistic import Statistic
    from deciban.statistics.sums import Sum
    from deciban.statistics.tokens import Tokens
    from deciban.statistics.totals import Totals

__all__ = ["Counts", "Extrema", "Histogram", "Moments", "Scatter", "Statistic", "Sum", "Tokens", "Totals"]
HOMES = {name: f"deciban.statistics.{name.lower()}" for name in __all__} | {"Sum": "deciban.statistics.sums"}
__getattr__ = names_of(__name__, HOMES)
