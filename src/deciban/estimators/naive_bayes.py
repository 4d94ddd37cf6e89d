"""NaiveBayes: any mix of families, features independent within each class."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from deciban.data import Labelled, Sample
from deciban.data.schema import Schema
from deciban.estimators.generative_classifier import GenerativeClassifier
from deciban.evaluation.fitted_model import KINDS
from deciban.generative.classifier_state import NaiveBayesSettings, NaiveBayesState
from deciban.generative.estimate import Unseen
from deciban.generative.model import Generative
from deciban.generative.plan import AnyFamily, Families, Missing, Plan, is_sparse, make_plans
from deciban.generative.selection import FamilyComparison, Selection, choose_smoothing, compare_families
from deciban.table import Table
from deciban.types import Level


class NaiveBayes(NaiveBayesSettings, NaiveBayesState, GenerativeClassifier):  # type: ignore[misc]
    """p(c|x) ∝ p(c) Π_j p(x_j|c): the evidence of the features, added up.

    Parameters
    ----------
    families : dict, family, "auto" or None, default None
        The density of each feature: {name, position or tuple of them: family}, or one family for all.
        Features not named have the family of their type: bool Bernoulli, text Categorical, numbers Gaussian; sparse
        rows are Multinomial. "auto" chooses for each numeric feature among Gaussian, Exponential, Poisson and Binned
        (zeros and ones are Bernoulli) the one that alone predicts the class best, by leave-one-out: see `families_`.
    smoothing : float or "auto", default 1.0
        Laplace's α for Bernoulli, Categorical, Multinomial and Binned, the widening of Uniform; 0 is no smoothing.
        "auto" takes the α that predicts left-out values best, from the counts alone: see `smoothing_`. It is chosen
        again when the model has merged, forgotten or learned more.
    class_prior : "empirical", "laplace", "uniform", or probabilities (in order of classes_, or a dict)
    missing : "skip" or "category", default "skip"
        A missing value is ignored, or is a value of its own.
    unseen : "skip", "reserve" or "error", default "skip"
        A category never seen in training is ignored, has the probability of one more category, or raises an error.

    `smoothing`, `class_prior` and `unseen` may be changed after fit: parameters are estimated again from the counts.

    Attributes
    ----------
    classes_ : (K) array of the classes, sorted
    class_count_ : (K) array of the total weight of each class
    families_ : dict of the family of each feature
    smoothing_ : float, the smoothing in use
    family_comparisons_ : tuple of the comparisons by which families="auto" chose
    generative_ : Generative, the sufficient statistics
    estimate_ : Estimate, the parameters
    feature_importances_ : (d) array of mean absolute decibans
    column_evidence_ : Table of the features and their decibans
    columns_without_evidence_ : dict of the features that carry no evidence, and why
    n_parameters_ : int
    n_features_in_ : int
    feature_names_in_ : (d) array, if X had names
    label_name_ : str or None

    Examples
    --------
    >>> import deciban as db
    >>> X = [["yes", 125], ["no", 100], ["no", 70], ["no", 95], ["no", 85], ["no", 90]]
    >>> model = db.NaiveBayes().fit(X, ["No", "No", "No", "Yes", "Yes", "Yes"])
    >>> model.predict([["no", 88], ["yes", 120]])
    array(['Yes', 'No'], dtype='<U3')
    >>> print(model.explain([["no", 88]]))
    row 0: Yes against No, in decibans
      prior              +0.00
      column 1 = 88      +7.35  ++++++++++++++++++++
      column 0 = no      +1.25  +++
      log-odds           +8.60  odds 7.2 to 1
    """

    description = (
        "Each feature has a density in each class, and the evidence of features is added as if they were independent "
        "within a class."
    )

    _last_choice: tuple[Generative, Unseen, Selection] | None = None
    _state = NaiveBayesState

    def _plans(self, schema: Schema, rows: Labelled) -> tuple[Plan, ...]:
        sparse = is_sparse(rows.frame)
        self._contests = ()
        if not isinstance(self.families, str):
            return make_plans(schema, self.families, self._missing(), sparse=sparse)
        if self.families != "auto":
            raise ValueError(
                f"families must be 'auto', a family or a dict of columns and families, not {self.families!r}"
            )
        self._contests = compare_families(schema, rows) if isinstance(rows, Sample) and not sparse else ()
        chosen = {comparison.column: comparison.winner for comparison in self._contests}
        plans = make_plans(schema, chosen, self._missing(), sparse=sparse)
        # nobody asked for these families: a later value outside their support is missing, not an error
        return tuple(plan if plan.presence else replace(plan, lenient=True) for plan in plans)

    def _chooses_families(self) -> bool:
        return isinstance(self.families, str)

    def _smoothing(self, evidence: Generative) -> float:
        if isinstance(self.smoothing, str) and self.smoothing == "auto":
            return self._smoothing_choice(evidence).value
        if isinstance(self.smoothing, str) or not self.smoothing >= 0:
            raise ValueError(f"smoothing must be 'auto', or a number of 0 or more, not {self.smoothing!r}")
        return float(self.smoothing)

    def _smoothing_choice(self, evidence: Generative) -> Selection:
        """Chosen once for the same evidence, which is immutable."""
        last = self._last_choice
        if last is None or last[0] is not evidence or last[1] != self.unseen:
            chosen = choose_smoothing(evidence, reserve=self._unseen() == "reserve")
            last = self._last_choice = (evidence, self.unseen, chosen)
        return last[2]

    def _missing(self) -> Missing:
        if self.missing not in ("skip", "category"):
            raise ValueError(f"missing must be 'skip' or 'category', not {self.missing!r}")
        return self.missing

    def _families(self) -> Families:
        return None if isinstance(self.families, str) else self.families

    def _unseen(self) -> Unseen:
        if self.unseen not in ("skip", "reserve", "error"):
            raise ValueError(f"unseen must be 'skip', 'reserve' or 'error', not {self.unseen!r}")
        return self.unseen

    # What was chosen -----------------------------------------------------------------------------------------------

    @property
    def family_comparisons_(self) -> tuple[FamilyComparison, ...]:
        """How families="auto" chose the families of features."""
        return self._contests

    def _family_reasons(self, columns: Collection[int]) -> dict[int, str]:
        names, kinds, families = self.schema_.names, self.schema_.kinds, self._families()
        keys = families if isinstance(families, dict) else () if families is None else (tuple(names),)
        given = {str(name) for key in keys for name in (key if isinstance(key, tuple) else (key,))}
        why = {j: "chosen by families=" if str(names[j]) in given else KINDS[kinds[j]] for j in columns}
        compared = {comparison.column: _why_chosen(comparison) for comparison in self.family_comparisons_}
        return {j: compared.get(names[j], why[j]) for j in columns}

    @property
    def smoothing_(self) -> float:
        """The smoothing in use: the parameter, or what was chosen."""
        self._require_fitted()
        return self._smoothing(self.generative_)

    @property
    def families_(self) -> dict[Level, AnyFamily]:
        """The family of every feature; as `families` of another model it reads features alike."""
        self._require_fitted()
        names = self.generative_.schema.names
        plans = [plan for plan in self.generative_.plans if not plan.presence]
        pairs = [(plan.columns if plan.family.joint else (j,), plan.family) for plan in plans for j in plan.columns]
        return {names[key[0]] if len(key) == 1 else tuple(names[j] for j in key): family for key, family in pairs}

    def _chosen(self) -> list[Table]:
        tables = super()._chosen()
        if isinstance(self.smoothing, str):
            choice = self._smoothing_choice(self.generative_)
            rows = (("smoothing", choice.value, choice.decibans, choice.other),)
            tables.append(Table("chosen by leave-one-out", ("", "value", "mean decibans", "over"), rows))
        if self._contests:
            tables.append(Table("families chosen by leave-one-out", COMPARISON, tuple(map(_outcome, self._contests))))
        return tables


COMPARISON = ("column", "family", "mean decibans", "next best", "its decibans")


def _why_chosen(comparison: FamilyComparison) -> str:
    order = sorted(comparison.decibans.values(), reverse=True)
    lead = f", by {order[0] - order[1]:.3g} mean decibans" if len(order) > 1 else ""
    return f"the family that by itself predicts the class best{lead}, by leave-one-out"


def _outcome(comparison: FamilyComparison) -> tuple[object, ...]:
    order = sorted(comparison.decibans, key=lambda family: -comparison.decibans[family])
    cells = [cell for family in order[:2] for cell in (type(family).__name__, comparison.decibans[family])]
    return (comparison.column, *cells, *(["", None] if len(order) < 2 else []))
