"""Scorer: the interface of fitted parameters, which score every class of a row."""

from __future__ import annotations

from typing import Protocol

from deciban.contributions import By, Contributions
from deciban.data.batch import Frame
from deciban.data.schema import Schema
from deciban.types import FloatArray


class Scorer(Protocol):
    """score_c(x) = log p(c|x), up to a term common to all classes.

    Implemented by `generative.estimate.Estimate`, `evidence.weighted_evidence.WeightedEvidence` and
    `linear.predictor.Predictor`. K is the number of scores: one for each class, or one for a regression.
    """

    @property
    def schema(self) -> Schema:
        """The features that are read."""

    @property
    def log_prior(self) -> FloatArray:
        """(K) the scores of a row that is impossible under every class."""

    def joint(self, frame: Frame, out: FloatArray, first_row: int = 0, /) -> None:
        """out (n, K) = the scores; log p(c, x) for a generative model."""

    def needs_small_batches(self, frame: Frame) -> bool:
        """Whether rows have to be converted before they are scored."""

    def contributions(self, frame: Frame, by: By = "column") -> Contributions:
        """Scores as a sum: the prior, and what each feature, pair or term adds."""

    def column_shares(self, frame: Frame) -> FloatArray:
        """(n, d, K) what each feature adds."""

    def describe_columns(self) -> dict[int, str]:
        """What is done with each feature that is used (by position), in words."""
