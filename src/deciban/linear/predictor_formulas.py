"""The scores of a linear predictor as formulas."""

from __future__ import annotations

from deciban.export.formulas import owners_of
from deciban.export.score_formula import ScoreFormula
from deciban.linear.predictor import Predictor
from deciban.types import Levels


def predictor_formula(
    predictor: Predictor, classes: Levels, mean: str | None = None, *, probabilities: bool = True
) -> ScoreFormula:
    """constant + Σ_features, in the order of `Predictor.contributions`; `mean` is the expression of a number's mean."""
    if len(predictor.constant) < len(classes):  # scores against the first class
        predictor = predictor.with_reference()
    owners = tuple((j,) for j in sorted(set(predictor.design.owners)))
    return ScoreFormula(
        predictor.schema,
        classes,
        predictor.log_prior,
        predictor.constant,
        predictor.start,
        owners,
        tuple(f for f in predictor.formula() if set(owners_of(f)) & set(owners)),
        mean=mean,
        probabilities=probabilities,
    )
