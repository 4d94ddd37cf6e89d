"""NaiveBayes: any mix of families, columns independent within each class."""

from __future__ import annotations

from deciban.generative import ClassPrior, Families, Missing, Plan, Unseen, make_plans
from deciban.models.generative import GenerativeClassifier
from deciban.schema import Schema


class NaiveBayes(GenerativeClassifier):
    """p(c|x) ∝ p(c) Π_j p(x_j|c): evidence of the columns, added up.

    Parameters
    ----------
    families : dict, family or None
        Which density each column has: {name, position or tuple of them: family}, or one family for all.
        Columns not named are typed: bool Bernoulli, text Categorical, numbers Gaussian; sparse rows are Multinomial.
    smoothing : float
        Laplace's α for Bernoulli, Categorical, Multinomial and Binned, the widening of Uniform; 0 is no smoothing.
    class_prior : "empirical", "laplace", "uniform", or probabilities (in order of classes_, or a dict)
    missing : "skip" or "category"
        A missing cell is left out, or its absence is a value of its own.
    unseen : "skip", "reserve" or "error"
        A category never seen in training gives no evidence, has the probability of one more category, or is refused.

    Smoothing, class_prior and unseen may be changed after fit: parameters are made anew from the evidence.

    Examples
    --------
    >>> import deciban as db
    >>> X = [["yes", 125], ["no", 100], ["no", 70], ["no", 95], ["no", 85], ["no", 90]]
    >>> model = db.NaiveBayes().fit(X, ["No", "No", "No", "Yes", "Yes", "Yes"])
    >>> model.predict([["no", 88], ["yes", 120]])
    array(['Yes', 'No'], dtype='<U3')
    >>> print(model.explain([["no", 88]]))
    row 0: Yes against No, in decibans
      prior         +0.00
      1             +7.35  ++++++++++++++++++++
      0             +1.25  +++
      log-odds      +8.60  odds 7.2 to 1
    """

    def __init__(
        self,
        families: Families = None,
        smoothing: float = 1.0,
        class_prior: ClassPrior = "empirical",
        missing: Missing = "skip",
        unseen: Unseen = "skip",
    ) -> None:
        self.families = families
        self.smoothing = smoothing
        self.class_prior = class_prior
        self.missing = missing
        self.unseen = unseen

    def _plans(self, schema: Schema, *, sparse: bool) -> tuple[Plan, ...]:
        return make_plans(schema, self.families, self._missing(), sparse=sparse)

    def _smoothing(self) -> float:
        if not self.smoothing >= 0:
            raise ValueError(f"smoothing must be 0 or more, not {self.smoothing!r}")
        return float(self.smoothing)

    def _missing(self) -> Missing:
        if self.missing not in ("skip", "category"):
            raise ValueError(f"missing must be 'skip' or 'category', not {self.missing!r}")
        return self.missing

    def _unseen(self) -> Unseen:
        if self.unseen not in ("skip", "reserve", "error"):
            raise ValueError(f"unseen must be 'skip', 'reserve' or 'error', not {self.unseen!r}")
        return self.unseen
