"""Choices: what was chosen by leave-one-out, and by how much."""

from __future__ import annotations

from dataclasses import dataclass

from deciban.plans import AnyFamily
from deciban.types import Level


@dataclass(frozen=True)
class Choice:
    """A number that was chosen, and by how much it foretells a row better than another number would."""

    value: float
    other: float  # the default
    decibans: float  # a row


@dataclass(frozen=True)
class Contest:
    """How well each family foretells the classes from one column alone."""

    column: Level
    decibans: dict[AnyFamily, float]  # mean 10 log₁₀ p(c|x) with the row left out; nearer to 0 is better

    @property
    def winner(self) -> AnyFamily:
        """The best; of equals the simplest, which comes first."""
        return max(self.decibans, key=lambda family: self.decibans[family])
