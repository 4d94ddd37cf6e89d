"""Evidence from counts: of a row that is left out, what all the others say; shares of columns sum to it."""

import numpy as np
import pytest
from scipy.special import log_softmax

from deciban.batch import UNSEEN, Coded
from deciban.families import Bernoulli, Binned, Categorical
from deciban.families.celled import Pairs
from deciban.families.cuts import supervised_cuts
from deciban.families.forest import Forest
from deciban.families.mixed import Coding
from deciban.weighing.reader import Rows
from deciban.weighing.tables import RARE, SCALES, VIRTUAL, Leaves, Paired, Present, Scales, Tables, Values
from tests.weighing.made import coded, of_cells, shares

N = 90
RNG = np.random.default_rng(5)
NOT_RARE = int(np.ceil(RARE))
weighted = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
classes = pytest.mark.parametrize("K", [2, 3])


def labels_of(K, n=N, seed=0):
    return np.random.default_rng(seed).integers(0, K, n).astype(np.int32)


def weights_of(weighted, n=N):
    """Of 1 and less, and of 2 and 3: of those one row is left out at a time."""
    return np.random.default_rng(1).choice([0.25, 1.0, 2.0, 3.0], n) if weighted else None


def left(weights):
    """What is left out of each row."""
    return None if weights is None else np.minimum(weights, 1.0)


def assert_left_out_is_unlearned(family, values, make, labels, weights, K):
    """A reader of all rows, that leaves one out, says what a reader says that has never met it; π is held."""
    whole = family.collect(values, labels, weights, K)
    prior = shares(labels, weights, K)
    found = make(whole, prior).evidence(Rows(values, labels, left(weights)))
    for i in range(len(labels)):
        row = Coded(values.codes[[i]], values.levels) if isinstance(values, Coded) else values[[i]]
        once = None if weights is None else np.minimum(weights[[i]], 1.0)
        rest = whole - family.collect(row, labels[[i]], once, K)
        if isinstance(values, Coded):
            row = Coded(family.coded_for(rest, row).codes, rest.levels)
        np.testing.assert_allclose(found[i], make(rest, prior).evidence(Rows(row))[0], rtol=1e-10, atol=1e-12)


def letters(n=N, seed=2, hole=0.1):
    """Values of a column, all of them frequent, and holes."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < hole, None, rng.choice(list("uvw"), n)).tolist()


# Values --------------------------------------------------------------------------------------------------------------


@weighted
@classes
def test_values_left_out_were_never_learned(K, weighted):
    values = coded([letters(), letters(seed=3, hole=0)], [("u", "v", "w", None), ("u", "v", "w")])
    assert_left_out_is_unlearned(
        Categorical(), values, lambda s, prior: Values((0, 1), s, prior), labels_of(K), weights_of(weighted), K
    )


@weighted
@classes
def test_values_are_counted_with_virtual_rows(K, weighted):
    labels, weights = labels_of(K), weights_of(weighted)
    values = coded([letters()], [("u", "v", "w", None)])
    prior = shares(labels, weights, K)
    reader = Values((4,), Categorical().collect(values, labels, weights, K), prior)
    for given, left_out in ((Rows(values), False), (Rows(values, labels, left(weights)), True)):
        expected = of_cells(values.codes[:, 0], labels, weights, prior, VIRTUAL, left_out=left_out)
        np.testing.assert_allclose(reader.evidence(given)[:, 0], expected, rtol=1e-10, atol=1e-12)


def test_rare_values_are_one_and_so_is_one_that_was_never_seen():
    frequent = ["u"] * (4 * NOT_RARE) + ["v"] * NOT_RARE
    rare = [f"rare {i}" for i in range(6)] + [None]
    column = [*frequent, *rare]
    levels = (*sorted({*column} - {None}), None)
    values = coded([column], [levels])
    labels = labels_of(2, len(column))
    reader = Values((0,), Categorical().collect(values, labels, None, 2), shares(labels))
    pooled = ["rare" if str(value).startswith("rare") else value for value in column]
    together = coded([pooled], [("rare", "u", "v", None)]).codes[:, 0]
    expected = of_cells(together, labels, None, shares(labels), VIRTUAL, left_out=True)
    np.testing.assert_allclose(reader.evidence(Rows(values, labels))[:, 0], expected, rtol=1e-10, atol=1e-12)
    new = Coded(np.array([[UNSEEN]], np.int32), (levels,))
    some_rare = Coded(np.array([[levels.index("rare 0")]], np.int32), (levels,))
    np.testing.assert_array_equal(reader.evidence(Rows(new)), reader.evidence(Rows(some_rare)))
    assert np.abs(reader.evidence(Rows(new))).max() > 0


def test_a_value_that_was_never_seen_says_nothing_where_none_is_rare():
    values = coded([letters()], [("u", "v", "w", None)])
    labels = labels_of(3)
    reader = Values((0,), Categorical().collect(values, labels, None, 3), shares(labels))
    for code in (UNSEEN, -1):
        assert not reader.evidence(Rows(Coded(np.array([[code]], np.int32), values.levels))).any()


def test_one_rare_value_is_what_it_is():
    """And of its only row, which is left out, it says nothing at all."""
    column = ["u"] * 20 + ["v"] * 20 + ["once"]
    values, labels = coded([column], [("once", "u", "v")]), labels_of(2, 41)
    reader = Values((0,), Categorical().collect(values, labels, None, 2), shares(labels))
    assert len(reader.counts) == 3
    assert not reader.evidence(Rows(Coded(np.array([[UNSEEN]], np.int32), values.levels))).any()  # no other is like it
    assert (reader.evidence(Rows(values, labels))[-1] == 0).all()
    assert np.abs(reader.evidence(Rows(values))[-1]).max() > 0.1


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("K", [2, 5])
def test_levels_of_one_or_two_rows_do_not_leak_the_class(times, K):
    """What is left of them says no more of the rows' classes than of others, whatever these are."""
    for seed in range(5):
        labels = labels_of(K, 200, seed)
        if times == 2:
            labels = np.repeat(labels[:100], 2)  # both rows of a level are of one class: what a leak would look like
            labels = np.random.default_rng(seed).permutation(labels)
        column = [f"level {i // times}" for i in range(200)]
        values = coded([column], [tuple(sorted({*column}))])
        reader = Values((0,), Categorical().collect(values, labels, None, K), shares(labels, None, K))
        found = reader.evidence(Rows(values, labels))[np.arange(200), 0, labels]
        assert found.mean() <= 0
        assert np.abs(found).max() < 0.1


