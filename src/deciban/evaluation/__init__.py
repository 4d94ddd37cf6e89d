"""Models judged on rows they have not seen. Any model will do, of this library or another."""

from deciban.evaluation.learning_curve import learning_curve

__all__ = ["learning_curve"]
