"""A kind of evidence takes one file and one registry line: whether a number is even or odd, for example."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban.data import frame_of
from deciban.estimators.saving import ESTIMATORS
from deciban.evidence import kinds
from deciban.evidence.block_evidence import EvidencePiece
from deciban.evidence.kinds import Kind
from deciban.evidence.tables import Tables
from deciban.export.formulas import Code, Lookup
from deciban.families import Bernoulli
from deciban.generative.plan import Plan
from deciban.statistics import Moments
from tests.cli.runs import run

# What the file of the new kind would hold ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Parity(Bernoulli):
    """Counts odd numbers."""

    def check(self, values):
        """All whole numbers will do."""

    def collect(self, values, labels, weights, classes) -> Moments:
        return super().collect(values % 2, labels, weights, classes)


class ParityTables(Tables):
    families = (Parity,)

    def __init__(self, columns, statistic, class_rows):
        count, odd = statistic.count.value, statistic.sum_x.value
        tables = [np.stack([count[:, j] - odd[:, j], odd[:, j]]) for j in range(len(columns))]
        super().__init__([EvidencePiece("parity", (column,)) for column in columns], tables, class_rows)

    @classmethod
    def plans(cls, features):
        return [Plan(Parity(), features.numbers)] if features.numbers else []

    def codes(self, values):
        return np.where(np.isnan(values), -1, values % 2).astype(np.int32)

    def formulas(self):
        digits = [Code(p, 10, cuts=np.arange(0.5, 9.0)) for p in range(len(self.pieces))]
        tables = np.split(self.logs(), self.offsets[1:-1])
        return [(p, Lookup((p,), (digits[p],), np.tile(table, (5, 1)))) for p, table in enumerate(tables)]

    def describe(self, piece):
        return "even or odd"


LINE = Kind(f"{__name__}:ParityTables", "families.Parity", f"{__name__}:Parity")

# ---------------------------------------------------------------------------------------------------------------------

X = pd.DataFrame({"digit": np.random.default_rng(0).integers(0, 10, 150)})
Y = np.where((X["digit"] % 2 == 1) ^ (np.random.default_rng(1).random(150) < 0.1), "odd", "even")


@pytest.fixture(scope="module", autouse=True)
def registered():
    """With the line in `KINDS`, from which the registry of model files follows when it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinds, "KINDS", [*kinds.KINDS, LINE])
        patch.setattr(ESTIMATORS, "homes", ESTIMATORS.homes | kinds.stored_families(), raising=False)
        for cached in ("_names", "kinds"):
            patch.delitem(vars(ESTIMATORS), cached, raising=False)
        yield
        for cached in ("_names", "kinds"):
            vars(ESTIMATORS).pop(cached, None)


@pytest.fixture(scope="module")
def fitted():
    return db.EvidenceClassifier(pairs=0, trees=0).fit(X, Y)


def test_a_fit_gives_it_a_weight_and_an_explanation_its_decibans(fitted):
    assert fitted.weights_.values[fitted.weights_.kinds.index("parity")].all()
    assert fitted.score(X, Y) > 0.85
    assert fitted.leave_one_out(X, Y).accuracy > 0.85
    assert np.abs(fitted.weighted_evidence_.column_shares(frame_of(X))).min() > 1.0
    assert "digit" in str(fitted.explain(X[:1]))


def test_it_is_saved_and_loaded(fitted, tmp_path):
    fitted.save(tmp_path / "toy.deciban")
    loaded = db.load(tmp_path / "toy.deciban")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))


def test_a_report_shows_it(fitted):
    assert "even or odd" in fitted.report(X, Y).json()


def test_the_command_fits_and_explains_it(tmp_path):
    X.assign(kind=Y).to_csv(tmp_path / "rows.csv", index=False)
    run("fit", tmp_path / "rows.csv", "--label", "kind", "-o", tmp_path / "toy.deciban")
    assert "parity" in db.load(tmp_path / "toy.deciban").weights_.kinds
    assert "digit" in run("explain", tmp_path / "toy.deciban", tmp_path / "rows.csv", "--row", 3).stdout
    assert "proba_odd" in run("predict", tmp_path / "toy.deciban", tmp_path / "rows.csv").stdout
