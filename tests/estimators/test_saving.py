"""save() and load(): what is loaded is what was saved, to the last bit, and no file can do harm."""

import copy
import json
import os
import pickle
import runpy
import subprocess
import sys
import warnings
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as TheirRegression

import deciban as db
from deciban import families as f
from deciban import priors, statistics
from deciban.estimators.saving import decode, encode, registry
from deciban.evidence.uninformative import ColumnFacts
from deciban.persist.storage import read, write
from tests import laws

ESTIMATORS = [kind for kind in registry().values() if hasattr(kind, "save")]
SUBJECTS = [
    *laws.subjects(statistics, statistics.Statistic, "tests.statistics"),
    *laws.subjects(f, f.Family, "tests.families"),
]
REFERENCES = Path(__file__).parents[1] / "references"
N = 90
RNG = np.random.default_rng(7)
CLASSES = RNG.integers(0, 3, N)
LABELS = np.array(["ham", "spam", "egg"])[CLASSES]
NUMBERS = RNG.normal(CLASSES[:, None], [1.0, 2.0, 1e-3], (N, 3))
COUNTS = RNG.poisson(1.0 + CLASSES[:, None], (N, 4)).astype(float)
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 1 / 3], N)
WITH_MISSING = np.where(RNG.random((N, 3)) < 0.1, np.nan, NUMBERS)
MIXED = pd.DataFrame(
    {
        "size": WITH_MISSING[:, 0],
        "colour": np.where(RNG.random(N) < 0.1, None, RNG.choice(["red", "blue", "green"], N)),
        "flag": RNG.random(N) < 0.3 + 0.2 * CLASSES,
        "visits": COUNTS[:, 0],
        "nothing": [None] * N,
    }
)
TOGETHER = MIXED.assign(
    flag=(MIXED["colour"] == "red") ^ (CLASSES == 0) ^ (COUNTS[:, 0] > 3)
)  # informative only together
MAILS = [" ".join(RNG.choice(["buy", "a", "book", "don't", f"only{i}", "été"], 4)) for i in range(N)]


@pytest.fixture(autouse=True, scope="module")
def _without_waiting_for_the_disk():
    """That files are synced is tested in test_storage; here are thousands of them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda descriptor: None)
        yield


def saved_and_loaded(model, tmp_path):
    """The model from a file that, saved again, is the same file."""
    first, second = tmp_path / "first.deciban", tmp_path / "second.deciban"
    model.save(first)
    loaded = db.load(first)
    loaded.save(second)
    assert first.read_bytes() == second.read_bytes()
    assert type(loaded) is type(model)
    assert sorted(os.listdir(tmp_path)) == ["first.deciban", "second.deciban"]
    return loaded


def bits(value):
    value = np.asarray(value)
    return value.dtype, value.shape, value.tolist() if value.dtype == object else value.tobytes()


def same_bits(a, b):
    assert bits(a) == bits(b)


def same_contents(a, b):
    """All that is kept of two models is the same, its types too."""
    first, second = ({}, {})
    assert encode(a, "model", first) == encode(b, "model", second)
    assert first.keys() == second.keys()
    for name in first:
        same_bits(first[name], second[name])


def quietly(ask):
    """What a call returns or raises; its warnings are said by both models alike."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ask()
        except db.DecibanError as error:
            return str(error)


METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "predict_joint_log_proba",
    "decision_function",
    "predict_mean",
)
ATTRIBUTES = (
    *("classes_", "coef_", "intercept_", "feature_names_in_", "n_features_in_", "n_parameters_", "smoothing_"),
    *("shrinkage_", "separable_", "axis_intercepts_"),
)
QUESTIONS = {
    **{name: lambda m, X, name=name: getattr(m, name)(X) for name in METHODS},
    **{name: lambda m, X, name=name: getattr(m, name) for name in ATTRIBUTES},
    "explain": lambda m, X: m.explain(X).nats,
    "summary": lambda m, X: repr(m.summary()) + repr(m.summary().tables),
    "families_": lambda m, X: repr(m.families_),
    "weights_": lambda m, X: m.weights_.values,
    "path_": lambda m, X: m.path_.rows,
    "inference_": lambda m, X: np.stack([m.inference_.standard_errors, m.inference_.p_values]),
    "_label_dtype": lambda m, X: str(m._label_dtype),
}


def answer_alike(a, b, X):
    """Every question that one can be asked the other answers, with the same bits."""
    asked = 0
    for name, ask in QUESTIONS.items():
        assert hasattr(a, name) == hasattr(b, name), name
        if hasattr(a, name):
            first, second = (quietly(lambda ask=ask, m=m: ask(m, X)) for m in (a, b))
            assert bits(first) == bits(second), name
            asked += 1
    assert asked > 3
    assert repr(a.get_params()) == repr(b.get_params())


def learn_alike(a, b, X, y):
    """Both go on as one would: more rows, other models, rows forgotten and left out."""
    rows = X.iloc[:20] if isinstance(X, pd.DataFrame) else X[:20]
    for ask in (
        lambda m: m.leave_one_out(rows, y[:20]).log_loss,
        lambda m: m.merge(copy.deepcopy(a)).predict_log_proba(rows),
        lambda m: "to_linear" in m.capabilities and m.to_linear().predict_log_proba(rows),
        lambda m: "to_linear" in m.capabilities and m.to_linear().coef_,
        lambda m: m.partial_fit(rows, y[:20]).predict_log_proba(rows),
        lambda m: m.partial_fit(rows, np.array(["new"] * 20)).predict_log_proba(rows),
        lambda m: m.forget(rows, y[:20]).predict_log_proba(rows),
    ):
        first, second = copy.deepcopy(a), copy.deepcopy(b)
        assert bits(quietly(lambda ask=ask, m=first: ask(m))) == bits(quietly(lambda ask=ask, m=second: ask(m)))
        same_contents(first, second)