@pytest.mark.parametrize("K", [2, 5])
def test_cells_of_one_row_say_nothing_of_it(K):
    """Tables that pool nothing: pairs of columns, and leaves."""
    labels = labels_of(K, 200)
    family = Pairs(Coding((tuple(np.arange(0.5, 15)),) * 2, (None, None)), ((0, 1),))
    codes = np.stack(np.unravel_index(np.arange(200), (15, 15)), axis=1).astype(np.uint8)
    reader = Paired((0, 1), family, family.collect(codes, labels, None, K), shares(labels, None, K))
    np.testing.assert_allclose(reader.evidence(Rows(codes, labels)), 0.0, atol=1e-12)
    twice = np.repeat(codes[:100], 2, axis=0)
    reader = Paired((0, 1), family, family.collect(twice, labels, None, K), shares(labels, None, K))
    found = reader.evidence(Rows(twice, labels))[:, 0]
    gain = log_softmax(np.log(shares(labels, None, K)) + found, axis=1)[np.arange(200), labels]
    assert (gain - np.log(shares(labels, None, K))[labels]).mean() <= 0.01


# Presence ------------------------------------------------------------------------------------------------------------


@weighted
@classes
def test_presence_left_out_was_never_learned(K, weighted):
    missing = (RNG.random((N, 4)) < [0.3, 0.0, 0.6, 1.0]).astype(float)
    labels, weights = labels_of(K), weights_of(weighted)
    assert_left_out_is_unlearned(
        Bernoulli(), missing, lambda s, prior: Present((3, 5, 7, 9), s, prior), labels, weights, K
    )
    reader = Present((3, 5, 7, 9), Bernoulli().collect(missing, labels, weights, K), shares(labels, weights, K))
    assert [piece.columns for piece in reader.pieces] == [(3,), (7,)]  # the others are there always, or never
    expected = of_cells(missing[:, 2], labels, weights, reader.prior, VIRTUAL, left_out=False)
    np.testing.assert_allclose(reader.evidence(Rows(missing))[:, 1], expected, rtol=1e-10, atol=1e-12)


# Bins ----------------------------------------------------------------------------------------------------------------


def binned(x, labels, weights=None, K=2):
    return Scales(tuple(range(x.shape[1])), Binned().collect(x, labels, weights, K), shares(labels, weights, K))


def bins_of(x, cuts):
    return np.where(np.isnan(x), -1, np.searchsorted(cuts, x, side="right"))


