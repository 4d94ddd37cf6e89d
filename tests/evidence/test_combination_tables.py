"""Combinations of levels: they back off to their parts, a row is left out of all tables at once, and noise is none."""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban.evidence import combination_search
from deciban.evidence.back_off import GRID, BackOff, Fit, fit_single
from deciban.evidence.block_evidence import Rows
from deciban.evidence.combination_tables import CombinationTables
from deciban.families.labelled_values import LabelledValues
from tests.evidence.reference import centred, class_rows
from tests.evidence.test_level_combinations import PAIRS, READING, TRIPLE
from tests.evidence.test_tables import classes, labels_of, left, weighted, weights_of

N = 60


def codes_of(n=N, seed=4, unknown=0.1):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(1, size, n) for size in READING.sizes], axis=1)
    return np.where(rng.random(codes.shape) < unknown, 0, codes).astype(np.int32)


def made(family, codes, labels, weights, K):
    rows = class_rows(labels, weights, K)
    return CombinationTables((2, 5, 7), family, family.collect(codes, labels, weights, K), rows)


def slow_evidence(source, codes, labels, weights, row, features, virtual, once):
    """(K) the evidence of a combination for a row, from the other rows one by one; `once` of the row is left out."""
    rest = np.ones(len(codes)) if weights is None else weights.copy()
    rest[row] -= once
    own = codes[row, features][np.newaxis]
    known = own.all() and source.family.cells_of(tuple(features), own)[0] > 0
    alike = (codes[:, features] == codes[row, features]).all(axis=1) & known
    K = len(source.tables.class_rows)
    of_class = np.bincount(labels, rest, K)
    prior, backing = of_class / of_class.sum(), of_class / of_class.sum()
    if len(features) > 1:
        parts = list(combinations(features, len(features) - 1))
        args = source, codes, labels, weights, row
        mean = sum(slow_evidence(*args, list(part), virtual, once) for part in parts) / len(parts)
        backing = prior * np.exp(mean) / (prior * np.exp(mean)).sum()
    s = virtual[tuple(features)] * of_class.sum() / source.tables.class_rows.sum()
    return centred(np.log(np.bincount(labels[alike], rest[alike], K) + s * backing) - np.log(prior))


@weighted
@classes
@pytest.mark.parametrize("family", [PAIRS, TRIPLE], ids=["two", "three"])
def test_leave_one_out_equals_counts_of_the_other_rows(family, K, weighted):
    """With as many virtual rows, in proportion to the rows."""
    codes, labels, weights = codes_of(), labels_of(K), weights_of(weighted)
    source = made(family, codes, labels, weights, K)
    virtual = {features: fit.virtual for features, fit in source.tables.fits.items()}
    for given, left_out in ((Rows(codes), False), (Rows(codes, labels, left(weights)), True)):
        actual = source.evidence(given)
        for i in range(0, N, 3):
            once = 0.0 if not left_out else 1.0 if weights is None else min(weights[i], 1.0)
            for p, features in enumerate(source.combined):
                expected = slow_evidence(source, codes, labels, weights, i, list(features), virtual, once)
                np.testing.assert_allclose(actual[i, p], expected, rtol=1e-10, atol=1e-12)


def test_a_combination_never_seen_says_what_its_parts_say():
    codes, labels = codes_of(unknown=0.0), labels_of(3)
    new = (codes[:, 0] == 2) & (codes[:, 1] == 3)  # the only combination that is not listed
    source = made(TRIPLE, codes, labels, None, 3)
    singles = [fit_single(source.tables.tables[(j,)][1:], source.tables.class_rows).virtual for j in (0, 1)]
    prior, counts = source.tables.prior, [source.tables.tables[(0,)][2], source.tables.tables[(1,)][3]]
    parts = [centred(np.log(n + s * prior) - np.log(prior)) for n, s in zip(counts, singles, strict=True)]
    assert new.any()
    expected = np.tile(sum(parts) / 2, (new.sum(), 1))
    np.testing.assert_allclose(source.evidence(Rows(codes))[new, 0], expected, rtol=1e-10)


def test_an_unknown_level_is_no_evidence():
    codes, labels = codes_of(unknown=0.0), labels_of(3)
    source = made(TRIPLE, codes, labels, None, 3)
    unknown = codes.copy()
    unknown[:, 1] = 0
    expected = source.evidence(Rows(unknown))
    np.testing.assert_array_equal(source.evidence(Rows(codes, hidden=frozenset([5]))), expected)
    alone = BackOff(source.tables.class_rows)
    alone.add((0,), source.tables.tables[(0,)], {})
    half = 0.5 * alone.evidence((0,), {(0,): codes[:, 0]}, None, None, {})
    np.testing.assert_allclose(expected[:, 0], half, rtol=1e-10)
    np.testing.assert_allclose(source.evidence(Rows(np.zeros_like(codes))), 0.0, atol=1e-14)