# Every family, statistic and setting
GENERATIVE = {
    "gaussian": (db.NaiveBayes(), WITH_MISSING),
    "gaussian unbiased, with priors": (
        db.NaiveBayes(f.Gaussian(np.int64(1), priors.Normal(0.0, 2), priors.InverseGamma(2.0, 1.0))),
        WITH_MISSING,
    ),
    "poisson": (db.NaiveBayes(f.Poisson()), COUNTS),
    "poisson, virtual": (db.NaiveBayes(f.Poisson(priors.Virtual(2.0))), COUNTS),
    "exponential": (db.NaiveBayes(f.Exponential()), COUNTS + 0.5),
    "bernoulli": (db.NaiveBayes(f.Bernoulli(priors.Beta(2, 3))), COUNTS > 1),
    "bernoulli, threshold": (db.NaiveBayes(f.Bernoulli(threshold=1.5)), COUNTS),
    "bernoulli, sparse": (db.NaiveBayes(f.Bernoulli(threshold=0.5)), sp.csr_array(COUNTS)),
    "multinomial": (db.NaiveBayes(f.Multinomial(priors.Laplace(np.float32(0.1)))), COUNTS),
    "multinomial, sparse": (db.NaiveBayes(), sp.csr_array(COUNTS)),
    "categorical": (db.NaiveBayes(f.Categorical(), unseen="reserve"), COUNTS),
    "categorical, dirichlet by name": (
        db.NaiveBayes(f.Categorical(priors.Dirichlet({"red": 2.0, "blue": np.float64(1.5), "green": 3}))),
        MIXED[["colour"]],
    ),
    "categorical, virtual": (
        db.NaiveBayes(f.Categorical(priors.Virtual(3.0, np.full((3, 3), 1 / 9)))),
        MIXED[["colour"]],
    ),
    "categorical, text in an array": (db.NaiveBayes(unseen="error"), MIXED[["colour"]].to_numpy(dtype=object)),
    "binned": (db.NaiveBayes(f.Binned()), WITH_MISSING),
    "binned, coarse": (db.NaiveBayes(f.Binned("equal-frequency", count=4, cap=8)), WITH_MISSING),
    "binned, equal width": (db.NaiveBayes(f.Binned("equal-width", prior=priors.Laplace(2.0))), WITH_MISSING),
    "uniform": (db.NaiveBayes(f.Uniform()), WITH_MISSING),
    "joint gaussian": (db.NaiveBayes({(0, 2): f.MultivariateGaussian("per-class", 0.1)}), WITH_MISSING),
    "text": (db.NaiveBayes(), MAILS),
    "text, complement, hashed": (
        db.NaiveBayes(f.Text("complement", words=[1, 2], hash_bits=np.int64(9).item())),
        MAILS,
    ),
    "text beside others": (
        db.NaiveBayes({"mail": f.Text("bernoulli", characters=(3, 3), max_terms=20, prior=priors.Laplace(0.5))}),
        MIXED.assign(mail=MAILS),
    ),
    "many columns": (
        db.NaiveBayes(f.Binned(count=3)),
        np.where(np.arange(70) % 9, NUMBERS[:, :1] // np.arange(1.0, 71), np.nan),  # some without a cell
    ),
    "mixed": (db.NaiveBayes(class_prior={"ham": 0.5, "spam": 0.25, "egg": 0.25}), MIXED),
    "mixed, missing is a category": (db.NaiveBayes(missing="category", smoothing=np.float64(0.5)), MIXED),
    "auto families": (db.NaiveBayes("auto", missing="category"), MIXED),
    "auto smoothing": (db.NaiveBayes(smoothing="auto", class_prior=[0.2, 0.3, 0.5]), MIXED),
    "everything by name": (
        db.NaiveBayes({"size": f.Binned(), ("visits",): f.Poisson(), "flag": f.Bernoulli()}, class_prior="laplace"),
        MIXED,
    ),
    "discriminant": (db.GaussianDiscriminant(class_prior=np.array([0.25, 0.25, 0.5])), WITH_MISSING),
    "discriminant, per class": (db.GaussianDiscriminant("per-class", "oas", "unbiased"), WITH_MISSING),
    "discriminant, diagonal": (db.GaussianDiscriminant("diagonal", ddof="unbiased"), WITH_MISSING),
    "discriminant, auto": (db.GaussianDiscriminant(shrinkage="auto", class_prior="uniform"), NUMBERS),
    "discriminant, auto per class, named": (
        db.GaussianDiscriminant("per-class", "auto"),
        pd.DataFrame(NUMBERS, columns=["a", "b", "c"]),
    ),
    "discriminant, wishart": (db.GaussianDiscriminant(prior=priors.InverseWishart(5.0, np.eye(3))), NUMBERS),
    "discriminant, wishart of one number": (db.GaussianDiscriminant(prior=priors.InverseWishart(5.0, 2)), NUMBERS),
    "evidence": (db.EvidenceClassifier(pairs=3, trees=3), TOGETHER),
    "evidence of numbers": (db.EvidenceClassifier(0, np.int64(2), [0.2, 0.3, 0.5], random_state=7), WITH_MISSING),
    "evidence of text": (db.EvidenceClassifier(trees=3, text=["mail"]), MIXED.assign(mail=MAILS)),
    "evidence of words": (db.EvidenceClassifier(max_weight_rows=50, class_prior="laplace"), sp.csr_array(COUNTS)),
}
WITHOUT_TWIN = {"uniform", *(name for name, (model, _) in GENERATIVE.items() if type(model) is db.EvidenceClassifier)}


@pytest.mark.parametrize("name", GENERATIVE)
def test_a_generative_model_is_loaded_as_it_was(name, tmp_path):
    model, X = copy.deepcopy(fitted(name))
    loaded = saved_and_loaded(model, tmp_path)
    same_contents(model, loaded)
    answer_alike(model, loaded, X)
    learn_alike(model, loaded, X, LABELS)


def passes_its_check(subject, rows, rng):
    """Sums and differences of any rows, of any size, weight and class, are not called damaged."""
    a, b, _ = laws.split_in_three(subject, rows, rng)
    for statistic in [a, a + b, subject.of(rows), *([(a + b) - b] if subject.subtracts else [])]:
        statistic.check(rows.classes, subject.width(rows.values.shape[1]))


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_what_was_collected_passes_its_check(subject):
    laws.assert_laws(subject, [passes_its_check], examples=5)


def test_every_family_and_statistic_is_saved():
    kinds = set()
    for name in GENERATIVE:
        blocks = fitted(name)[0].generative_.blocks
        kinds |= {type(part) for block in blocks for part in (block.plan.family, block.statistic)}
    assert kinds >= {*laws.members(f, f.Family), *laws.members(statistics, statistics.Statistic)}


@pytest.mark.parametrize("name", [name for name in GENERATIVE if name not in WITHOUT_TWIN])
def test_a_twin_is_loaded_as_it_was(name, tmp_path):
    model, X = copy.deepcopy(GENERATIVE[name])
    whole = (X.dropna(axis=1, how="all").dropna() if isinstance(X, pd.DataFrame) else X).copy()
    labels = LABELS[whole.index] if isinstance(X, pd.DataFrame) else LABELS
    if isinstance(whole, np.ndarray) and whole.dtype == float:
        whole = np.nan_to_num(whole)
    twin = quietly(model.fit(whole, labels).to_linear)
    loaded = saved_and_loaded(twin, tmp_path)
    same_contents(twin, loaded)
    answer_alike(twin, loaded, whole)
    if len(twin.feature_names_) < 20:
        same_contents(*(quietly(lambda m=m: m.refine(whole, labels)) for m in (twin, loaded)))


LINEAR = {
    "logistic": (db.LogisticRegression(), NUMBERS, LABELS == "ham"),
    "logistic, three classes, penalised": (db.LogisticRegression(l2=np.float64(0.5)), MIXED, LABELS),
    "logistic, one column": (db.LogisticRegression(tol=1e-6, max_iter=np.int64(50)), NUMBERS[:, :1], LABELS),
    "logistic, gradient": (db.LogisticRegression("gradient", max_iter=20), NUMBERS, LABELS),
    "logistic, generative start": (db.LogisticRegression(init="generative"), NUMBERS, LABELS),
    "logistic, firth": (db.LogisticRegression(firth=True), NUMBERS, LABELS),
    "logistic, sparse": (db.LogisticRegression(l2=1.0), sp.csr_array(COUNTS), LABELS),
    "logistic, wide text": (
        db.LogisticRegression(l2=1.0),
        pd.DataFrame({"word": [f"word {i % 80}" if i % 7 else None for i in range(N)]}),
        LABELS,
    ),
    "softmax": (db.SoftmaxRegression(l2=1.0), MIXED, LABELS == "ham"),
    "glm gaussian": (db.GeneralizedLinearModel(), MIXED[["size", "colour"]], COUNTS[:, 1]),
    "glm gaussian, rank": (db.GeneralizedLinearModel(), np.hstack([NUMBERS, NUMBERS]), COUNTS[:, 1]),
    "glm poisson": (db.GeneralizedLinearModel("poisson", l2=0.1), NUMBERS, COUNTS[:, 1]),
    "glm exponential": (db.GeneralizedLinearModel("exponential"), COUNTS[:, :1], COUNTS[:, 1] + 0.5),
    "glm bernoulli": (db.GeneralizedLinearModel("bernoulli"), NUMBERS, LABELS == "spam"),
    "glm multinomial": (db.GeneralizedLinearModel("multinomial"), NUMBERS, LABELS),
    "halfspace": (db.Halfspace(), NUMBERS, LABELS == "ham"),
    "halfspace, separable": (db.Halfspace(), CLASSES[:, np.newaxis] * [[1.0, 0.0]], CLASSES == 2),
}


@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_model_is_loaded_as_it_was(name, tmp_path):
    model, X = copy.deepcopy(fitted(name))
    y = LINEAR[name][2]
    loaded = saved_and_loaded(model, tmp_path)
    same_contents(model, loaded)
    answer_alike(model, loaded, X)
    assert model.score(X, y) == loaded.score(X, y)
    if hasattr(model, "refine"):
        same_contents(*(quietly(lambda m=m: m.refine(X, y)) for m in (model, loaded)))
    if hasattr(model, "certificate_") and model.certificate_ is not None:
        same_bits(model.certificate_.rows, loaded.certificate_.rows)
        same_bits(model.certificate_.multipliers, loaded.certificate_.multipliers)


CALIBRATED = {
    "naive bayes": None,
    "with settings": db.NaiveBayes("auto", smoothing=0.5),
    "discriminant": db.GaussianDiscriminant("per-class"),
    "logistic": db.LogisticRegression(l2=1.0),
    "softmax": db.SoftmaxRegression(l2=1.0),
    "calibrated": db.CalibratedClassifier(db.NaiveBayes()),
}


@pytest.mark.parametrize("method", ["temperature", "isotonic"])
@pytest.mark.parametrize("name", CALIBRATED)
def test_a_calibrated_model_is_loaded_as_it_was(name, method, tmp_path):
    inner = copy.deepcopy(CALIBRATED[name])
    model = db.CalibratedClassifier(inner, method, cv=np.int64(3), random_state=3)
    quietly(lambda: model.fit(NUMBERS, LABELS, sample_weight=WEIGHTS))
    loaded = saved_and_loaded(model, tmp_path)
    same_contents(model, loaded)
    answer_alike(model, loaded, NUMBERS)
    if hasattr(model, "partial_fit"):
        for m in (model, loaded):
            m.partial_fit(NUMBERS[:10], LABELS[:10]).forget(NUMBERS[:5], LABELS[:5])
        same_contents(model, loaded)
        same_bits(model.merge(model).predict_proba(NUMBERS), loaded.merge(loaded).predict_proba(NUMBERS))


def test_every_estimator_is_saved():
    cases = [*GENERATIVE.values(), *LINEAR.values(), [db.CalibratedClassifier()]]
    public = {kind for name in db.__all__ if hasattr(kind := getattr(db, name), "save")}
    assert {type(case[0]) for case in cases} == public == set(ESTIMATORS)


# Labels, names and settings
LABELLED = {
    "int8": CLASSES.astype(np.int8),
    "uint16": CLASSES.astype(np.uint16),
    "big": CLASSES.astype(np.int64) * 10**15,
    "float": CLASSES.astype(np.float32),
    "bool": CLASSES > 0,
    "str": LABELS,
    "object": LABELS.astype(object),
    "mixed objects": np.array(["a", "bcd", "é"], dtype=object)[CLASSES],
    "list": LABELS.tolist(),
    "arrow": pa.array(LABELS.tolist()).dictionary_encode(),
    "many": np.array([f"class {i}" for i in range(N // 2)] * 2),
}


def test_labels_are_typed_as_they_were(tmp_path):
    two = {"int8": CLASSES.astype(np.int8) > 0, "int16": (CLASSES > 0).astype(np.int16), "bool": LABELS == "ham"}
    models = [(kind, LABELLED) for kind in (db.NaiveBayes(), db.SoftmaxRegression(l2=1.0))]
    models += [
        (kind, two) for kind in (db.LogisticRegression(), db.Halfspace(), db.GeneralizedLinearModel("bernoulli"))
    ]
    for unfitted, labels in models:
        for name, y in labels.items():
            model = quietly(lambda unfitted=unfitted, y=y: clone(unfitted).fit(NUMBERS[:, :2], y))
            loaded = saved_and_loaded(model, tmp_path)
            assert bits(model.classes_) == bits(loaded.classes_), (unfitted, name)
            assert bits(model.predict(NUMBERS[:, :2])) == bits(loaded.predict(NUMBERS[:, :2])), (unfitted, name)


@pytest.mark.parametrize("model", [db.NaiveBayes(), db.CalibratedClassifier(), db.LogisticRegression(l2=1.0)])
def test_a_label_column_is_remembered(model, tmp_path):
    table = MIXED.assign(kind=LABELS)
    loaded = saved_and_loaded(copy.deepcopy(model).fit(table, "kind"), tmp_path)
    assert loaded._label_name == "kind"
    assert loaded.feature_names_in_.tolist() == MIXED.columns.tolist()


def test_many_values_are_kept_in_order(tmp_path):
    words = [f"wörd {i % 70} \ud800 ''\"\\" if i % 50 else None for i in range(300)]
    words = [None if word is None else word.replace("\ud800", "\x00\n") for word in words]
    table = pd.DataFrame({"word": words, **{f"column {j}": np.arange(300.0) % (j + 2) for j in range(70)}})
    model = db.NaiveBayes({f"column {j}": f.Categorical() for j in range(70)}, missing="category")
    model.fit(table, np.arange(300) % 2)
    answer_alike(model, saved_and_loaded(model, tmp_path), table)
    assert "model.state.generative_.blocks.0.plan.columns" in read(tmp_path / "first.deciban")[1]


def test_a_model_that_forgot_everything_can_learn_again(tmp_path):
    model = db.NaiveBayes().fit(MIXED, LABELS).forget(MIXED, LABELS)
    loaded = saved_and_loaded(model, tmp_path)
    with pytest.raises(db.DecibanError, match="every row was forgotten"):
        loaded.predict(MIXED)
    same_contents(model.partial_fit(MIXED, LABELS), loaded.partial_fit(MIXED, LABELS))


def test_settings_may_be_changed_after_loading(tmp_path):
    model = db.NaiveBayes(f.Categorical()).fit(COUNTS, LABELS)
    loaded = saved_and_loaded(model, tmp_path)
    for m in (model, loaded):
        m.set_params(smoothing=3.0, class_prior="uniform", unseen="reserve")
    same_bits(model.predict_proba(COUNTS), loaded.predict_proba(COUNTS))


def test_of_two_models_merged_each_may_come_from_a_file(tmp_path):
    halves = [db.NaiveBayes().fit(MIXED[i::2], LABELS[i::2]) for i in range(2)]
    whole = db.NaiveBayes().fit(MIXED, LABELS)
    merged = saved_and_loaded(halves[0], tmp_path) + saved_and_loaded(halves[1], tmp_path)
    same_bits(merged.predict_proba(MIXED), whole.predict_proba(MIXED))


VALUES = [
    *(None, True, -(10**30), 0.1, -0.0, float("inf"), "é\ud800", (), (1, ("a", None)), [1, [2.5]], frozenset({"a"})),
    *(np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("text"), np.float64("nan"), np.dtype(np.int16)),
    *({"a": 1, (1, 2): [None], 3: {}}, range(2, 9, 3), f.Gaussian(ddof=1), priors.Dirichlet((1.0, 2.0))),
    *(tuple(range(100)), tuple(map(str, range(100))), (*map(str, range(100)), None, 3.5), (*range(100), 2**70)),
    tuple(i / 7 for i in range(100)),
    tuple(range(i % 3) if i % 3 == 1 else None for i in range(100)),
    tuple((i / 7,) * (i % 3) if i % 5 else None for i in range(100)),
    tuple((f"{i}", None, (2.5, i)) for i in range(100)),
    (None,) * 100,
    tuple(priors.Dirichlet((1.0 + i, 2.0)) for i in range(100)),
    (*(priors.Dirichlet((1.0, 2.0)) for i in range(100)), priors.Laplace(0.5)),
    (f.Poisson(),) * 100,
]


def test_values_come_back_as_they_were():
    for value in VALUES:
        arrays: dict[str, Any] = {}
        tree = json.loads(json.dumps(encode(value, "x", arrays), allow_nan=False))
        back = decode(tree, "x", arrays)
        assert type(back) is type(value), value
        assert repr(back) == repr(value)
        assert not arrays


ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(12).reshape(3, 4)[:, ::2],
    np.zeros((0, 3)),
    np.array(2.5),
    np.array([True, False]),
    np.array([1.5, -np.inf, np.nan], dtype=">f4"),
    np.array([["a", "bc"]]),
    np.array([None, "a", 2], dtype=object),
    np.array([], dtype=str),
]


def test_arrays_come_back_as_they_were():
    for array in ARRAYS:
        arrays: dict[str, Any] = {}
        back = decode(json.loads(json.dumps(encode(array, "x", arrays))), "x", arrays)
        assert back.shape == array.shape
        assert back.dtype == array.dtype.newbyteorder("=")
        assert np.array_equal(back, array, equal_nan=array.dtype.kind == "f")
        assert back.flags.f_contiguous >= array.flags.f_contiguous


def test_the_order_of_a_set_is_not_left_to_chance():
    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert list(one) != list(other)
    assert encode(one, "x", {}) == encode(other, "x", {})
    some = frozenset({"b", "a", 1, None, 0.5})
    assert decode(encode(some, "x", {}), "x", {}) == some


# What cannot be saved
class OwnFamily(f.Gaussian):
    pass


class OwnModel(db.NaiveBayes):
    pass


def unsavable():
    yield "OwnFamily", db.NaiveBayes(OwnFamily()).fit(NUMBERS, LABELS)
    yield "OwnModel", OwnModel().fit(NUMBERS, LABELS)
    yield "sklearn", db.CalibratedClassifier(TheirRegression()).fit(NUMBERS, LABELS)
    yield "Series", db.NaiveBayes(class_prior=pd.Series([0.2, 0.3, 0.5])).fit(NUMBERS, LABELS)
    yield "complex", db.NaiveBayes(class_prior=np.array([0.2, 0.3, 0.5 + 0j])).fit(NUMBERS, LABELS)
    yield "longdouble", db.NaiveBayes(smoothing=np.longdouble(1.0)).fit(NUMBERS, LABELS)
    itself: dict[Any, Any] = {}
    itself["itself"] = itself
    yield "contain themselves", db.NaiveBayes().fit(NUMBERS, LABELS).set_params(families=itself)
    yield "smoothing", db.NaiveBayes().fit(NUMBERS, LABELS).set_params(smoothing="much")


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.deciban"
    path.write_bytes(b"what was there")
    for word, model in unsavable():
        with pytest.raises(db.DecibanError, match=f"cannot be saved.*{word}"):
            model.save(path)
        assert path.read_bytes() == b"what was there"
        assert os.listdir(tmp_path) == ["model.deciban"]


def test_a_model_is_fitted_before_it_is_saved(tmp_path):
    for kind in ESTIMATORS:
        with pytest.raises(NotFittedError):
            kind().save(tmp_path / "model.deciban")
    assert not os.listdir(tmp_path)


# Hostile files
def parts(model):
    """The tree and the arrays of a file; those of a fitted model by its name."""
    arrays: dict[str, Any] = {}
    return encode(fitted(model)[0] if isinstance(model, str) else model, "model", arrays), arrays


@cache
def fitted(name):
    """A model that is not to be changed, and rows for it; some are fitted with weights."""
    weights = None if name in HOSTILE else WEIGHTS
    if name in GENERATIVE:
        model, X = copy.deepcopy(GENERATIVE[name])
        return model.fit(X, LABELS, sample_weight=weights), X
    if name in LINEAR:
        model, X, y = copy.deepcopy(LINEAR[name])
        return quietly(lambda: model.fit(X, y, sample_weight=weights)), X
    if name.endswith(" twin"):
        model, X = fitted(name.removesuffix(" twin"))
        return model.to_linear(), X
    return db.CalibratedClassifier(method=name).fit(NUMBERS, LABELS), NUMBERS


HOSTILE = [
    *("gaussian", "poisson", "bernoulli", "multinomial", "categorical", "binned", "uniform", "joint gaussian"),
    *("mixed, missing is a category", "auto families", "discriminant, auto", "discriminant, per class"),
    *("gaussian twin", "bernoulli twin", "categorical twin", "binned twin", "discriminant, wishart twin"),
    *("logistic", "logistic, three classes, penalised", "glm gaussian", "glm multinomial", "halfspace"),
    *("temperature", "isotonic", "evidence", "evidence of words", "many columns"),
]


def refused(path, tree, arrays, match="is damaged"):
    write(path, tree, arrays)
    with pytest.raises(db.DecibanError, match=match) as caught:
        db.load(path)
    assert str(path) in str(caught.value)


def put(tree, place, value):
    """The tree with another value at a place such as "state.generative_.classes.0"."""
    tree = copy.deepcopy(tree)
    *way, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    parent = tree
    for key in way:
        parent = parent[key]
    parent[last] = value
    return tree


class Trap:
    """A pickle of it makes a directory when it is loaded."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (os.mkdir, (self.target,))


def test_a_pickle_is_not_run(tmp_path):
    path = tmp_path / "model.deciban"
    path.write_bytes(pickle.dumps(Trap(str(tmp_path / "sprung"))))
    with pytest.raises(db.DecibanError, match="looks like a pickle"):
        db.load(path)
    assert os.listdir(tmp_path) == ["model.deciban"]


def test_a_class_that_is_not_in_the_registry_is_refused(tmp_path):
    tree, arrays = parts("gaussian")
    unknown = ["os.system", "builtins.eval", "deciban.estimators.saving.load", "Path", "object", "", None, 3, ["dict"]]
    for name in (*unknown, "Frame"):
        for place in ("params.families", "state.generative_.blocks.0.plan.family"):
            refused(tmp_path / "m.deciban", put(tree, place, {"is": name, "command": "true"}), arrays)
        refused(tmp_path / "m.deciban", {"is": name}, {})


LONG = {"is": "range", "ends": [0, 10**12, 1]}


def cells(*values):
    return {"is": "cells", "dtype": "object", "shape": [len(values)], "cells": [*values]}


NB, TWIN, GLM = "state.generative_", "state.predictor_.design.parts.0.encoder", "state.inference_"
FOREST, NORMALS, PAIRS, BOOSTED = (f"{NB}.blocks.{i}.plan.family" for i in range(4))  # of the model "evidence"
DAMAGES = [
    ("gaussian", NB + ".classes", ["ham", "spam"], "counts has words of shape"),
    ("gaussian", NB + ".classes", ["ham", "egg", "spam"], "classes are not in order"),
    ("gaussian", NB + ".classes", ["egg", "ham", "ham"], "classes are not in order, or one occurs twice"),
    ("gaussian", NB + ".classes", ["egg", "ham", 1.5], "a class is neither text nor a whole number"),
    ("gaussian", NB + ".classes", ["egg", "ham", ["spam"]], "classes is a builtins.tuple"),
    ("gaussian", NB + ".schema.names", {"is": "range", "ends": [0, 10**12, 1]}, "columns of 3 kinds"),
    ("gaussian", NB + ".schema.names", {"is": "range", "ends": [1, 4, 1]}, "columns are not numbered from 0"),
    ("gaussian", NB + ".schema.names", ["a", "b", "a"], "two columns have the same name"),
    ("gaussian", NB + ".schema.names", ["a", "b"], "2 columns of 3 kinds"),
    ("gaussian", NB + ".schema.kinds.0", "anything", "kinds is a"),
    ("gaussian", NB + ".missing", "perhaps", "missing is a"),
    ("gaussian", NB + ".blocks.0.plan.columns", [0, 1, 3], "a column that does not exist"),
    ("gaussian", NB + ".blocks.0.plan.columns", [0, 1, -1], "without columns"),
    ("gaussian", NB + ".blocks.0.plan.columns", [0, 1, 1], "twice"),
    ("gaussian", NB + ".blocks.0.plan.columns", [0, 1], "has words of shape"),
    ("gaussian", NB + ".blocks.0.plan.columns", [], "without columns"),
    ("gaussian", NB + ".blocks.0.plan.columns", [0, 1, "2"], "columns is a"),
    ("gaussian", NB + ".blocks.0.plan.family", {"is": "families.Categorical"}, "Categorical collects no Moments"),
    ("gaussian", NB + ".blocks.0.plan.family", {"is": "families.Uniform"}, "Uniform collects no Moments"),
    ("gaussian", NB + ".blocks.0.plan.family", {"is": "families.Gaussian", "prior": None}, "has no 'prior'"),
    ("gaussian", NB + ".blocks.0.plan.family", {"is": "families.Gaussian", "ddof": "one"}, "ddof is a"),
    ("gaussian", NB + ".blocks.0.plan.family", "Gaussian", "family is a builtins.str"),
    ("gaussian", NB + ".blocks.0.statistic.count", {"is": "Sum"}, "lacks words"),
    ("gaussian", NB + ".blocks.0.statistic", {"is": "array", "order": "C"}, "KeyError"),
    ("gaussian", NB, {"is": "families.Gaussian"}, "generative_ is a"),
    ("gaussian", "state", {}, "no fitted model"),
    ("gaussian", "state", {"_label_name": "kind"}, "state lacks generative_"),
    ("gaussian", "state.estimate_", 3, "has no 'estimate_'"),
    ("gaussian", "state.__class__", 3, "has no '__class__'"),
    ("gaussian", "state._label_dtype", {"is": "dtype", "name": "i4,(1000000,)f8"}, "unknown type"),
    ("gaussian", "state._label_dtype", {"is": "dtype", "name": "<U100000000"}, "unknown type"),
    ("gaussian", "params.smoothing", "much", "smoothing is a"),
    ("gaussian", "params.smoothing", 10**400, "smoothing is a"),
    ("gaussian", "params.smoothing", {"is": "scalar", "dtype": "float64", "value": [1, 2]}, "a scalar that holds"),
    ("gaussian", "params.class_prior", {"is": "NaiveBayes", "params": {}, "state": {}}, "class_prior is a"),
    ("gaussian", "params.class_prior", {"is": "range", "ends": [0, 10**18, 1]}, "class_prior is a"),
    ("gaussian", "params.class_prior", cells(LONG), "a cell that is neither a number nor text"),
    ("gaussian", "params.families", {"is": "dict", "pairs": [[LONG, {"is": "families.Gaussian"}]]}, "families is a"),
    ("gaussian", "params.verbose", True, "has no 'verbose'"),
    ("categorical", NB + ".blocks.0.statistic.levels.0", [0, 1, 2], "table has words of shape"),
    ("categorical", NB + ".blocks.0.statistic.levels.0.0", 10**30, "not in order"),
    ("categorical", NB + ".blocks.0.statistic.levels.0.1", 0, "or occur twice"),
    ("categorical", NB + ".blocks.0.statistic.levels.0.0", {"is": "list", "items": []}, "levels is a"),
    ("categorical", NB + ".blocks.0.statistic.levels", [], "levels of 0 columns"),
    ("categorical", NB + ".blocks.0.plan.presence", True, "cannot read presence"),
    ("categorical", "params.families.prior", {"is": "priors.Normal", "mean": 0.0, "sd": 1.0}, "prior is a"),
    ("categorical", "params.families.prior", {"is": "priors.Laplace", "alpha": -1.0}, "alpha must be 0 or more"),
    ("binned", NB + ".blocks.0.statistic.cap", 10**30, "cap"),
    ("binned", NB + ".blocks.0.statistic.cap", 3, "cap"),
    ("binned", NB + ".blocks.0.plan.family.count", 10**12, "count must be from 1 to 1048576"),
    ("text", NB + ".blocks.0.plan.presence", True, "a family of texts cannot read presence"),
    ("binned", NB + ".blocks.0.statistic.keys", [], "3 columns"),
    ("discriminant, per class", NB + ".blocks.0.statistic.shared", True, "another kind of covariance"),
    ("discriminant, auto", "state._shrinkages.pairs.0.1.value", 2.0, "a shrinkage of 2"),
    ("discriminant, auto", "state._shrinkages.pairs.0.0", {"is": "list", "items": []}, "unhashable"),
    ("gaussian twin", TWIN + ".natural.columns.0", 3, "a feature of an unknown column"),
    ("gaussian twin", TWIN + ".natural.names", ["x"], "eta has shape"),
    ("gaussian twin", TWIN + ".params", 3, "has no int"),
    ("gaussian twin", TWIN + ".levels", [[], [], []], "levels of numbers"),
    ("gaussian twin", TWIN + ".plan.columns", [0, 2, 1], "do not count from 0"),
    ("gaussian twin", TWIN + ".plan.family", {"is": "families.Poisson"}, "Poisson has no GaussianParams"),
    ("categorical twin", TWIN + ".levels", None, "categories without levels"),
    ("gaussian twin", "state.classes_.shape", [3, 1], "other classes"),
    ("gaussian twin", "state.classes_.shape", [1 << 40, 1 << 40], "cells for a shape"),
    ("gaussian twin", "state.classes_.cells", ["a", "b", "c"], "other classes"),
    ("gaussian twin", "state._classes", ["egg", "ham"], "other classes"),
    ("logistic", "state.predictor_.design.parts.0.columns", [0, 1, 3], "features of an unknown column"),
    ("logistic", "state.predictor_.design.parts.0.columns", [0, 1], "features of 3 columns instead of 2"),
    ("logistic", "state.predictor_.design.parts.0.encoder.labels", [0, 1, 1], "names of other columns"),
    ("logistic", "state.predictor_.design.parts.0.columns.0", False, "columns is a"),
    ("logistic", "state.predictor_.design.parts", [], "coefficients has shape"),
    ("logistic", "state.path_.header", ["one"], "as long as the header"),
    ("logistic", "state.path_.rows.0.0", LONG, "rows is a"),
    ("logistic", "state.path_.rows.0.0", {"is": "list", "items": [LONG]}, "rows is a"),
    ("glm gaussian", "params.family", "bernoulli", "a bernoulli response with 0 classes"),
    ("glm multinomial", "params.family", "gaussian", "a gaussian response with 3 classes"),
    ("glm multinomial", GLM + ".undetermined", [99], "undetermined"),
    ("halfspace", "state.separable_", "yes", "separable_ is a"),
    ("temperature", "state.model_", {"is": "NaiveBayes", "params": {}, "state": {}}, "no fitted classifier"),
    ("temperature", "params.model", 3, "model is no model"),
    ("temperature", "state.evidence_", {"is": "families.Gaussian"}, "evidence_ is a"),
    ("isotonic", "state.evidence_.classes", ["ham"], "levels of shape"),
    ("evidence", FOREST + ".reading.cuts.0", [1.0, 0.5], "cuts do not ascend"),
    ("evidence", FOREST + ".reading.cuts.0", [1.0, 1.0], "cuts do not ascend"),
    ("evidence", FOREST + ".reading.cuts.0", [1.0, {"is": "float", "text": "inf"}], "cuts do not ascend"),
    ("evidence", FOREST + ".reading.cuts.0", [float(i) for i in range(255)], "a column has 257 codes"),
    ("evidence", FOREST + ".reading.cuts.0", None, "both cuts and values, or neither"),
    ("evidence", FOREST + ".reading.cuts.1", [0.5], "both cuts and values, or neither"),
    ("evidence", FOREST + ".reading.cuts", [[0.5]], "cuts of 1 columns, values of 4"),
    ("evidence", FOREST + ".reading.levels.1", ["red", "red"], "a value is repeated"),
    ("evidence", FOREST + ".reading", {"is": "Coding", "cuts": [[0.5]], "levels": [None]}, "splits an unknown column"),
    ("evidence", FOREST + ".reading", {"is": "families.Gaussian"}, "reading is a"),
    ("evidence", FOREST + ".seed", -1, "the seed -1 is out of range"),
    ("evidence", NB + ".blocks.0.plan.columns", [0, 1, 2], "4 columns are read instead of 3"),
    ("evidence", NB + ".blocks.0.plan.columns", [0, 1, 2, 9], "a column that does not exist"),
    ("evidence", NORMALS + ".reading.spread.0", 0.0, "a spread is not above 0"),
    ("evidence", NORMALS + ".reading.middle.0", {"is": "float", "text": "nan"}, "a spread is not above 0"),
    ("evidence", NORMALS + ".reading.middle.0", None, "both a number and a category, or neither"),
    ("evidence", NORMALS + ".reading.levels.1", [], "a value is repeated, or there is none"),
    ("evidence", NORMALS + ".reading.levels.1", ["red", "blue"], "origin has shape"),
    ("evidence", NORMALS + ".reading.spread", [1.0], "of different columns"),
    ("evidence", NORMALS + ".reading.range.0", None, "both a number and a category, or neither"),
    ("evidence", NORMALS + ".reading.range.0", [1.0, 0.0], "a spread is not above 0"),
    ("evidence", NORMALS + ".reading.range.0", [0.0], "range is a"),
    ("evidence", NORMALS + ".reading.range", [], "of different columns"),
    ("evidence", PAIRS + ".pairs.0", [1, 3], "pairs of unknown columns"),
    ("evidence", PAIRS + ".pairs.0", [-1, 0], "pairs of unknown columns"),
    ("evidence", PAIRS + ".pairs.0", [1, 1], "pairs of unknown columns"),
    ("evidence", PAIRS + ".pairs.0", [0, 1, 2], "pairs is a"),
    ("evidence", PAIRS + ".pairs", [], "pairs of unknown columns"),
    ("evidence", PAIRS + ".pairs", [[0, 1], [1, 0]], "has words of shape"),
    ("evidence", PAIRS + ".least", -1.0, "the least gain is -1"),
    ("evidence", PAIRS + ".least", {"is": "float", "text": "inf"}, "the least gain is inf"),
    ("evidence", PAIRS + ".least", {"is": "float", "text": "nan"}, "the least gain is nan"),
    ("evidence", PAIRS, {"is": "families.Categorical"}, "Categorical collects no Cells"),
    ("evidence", BOOSTED + ".classes", ["egg", "ham", "ham"], "a class is repeated"),
    ("evidence", BOOSTED + ".classes", ["egg", "ham"], "values of leaves are missing"),
    ("evidence", BOOSTED + ".reading", {"is": "Coding", "cuts": [[0.5]], "levels": [None]}, "an unknown column"),
    ("evidence", BOOSTED + ".seed", -1, "the seed -1 is out of range"),
    ("evidence", NB + ".blocks.6.plan.family", {"is": "families.Poisson"}, "Poisson"),
    ("evidence", NB + ".blocks.7.plan.presence", False, "Bernoulli"),
    ("evidence", "state._weights.classes", ["egg", "ham", "ham"], "a class is repeated"),
    ("evidence", "state._weights.classes", ["egg", "ham"], "changes do not match the weights"),
    ("evidence", "state._weights.kinds", ["pair"], "changes do not match the weights"),
    ("evidence", "state._weights.columns", [["size"]], "weights of"),
    ("evidence", "state._column_evidence.weight", 0.0, "from rows of weight 0"),
    ("evidence", "state._column_evidence.weight", "many", "weight is a"),
    ("gaussian", "state._column_evidence", 3, "_column_evidence is a"),
    ("evidence", "state._weights.prior_share", "most", "prior_share is a"),
    ("evidence", "state._weights.prior_share", -0.1, "the share of the prior is -0.1"),
    ("evidence", "state._weights.prior_share", 1.1, "the share of the prior is 1.1"),
    ("evidence", "state._weights.prior_share", {"is": "float", "text": "nan"}, "the share of the prior is nan"),
    ("evidence", "state._weights.shares", {"is": "dict", "pairs": [["prior", 1.5]]}, "not from 0 to 1"),
    ("evidence", "state._weights.shares", {"is": "dict", "pairs": [[7, 0.5]]}, "shares is a"),
    ("evidence", "state._weights.unknown", None, "unknown is a"),
    ("evidence", "state._weights.unknown.names", ["size", "size", "flag", "visits"], "is repeated"),
    ("evidence", "state._weights.unknown.names", ["size", "colour"], "is repeated"),
    ("evidence", "state._weights.unknown.names", "size", "names is a"),
    ("evidence", "state._weights.unknown.informative", [True], "is repeated"),
    ("evidence", "state._weights.unknown.informative", ["yes"] * 4, "informative is a"),
    ("evidence", "state._weights", None, "_weights is a"),
    ("gaussian", "state._weights", None, "has no '_weights'"),
    ("evidence", "params.pairs", "all", "pairs is a"),
    ("evidence", "params.trees", 2.5, "trees is a"),
    ("evidence", "params.text", {"is": "list", "items": [LONG]}, "text is a"),
]


@pytest.mark.parametrize("name", dict.fromkeys(name for name, *_ in DAMAGES))
def test_what_does_not_belong_there_is_refused(name, tmp_path):
    tree, arrays = parts(name)
    for other, place, value, match in DAMAGES:
        if other == name:
            refused(tmp_path / "m.deciban", put(tree, place, value), arrays, match)


CHANGES = ("values", "bias", "fold_values", "fold_bias")


def test_evidence_without_weights_is_refused(tmp_path):
    tree, arrays = parts("evidence")
    del tree["state"]["_weights"]
    refused(tmp_path / "m.deciban", tree, {key: array for key, array in arrays.items() if "_weights" not in key})


def test_trees_that_lead_nowhere_or_round_and_round_are_refused(tmp_path):
    assert fitted("evidence")[0].generative_.blocks[0].plan.family.column[0] >= 0
    place = "model.state.generative_.blocks.0.plan.family"
    for column, left, match in [
        (4, None, "splits an unknown column"),
        (-2, None, "splits an unknown column"),
        (-1, 0, "leaves are not numbered in order"),
        (None, 0, "the children of a node do not follow it in its tree"),
        (None, -1, "the children of a node do not follow it in its tree"),
        (None, 1 << 30, "the children of a node do not follow it in its tree"),
        (0, (1 << 31) - 1, "the children of a node do not follow it in its tree"),
    ]:
        tree, arrays = parts("evidence")
        for name, value in (("column", column), ("left", left)):
            if value is not None:
                arrays[f"{place}.{name}"] = with_value(arrays[f"{place}.{name}"], value, 0)
        refused(tmp_path / "m.deciban", tree, arrays, match)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("starts", 10**6, "trees are missing"),
        ("column", 4, "a tree splits an unknown column"),
        ("column", -2, "a tree splits an unknown column"),
        ("code", 300, "a tree splits at an unknown code"),
        ("code", -1, "a tree splits at an unknown code"),
        ("value", np.nan, "a value of a leaf is not finite"),
        ("value", np.inf, "a value of a leaf is not finite"),
        ("rows", 0.0, "a leaf has no rows"),
        ("rows", np.nan, "a leaf has no rows"),
    ],
)
def test_trees_with_other_values_are_refused(name, value, match, tmp_path):
    tree, arrays = parts("evidence")
    key = f"model.{BOOSTED}.{name}"
    arrays[key] = with_value(arrays[key], value, -1 if name == "starts" else 0)
    refused(tmp_path / "m.deciban", tree, arrays, match)


def with_value(array, value, place=-1):
    """A copy with another value at one place."""
    changed = array.copy()
    changed.flat[place] = value
    return changed


def test_weights_that_are_none_are_refused(tmp_path):
    tree, arrays = parts("evidence")
    for name, value, match in [
        ("values", -0.5, "a weight is below 0"),
        ("values", np.nan, "weights is not finite"),
        ("bias", np.inf, "bias is not finite"),
        ("fold_values", -0.5, "a weight is below 0"),
        ("fold_values", np.nan, "fold_values is not finite"),
        ("fold_bias", np.inf, "fold_bias is not finite"),
        *((f"unknown.{name}", value, "changes.* is not finite") for name in CHANGES for value in (np.nan, -np.inf)),
    ]:
        key = f"model.state._weights.{name}"
        refused(tmp_path / "m.deciban", tree, arrays | {key: with_value(arrays[key], value)}, match)


def test_weights_of_another_shape_are_refused(tmp_path):
    """Cut along any of their axes, or with one axis more or less."""
    tree, arrays = parts("evidence")
    for name in (*CHANGES, *(f"unknown.{name}" for name in CHANGES)):
        key = f"model.state._weights.{name}"
        array = arrays[key]
        cuts = [np.delete(array, -1, axis).copy() for axis in range(array.ndim)]
        for changed in (*cuts, array[np.newaxis].copy(), *([array.reshape(-1)] if array.ndim > 1 else [])):
            refused(tmp_path / "m.deciban", tree, arrays | {key: changed})


def test_changes_of_other_pieces_or_classes_are_refused(tmp_path):
    """Whose shapes agree with each other: of a piece less, or of a class less."""
    tree, arrays = parts("evidence")
    keys = {name: f"model.state._weights.unknown.{name}" for name in CHANGES}
    piece = {keys[name]: arrays[keys[name]][..., :-1, :].copy() for name in CHANGES if "values" in name}
    label = {keys[name]: arrays[keys[name]][..., :-1].copy() for name in CHANGES}
    for changed in (piece, label):
        refused(tmp_path / "m.deciban", tree, arrays | changed, "changes do not match the weights")


def test_weights_of_other_folds_are_refused(tmp_path):
    """Rows would be dealt to folds that have no weights."""
    tree, arrays = parts("evidence")
    for place, match in (("unknown.", "changes of weights for 3 folds"), ("", "weights of 3 folds")):
        keys = [f"model.state._weights.{place}{name}" for name in ("fold_values", "fold_bias")]
        refused(tmp_path / "m.deciban", tree, arrays | {key: arrays[key][:3].copy() for key in keys}, match)


def test_weights_of_impossible_rows_are_refused(tmp_path):
    tree, arrays = parts("evidence")
    for rows in ("nan", "inf", "-1.0"):
        changed = put(tree, "state._weights_rows", {"is": "float", "text": rows})
        refused(tmp_path / "m.deciban", changed, arrays, "weights were fitted with")
    refused(tmp_path / "m.deciban", put(tree, "state._weights_rows", "many"), arrays, "which is not the declared type")


def test_weights_of_a_file_that_does_not_say_their_rows_have_those_they_were_fitted_on(tmp_path):
    tree, arrays = parts("evidence")
    del tree["state"]["_weights_rows"]
    write(tmp_path / "m.deciban", tree, arrays)
    assert db.load(tmp_path / "m.deciban")._weights_fitted_with() == fitted("evidence")[0].weights_.rows


def header_of(path):
    return int.from_bytes(path.read_bytes()[:8], "little")


def test_the_header_does_not_grow_with_the_columns(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 300)), np.arange(40) % 2
    X[:, 0] += y
    sizes = []
    for name, columns in (("some", 150), ("more", 300)):
        path = tmp_path / f"{name}.deciban"
        model = db.EvidenceClassifier(pairs=0, trees=1).fit(X[:, :columns], y)
        model.save(path)
        same_bits(db.load(path).predict_proba(X[:, :columns]), model.predict_proba(X[:, :columns]))
        sizes.append(header_of(path))
    assert sizes[1] < sizes[0] + 500


def test_many_different_numbers_take_a_bounded_room(tmp_path):
    """A column of a wide table takes no more bits than its share, however many rows there are."""
    rng = np.random.default_rng(0)
    bits, columns = 4096, 20
    sizes = []
    for rows in (500, 5_000):
        X, y = rng.normal(size=(rows, columns)), np.arange(rows) % 2
        model = db.NaiveBayes(f.Binned("equal-frequency", bits=bits)).fit(X, y)
        model.save(tmp_path / "m.deciban")
        sizes.append((tmp_path / "m.deciban").stat().st_size - header_of(tmp_path / "m.deciban"))
    counts = 2 * 2 * bits / 16  # two classes, two bytes each, of keys that have 16 bits or more
    assert max(sizes) < columns * (bits / 8 + counts)


def test_facts_about_columns_that_cannot_be_are_refused(tmp_path):
    model = copy.copy(fitted("evidence")[0])
    for repeats, identifiers, match in [
        ((("a", "a"),), (), "a column repeats itself"),
        ((("a", "b"), ("a", "c")), (), "a column repeats two others"),
        ((), (("a", 1.5),), "a share of values is not from 0 to 1"),
        ((), (("a", float("nan")),), "a share of values is not from 0 to 1"),
        ("ab", (), "repeats"),
        ((("a", "b", "c"),), (), "repeats"),
        ((), (("a", "all"),), "identifiers"),
    ]:
        model._facts = ColumnFacts(repeats, identifiers)
        refused(tmp_path / "m.deciban", *parts(model), match)


def test_trees_that_begin_nowhere_are_refused(tmp_path):
    tree, arrays = parts("evidence")
    key = "model.state.generative_.blocks.0.plan.family.starts"
    for starts in ([1], [0], [0, 0], [0, 3, 3], [0, 5, 2], [0, 1 << 40]):
        last = [] if len(starts) == 1 else [arrays[key][-1]]
        refused(tmp_path / "m.deciban", tree, arrays | {key: np.array([*starts, *last], np.int64)})


@pytest.mark.parametrize("name", HOSTILE)
def test_arrays_must_be_there_and_be_used(name, tmp_path):
    tree, arrays = parts(name)
    path = tmp_path / "m.deciban"
    for key in arrays:
        refused(path, tree, {other: array for other, array in arrays.items() if other != key}, "KeyError")
    refused(path, tree, arrays | {"model.more": np.zeros(3)}, "nothing refers to the array 'model.more'")


COLUMNWISE = "model.state.generative_.blocks.0.statistic"


def test_shapes_that_go_beyond_the_numbers_are_refused(tmp_path):
    tree, arrays = parts("many columns")
    for name, places, value, match in [
        ("keys.shapes", 0, -1, "not a list of shapes"),
        ("keys.shapes", 0, 1 << 62, "than there are numbers for them"),
        ("keys.shapes", ([0, 1], 0), [1, 10**5], "is damaged"),
        ("keys.shapes", slice(None), 0, "numbers for arrays of 0"),
        ("counts.words.shapes", (slice(None), 0), 42, "is damaged"),
        ("counts.words.shapes", (1, 1), 1 << 62, "than there are numbers for them"),
    ]:
        changed = arrays[f"{COLUMNWISE}.{name}"].copy()
        changed[places] = value
        refused(tmp_path / "m.deciban", tree, arrays | {f"{COLUMNWISE}.{name}": changed}, match)


def test_objects_that_are_not_all_there_are_refused(tmp_path):
    tree, arrays = parts("many columns")
    without_words = {key: array for key, array in arrays.items() if "counts.words" not in key}
    for place, value, match, of in [
        ("of", "Halfspaces", "does not know", arrays),
        ("of", "Counts", "is damaged", arrays),
        ("fields", {}, "fields of", without_words),
        ("fields", {"words": [1.0]}, "is damaged", without_words),
        ("fields.words", {"is": "range", "ends": [0, 1 << 60, 1]}, "instead of a tuple", without_words),
        ("fields.more", [], "fields of", arrays),
    ]:
        changed = put(tree, f"state.generative_.blocks.0.statistic.counts.{place}", value)
        refused(tmp_path / "m.deciban", changed, of, match)


def test_lengths_of_other_tuples_are_refused():
    for sizes in ([-2, 4], [1 << 62, 1 << 62], [3], [1, 1, 1], []):
        with pytest.raises(db.DecibanError, match="not the sum of its lengths"):
            decode({"is": "tuples", "items": [1, 2]}, "x", {"x.sizes": np.array(sizes, np.int64)})


RESHAPED = {
    "a row less": lambda a: a[:-1],
    "a column less": lambda a: a[..., :-1],
    "a row more": lambda a: np.concatenate([a, a[-1:]]),
    "flat": lambda a: a.reshape(-1) if a.ndim > 1 else a.reshape(-1, 1),
    "deeper": lambda a: a[np.newaxis],
    "a number": lambda a: np.zeros((), a.dtype),
    "other type": lambda a: a.astype(np.float32 if a.dtype == np.float64 else np.float64),
    "many words": lambda a: np.concatenate([a] * 100),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_arrays_of_other_shapes_are_refused(name, tmp_path):
    tree, arrays = parts(name)
    for (key, array), change in product(arrays.items(), RESHAPED):
        changed = RESHAPED[change](array)
        if (changed.shape == array.shape and changed.dtype == array.dtype) or key.endswith("classes_"):
            continue  # there was nothing to take away; labels may be of any type
        if key.endswith(".words") and change in ("a row less", "a row more") and len(changed):
            continue  # one word more or less is a sum as well
        if key.endswith((".cuts.0", ".cuts.1", ".cuts.2")) and change in ("a row less", "a column less"):
            continue  # fewer cuts are cuts as well
        refused(tmp_path / "m.deciban", tree, arrays | {key: changed.copy()})


@pytest.mark.parametrize("name", HOSTILE)
def test_numbers_that_are_none_are_refused(name, tmp_path):
    tree, arrays = parts(name)
    looked = 0
    for key, array in arrays.items():
        if (
            array.dtype == np.float64
            and array.size
            and any(word in key for word in ("statistic", "predictor_", "_weights"))
        ):
            if ".params." in key or (".least." in key or ".most." in key):
                continue  # a density of 0 has an infinite logarithm; no extreme is infinite
            for value in (np.nan, np.inf, -np.inf):
                refused(tmp_path / "m.deciban", tree, arrays | {key: with_value(array, value)}, "is not finite")
            looked += 1
    assert looked or name in ("temperature", "isotonic")


def nested(depth):
    tree: Any = {"is": "families.Gaussian"}
    for _ in range(depth):
        tree = {"is": "list", "items": [tree]}
    return tree


def test_what_is_nested_deeply_is_refused(tmp_path):
    tree, arrays = parts("gaussian")
    for depth in (1, 30, 300):
        refused(tmp_path / "m.deciban", put(tree, "params.families", nested(depth)), arrays)


def test_what_is_no_model_is_refused(tmp_path):
    for value in (None, 3, [], {"is": "families.Gaussian"}, {"is": "list", "items": []}, {}):
        refused(tmp_path / "m.deciban", value, {})


REPLACEMENTS = [
    *(None, True, 0, -1, 2, 10**9, -(10**30), 0.5, -0.5, 1e308, "", "x", "shared", "auto", [], [0], [[]], {}),
    *({"is": "float", "text": text} for text in ("nan", "-inf")),
    *({"is": f"families.{name}"} for name in ("Gaussian", "Uniform", "Categorical", "Multinomial", "Binned")),
    {"is": "priors.Virtual", "m": 1.0},
    {"is": "range", "ends": [0, 10**12, 1]},
    {"is": "list", "items": ["a"]},
    {"is": "dict", "pairs": []},
    {"is": "frozenset", "items": ["a", 1]},
    {"is": "array", "order": "F"},
    {"is": "scalar", "dtype": "float32", "value": 0.5},
    {"is": "cells", "dtype": "str", "shape": [1], "cells": ["a"]},
    {"is": "NaiveBayes", "params": {}, "state": {}},
]


def places(tree, way=()):
    """The way to every value of a tree."""
    yield way
    for key in tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield from places(tree[key], (*way, key))


def at(tree, way):
    for key in way:
        tree = tree[key]
    return tree


@st.composite
def mutations(draw, tree, arrays):
    """A tree with another value somewhere, or without one, and arrays of which one may hold other numbers."""
    tree, arrays = copy.deepcopy(tree), dict(arrays)
    for _ in range(draw(st.integers(1, 3))):
        ways = list(places(tree))
        way, other = draw(st.sampled_from(ways[1:])), draw(st.sampled_from(ways))
        value = draw(st.sampled_from([*REPLACEMENTS, at(tree, other)]))
        if draw(st.integers(0, 9)):
            at(tree, way[:-1])[way[-1]] = copy.deepcopy(value)
        else:
            del at(tree, way[:-1])[way[-1]]
    if draw(st.booleans()):
        key = draw(st.sampled_from(sorted(arrays)))
        factor = draw(st.sampled_from([0, -1, 1e9, 1e300, 1e-300]))
        with np.errstate(all="ignore"):
            arrays[key] = (arrays[key] * factor).astype(arrays[key].dtype)
    return tree, arrays


@pytest.mark.parametrize("name", HOSTILE)
@settings(max_examples=10)
@given(data=st.data())
def test_whatever_a_file_says_nothing_breaks(name, data, tmp_path_factory):
    _, X = fitted(name)
    path = tmp_path_factory.getbasetemp() / "mutated.deciban"
    write(path, *data.draw(mutations(*parts(name))))
    loaded = quietly(lambda: db.load(path))
    if isinstance(loaded, str):
        assert str(path) in loaded
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"), suppress(db.DecibanError):
        warnings.simplefilter("ignore")  # as are errors of settings and numbers that no estimate can be made of
        assert len(loaded.predict(X)) == N
        if hasattr(loaded, "predict_proba"):
            assert abs(loaded.predict_proba(X).sum(axis=1) - 1.0).max() < 1e-9


def test_mutations_are_refused_and_not(tmp_path):
    """The test above meets both: a file that is refused, and one that is another model."""
    tree, arrays = parts("gaussian")
    write(tmp_path / "m.deciban", put(tree, "params.smoothing", 0.5), arrays)
    assert db.load(tmp_path / "m.deciban").smoothing == 0.5
    refused(tmp_path / "m.deciban", put(tree, "params.smoothing", []), arrays)


def greedy():
    """Small files that ask for much memory."""
    tree, arrays = parts("gaussian")
    words = {"is": "cells", "dtype": "str", "shape": [30_001], "cells": ["x" * 1_000_000, *["y"] * 30_000]}
    yield put(tree, "params.class_prior", words), arrays
    yield put(tree, "params.class_prior", {"is": "cells", "dtype": "str", "shape": [1 << 50], "cells": []}), arrays
    yield put(tree, "state.generative_.classes", ["x" * 1_000_000, *(f"y{i:06}" for i in range(30_000))]), arrays
    for place in ("state.generative_.schema.names", "state.generative_.blocks.0.plan.columns", "params.families"):
        yield put(tree, place, {"is": "range", "ends": [0, 1 << 62, 1]}), arrays
    long = {"is": "range", "ends": [0, 10**9, 1]}
    for kind in ("list", "frozenset"):
        yield put(tree, "params.families", {"is": kind, "items": long}), arrays
    yield put(tree, "params.families", {"is": "dict", "pairs": long}), arrays
    yield put(tree, "params.class_prior", {"is": "cells", "dtype": "object", "shape": [10**9], "cells": long}), arrays
    yield put(tree, "params.smoothing", {"is": "scalar", "dtype": "float64", "value": long}), arrays
    long_text = {
        "model.params.families.text": np.zeros(0, np.uint8),
        "model.params.families.ends": np.zeros(1, np.int64),
    }
    yield put(tree, "params.families", {"is": "texts", "rest": long}), arrays | long_text
    yield put(tree, "state._label_dtype", {"is": "dtype", "name": "<U999999999"}), arrays
    yield put(tree, "params.class_prior", cells(LONG)), arrays
    words = "model.state.generative_.blocks.0.statistic.count.words"
    yield tree, arrays | {words: np.zeros((0, 1 << 40))}
    yield tree, arrays | {words: np.zeros((1, 0, 1 << 40))}
    yield tree, arrays | {words: np.zeros((1_000_000, 1, 1))}
    counted, tables = parts("categorical")
    place = "state.generative_.blocks.0.statistic.levels"
    yield put(counted, place, [[] for _ in range(100_000)]), tables
    lists: Any = [[] for _ in range(300_000)]
    yield put(tree, "params.families", {"is": "list", "items": lists}), arrays


@pytest.mark.slow
def test_no_small_file_takes_much_memory(tmp_path):
    """In a process that may have 500 MB more than it has now."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs Linux")
    names = []
    for i, (tree, arrays) in enumerate(greedy()):
        names.append(tmp_path / f"{i}.deciban")
        write(names[-1], tree, arrays)
    code = """
import resource, sys
import deciban as db
db.load, db.NaiveBayes
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (500 << 20),) * 2)
for name in sys.argv[1:]:
    try:
        db.load(name)
    except db.DecibanError as error:
        assert name in str(error)
        assert "MemoryError" not in str(error), name
    else:
        raise AssertionError(name)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", code, *map(str, names)], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


# Interruptions
def test_saving_again_replaces_the_file(tmp_path):
    path = tmp_path / "m.deciban"
    for kind in (db.NaiveBayes, db.GaussianDiscriminant):
        kind().fit(NUMBERS, LABELS).save(str(path))
        assert type(db.load(path)) is kind
    assert os.listdir(tmp_path) == ["m.deciban"]


@pytest.mark.slow
def test_a_process_killed_while_it_saves_leaves_a_whole_file(tmp_path):
    """Two models are saved in turn, a byte is written before each; whenever the process is killed, one is there."""
    code = """
import os, random, signal, sys, time
import numpy as np
import deciban as db
x = np.random.default_rng(0).normal(size=(40, 3000))
models = [db.NaiveBayes().fit(x + i, np.arange(40) % (2 + i)) for i in range(2)]
path, whole, start = sys.argv[1], [], time.perf_counter()
for model in models:
    model.save(path)
    with open(path, "rb") as file:
        whole.append(file.read())
took = (time.perf_counter() - start) / 2
moments = random.Random(0)
for _ in range(15):
    begun, say = os.pipe()
    child = os.fork()
    if not child:
        while True:
            for model in models:
                os.write(say, b".")
                model.save(path)
    for _ in range(moments.randint(1, 3)):
        os.read(begun, 1)
    time.sleep(moments.uniform(0.0, took))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(begun), os.close(say)
    with open(path, "rb") as file:
        number = whole.index(file.read())
    assert len(db.load(path).classes_) == 2 + number
print("always whole")
"""
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "m.deciban")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "always whole\n", done.stderr


# Older files
def test_a_file_of_format_1_is_read(tmp_path):
    made = runpy.run_path(str(REFERENCES / "format_1.py"))
    model, fresh = db.load(REFERENCES / "format-1.deciban"), made["fitted"]()
    assert model.class_count_.tolist() == [3.0, 3.0]
    assert model.feature_names_in_.tolist() == ["income", "refund", "married", "visits", "distance"]
    assert not hasattr(model, "feature_importances_")  # which such a file does not have
    fresh._keep_rows(None)
    assert str(model.summary()) == str(fresh.summary())
    rows, labels = made["ROWS"], made["LABELS"]
    close = {"rtol": 1e-12, "atol": 1e-12}  # a later version may add up the evidence in another order
    np.testing.assert_allclose(model.predict_log_proba(rows), fresh.predict_log_proba(rows), **close)
    np.testing.assert_allclose(model.explain(rows).nats, fresh.explain(rows).nats, **close)
    for m in (model, fresh):
        m.partial_fit(rows, labels[::-1]).forget(rows, labels)
    np.testing.assert_allclose(model.predict_log_proba(rows), fresh.predict_log_proba(rows), **close)
    same_bits(saved_and_loaded(model, tmp_path).predict_log_proba(rows), model.predict_log_proba(rows))


OLD_MODELS = json.loads((REFERENCES / "models-0.1" / "predictions.json").read_text())


@pytest.mark.parametrize("name", OLD_MODELS)
def test_models_of_version_0_1_predict_what_they_did(name, tmp_path):
    """To the last bit where they were made; another machine's exp may round the last one otherwise."""
    made = runpy.run_path(str(REFERENCES / "models_0_1.py"))
    model = db.load(REFERENCES / "models-0.1" / f"{name}.deciban")
    model.save(tmp_path / "again.deciban")
    for one in (model, db.load(tmp_path / "again.deciban")):
        predicted, expected = made["predicted"](one, name), OLD_MODELS[name]
        if name == "halfspace":
            assert predicted == expected
            continue
        numbers = [[[float.fromhex(cell) for cell in row] for row in rows] for rows in (predicted, expected)]
        np.testing.assert_allclose(*numbers, rtol=1e-14, atol=1e-16)
