"""The fit of an EvidenceClassifier: statistics of features, of features together, and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from deciban.data import Labelled, Sample, Streamed
from deciban.data.sampling import RowSample, row_keys, sampled
from deciban.data.schema import Schema
from deciban.errors import DecibanError, warn
from deciban.estimators.first_pass import FirstPass
from deciban.estimators.importances import kept_rows
from deciban.estimators.threads import one_thread
from deciban.evidence import kind_selection
from deciban.evidence.evidence_by_block import EvidenceByBlock, evidence_by_block
from deciban.evidence.evidence_rows import EvidenceRows
from deciban.evidence.structure import JointSettings, first_plans, joint_plans
from deciban.evidence.text_features import split_text
from deciban.evidence.uninformative import ColumnFacts
from deciban.evidence.weights import Weights
from deciban.generative.model import Generative
from deciban.generative.plan import Missing, Plan, columns_of_key, is_sparse, rank

MISSING: Missing = "category"  # a missing value is evidence


@dataclass(frozen=True)
class EvidenceFit:
    """The result of a fit."""

    schema: Schema
    evidence: Generative
    sample: RowSample  # rows to rank features by
    blocks: EvidenceByBlock
    weights: Weights
    facts: ColumnFacts


@dataclass(frozen=True)
class EvidenceFitter:
    """The settings of a fit."""

    pairs: int | None  # None: as many as are worth it
    trees: int
    text: Literal["auto"] | Sequence[Any]
    max_weight_rows: int
    seed: int

    def fit(self, rows: Labelled) -> EvidenceFit:
        """First features one by one; then those that are read together, in a second pass; then weights."""
        if isinstance(rows, Streamed) and rows.stream.single_pass:
            rows = rows.read()
        with rows.error_context(), one_thread():
            schema = Schema.of(rows.frame).with_calendar()
            if is_sparse(rows.frame) and self.text_columns(schema):
                raise DecibanError("text=[...] names columns of documents, but these rows are sparse counts")
            single, sample, count = self._single(rows, schema)
            if single.counts.value.sum() < 0.1 * count:
                warn("sample_weight counts rows, but sums to less than a tenth of them: multiply it by a constant")
            single, together = split_text(single, count) if isinstance(self.text, str) else (single, ())
            whole = single
            if not is_sparse(rows.frame):
                together += self._joint_plans(single, sample)
            if together:
                joint = Generative.collect(rows, schema, together, MISSING)
                blocks = sorted((*single.blocks, *joint.blocks), key=lambda block: rank(block.plan))
                whole = replace(single, blocks=tuple(blocks))
            evidence = evidence_by_block(whole)
            facts = ColumnFacts() if is_sparse(rows.frame) else ColumnFacts.of(schema, sample)
            weights = Weights.fit(EvidenceRows.of_fit(whole, sample, self.seed), evidence)
            return EvidenceFit(schema, whole, kept_rows(sample, schema), evidence, weights, facts)

    def _joint_plans(self, single: Generative, sample: Sample) -> tuple[Plan, ...]:
        """The blocks of several features; in a sample of many rows, without the kinds that gain nothing."""
        settings, schema = JointSettings(self.pairs, self.trees, self.seed), single.schema
        if sample.frame.rows <= kind_selection.FEWEST_ROWS:
            return joint_plans(single, sample, settings)
        keys = row_keys(sample.frame, schema.column_refs(sample.frame), self.seed)
        few = sampled(sample, keys, kind_selection.ROWS)
        without = kind_selection.kinds_without_gain(few, schema, single.plans, MISSING, settings)
        return joint_plans(single, sample, settings, without)

    def _single(self, rows: Labelled, schema: Schema) -> tuple[Generative, Sample, int]:
        """The statistics of features one by one, rows to fit weights on, and the number of rows."""
        plans = self.plans(schema, sparse=is_sparse(rows.frame))
        if isinstance(rows, Sample):
            count = rows.frame.rows if rows.weights is None else int(np.count_nonzero(rows.weights))
            return Generative.collect(rows, schema, plans, MISSING), self.sample(rows, schema), count
        observe = partial(FirstPass.of, schema, plans, MISSING, self.max_weight_rows, self.seed)
        first = rows.summed(observe, needs_small_batches=True)
        return first.evidence, first.sample.sample(), first.sample.rows

    def sample(self, rows: Labelled, schema: Schema) -> Sample:
        """At most about `max_weight_rows` of the rows of positive weight."""
        if not isinstance(rows, Sample):
            look = partial(RowSample.of, schema=schema, most=self.max_weight_rows, seed=self.seed)
            return rows.summed(look, needs_small_batches=True).sample()
        if rows.weights is not None and not rows.weights.all():
            rows = rows.take(np.flatnonzero(rows.weights))
        if rows.frame.rows <= self.max_weight_rows:
            return rows
        return sampled(rows, row_keys(rows.frame, schema.column_refs(rows.frame), self.seed), self.max_weight_rows)

    def plans(self, schema: Schema, *, sparse: bool) -> tuple[Plan, ...]:
        """The plan of each single feature."""
        return first_plans(schema, sparse=sparse, text=self.text_columns(schema))

    def text_columns(self, schema: Schema) -> list[int]:
        """The positions of the features that `text` names."""
        if isinstance(self.text, str) and self.text == "auto":
            return []
        if isinstance(self.text, str) or not isinstance(self.text, Sequence):
            raise DecibanError(f"text must be 'auto' or a list of columns, such as ['body'], not {self.text!r}")
        return [j for name in self.text for j in columns_of_key(name, schema, "text")]