@classes
def test_rows_can_be_subtracted(K):
    codes, labels, weights = codes_of(), labels_of(K), weights_of(weighted=True)
    source, some = made(TRIPLE, codes, labels, weights, K), np.arange(N) % 4 == 0
    rest = source.subtract(LabelledValues(codes[some], labels[some], weights[some]), np.arange(K))
    expected = made(TRIPLE, codes[~some], labels[~some], weights[~some], K)
    np.testing.assert_allclose(rest.evidence(Rows(codes)), expected.evidence(Rows(codes)), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(rest.selected(None), expected.selected(None))
    out = np.zeros((N, K))
    rest.scorer(np.ones((2, K)))(codes, out)
    np.testing.assert_allclose(out, expected.evidence(Rows(codes)).sum(axis=1), rtol=1e-10, atol=1e-12)


def test_features_share_by_shapley_values():
    """A feature has the mean over all orders of what it adds to those that are known before it."""
    codes, labels = codes_of(unknown=0.0), labels_of(3)
    source = made(TRIPLE, codes, labels, None, 3)

    def evidence_of(known):
        hidden = frozenset(column for j, column in enumerate((2, 5, 7)) if j not in known)
        return source.evidence(Rows(codes, hidden=hidden))[:, 1]

    shares = np.zeros((N, 8, 3))
    source.share_scorer()(codes, np.array([[0.0] * 3, [1.0] * 3]), shares)
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    for j, column in enumerate((2, 5, 7)):
        before = [set(order[: order.index(j)]) for order in orders]
        expected = sum(evidence_of(known | {j}) - evidence_of(known) for known in before) / len(orders)
        np.testing.assert_allclose(shares[:, column], expected, rtol=1e-9, atol=1e-12)


def test_virtual_rows_are_as_many_as_predict_rows_left_out_best():
    """Of 2, 4, …, 64: by the losses of all rows, one at a time."""
    rng = np.random.default_rng(3)
    share = rng.beta(4, 4, 80)
    table = np.stack([rng.binomial(12, share), 12 - rng.binomial(12, share)], axis=1).astype(float)
    fit, rows = fit_single(table, table.sum(axis=0)), table.sum(axis=0)
    losses = []
    for s in (*GRID, 1e12):  # so many virtual rows are the class prior
        loss = 0.0
        for counts in table:
            for y in np.flatnonzero(counts):
                n = counts.copy()
                n[y] = (n[y] - 1) * rows[y] / (rows[y] - 1)
                p = n + s * rows / rows.sum()
                loss -= counts[y] * np.log(p[y] / p.sum())
        losses.append(loss)
    assert fit.virtual == GRID[int(np.argmin(losses[:-1]))]
    assert 2 < fit.virtual < 64
    np.testing.assert_allclose(fit.gain, losses[-1] - min(losses), rtol=1e-6)
    assert isinstance(fit, Fit)


# From fit to prediction ----------------------------------------------------------------------------------------------


def access(n=2_600, seed=0, effect=2.0):
    """Resources are granted to some departments and not to others: neither says anything by itself."""
    rng = np.random.default_rng(seed)
    granted = effect * np.random.default_rng(99).choice([-1.0, 1.0], (80, 12))
    resource, department = rng.integers(0, 80, n), rng.integers(0, 12, n)
    y = rng.random(n) < 1 / (1 + np.exp(-granted[resource, department]))
    table = pd.DataFrame({"resource": resource, "department": department, "floor": rng.integers(0, 5, n)})
    return "n" + table.astype(str), np.where(y, "yes", "no")


def model(**settings):
    return db.EvidenceClassifier(**({"trees": 0} | settings))


@pytest.fixture(scope="module")
def fitted():
    """Not to be changed."""
    return model().fit(*access())


def combinations_in(fitted):
    pieces = zip(fitted.weights_.kinds, fitted.weights_.columns, strict=True)
    return {columns for kind, columns in pieces if kind.startswith("level")}


def loss(fitted, X, y):
    return db.evaluate(fitted, X, y).log_loss


def test_combinations_are_evidence_that_parts_are_not(fitted):
    X, y = access(seed=1)
    assert ("resource", "department") in combinations_in(fitted)
    assert loss(fitted, X, y) < 0.9 * np.log(2)
    assert loss(model(pairs=0).fit(*access()), X, y) > 0.97 * np.log(2)
    np.testing.assert_allclose(fitted.leave_one_out(*access()).log_loss, loss(fitted, X, y), atol=0.05)


def test_noise_and_identifiers_have_the_class_prior():
    X, y = access(effect=0.0)
    X["id"] = [f"row {i}" for i in range(len(X))]
    new, labels = access(seed=1, effect=0.0)
    new["id"] = "row 7"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)
        assert loss(model().fit(X, y), new, labels) < np.log(2) + 0.003


