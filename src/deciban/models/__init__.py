"""scikit-learn estimators; the only room that imports scikit-learn."""

from deciban.models.calibrated import CalibratedClassifier
from deciban.models.evidence import EvidenceClassifier
from deciban.models.gaussian_discriminant import GaussianDiscriminant
from deciban.models.glm import GeneralizedLinearModel
from deciban.models.halfspace import Halfspace
from deciban.models.logistic import LogisticRegression, SoftmaxRegression
from deciban.models.naive_bayes import NaiveBayes
from deciban.models.saving import load

__all__ = [
    "CalibratedClassifier",
    "EvidenceClassifier",
    "GaussianDiscriminant",
    "GeneralizedLinearModel",
    "Halfspace",
    "LogisticRegression",
    "NaiveBayes",
    "SoftmaxRegression",
    "load",
]
