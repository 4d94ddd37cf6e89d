"""Raw evidence that adds: zero, +, −. Estimates are made from it elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deciban.late import names_of

if TYPE_CHECKING:
    from deciban.statistics.base import Statistic
    from deciban.statistics.counts import Counts
    from deciban.statistics.extrema import Extrema
    from deciban.statistics.histogram import Histogram
    from deciban.statistics.moments import Moments
    from deciban.statistics.scatter import Scatter
    from deciban.statistics.sums import Sum
    from deciban.statistics.tokens import Tokens
    from deciban.statistics.totals import Totals

__all__ = ["Counts", "Extrema", "Histogram", "Moments", "Scatter", "Statistic", "Sum", "Tokens", "Totals"]

_HOMES = {
    "Counts": "counts",
    "Extrema": "extrema",
    "Histogram": "histogram",
    "Moments": "moments",
    "Scatter": "scatter",
    "Statistic": "base",
    "Sum": "sums",
    "Tokens": "tokens",
    "Totals": "totals",
}
__getattr__ = names_of(__name__, _HOMES)
