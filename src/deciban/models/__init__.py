"""scikit-learn estimators; the only room that imports scikit-learn."""

from deciban.models.gaussian_discriminant import GaussianDiscriminant
from deciban.models.naive_bayes import NaiveBayes

__all__ = ["GaussianDiscriminant", "NaiveBayes"]
