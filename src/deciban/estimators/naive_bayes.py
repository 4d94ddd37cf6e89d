"""NaiveBayes: any mix of families, features independent within each class."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from deciban.data import Labelled, Sample
from deciban.data.schema import Schema
from deciban.errors import DecibanError
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
    """Naive Bayes: features are independent within each class, so their evidence adds up.

    p(c|x) ∝ p(c) Π_j p(x_j|c)

    One pass over the rows; models merge, forget rows and go on learning. `smoothing`, `class_prior` and `unseen` may be
    changed after fit: parameters are estimated again from the counts.

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
    class_prior : "empirical", "laplace", "uniform", or probabilities, default "empirical"
        The probability of each class before any feature: the shares of the training rows; these with one more row for
        each class; equal; or given, in order of `classes_` or as {class: probability}.
    missing : "skip" or "category", default "skip"
        A missing value is ignored, or is a value of its own.
    unseen : "skip", "reserve" or "error", default "skip"
        A category never seen in training is ignored, has the probability of one more category, or raises an error.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The classes, sorted. Columns of `predict_proba` are in this order.
    class_count_ : array of shape (K,)
        The total weight of the training rows of each class. A class with few rows is estimated poorly.
    families_ : dict
        The family of each feature. Pass it as `families` of another model that should read features alike.
    smoothing_ : float
        The smoothing in use: the parameter, or what "auto" chose.
    family_comparisons_ : tuple of FamilyComparison
        How families="auto" chose: the mean decibans of each family, by feature. Empty otherwise.
    feature_importances_ : array of shape (n_features_in_,)
        The mean absolute decibans of each feature over training rows. Use them to see which features matter.
    column_evidence_ : Table
        The same with names, the most important first, and the mean decibans for the true class, which is negative for a
        feature that misleads.
    importances_ : array of shape (n_features_in_,) or None
        `feature_importances_`, but None instead of an error where they are unknown.
    columns_without_evidence_ : dict
        The features that add nothing, and why: constant, always missing, a copy of another. They can be dropped.
    column_treatments_ : dict of int to Treatment
        What is done with each feature (by position), and why, in words. Read it to check how a column was understood.
    n_parameters_ : int
        The number of free parameters: K − 1 of an estimated class prior, and those of every family.
    generative_ : Generative
        The sufficient statistics, which add and subtract: counts and sums, without smoothing or priors.
    estimate_ : Estimate
        The parameters, estimated from the statistics with the present settings. `summary()` shows them.
    scorer_ : Scorer
        What scores rows: `estimate_`.
    n_features_in_ : int
        The number of features. Arrays to predict need as many columns.
    feature_names_in_ : array of shape (n_features_in_,)
        The names of the features; only if X had names.
    label_name_ : str or None
        The column that y named, or None. Commands read the labels of other files from the column of this name.
    schema_ : Schema
        Names and kinds of the features as they were read. Look here if a column was taken for a wrong type.
    columns_ : ColumnReader
        Reads the columns of new rows as those of the fit were read. For engines and the command line.
    base_model_ : estimator
        The model itself. A `CalibratedClassifier` has the model that it corrects here.
    calibrations_ : tuple
        Empty: only a `CalibratedClassifier` has corrections.
    evidence_scale_ : float
        1.0: only a `CalibratedClassifier` rescales decibans.
    linear_fit_ : None
        Only linear models have one; `to_linear()` of a generative model makes one.

    See Also
    --------
    deciban.EvidenceClassifier : The same evidence with fitted weights; calibrated, and usually more accurate.
    deciban.GaussianDiscriminant : Numbers that are correlated within classes.
    deciban.CalibratedClassifier : Corrects overconfident probabilities.

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
            raise DecibanError(
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
            raise DecibanError(f"smoothing must be 'auto', or a number of 0 or more, not {self.smoothing!r}")
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
            raise DecibanError(f"missing must be 'skip' or 'category', not {self.missing!r}")
        return self.missing

    def _families(self) -> Families:
        return None if isinstance(self.families, str) else self.families

    def _unseen(self) -> Unseen:
        if self.unseen not in ("skip", "reserve", "error"):
            raise DecibanError(f"unseen must be 'skip', 'reserve' or 'error', not {self.unseen!r}")
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