@weighted
@classes
def test_bins_of_equal_frequency_left_out_count_all_the_others(K, weighted):
    labels, weights = labels_of(K), weights_of(weighted)
    x = np.column_stack([RNG.normal(labels), RNG.integers(0, 9, N)]).astype(float)
    x[RNG.random(x.shape) < 0.1] = np.nan
    reader = binned(x, labels, weights, K)
    found, new = reader.evidence(Rows(x, labels, left(weights))), reader.evidence(Rows(x))
    for p, (j, cuts) in enumerate(reader.cuts):
        bins = bins_of(x[:, j], cuts)
        for actual, left_out in ((new[:, p], False), (found[:, p], True)):
            expected = of_cells(bins, labels, weights, reader.prior, VIRTUAL, left_out=left_out)
            np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


def test_bins_of_equal_frequency_hold_as_many_rows():
    x = RNG.permutation(np.arange(1000.0))[:, np.newaxis]
    reader = binned(x, labels_of(2, 1000))
    kinds = {piece.kind: p for p, piece in enumerate(reader.pieces)}
    for scale in SCALES:
        cuts = reader.cuts[kinds[f"{scale} bins"]][1]
        assert np.bincount(bins_of(x[:, 0], cuts)).tolist() == [1000 // scale] * scale


def test_scales_that_cut_alike_are_one():
    """Two values are cut in one way only; a constant column in none."""
    x = np.column_stack([RNG.integers(0, 2, N), np.full(N, 7.0), np.full(N, np.nan)])
    reader = binned(x, x[:, 0].astype(np.int32))
    assert [piece.columns for piece in reader.pieces] == [(0,)]
    assert not binned(x[:, 1:], labels_of(2)).pieces


def test_supervised_bins_of_one_half_judge_the_other():
    """In one half the classes change at 0, in the other they do not: those know of no cut to judge this half by."""
    n = 400
    x = np.random.default_rng(6).normal(size=(n, 1))
    half = np.arange(n) % 2 == 0
    labels = np.where(half, x[:, 0] > 0, np.arange(n) // 2 % 2).astype(np.int32)
    reader = binned(x, labels)
    p = next(p for p, piece in enumerate(reader.pieces) if piece.kind == "supervised bins")
    rows = Rows(x, labels, None, half)
    reader = reader.prepared(rows)
    found = reader.evidence(rows)[:, p]
    assert (found[half] == 0).all()
    cuts = np.array([x[half & (x[:, 0] <= 0), 0].max(), x[half & (x[:, 0] > 0), 0].min()])
    sure = (x[:, 0] < cuts[0]) | (x[:, 0] > cuts[1])  # the cut is somewhere between those two
    expected = of_cells((x[:, 0] > 0).astype(int), labels, None, reader.prior, VIRTUAL, left_out=True)
    np.testing.assert_allclose(found[~half & sure], expected[~half & sure], rtol=0.05)
    assert np.abs(found[~half]).min() > 0.1


@weighted
def test_supervised_bins_are_those_that_each_half_makes(weighted):
    n, K = 300, 3
    labels, weights = labels_of(K, n), weights_of(weighted, n)
    rng = np.random.default_rng(7)
    x = np.column_stack([rng.normal(2.0 * labels), rng.integers(0, 40, n) + 10 * labels]).astype(float)
    half = rng.random(n) < 0.5
    reader = binned(x, labels, weights, K)
    supervised = [p for p, piece in enumerate(reader.pieces) if piece.kind == "supervised bins"]
    assert len(supervised) == 2
    rows = Rows(x, labels, left(weights), half)
    reader = reader.prepared(Rows(x, labels, weights, half))
    found = reader.evidence(rows)
    for p in supervised:
        j = reader.cuts[p][0]
        for judged in (half, ~half):
            seen = np.unique(x[~judged, j])
            counts = np.zeros((K, len(seen)))
            w = np.ones(n) if weights is None else weights
            np.add.at(counts, (labels[~judged], np.searchsorted(seen, x[~judged, j])), w[~judged])
            last = seen[sorted(supervised_cuts(counts))]  # the last value before each cut
            bins = np.searchsorted(last, x[:, j], side="left")
            expected = of_cells(bins, labels, weights, reader.prior, VIRTUAL, left_out=True)
            np.testing.assert_allclose(found[judged, p], expected[judged], rtol=1e-9, atol=1e-12)
    unsupervised = np.setdiff1d(np.arange(len(reader.pieces)), supervised)
    np.testing.assert_array_equal(found[:, unsupervised], Tables.evidence(reader, rows)[:, unsupervised])


def test_supervised_bins_judge_new_rows_by_the_cuts_of_all():
    n = 200
    labels = labels_of(2, n)
    x = np.random.default_rng(8).normal(3.0 * labels)[:, np.newaxis]
    reader = binned(x, labels)
    rows = Rows(x, labels, None, np.arange(n) % 2 == 0)
    before = reader.evidence(Rows(x))
    reader = reader.prepared(rows)
    reader.evidence(rows)
    np.testing.assert_array_equal(reader.evidence(Rows(x)), before)


def told(evidence, labels, prior):
    """(pieces) mean over rows of what a piece tells of the right class, in nats."""
    z = np.log(prior) + evidence
    own = np.take_along_axis(z, labels[:, np.newaxis, np.newaxis], axis=2)[:, :, 0]
    return (own - np.log(np.exp(z).sum(axis=2)) - np.log(prior)[labels][:, np.newaxis]).mean(axis=0)


@classes
def test_noise_has_no_positive_evidence_in_the_mean(K):
    """Each row by all others; were it judged by itself as well, fine bins would tell much."""
    n, d = 300, 40
    rng = np.random.default_rng(9)
    x, labels = rng.normal(size=(n, d)), labels_of(K, n)
    reader = binned(x, labels, None, K)
    rows = Rows(x, labels, None, rng.random(n) < 0.5)
    reader = reader.prepared(rows)
    honest, dishonest = (told(reader.evidence(given), labels, reader.prior) for given in (rows, Rows(x)))
    kinds = np.array([piece.kind for piece in reader.pieces])
    for kind in np.unique(kinds):
        assert honest[kinds == kind].mean() < 0.002, kind
    assert dishonest[kinds == f"{SCALES[-1]} bins"].mean() > 0.01


def test_supervised_bins_found_in_noise_are_not_believed():
    """Columns that all rows together cut, by chance: what was found by one half does not help the other."""
    n, tried = 200, 400
    rng = np.random.default_rng(10)
    x, labels = rng.normal(size=(n, tried)), labels_of(2, n)
    reader = binned(x, labels)
    supervised = np.array([piece.kind == "supervised bins" for piece in reader.pieces])
    assert supervised.sum() > 3
    rows = Rows(x, labels, None, rng.random(n) < 0.5)
    reader = reader.prepared(rows)
    assert told(reader.evidence(rows), labels, reader.prior)[supervised].mean() < 0.005
    assert told(Tables.evidence(reader, rows), labels, reader.prior)[supervised].mean() > 0.01


# Pairs and leaves ----------------------------------------------------------------------------------------------------

CODING = Coding(((0.5, 1.5), None, (0.5, 1.5)), (None, ("u", "v"), None))


def codes_of(n=N, seed=11):
    return np.random.default_rng(seed).integers(0, 4, (n, 3)).astype(np.uint8)


@weighted
@classes
def test_pairs_left_out_were_never_learned(K, weighted):
    family = Pairs(CODING, ((0, 1), (2, 0)))
    codes, labels, weights = codes_of(), labels_of(K), weights_of(weighted)
    assert_left_out_is_unlearned(family, codes, lambda s, p: Paired((5, 6, 8), family, s, p), labels, weights, K)
    reader = Paired((5, 6, 8), family, family.collect(codes, labels, weights, K), shares(labels, weights, K))
    assert [piece.columns for piece in reader.pieces] == [(5, 6), (8, 5)]
    for p, (a, b) in enumerate(family.pairs):
        cells = codes[:, a].astype(int) * 4 + codes[:, b]
        expected = of_cells(cells, labels, weights, reader.prior, VIRTUAL, left_out=True)
        found = reader.evidence(Rows(codes, labels, left(weights)))[:, p]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def grown(codes, labels, weights, K, trees):
    forest = Forest.grown(CODING, codes, labels, weights, K, trees, seed=3)
    reader = Leaves((1, 2, 4), forest, forest.collect(codes, labels, weights, K), shares(labels, weights, K))
    return forest, reader


@weighted
@pytest.mark.parametrize("trees", [1, 2, 9])
@classes
def test_leaves_of_a_row_left_out_are_those_of_trees_that_never_saw_it(K, trees, weighted):
    codes, labels, weights = codes_of(), labels_of(K), weights_of(weighted)
    forest, reader = grown(codes, labels, weights, K, trees)
    leaves, seen = forest.cells(codes), forest.seen(codes)
    assert seen.any()
    assert not seen.all()
    assert seen.all(axis=1).any() or trees > 1  # of such a row nothing is said
    for given, skip, left_out in (
        (Rows(codes), np.zeros_like(seen), False),
        (Rows(codes, labels, left(weights)), seen, True),
    ):
        each = np.stack(
            [
                of_cells(leaves[:, t], labels, weights, reader.prior, reader.virtual, left_out=left_out)
                for t in range(trees)
            ],
            axis=1,
        )
        each[skip] = 0.0
        expected = each.sum(axis=1) / np.maximum((~skip).sum(axis=1), 1)[:, np.newaxis]
        np.testing.assert_allclose(reader.evidence(given)[:, 0], expected, rtol=1e-9, atol=1e-12)


def test_trees_that_learned_noise_do_not_foretell_it():
    """Grown to the last row, they know every row by heart; those that never saw it know nothing of it."""
    n = 300
    rng = np.random.default_rng(12)
    codes, labels = rng.integers(0, 60, (n, 4)).astype(np.uint8), labels_of(2, n)
    reading = Coding((tuple(np.arange(0.5, 60)),) * 4, (None,) * 4)
    forest = Forest.grown(reading, codes, labels, None, 2, 20, 0)
    reader = Leaves(range(4), forest, forest.collect(codes, labels, None, 2), shares(labels))
    assert told(reader.evidence(Rows(codes, labels)), labels, reader.prior)[0] < 0.01
    assert told(reader.evidence(Rows(codes)), labels, reader.prior)[0] > 0.2


# What shares add up to -----------------------------------------------------------------------------------------------


def readers():
    labels = labels_of(3)
    prior = shares(labels)
    values = coded([letters(), letters(seed=3)], [("u", "v", "w", None)] * 2)
    yield "values", Values((0, 2), Categorical().collect(values, labels, None, 3), prior), values
    missing = (RNG.random((N, 2)) < 0.3).astype(float)
    yield "present", Present((0, 2), Bernoulli().collect(missing, labels, None, 3), prior), missing
    x = np.where(RNG.random((N, 2)) < 0.1, np.nan, RNG.normal(labels[:, np.newaxis], size=(N, 2)))
    yield "bins", binned(x, labels, None, 3), x
    codes, family = codes_of(), Pairs(CODING, ((0, 1), (1, 2)))
    yield "pairs", Paired((0, 2, 3), family, family.collect(codes, labels, None, 3), prior), codes
    for trees in (1, 7):
        yield f"{trees} trees", grown(codes, labels, None, 3, trees)[1], codes


CASES = {name: (reader, values) for name, reader, values in readers()}


@pytest.mark.parametrize("name", CASES)
def test_shares_of_columns_sum_to_what_is_added(name):
    reader, values = CASES[name]
    weights = np.random.default_rng(13).exponential(size=(len(reader.pieces), 3))
    out = np.full((N, 3), 0.5)
    reader.adder(weights)(values, out)
    expected = 0.5 + np.einsum("npk,pk->nk", reader.evidence(Rows(values)), weights)
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=1e-11)
    split = list(reader.split(values, weights))
    np.testing.assert_allclose(0.5 + sum(share for _, share in split), expected, rtol=1e-10, atol=1e-11)
    assert {column for columns, _ in split for column in columns} <= {0, 1, 2, 3, 4}


@pytest.mark.parametrize("name", CASES)
def test_evidence_is_centred_and_a_row_is_judged_alike_whatever_stands_around_it(name):
    reader, values = CASES[name]
    rows = Rows(values, labels_of(3))
    for given in (rows, Rows(values)):
        found = reader.evidence(given)
        np.testing.assert_allclose(found.sum(axis=2), 0.0, atol=1e-10)
        for i in (0, N - 1):
            np.testing.assert_array_equal(reader.evidence(given.some(slice(i, i + 1)))[0], found[i])
    assert reader.n_parameters > 0


def test_a_step_of_a_tree_belongs_to_the_column_that_it_asks_for():
    """Only the first column tells the class, so trees ask for it and it has nearly all that they say."""
    codes = codes_of(400)
    labels = (codes[:, 0] > 1).astype(np.int32)
    _, reader = grown(codes, labels, None, 2, 8)
    shares_of = dict(reader.split(codes, np.ones((1, 2))))
    assert [*shares_of] == [(1,), (2,), (4,)]
    strength = {columns: np.abs(share).mean() for columns, share in shares_of.items()}
    assert strength[1,] > 10 * max(strength[2,], strength[4,])
