"""Evaluation of models on rows they were not fitted to. Any model will do, of this library or another."""

from deciban.evaluation.cross_validation import cross_validate, evaluate
from deciban.evaluation.evaluation import Evaluation
from deciban.evaluation.learning_curve import learning_curve
from deciban.evaluation.roc import Roc

__all__ = ["Evaluation", "Roc", "cross_validate", "evaluate", "learning_curve"]
