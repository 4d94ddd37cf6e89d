"""Importances: what each feature contributes to rows of the training data, in decibans."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from deciban.contributions import ColumnEvidence
from deciban.data import Labelled, Sample
from deciban.data.class_index import ClassIndex
from deciban.data.sampling import RowSample, columns_of, row_keys, row_sample_of
from deciban.errors import require
from deciban.table import Table

if TYPE_CHECKING:
    from deciban.data.batch import Frame
    from deciban.data.schema import Schema
    from deciban.types import FloatArray, Levels

ROWS, CELLS = 1000, 1 << 23  # of the training data, at most, that importances are averaged over
LEAST = 100  # rows, however wide they are
AT_ONCE = 1 << 21  # numbers computed at a time


class Shares(Protocol):
    """What splits the scores of rows by features."""

    def column_shares(self, frame: Frame) -> FloatArray:
        """(n, d, K) what each feature adds."""


def rows_kept(schema: Schema) -> int:
    """How many rows are kept for importances: fewer where there are many features."""
    return max(LEAST, min(ROWS, CELLS // max(1, len(schema.names))))


def kept_rows(rows: Sample, schema: Schema) -> RowSample:
    """The rows that are kept, whatever their order and batches; copies, since the caller may change X."""
    most = rows_kept(schema)
    if rows.weights is not None and not rows.weights.all():
        rows = rows.take(np.flatnonzero(rows.weights))
    keys = row_keys(rows.frame, schema.column_refs(rows.frame))
    chosen, weights = row_sample_of(keys, rows.labels.codes, rows.weights, most)
    kept = rows.take(chosen)
    frame = columns_of(kept.frame, schema)
    return RowSample(((replace(kept, frame=frame, weights=weights), keys[chosen]),), most, len(keys))


def distributed_row_sample(rows: Labelled, schema: Schema) -> RowSample:
    """The same for distributed rows, in one more pass."""
    return rows.summed(partial(RowSample.of, schema=schema, most=rows_kept(schema), seed=0), needs_small_batches=True)


def evidence_of(scorer: Shares, classes: Levels, sample: Sample) -> ColumnEvidence | None:
    """The evidence of features in rows of known classes; None if there are no such rows."""
    labels = ClassIndex(classes).recode(sample.labels.codes, sample.labels.classes)
    rows = np.flatnonzero(labels >= 0)
    if not len(rows):
        return None
    if len(rows) < len(labels):
        sample, labels = sample.take(rows), labels[rows]
    step = max(1, AT_ONCE // (max(1, len(sample.frame.names)) * max(1, len(classes))))
    total: ColumnEvidence | None = None
    for at in range(0, len(labels), step):
        some = slice(at, min(at + step, len(labels)))
        weights = None if sample.weights is None else sample.weights[some]
        shares = scorer.column_shares(sample.frame.slice(some.start, some.stop))
        part = ColumnEvidence.of(shares if len(classes) > 1 else np.zeros_like(shares), labels[some], weights)
        total = part if total is None else total + part
    return total


class RanksFeatures:
    """A classifier with feature importances.

    It keeps a sample of its training rows, and explains them when importances are asked for. Files hold the resulting
    figures instead of the rows; then, and after `forget`, the figures stay as they are.
    """

    _rows_kept: RowSample | None = None
    _column_evidence: ColumnEvidence | None = None  # where no rows are kept
    _last_evidence: tuple[Any, RowSample, ColumnEvidence | None] | None = None  # with its scorer and rows

    @property
    def feature_importances_(self) -> FloatArray:
        """(n_features_in_) mean |decibans| of each feature, for the true class against the mean of the others.

        Averaged over the training rows, or over 1,000 of them (fewer where there are thousands of features), chosen by
        what they hold. As these are training rows, the figures are a little high. A model that was loaded from a file,
        or has forgotten rows, keeps the figures that it had; a merged one has the mean of both, weighted by rows.
        """
        return self._known_evidence().mean_absolute

    @property
    def column_evidence_(self) -> Table:
        """One row for each feature, the most important first: mean |decibans|, and the mean for the true class."""
        known, names = self._known_evidence(), self.schema_.names  # type: ignore[attr-defined]
        order = np.argsort(-known.mean_absolute, kind="stable").tolist()
        rows = tuple((str(names[j]), float(known.mean_absolute[j]), float(known.mean[j])) for j in order)
        return Table("features", ("feature", "mean |decibans|", "for the true class"), rows)

    @property
    def importances_(self) -> FloatArray | None:
        """(n_features_in_) `feature_importances_`, or None where they are not known."""
        self._require_fitted()  # type: ignore[attr-defined]
        known = self._made_evidence()
        return None if known is None else known.mean_absolute

    def _known_evidence(self) -> ColumnEvidence:
        self._require_fitted()  # type: ignore[attr-defined]
        known = self._made_evidence()
        if known is None:
            raise AttributeError(
                f"this {type(self).__name__} has no feature_importances_: it was not fitted on rows that could be kept"
            )
        return known

    @property
    def _without_evidence(self) -> bool:
        return self._column_evidence is None and self._rows_kept is None

    def _made_evidence(self) -> ColumnEvidence | None:
        """From the kept rows with the present parameters, or else the stored figures."""
        rows, last = self._rows_kept, self._last_evidence
        if rows is None:
            return self._column_evidence
        scorer = self.scorer_  # type: ignore[attr-defined]
        if last is None or last[0] is not scorer or last[1] is not rows:
            classes = tuple(self.classes_.tolist())  # type: ignore[attr-defined]
            self._last_evidence = last = scorer, rows, evidence_of(scorer, classes, rows.sample())
        return last[2]

    def _keep_rows(self, rows: RowSample | None, evidence: ColumnEvidence | None = None) -> None:
        self._rows_kept, self._column_evidence, self._last_evidence = rows, evidence, None

    def _keep_evidence(self) -> None:
        """Replace the kept rows by their evidence."""
        if self._rows_kept is not None:
            self._keep_rows(None, self._made_evidence())

    def _require_evidence_of(self, columns: int) -> None:
        """Check that the stored figures are of so many features."""
        known = self._column_evidence
        require(known is None or len(known.absolute) == columns, f"evidence of other features than the {columns}")

    def _complete(self) -> None:
        self._keep_evidence()

    def __getstate__(self) -> Any:
        self._keep_evidence()
        return super().__getstate__()
