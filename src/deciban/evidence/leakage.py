"""Leakage: features that predict the class almost perfectly by themselves, and so may record the outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deciban.errors import LeakageWarning, warn
from deciban.evidence.tables import VIRTUAL_ROWS
from deciban.families.cuts import equal_frequency, supervised_cuts
from deciban.lazy import lazy
from deciban.statistics import Counts, Histogram
from deciban.types import FloatArray, IntArray, Level

if TYPE_CHECKING:
    from deciban.generative.model import Generative

special = lazy("scipy.special")

# of the errors of the class prior: the share that a leak leaves at most, and its upper bound with 95 % confidence
ERRORS, ERRORS_AT_MOST = 0.02, 0.05
CONFIDENCE = 0.95
LOSS = 0.1  # of the log-loss of the class prior: the share that a leak leaves at most
COARSE = 64  # bins of equal frequency, for a first look at a number
CUTS = 4  # of a number that predicts almost perfectly: as many coarse bins may have several classes
NAMED = 5  # features in a warning


@dataclass(frozen=True)
class Leak:
    """A feature that predicts the class almost perfectly by itself."""

    column: Level
    accuracy: float  # leave-one-out


@dataclass(frozen=True)
class LeftOutErrors:
    """Leave-one-out errors of a table of counts N_c(v): p(c|v) = (N_c(v) + 2π_c)/(N(v) + 2)."""

    rows: float
    prior: FloatArray  # (K) π, the share of each class
    errors: float
    log_loss: float

    @classmethod
    def of(cls, counts: FloatArray, prior: FloatArray) -> LeftOutErrors:
        """The errors of counts (K, cells).

        >>> LeftOutErrors.of(np.array([[9.0, 1.0], [0.0, 10.0]]), np.array([0.5, 0.5])).errors
        1.0
        """
        scores = counts + VIRTUAL_ROWS * prior[:, np.newaxis]
        removed = np.minimum(counts, 1.0)  # the row itself
        left_out = scores - removed
        highest = np.sort(scores, axis=0)[-2:]
        others = np.where(scores == highest[-1], highest[0], highest[-1])
        with np.errstate(divide="ignore"):
            loss = np.where(counts > 0, counts * -np.log(left_out / (scores.sum(axis=0) - removed)), 0.0)
        rows = float(counts.sum())
        return cls(rows, prior, float(counts[left_out <= others].sum()), float(loss.sum()) / rows)

    @property
    def near_perfect(self) -> bool:
        """Whether so few errors remain, with 95 % confidence."""
        prior_errors = self.rows * (1.0 - float(self.prior.max()))
        at_most = float(special.gammaincinv(self.errors + 1.0, CONFIDENCE))  # Poisson
        entropy = -float((self.prior * np.log(self.prior)).sum())
        few_errors = self.errors <= ERRORS * prior_errors and at_most <= ERRORS_AT_MOST * prior_errors
        return few_errors and self.log_loss <= LOSS * entropy


def leaks(evidence: Generative) -> list[Leak]:
    """Features whose values, bins or missingness alone predict the class, in the order of the schema."""
    total = evidence.counts.value
    if np.count_nonzero(total) < 2:
        return []
    kept = total > 0
    prior = total[kept] / total.sum()
    errors_of = ((j, LeftOutErrors.of(counts[kept], prior)) for j, counts in _tables(evidence))
    return [
        Leak(evidence.schema.all_names[j], 1.0 - table.errors / table.rows)
        for j, table in sorted(errors_of, key=lambda pair: pair[0])
        if table.near_perfect
    ]


def _tables(evidence: Generative) -> Iterator[tuple[int, FloatArray]]:
    """Features, and counts (K, cells) of their values, or of bins that are cut where the classes differ."""
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
    """(K, bins) from counts (K, cells): coarse bins, if these show that no cuts are near perfect."""
    if not counts.shape[1]:
        return counts
    coarse = _summed(counts, equal_frequency(counts.sum(axis=0), COARSE))
    mixed = float(coarse.sum() - coarse.max(axis=0, initial=0.0).sum())
    if mixed > ERRORS * (total.sum() - total.max()) + CUTS * total.sum() / COARSE:
        return coarse
    return _summed(counts, np.array(sorted(supervised_cuts(counts)), np.intp))


def _summed(counts: FloatArray, after: IntArray) -> FloatArray:
    """(K, bins) counts of bins that end after these cells."""
    return np.add.reduceat(counts, [0, *(after + 1)], axis=1)


def warn_of_leakage(evidence: Generative) -> None:
    leaking = leaks(evidence)
    if not leaking:
        return
    named = [f"{leak.column!r} alone predicts the class in {_percent(leak.accuracy)}" for leak in leaking[:NAMED]]
    more = f" (and {len(leaking) - NAMED} more columns do so)" if len(leaking) > NAMED else ""
    which, known = ("was it", "it is") if len(leaking) == 1 else ("were they", "they are")
    warn(
        f"{', '.join(named)} of the rows left out{more}: {which} recorded after the outcome? Drop what is not known "
        f"when you predict; if {known}, silence this by warnings.simplefilter('ignore', deciban.LeakageWarning)",
        LeakageWarning,
    )


def _percent(share: float) -> str:
    """Rounded down, so that only all rows are 100 %."""
    return f"{np.floor(share * 1000) / 10:g} %"
