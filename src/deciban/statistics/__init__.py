"""Raw evidence that adds: zero, +, −. Estimates are made from it elsewhere."""

from deciban.statistics.base import Statistic
from deciban.statistics.counts import Counts
from deciban.statistics.extrema import Extrema
from deciban.statistics.histogram import Histogram
from deciban.statistics.moments import Moments
from deciban.statistics.scatter import Scatter
from deciban.statistics.sums import Sum
from deciban.statistics.totals import Totals

__all__ = ["Counts", "Extrema", "Histogram", "Moments", "Scatter", "Statistic", "Sum", "Totals"]
