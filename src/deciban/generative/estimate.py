"""Estimate: the parameters of a generative model. It scores rows and explains the scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from deciban.contributions import By, Contributions, Line, title
from deciban.data.batch import UNSEEN, Coded, Frame
from deciban.data.matched_frame import MatchedFrame
from deciban.data.schema import Schema
from deciban.errors import BadCell, DecibanError, forbid_infinite
from deciban.families.family import Context
from deciban.generative.block import Block
from deciban.generative.plan import needs_small_batches
from deciban.types import FloatArray, IntArray, Level, Levels

if TYPE_CHECKING:
    from deciban.generative.model import Generative

ClassPrior = Literal["empirical", "laplace", "uniform"] | Sequence[float] | Mapping[Level, float]
Unseen = Literal["skip", "reserve", "error"]

FEW_CLASSES = 16  # below, scores are filled faster column by column than row by row


@dataclass(frozen=True)
class Settings:
    """How parameters are estimated, beside the settings of the families."""

    smoothing: float
    class_prior: ClassPrior
    unseen: Unseen
    shrinkages: tuple[float, ...] = ()  # of each block; () is 0 for all


@dataclass(frozen=True)
class Estimate:
    """p(c, x) = p(c) Π_blocks p(x_block | c), with parameters for each factor."""

    evidence: Generative
    log_prior: FloatArray  # (K)
    params: tuple[Any, ...]  # of each block
    contexts: tuple[Context, ...]
    settings: Settings

    @property
    def schema(self) -> Schema:
        return self.evidence.schema

    def joint(self, frame: Frame, out: FloatArray, row_numbers: int | IntArray = 0) -> None:
        """out (n, K) = log p(c) + Σ_blocks log p(x_block | c); errors number rows from, or by, `row_numbers`."""
        rows = self.match(frame, row_numbers)
        if len(self.log_prior) < FEW_CLASSES:
            for k, prior in enumerate(self.log_prior):
                out[:, k] = prior
        else:
            out[:] = self.log_prior
        for block, params in self._blocks():
            values = self.read(block, rows)
            with block.naming(rows):
                block.family.add_log_density(params, values, out)
                _require_finite(values, out)

    def match(self, frame: Frame, row_numbers: int | IntArray = 0) -> MatchedFrame:
        return MatchedFrame(self.evidence.schema, frame, row_numbers)

    def _blocks(self) -> Iterator[tuple[Block, Any]]:
        return zip(self.evidence.blocks, self.params, strict=True)

    def needs_small_batches(self, frame: Frame) -> bool:
        return needs_small_batches(self.evidence.plans, frame)

    def contributions(self, frame: Frame, by: By = "column") -> Contributions:
        """The prior, and what each feature (or block that cannot be split) and each term adds."""
        rows, names, classes = self.match(frame), self.evidence.schema.names, len(self.log_prior)
        nats_of: dict[tuple[int, ...], FloatArray] = {}
        terms: list[tuple[Line, FloatArray]] = []
        try:
            for block, params in self._blocks():
                values = self.read(block, rows)
                block.family.check(values)
                by_terms = block.family.lines(params, values, classes)
                if by_terms is not None:
                    terms += [(term.line(block.columns, names), term.nats) for term in by_terms]
                    continue
                parts = block.family.parts(params, values, classes)
                owners = [block.columns] if len(parts) != len(block.columns) else [(j,) for j in block.columns]
                for owner, part in zip(owners, parts, strict=True):
                    nats_of[owner] = nats_of[owner] + part if owner in nats_of else part
        except BadCell:
            self._name_bad_cell(frame)
            raise
        prior = np.broadcast_to(self.log_prior, (frame.rows, classes))
        order = sorted(nats_of)
        lines = [Line("prior"), *(Line(title(owner, names), owner) for owner in order), *(line for line, _ in terms)]
        nats = np.stack([prior, *(nats_of[owner] for owner in order), *(part for _, part in terms)], axis=1)
        if not np.isfinite(nats.sum()):
            self._name_bad_cell(frame)
        return Contributions(tuple(lines), nats)

    def column_shares(self, frame: Frame) -> FloatArray:
        """(n, features, K) what each feature adds; features of a block that cannot be split get equal shares."""
        rows = self.match(frame)
        out = np.zeros((frame.rows, len(self.evidence.schema.names), len(self.log_prior)))
        for block, params in self._blocks():
            columns = list(block.columns)
            parts = block.family.parts(params, self.read(block, rows), out.shape[2])
            split = len(parts) == len(columns)
            for i, part in enumerate(parts):
                owners = columns[i : i + 1] if split else columns
                out[:, owners] += part[:, np.newaxis] / len(owners)
        return out

    def describe_columns(self) -> dict[int, str]:
        """The density of each informative feature, in words."""
        described: dict[int, str] = {}
        for block, params in self._blocks():
            family, columns = block.plan.family, block.plan.columns
            index = family.silent(params)
            silent = {columns[i] for i in index} if len(columns) > max(index, default=-1) else set()
            for i, j in enumerate(columns):
                if not block.plan.presence and j not in silent:
                    described[j] = family.describe_column(params, i)
                elif block.plan.presence and j in described:
                    described[j] += "; and whether it is missing"
        return described

    def _name_bad_cell(self, frame: Frame) -> None:
        """Scores the rows again for an error that names the first bad cell, if there is one."""
        self.joint(frame, np.empty((frame.rows, len(self.log_prior))))

    def read(self, block: Block, rows: MatchedFrame) -> Any:
        """The values of a block; with unseen="error", an unseen level raises an error."""
        values = block.read(rows)
        if self.settings.unseen == "error" and isinstance(values, Coded) and (values.codes == UNSEEN).any():
            row, j = np.argwhere(values.codes == UNSEEN)[0].tolist()
            known = ", ".join(map(repr, values.levels[j][:10]))
            problem = f"was never seen in training (known: {known}); unseen='skip' ignores such values"
            raise rows.cell_error(block.columns[j], row, problem)
        return values


def _require_finite(values: Any, out: FloatArray) -> None:
    """Raises BadCell for an infinite value; it makes scores infinite or NaN, which is cheaper to check."""
    if isinstance(values, np.ndarray) and not np.isfinite(out.sum()):
        forbid_infinite(values)


def log_prior(counts: FloatArray, classes: Levels, prior: ClassPrior) -> FloatArray:
    """log p(c) from counts (…, K), with p(c) = n_c/n, (n_c + 1)/(n + K), 1/K, or as given.

    >>> np.exp(log_prior(np.array([1.0, 3.0]), ("no", "yes"), "laplace")).round(12)
    array([0.33333333, 0.66666667])
    """
    if isinstance(prior, str):
        weights = {"empirical": counts, "laplace": counts + 1.0, "uniform": np.ones_like(counts)}
        if prior not in weights:
            raise DecibanError(f"class_prior must be empirical, laplace, uniform or probabilities, not {prior!r}")
        weight = weights[prior]
    else:
        weight = _prior_probabilities(prior, classes)
    with np.errstate(divide="ignore"):
        result: FloatArray = np.log(weight) - np.log(weight.sum(axis=-1, keepdims=True))
    return np.broadcast_to(result, counts.shape).copy()


def _prior_probabilities(prior: Sequence[float] | Mapping[Level, float], classes: Levels) -> FloatArray:
    """(K) probabilities, checked."""
    if isinstance(prior, Mapping):
        missing = [c for c in classes if c not in prior]
        if missing:
            raise DecibanError(f"class_prior gives no probability for class {missing[0]!r}")
        p = np.array([float(prior[c]) for c in classes])
    else:
        p = np.asarray(prior, dtype=np.float64)
    if p.shape != (len(classes),):
        raise DecibanError(f"class_prior has {p.size} probabilities for {len(classes)} classes {list(classes)}")
    if not (p >= 0).all() or abs(p.sum() - 1) > 1e-9:
        raise DecibanError("class_prior must be probabilities that sum to 1")
    return p
