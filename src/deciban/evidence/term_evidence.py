"""Evidence from terms: counts of words, and documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from deciban.contributions import TermLine
from deciban.evidence.block_evidence import AddShares, BlockEvidence, EvidencePiece, Rows, UnknownCells, centred
from deciban.families.family import Context, Fitted
from deciban.families.labelled_values import LabelledValues
from deciban.families.multinomial import Multinomial
from deciban.families.priors import Background
from deciban.families.text import Text
from deciban.generative.plan import Plan
from deciban.types import FloatArray

if TYPE_CHECKING:
    from deciban.evidence.structure import SingleFeatures
    from deciban.export.formulas import Formula
    from deciban.generative.block import Block
    from deciban.generative.model import Generative

# counts of words, and which are present; 300 virtual documents, with the word frequencies of all, shrink rare words
TEXTS = (Text(shapes=True), Text("bernoulli", shapes=True, prior=Background(300.0, 0.01)))
TERMS = "terms of documents"  # the description of a Text


class TermEvidence(BlockEvidence):
    """Counts of words (a Multinomial), or documents (a Text): one piece."""

    families = (Multinomial, Text)

    def __init__(self, columns: Sequence[int], family: Any, statistic: Any, context: Context) -> None:
        """statistic: the Totals of a Multinomial, or the Tokens of a Text."""
        self.columns, self.family, self.statistic, self.context = tuple(columns), family, statistic, context
        self.params: Any = family.estimate(statistic, context)
        self.explains_terms = isinstance(family, Text)
        self.description = TERMS if self.explains_terms else family.phrase
        kind = family.title if self.explains_terms else "words"
        self.pieces = (EvidencePiece(kind, self.columns, naive=kind == "words"),)
        if self.explains_terms:
            self.params, self.middle = family.centred(statistic, self.params)

    @classmethod
    def from_block(cls, block: Block, model: Generative) -> Self:
        return cls(block.columns, block.family, block.statistic, Context(model.classes, block.names))

    @classmethod
    def plans(cls, features: SingleFeatures) -> list[Plan]:
        plans = [Plan(family, (j,)) for j in features.texts for family in TEXTS]
        return [Plan(Multinomial(), features.word_counts), *plans] if features.word_counts else plans

    def evidence(self, rows: Rows) -> FloatArray:
        out = np.zeros((rows.values.shape[0], len(self.context.classes)))
        if rows.labels is None:
            self.family.add_log_density(self.params, rows.values, out)
        else:
            fitted = Fitted(self.statistic, self.params, self.context)
            labelled = LabelledValues(rows.values, rows.labels, rows.weights)
            self.family.leave_one_out(fitted, labelled, out, *([self.middle] if self.explains_terms else []))
        return centred(out)[:, np.newaxis]

    @property
    def n_parameters(self) -> int:
        return int(self.family.n_parameters(self.params))

    def unknown_cells(self, values: Any) -> UnknownCells | None:
        if not self.explains_terms:
            return None
        missing = values.places[:, :, 2] < 0
        return UnknownCells(self.columns, missing, np.zeros_like(missing))

    def formulas(self) -> list[tuple[int, Formula]]:
        """The evidence of each word, minus its mean over the classes."""
        (whole,) = self.family.formula(self.params)
        if not self.explains_terms:
            return [(0, replace(whole, slope=centred(whole.slope)))]
        absent = None if whole.absent is None else centred(whole.absent)
        return [(0, replace(whole, table=centred(whole.table), absent=absent))]

    def term_lines(self, values: Any, weights: FloatArray) -> Iterator[TermLine]:
        for term in self.family.lines(self.params, values, len(self.context.classes)):
            yield replace(term, nats=centred(term.nats) * weights[..., 0, :])

    def share_scorer(self) -> AddShares:
        """Each word is a feature; documents that are read together have equal shares."""
        columns = list(self.columns)

        def add(values: Any, weights: FloatArray, out: FloatArray) -> None:
            weight = weights[..., 0, :]
            if self.explains_terms:
                whole = self.evidence(Rows(values))[:, 0] * weight
                out[:, columns] += whole[:, np.newaxis] / len(columns)
                return
            parts = np.stack(self.family.parts(self.params, values, len(self.context.classes)), axis=1)
            out[:, columns] += centred(parts) * (weight if weight.ndim == 1 else weight[:, np.newaxis])

        return add
