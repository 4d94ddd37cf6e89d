"""scikit-learn estimators; the only room that imports scikit-learn."""

from deciban.estimators.calibrated import CalibratedClassifier
from deciban.estimators.evidence_classifier import EvidenceClassifier
from deciban.estimators.gaussian_discriminant import GaussianDiscriminant
from deciban.estimators.glm import GeneralizedLinearModel
from deciban.estimators.halfspace import Halfspace
from deciban.estimators.logistic import LogisticRegression, SoftmaxRegression
from deciban.estimators.naive_bayes import NaiveBayes
from deciban.estimators.saving import load

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
