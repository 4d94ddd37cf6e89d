"""NaiveBayes: any mix of families, columns independent within each class."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from deciban.choices import Choice, Contest
from deciban.choosing import choose_smoothing, hold_contests
from deciban.generative import ClassPrior, Generative, Unseen
from deciban.models.generative import GenerativeClassifier
from deciban.plans import AnyFamily, Families, Missing, Plan, is_sparse, make_plans
from deciban.schema import Schema
from deciban.sources import Labelled, Sample
from deciban.table import Table
from deciban.types import Level


class NaiveBayes(GenerativeClassifier):
    """p(c|x) ∝ p(c) Π_j p(x_j|c): evidence of the columns, added up.

    Parameters
    ----------
    families : dict, family, "auto" or None
        Which density each column has: {name, position or tuple of them: family}, or one family for all.
        Columns not named are typed: bool Bernoulli, text Categorical, numbers Gaussian; sparse rows are Multinomial.
        "auto" chooses for each column of numbers between Gaussian, Exponential, Poisson and Binned (zeros and ones are
        Bernoulli) the one that, alone, foretells the class best, each row left out in its turn: see `families_`.
    smoothing : float or "auto"
        Laplace's α for Bernoulli, Categorical, Multinomial and Binned, the widening of Uniform; 0 is no smoothing.
        "auto" takes the α that foretells left-out cells best, from the counts alone: see `smoothing_`. It is chosen
        anew when the model has merged, forgotten or learned more.
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
      prior              +0.00
      column 1 = 88      +7.35  ++++++++++++++++++++
      column 0 = no      +1.25  +++
      log-odds           +8.60  odds 7.2 to 1
    """

    _contests: tuple[Contest, ...] = ()
    _last_choice: tuple[Generative, Unseen, Choice] | None = None
    _kept = GenerativeClassifier._kept | {"_contests": tuple[Contest, ...]}

    def __init__(
        self,
        families: Families | Literal["auto"] = None,
        smoothing: float | Literal["auto"] = 1.0,
        class_prior: ClassPrior = "empirical",
        missing: Missing = "skip",
        unseen: Unseen = "skip",
    ) -> None:
        self.families = families
        self.smoothing = smoothing
        self.class_prior = class_prior
        self.missing = missing
        self.unseen = unseen

    def _plans(self, schema: Schema, rows: Labelled) -> tuple[Plan, ...]:
        sparse = is_sparse(rows.frame)
        self._contests = ()
        if not isinstance(self.families, str):
            return make_plans(schema, self.families, self._missing(), sparse=sparse)
        if self.families != "auto":
            raise ValueError(
                f"families must be 'auto', a family or a dict of columns and families, not {self.families!r}"
            )
        self._contests = hold_contests(schema, rows) if isinstance(rows, Sample) and not sparse else ()
        chosen = {found.column: found.winner for found in self._contests}
        plans = make_plans(schema, chosen, self._missing(), sparse=sparse)
        # nobody asked for these families: a later cell that one cannot have is no evidence, and not an error
        return tuple(plan if plan.presence else replace(plan, lenient=True) for plan in plans)

    def _reads_to_choose(self) -> bool:
        return isinstance(self.families, str)

    def _smoothing(self, evidence: Generative) -> float:
        if isinstance(self.smoothing, str) and self.smoothing == "auto":
            return self._smoothing_choice(evidence).value
        if isinstance(self.smoothing, str) or not self.smoothing >= 0:
            raise ValueError(f"smoothing must be 'auto', or a number of 0 or more, not {self.smoothing!r}")
        return float(self.smoothing)

    def _smoothing_choice(self, evidence: Generative) -> Choice:
        """The last one is kept: evidence is a value, and so is what is chosen from it."""
        last = self._last_choice
        if last is None or last[0] is not evidence or last[1] != self.unseen:
            found = choose_smoothing(evidence, reserve=self._unseen() == "reserve")
            last = self._last_choice = (evidence, self.unseen, found)
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
    def smoothing_(self) -> float:
        """The smoothing in use: as given, or as chosen."""
        self._require_fitted()
        return self._smoothing(self.generative_)

    @property
    def families_(self) -> dict[Level, AnyFamily]:
        """The family of every column, to be passed as `families` to another model that shall read columns alike."""
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
            tables.append(Table("chosen by leave-one-out", ("", "value", "decibans a row", "over"), rows))
        if self._contests:
            tables.append(Table("families chosen by leave-one-out", CONTEST, tuple(map(_outcome, self._contests))))
        return tables


CONTEST = ("column", "family", "decibans a row", "next best", "its decibans")


def _outcome(found: Contest) -> tuple[object, ...]:
    order = sorted(found.decibans, key=lambda family: -found.decibans[family])
    cells = [cell for family in order[:2] for cell in (type(family).__name__, found.decibans[family])]
    return (found.column, *cells, *(["", None] if len(order) < 2 else []))