def test_a_unique_identifier_does_no_harm(fitted):
    X, y = access()
    new, labels = access(seed=1)
    identified = model().fit(X.assign(id=[f"row {i}" for i in range(len(X))]), y)
    assert all("id" not in columns for columns in combinations_in(identified))
    assert loss(identified, new.assign(id="row 7"), labels) < loss(fitted, new, labels) + 0.005


def test_few_rows_have_no_combinations():
    X, y = access(combination_search.MANY_ROWS - 1)
    assert not combinations_in(model().fit(X, y))
    assert not combinations_in(model(pairs=0).fit(*access()))


def test_few_rows_are_not_scored_by_combinations_that_they_selected():
    X, y = access(1_100, effect=0.0)
    held_out = model().fit(X, y).leave_one_out(X, y)
    assert held_out.log_loss > np.log(2) - 0.003


def test_three_features_that_are_informative_only_together():
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"a": rng.integers(0, 60, 6_000), "b": rng.integers(0, 3, 6_000), "c": rng.integers(0, 3, 6_000)})
    sides = np.random.default_rng(6).choice([-1.0, 1.0], (60, 3, 3))
    z = 1.5 * sides[X["a"], X["b"], X["c"]] + 1.0 * sides[X["a"], X["b"], 0]
    y = rng.random(6_000) < 1 / (1 + np.exp(-z))
    assert ("a", "b", "c") in combinations_in(model().fit("n" + X.astype(str), y))


def test_explanations_add_up(fitted):
    X, _ = access(40, seed=2)
    X.iloc[0, 0], X.iloc[1, 1], X.iloc[2] = "never seen", None, "never seen"
    logs = fitted.predict_log_proba(X)
    odds = logs[:, 1] - logs[:, 0]
    for by in ("column", "pair"):
        explanation = fitted.explain(X, by=by)
        np.testing.assert_allclose(explanation.joint[:, 1] - explanation.joint[:, 0], odds, rtol=1e-9, atol=1e-9)
    assert any("resource" in name and "department" in name for name in fitted.explain(X, by="pair").names)
    np.testing.assert_allclose(np.exp(logs[2]), fitted.class_count_ / fitted.class_count_.sum(), rtol=1e-12)


def test_it_is_saved_and_loaded(fitted, tmp_path):
    X, _ = access(50, seed=3)
    fitted.save(tmp_path / "access.deciban")
    np.testing.assert_array_equal(db.load(tmp_path / "access.deciban").predict_proba(X), fitted.predict_proba(X))


def test_rows_are_learned_merged_and_forgotten(fitted):
    X, y = access()
    more, labels = access(300, seed=7)
    parts = fitted.empty_copy().partial_fit(X[:900], y[:900]), fitted.empty_copy().partial_fit(X[900:], y[900:])
    merged = parts[0] + parts[1]
    np.testing.assert_allclose(merged.predict_proba(more), fitted.predict_proba(more), rtol=0, atol=1e-12)
    changed = fitted.empty_copy().partial_fit(X, y).partial_fit(more, labels)
    assert np.abs(changed.predict_proba(more) - fitted.predict_proba(more)).max() > 0.01
    np.testing.assert_allclose(
        changed.forget(more, labels).predict_proba(more), fitted.predict_proba(more), rtol=0, atol=1e-12
    )


def test_the_order_of_rows_does_not_matter(fitted):
    X, y = access()
    order = np.random.default_rng(8).permutation(len(X))
    again = model().fit(X.iloc[order].reset_index(drop=True), y[order])
    new, _ = access(50, seed=9)
    np.testing.assert_allclose(again.predict_proba(new), fitted.predict_proba(new), rtol=0, atol=1e-8)


def test_a_row_of_weight_two_is_the_row_twice():
    X, y = access(1_500)
    twice = np.arange(len(X)) < 200
    one = model().fit(X, y, sample_weight=1.0 + twice)
    other = model().fit(pd.concat([X, X[twice]], ignore_index=True), np.concatenate([y, y[twice]]))
    new, _ = access(50, seed=9)
    np.testing.assert_allclose(one.predict_proba(new), other.predict_proba(new), rtol=0, atol=1e-8)


def sources():
    labels = labels_of(3)
    for name, family in (("level pairs", PAIRS), ("level triples", TRIPLE)):
        yield name, made(family, codes_of(), labels, None, 3), codes_of()


CASES = {name: (source, values) for name, source, values in sources()}
