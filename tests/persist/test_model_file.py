"""Stored models: they score as the estimator does, without its class and without heavy libraries."""

import copy
import subprocess
import sys
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import pytest
from typing_extensions import TypeAliasType

import deciban as db
from deciban import _kernels
from deciban.data.arrays import MatrixFrame
from deciban.evidence.evidence_by_block import evidence_by_block
from deciban.evidence.weighted_evidence import WeightedEvidence
from deciban.generative.estimate import Settings
from deciban.persist.codec import StoredModel
from deciban.persist.model_file import read_stored, write_stored
from deciban.persist.registry import HOMES, class_at
from deciban.persist.storage import read, write
from deciban.persist.validation import fits, hints_of

pytestmark = pytest.mark.filterwarnings("ignore::deciban.errors.LeakageWarning")  # a column that tells all

HEAVY = {"scipy", "pyarrow", "sklearn", "typer", "rich", "pandas", "hypothesis"}
RNG = np.random.default_rng(3)
N = 150
CLASSES = RNG.integers(0, 3, N)
LABELS = np.array(["ham", "spam", "egg"])[CLASSES]
X = np.column_stack(
    [
        RNG.normal(CLASSES[:, None], [1.0, 2.0, 5.0], (N, 3)),  # Gaussian, or bins and trees
        RNG.poisson(1.0 + CLASSES),
        RNG.integers(0, 4, N) + CLASSES % 2,  # Categorical
        RNG.random(N) < 0.2 + 0.2 * CLASSES,  # Bernoulli
        RNG.exponential(1.0 + CLASSES),
        RNG.poisson(4000.0, N) // (1 + CLASSES),  # factorials beyond a table
    ]
)
X[::7, 0] = np.nan
f = db.families
MODELS = {
    "naive Bayes": db.NaiveBayes(),
    "naive Bayes, mixed": db.NaiveBayes(
        {3: f.Poisson(), 7: f.Poisson(), 4: f.Categorical(), 5: f.Bernoulli(), 6: f.Exponential(), 1: f.Binned()},
        smoothing=0.5,
        class_prior="laplace",
        missing="category",
        unseen="reserve",
    ),
    "naive Bayes, words": db.NaiveBayes({tuple(range(3, 8)): f.Multinomial(), 2: f.Uniform()}),
    "evidence": db.EvidenceClassifier(pairs=2, trees=8),
    "evidence, even": db.EvidenceClassifier(trees=0, class_prior="uniform"),
}

# What a program does that only scores; it shares nothing with the tests' process.
SCORE = """
import sys
import numpy as np
from deciban import _kernels
from deciban.persist.model_file import read_stored
from deciban.display.explanation import Explanation
from deciban.generative.estimate import Settings
from deciban.data.arrays import MatrixFrame
from deciban.evidence.evidence_by_block import evidence_by_block
from deciban.evidence.weighted_evidence import WeightedEvidence

kind, params, state = read_stored(sys.argv[1])
evidence = state["generative_"]
if kind == "NaiveBayes":
    scorer = evidence.estimate(Settings(params["smoothing"], params["class_prior"], params["unseen"]))
else:
    scorer = WeightedEvidence(evidence, evidence_by_block(evidence), state["_weights"], params["class_prior"])
frame = MatrixFrame(np.load(sys.argv[2]))
out = np.empty((frame.rows, len(evidence.classes)))
scorer.joint(frame, out)
_kernels.normalise(out, scorer.log_prior, True)
str(Explanation.of(evidence.classes, scorer.contributions(frame), evidence.schema, frame))
np.save(sys.argv[3], out)
print(*sys.modules)
"""


@pytest.fixture(params=MODELS, scope="module")
def saved(request, tmp_path_factory):
    """A fitted model, and the file it is in."""
    model = MODELS[request.param].fit(X, LABELS)
    path = tmp_path_factory.mktemp("saved") / "model.deciban"
    model.save(path)
    return model, path


def test_stored_models_score_as_the_estimator_does_to_the_last_bit(saved):
    model, path = saved
    kind, params, state = read_stored(path)
    evidence = state["generative_"]
    assert kind == type(model).__name__
    assert params == model.get_params(deep=False)
    if kind == "NaiveBayes":
        scorer = evidence.estimate(Settings(params["smoothing"], params["class_prior"], params["unseen"]))
    else:
        scorer = WeightedEvidence(evidence, evidence_by_block(evidence), state["_weights"], params["class_prior"])
    for rows in (X[:1], X[7:8]):
        out = np.empty((1, 3))
        scorer.joint(MatrixFrame(rows), out)
        _kernels.normalise(out, scorer.log_prior, True)
        assert out.tobytes() == model.predict_log_proba(rows).tobytes()


