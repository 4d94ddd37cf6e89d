"""Structure: which features are read together, and how; chosen once, from some of the rows, before all are counted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deciban.data import Sample
from deciban.data.batch import NUMERIC, ColumnRef
from deciban.data.schema import Schema
from deciban.evidence.codings import COARSE, distinct, make_coding
from deciban.evidence.kinds import all_kinds
from deciban.evidence.mixed_columns import Codes, Coding
from deciban.generative.model import Generative
from deciban.generative.plan import Plan, rank, with_presence

if TYPE_CHECKING:
    from deciban.evidence.block_evidence import BlockEvidence

FINE = 253  # cuts of a number, for trees, at most
MOST_CUTS = 1 << 18  # of all features, for trees


@dataclass(frozen=True)
class SingleFeatures:
    """Indices of the features that are read one by one, by what they hold."""

    width: int  # of the schema
    numbers: tuple[int, ...] = ()
    categories: tuple[int, ...] = ()
    texts: tuple[int, ...] = ()
    word_counts: tuple[int, ...] = ()  # of sparse rows


def first_plans(schema: Schema, *, sparse: bool, text: Collection[int] = ()) -> tuple[Plan, ...]:
    """The blocks of single features that the kinds of evidence need."""
    kinds = schema.all_kinds
    if sparse:
        features = SingleFeatures(len(kinds), word_counts=tuple(range(len(schema.names))))
        return tuple(plan for kind in all_kinds() for plan in kind.plans(features))
    numbers = tuple(j for j, kind in enumerate(kinds) if kind in NUMERIC)
    texts = tuple(j for j, kind in enumerate(kinds) if kind == "text" or j in text)
    categories = tuple(j for j, kind in enumerate(kinds) if kind not in NUMERIC and j not in texts)
    features = SingleFeatures(len(kinds), numbers, categories, texts)
    plans = [plan for kind in all_kinds() for plan in kind.plans(features) if plan.columns]
    return tuple(with_presence(sorted(plans, key=rank)))


class CodedFeatures(NamedTuple):
    """Features that vary and do not repeat another, as codes."""

    columns: tuple[int, ...]  # (d) indices in the schema
    coding: Coding
    codes: Codes  # (n, d)


@dataclass(frozen=True)
class JointSettings:
    """How much is made of several features together."""

    pairs: int | None  # how many; None to choose
    trees: int  # of the forest; 0 for no boosted trees either
    seed: int
    boosting: tuple[int, int] | None = None  # ensembles of boosted trees and their rounds, at most; None: as usual


@dataclass(frozen=True)
class JointPlanning:
    """The input of plans for blocks of several features: single features, a sample of the rows, and settings."""

    single: Generative
    sample: Sample
    settings: JointSettings

    @cached_property
    def places(self) -> list[ColumnRef]:
        return self.single.schema.column_refs(self.sample.frame)

    @cached_property
    def fine(self) -> CodedFeatures | None:
        """Finely coded features; None if there are fewer than two of them, or of classes."""
        cuts = min(FINE, max(2 * COARSE, MOST_CUTS // len(self.single.schema.names)))
        columns, coding = make_coding(self.single, cuts)
        codes = coding.of(self.sample.frame, [self.places[j] for j in columns])
        kept = distinct(list(codes.T))
        if len(kept) < 2 or len(self.sample.labels.classes) < 2:
            return None
        return CodedFeatures(tuple(columns[i] for i in kept), coding.take(kept), np.asfortranarray(codes[:, kept]))


def joint_plans(
    single: Generative, sample: Sample, settings: JointSettings, without: Collection[type[BlockEvidence]] = ()
) -> tuple[Plan, ...]:
    """The blocks of several features that kinds of evidence need, given single features and a sample of rows.

    A feature that repeats another in all of these rows is left out, and so are some kinds.
    """
    planning = JointPlanning(single, sample, settings)
    kinds = (kind for kind in all_kinds() if kind not in without)
    return tuple(plan for kind in kinds for plan in kind.joint_plans(planning))
