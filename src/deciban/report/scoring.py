"""A fitted model as the JSON by which page/scoring.js scores and explains rows."""

from __future__ import annotations

from typing import Any

from deciban.errors import DecibanError
from deciban.evaluation.fitted_model import require_fitted_model
from deciban.export.javascript import to_javascript


def scoring(model: Any) -> dict[str, Any]:
    """What page/scoring.js needs to score rows by a fitted model; {"why": …} if the model cannot be exported.

    >>> import deciban as db
    >>> model = db.NaiveBayes().fit([["yes", 125], ["no", 100], ["no", 70], ["no", 95]], [0, 0, 1, 1])
    >>> score = scoring(model)
    >>> score["classes"], score["parts"]
    (['0', '1'], ['prior', '0', '1'])
    >>> [(column["kind"], column["levels"]) for column in score["columns"]]
    [('category', ['no', 'yes']), ('number', None)]
    """
    try:
        fitted = require_fitted_model(model)
        formula = fitted.base_model_.score_formula()
        corrections = [calibration.formula(formula.classes) for calibration in fitted.calibrations_]
        return to_javascript(formula, corrections)
    except DecibanError as error:
        return {"why": str(error)}
