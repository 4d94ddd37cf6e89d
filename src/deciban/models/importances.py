"""Importances: what each feature contributes to rows of the training data, in decibans."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from deciban.contributions import ColumnEvidence
from deciban.sources import Labelled, Sample
from deciban.sources.sampling import Few, columns_of, few_of, row_keys
from deciban.statistics.base import require
from deciban.table import Table

if TYPE_CHECKING:
    from deciban.batch import Frame
    from deciban.schema import Schema
    from deciban.types import FloatArray, Levels

ROWS, CELLS = 1000, 1 << 23  # of the training data, at most, that importances are a mean over
LEAST = 100  # rows, however wide they are
AT_ONCE = 1 << 21  # numbers that are made at a time


class Shares(Protocol):
    """What splits the scores of rows by columns."""

    def column_shares(self, frame: Frame) -> FloatArray:
        """(n, columns, K) what each column adds."""


def rows_kept(schema: Schema) -> int:
    """How many rows are kept for importances; fewer of wide ones."""
    return max(LEAST, min(ROWS, CELLS // max(1, len(schema.names))))


def kept_rows(rows: Sample, schema: Schema) -> Few:
    """The rows that are kept: a function of the rows, however they came. Copies, since the rows may change."""
    most = rows_kept(schema)
    if rows.weights is not None and not rows.weights.all():
        rows = rows.take(np.flatnonzero(rows.weights))
    keys = row_keys(rows.frame, schema.places(rows.frame))
    chosen, weights = few_of(keys, rows.labels.codes, rows.weights, most)
    kept = rows.take(chosen)
    frame = columns_of(kept.frame, schema)
    return Few(((replace(kept, frame=frame, weights=weights), keys[chosen]),), most, len(keys))


def parted_rows(rows: Labelled, schema: Schema) -> Few:
    """The same, of rows elsewhere: one more pass over them."""
    return rows.summed(partial(Few.of, schema=schema, most=rows_kept(schema), seed=0), converts=True)


def evidence_of(scorer: Shares, classes: Levels, sample: Sample) -> ColumnEvidence | None:
    """The evidence of columns in rows of known classes; None if there are no such rows."""
    place = {label: k for k, label in enumerate(classes)}
    labels = np.array([place.get(label, -1) for label in sample.labels.classes], np.intp)[sample.labels.codes]
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
    """A classifier that knows what its features contribute.

    It keeps some of the rows that it learns from, and explains them when somebody asks. They are not written into
    files: what they said is. From then on, and after `forget`, it stays as it is.
    """

    _rows_kept: Few | None = None
    _column_evidence: ColumnEvidence | None = None  # once there are no rows any more
    _last_evidence: tuple[Any, Few, ColumnEvidence | None] | None = None  # of which scorer and rows it was made

    @property
    def feature_importances_(self) -> FloatArray:
        """(n_features_in_) mean |decibans| of each feature, for the true class against the mean of the others.

        Over rows of the training data: all of them, or 1,000 (fewer where there are thousands of features) that are
        chosen by what they hold. They were learned, so the figures are a little high. A model that was loaded from a
        file, or has forgotten rows, keeps the figures that it had; merged with another, it has their mean by rows.
        """
        return self._known_evidence().mean_absolute

    @property
    def column_evidence_(self) -> Table:
        """One row for each feature, the most important first: mean |decibans|, and the mean for the true class."""
        known, names = self._known_evidence(), self._schema().names  # type: ignore[attr-defined]
        order = np.argsort(-known.mean_absolute, kind="stable").tolist()
        rows = tuple((str(names[j]), float(known.mean_absolute[j]), float(known.mean[j])) for j in order)
        return Table("features", ("feature", "mean |decibans|", "for the true class"), rows)

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
        """From the rows that are kept, by the present parameters; or as it was when there were such."""
        rows, last = self._rows_kept, self._last_evidence
        if rows is None:
            return self._column_evidence
        scorer = self._scorer()  # type: ignore[attr-defined]
        if last is None or last[0] is not scorer or last[1] is not rows:
            classes = tuple(self.classes_.tolist())  # type: ignore[attr-defined]
            self._last_evidence = last = scorer, rows, evidence_of(scorer, classes, rows.sample())
        return last[2]

    def _keep_rows(self, rows: Few | None, evidence: ColumnEvidence | None = None) -> None:
        self._rows_kept, self._column_evidence, self._last_evidence = rows, evidence, None

    def _keep_evidence(self) -> None:
        """Explains the rows that were kept once and for all, and drops them."""
        if self._rows_kept is not None:
            self._keep_rows(None, self._made_evidence())

    def _require_evidence_of(self, columns: int) -> None:
        """That what a file holds is of so many columns."""
        known = self._column_evidence
        require(known is None or len(known.absolute) == columns, f"evidence of columns other than the {columns}")

    def _complete(self) -> None:
        self._keep_evidence()

    def __getstate__(self) -> Any:
        self._keep_evidence()
        return super().__getstate__()