@pytest.mark.parametrize("name", ["evidence", "evidence, even"])
def test_rows_with_unknown_columns_are_scored_by_a_file_to_the_last_bit(name, tmp_path):
    """Rows with missing cells in one, in several and in all columns."""
    table, path = X[:, :7], tmp_path / "model.deciban"  # without the column that tells all
    model = copy.deepcopy(MODELS[name]).fit(table, LABELS)
    model.save(path)
    again, weights = db.load(path), model.weights_.unknown
    assert weights.names
    assert len(weights.fold_values)
    for field in fields(weights):
        one, other = getattr(weights, field.name), getattr(again.weights_.unknown, field.name)
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), field.name
    rows = table[:40].copy()
    rows[np.random.default_rng(0).random(rows.shape) < np.linspace(0, 1, 40)[:, np.newaxis]] = np.nan
    rows[-1] = np.nan
    assert again.predict_log_proba(rows).tobytes() == model.predict_log_proba(rows).tobytes()
    assert again.explain(rows).nats.tobytes() == model.explain(rows).nats.tobytes()
    assert again.leave_one_out(table, LABELS).log_loss == model.leave_one_out(table, LABELS).log_loss


def test_scoring_a_row_imports_no_heavy_library(saved, tmp_path):
    model, path = saved
    row, result = tmp_path / "row.npy", tmp_path / "found.npy"
    np.save(row, X[:1])
    command = [sys.executable, "-c", SCORE, str(path), str(row), str(result)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert not {name.partition(".")[0] for name in done.stdout.split()} & HEAVY
    assert np.load(result).tobytes() == model.predict_log_proba(X[:1]).tobytes()


def test_a_stored_model_is_written_as_the_file_of_the_estimator(saved, tmp_path):
    _, path = saved
    write_stored(tmp_path / "again.deciban", read_stored(path))
    assert (tmp_path / "again.deciban").read_bytes() == path.read_bytes()


def test_stored_models_can_learn_more(tmp_path):
    path = tmp_path / "model.deciban"
    db.NaiveBayes().fit(X[:60], LABELS[:60]).save(path)
    kind, params, state = read_stored(path)
    more = db.NaiveBayes().fit(X[60:], LABELS[60:]).generative_
    write_stored(path, StoredModel(kind, params, state | {"generative_": state["generative_"] + more}))
    whole = db.NaiveBayes().fit(X, LABELS)
    assert db.load(path).predict_log_proba(X).tobytes() == whole.predict_log_proba(X).tobytes()


def test_what_cannot_be_read_again_is_not_written(tmp_path):
    parts = StoredModel("NaiveBayes", {"smoothing": "much"}, {})
    with pytest.raises(db.DecibanError, match=r"cannot be saved: model.params.smoothing is a builtins.str"):
        write_stored(tmp_path / "no.deciban", parts)
    assert not list(tmp_path.iterdir())


# Checks --------------------------------------------------------------------------------------------------------------


def test_every_name_is_of_a_class():
    for name, (module, result) in HOMES.items():
        assert class_at((module, result)).__module__ == module, name


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a model file."""
    path = tmp_path_factory.mktemp("whole") / "model.deciban"
    db.EvidenceClassifier(trees=2).fit(X, LABELS).save(path)
    return path.read_bytes()


def changed(path, change):
    tree, arrays = read(path)
    change(tree, arrays)
    write(path, tree, arrays)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda tree, arrays: tree["state"].clear(), "no fitted model"),
        (lambda tree, arrays: tree["state"].pop("_weights"), "lacks _weights"),
        (lambda tree, arrays: tree["state"].update(more=1), "has no 'more'"),
        (lambda tree, arrays: tree["params"].update(more=1), "has no 'more'"),
        (lambda tree, arrays: tree["params"].update(trees="many"), "trees is a builtins.str"),
        (lambda tree, arrays: tree.update({"is": "os.system"}), "does not know"),
        (lambda tree, arrays: tree.update({"is": "Savable"}), "does not know"),
        (lambda tree, arrays: tree["state"]["generative_"].update(classes=["b", "a"]), "not in order"),
        (lambda tree, arrays: arrays.update(more=np.zeros(1)), "nothing refers to the array 'more'"),
    ],
)
def test_damaged_files_are_refused_as_by_load(tmp_path, whole, change, match):
    path = tmp_path / "model.deciban"
    path.write_bytes(whole)
    changed(path, change)
    for reads in (read_stored, db.load):
        with pytest.raises(db.DecibanError, match="is damaged: "):
            reads(path)
    with pytest.raises(db.DecibanError, match=match):
        read_stored(path)


def test_a_file_of_another_model_is_refused_by_name(tmp_path):
    path = tmp_path / "model.deciban"
    db.Halfspace().fit([[0.0], [1.0]], [0, 1]).save(path)
    with pytest.raises(db.DecibanError, match="'Halfspace', which this version of deciban does not know"):
        read_stored(path)


def test_hints_are_there_at_run_time():
    """What is imported for type checkers alone is no field's type."""
    for home in HOMES.values():
        hints_of(class_at(home))


def test_an_array_fits_by_an_alias_of_its_type():
    """NDArray is a `type` alias since NumPy 2.5."""
    number = TypeVar("number")
    alias = TypeAliasType("alias", np.ndarray[Any, np.dtype[number]], type_params=(number,))
    assert fits(np.zeros(2), alias[np.float64])
    assert not fits(np.zeros(2), alias[np.int32])
    assert fits(3, TypeAliasType("alias", int | None))
