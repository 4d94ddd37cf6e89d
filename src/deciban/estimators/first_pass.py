"""The first pass over the rows of a fit: their statistics, and a sample of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from deciban.data import Labelled, Sample
from deciban.data.batch import Batch
from deciban.data.sampling import RowSample
from deciban.data.schema import Schema
from deciban.estimators.importances import kept_rows, rows_kept
from deciban.generative.model import Generative
from deciban.generative.plan import Missing, Plan


@dataclass(frozen=True)
class FirstPass:
    """The statistics of rows, and a sample of them. Adding two gives those of the rows of both."""

    evidence: Generative
    sample: RowSample

    @classmethod
    def of(
        cls, schema: Schema, plans: Sequence[Plan], missing: Missing, most: int, seed: int, batch: Batch
    ) -> FirstPass:
        return cls(Generative.observe(batch, schema, plans, missing), RowSample.of(batch, schema, most, seed))

    def __add__(self, other: FirstPass) -> FirstPass:
        return FirstPass(self.evidence + other.evidence, self.sample + other.sample)


def first_pass(rows: Labelled, schema: Schema, plans: Sequence[Plan], missing: Missing) -> tuple[Generative, RowSample]:
    """The statistics of all rows, and a sample of rows to rank features by."""
    if isinstance(rows, Sample):
        return Generative.collect(rows, schema, plans, missing), kept_rows(rows, schema)
    total = rows.summed(_observe(schema, plans, missing), needs_small_batches=True)
    return total.evidence, total.sample


def first_pass_or_none(
    rows: Labelled, schema: Schema, plans: Sequence[Plan], missing: Missing
) -> tuple[Generative, RowSample] | None:
    """The same; None if there are no rows."""
    if isinstance(rows, Sample):
        return first_pass(rows, schema, plans, missing)
    total = rows.summed_or_none(_observe(schema, plans, missing), needs_small_batches=True)
    return None if total is None else (total.evidence, total.sample)


def _observe(schema: Schema, plans: Sequence[Plan], missing: Missing) -> Callable[[Batch], FirstPass]:
    return partial(FirstPass.of, schema, tuple(plans), missing, rows_kept(schema), 0)
