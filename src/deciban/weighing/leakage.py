"""Leakage: columns that predict the class almost perfectly by themselves, which is seldom what a table is for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deciban.errors import LeakageWarning, warn
from deciban.families.cuts import equal_frequency, supervised_cuts
from deciban.late import late
from deciban.statistics import Counts, Histogram
from deciban.types import FloatArray, IntArray, Level
from deciban.weighing.tables import VIRTUAL

if TYPE_CHECKING:
    from deciban.generative import Generative

special = late("scipy.special")

# of the errors that the class prior makes: what a column may leave, and what it may leave at most with 95 % confidence
ERRORS, ERRORS_AT_MOST = 0.02, 0.05
CONFIDENCE = 0.95
LOSS = 0.1  # of the log-loss of the class prior, that a column may leave
COARSE = 64  # bins of equal frequency, for a first look at a column of numbers
CUTS = 4  # of a column of numbers that is almost perfect: as many coarse bins are mixed
NAMED = 5  # columns in a warning


@dataclass(frozen=True)
class Leak:
    """A column that predicts the class almost perfectly by itself."""

    column: Level
    accuracy: float  # on rows that are left out of the counts that predict them


@dataclass(frozen=True)
class LeftOutErrors:
    """What a table of counts N_c(v) predicts for its own rows, each left out: p(c|v) = (N_c(v) + 2π_c)/(N(v) + 2)."""

    rows: float
    prior: FloatArray  # (K) π, the share of each class
    errors: float
    log_loss: float

    @classmethod
    def of(cls, counts: FloatArray, prior: FloatArray) -> LeftOutErrors:
        """Of counts (K, cells).

        >>> LeftOutErrors.of(np.array([[9.0, 1.0], [0.0, 10.0]]), np.array([0.5, 0.5])).errors
        1.0
        """
        scores = counts + VIRTUAL * prior[:, np.newaxis]
        gone = np.minimum(counts, 1.0)  # of a row's own cell, in turn
        own = scores - gone
        highest = np.sort(scores, axis=0)[-2:]
        others = np.where(scores == highest[-1], highest[0], highest[-1])
        with np.errstate(divide="ignore"):
            loss = np.where(counts > 0, counts * -np.log(own / (scores.sum(axis=0) - gone)), 0.0)
        rows = float(counts.sum())
        return cls(rows, prior, float(counts[own <= others].sum()), float(loss.sum()) / rows)

    @property
    def near_perfect(self) -> bool:
        """Whether so few errors are left that they are no matter of few rows."""
        prior_errors = self.rows * (1.0 - float(self.prior.max()))
        at_most = float(special.gammaincinv(self.errors + 1.0, CONFIDENCE))  # Poisson
        entropy = -float((self.prior * np.log(self.prior)).sum())
        few = self.errors <= ERRORS * prior_errors and at_most <= ERRORS_AT_MOST * prior_errors
        return few and self.log_loss <= LOSS * entropy


def leaks(evidence: Generative) -> list[Leak]:
    """Columns whose values, bins or missing cells alone tell the class, in the order of the table."""
    total = evidence.counts.value
    if np.count_nonzero(total) < 2:
        return []
    kept = total > 0
    prior = total[kept] / total.sum()
    judged = ((j, LeftOutErrors.of(counts[kept], prior)) for j, counts in _tables(evidence))
    return [
        Leak(evidence.schema.all_names[j], 1.0 - found.errors / found.rows)
        for j, found in sorted(judged, key=lambda pair: pair[0])
        if found.near_perfect
    ]


def _tables(evidence: Generative) -> Iterator[tuple[int, FloatArray]]:
    """The columns with (K, cells) counts of all rows: values, or bins that are cut where the classes differ."""
    total = evidence.counts.value
    for block in evidence.blocks:
        statistic = block.statistic
        if block.plan.presence or not isinstance(statistic, (Counts, Histogram)):
            continue
        for i, j in enumerate(block.plan.columns):
            if isinstance(statistic, Counts):
                table = statistic.table.value[:, statistic.offsets[i] : statistic.offsets[i + 1]]
            else:
                table = _binned(statistic.table(i).value, total)
            missing = np.maximum(total - table.sum(axis=1), 0.0)
            yield j, np.column_stack([table, np.where(missing > 1e-9 * total, missing, 0.0)])


def _binned(counts: FloatArray, total: FloatArray) -> FloatArray:
    """(K, bins) of counts (K, cells): a few coarse bins, if these tell that no cuts are near perfect."""
    if not counts.shape[1]:
        return counts
    coarse = _summed(counts, equal_frequency(counts.sum(axis=0), COARSE))
    mixed = float(coarse.sum() - coarse.max(axis=0, initial=0.0).sum())
    if mixed > ERRORS * (total.sum() - total.max()) + CUTS * total.sum() / COARSE:
        return coarse
    return _summed(counts, np.array(sorted(supervised_cuts(counts)), np.intp))


def _summed(counts: FloatArray, after: IntArray) -> FloatArray:
    """The counts of cells, by the bins that cuts after some of them make."""
    summed: FloatArray = np.add.reduceat(counts, [0, *(after + 1)], axis=1)
    return summed


def warn_of_leakage(evidence: Generative) -> None:
    """Warns of columns that predict the class almost perfectly by themselves."""
    found = leaks(evidence)
    if not found:
        return
    said = [f"{leak.column!r} alone predicts the class in {_percent(leak.accuracy)}" for leak in found[:NAMED]]
    more = f" (and {len(found) - NAMED} more columns do so)" if len(found) > NAMED else ""
    which, known = ("was it", "it is") if len(found) == 1 else ("were they", "they are")
    warn(
        f"{', '.join(said)} of the rows left out{more}: {which} recorded after the outcome? Drop what is not known "
        f"when you predict; if {known}, silence this by warnings.simplefilter('ignore', deciban.LeakageWarning)",
        LeakageWarning,
    )


def _percent(share: float) -> str:
    """Rounded down, so that only all rows are 100 %."""
    return f"{np.floor(share * 1000) / 10:g} %"
