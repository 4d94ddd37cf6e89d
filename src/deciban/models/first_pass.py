"""The first pass over the rows of a fit: their evidence, and some of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from deciban.batch import Batch
from deciban.generative import Generative
from deciban.models.importances import kept_rows, rows_kept
from deciban.plans import Missing, Plan
from deciban.schema import Schema
from deciban.sources import Labelled, Sample
from deciban.sources.sampling import Few


@dataclass(frozen=True)
class FirstPass:
    """What a pass over rows brings: the evidence of columns, and some of the rows."""

    evidence: Generative
    few: Few

    @classmethod
    def of(
        cls, schema: Schema, plans: Sequence[Plan], missing: Missing, most: int, seed: int, batch: Batch
    ) -> FirstPass:
        return cls(Generative.observe(batch, schema, plans, missing), Few.of(batch, schema, most, seed))

    def __add__(self, other: FirstPass) -> FirstPass:
        return FirstPass(self.evidence + other.evidence, self.few + other.few)


def first_pass(rows: Labelled, schema: Schema, plans: Sequence[Plan], missing: Missing) -> tuple[Generative, Few]:
    """The evidence of all rows, and those that are kept for importances."""
    if isinstance(rows, Sample):
        return Generative.collect(rows, schema, plans, missing), kept_rows(rows, schema)
    found = rows.summed(_observe(schema, plans, missing), converts=True)
    return found.evidence, found.few


def first_pass_or_none(
    rows: Labelled, schema: Schema, plans: Sequence[Plan], missing: Missing
) -> tuple[Generative, Few] | None:
    """The same; None if there are no rows."""
    if isinstance(rows, Sample):
        return first_pass(rows, schema, plans, missing)
    found = rows.summed_or_none(_observe(schema, plans, missing), converts=True)
    return None if found is None else (found.evidence, found.few)


def _observe(schema: Schema, plans: Sequence[Plan], missing: Missing) -> Callable[[Batch], FirstPass]:
    return partial(FirstPass.of, schema, tuple(plans), missing, rows_kept(schema), 0)
